//! What the spec says of requests and targets, read and checked once.

use hyper::header::HeaderName;
use sinew_core::{Parameters, Refusal};
use sinew_spec::{Data, Item, item_json};

use super::ask::{self, Form};
use super::proxy::Forwarded;
use super::target::{self, Hosts};
use super::targets::{Balance, Health};
use crate::script::template::{Template, filled};

/// The health checks of targets, if the spec asks for them.
pub(super) fn health(parameters: &Parameters<'_>) -> Option<Health> {
    Some(parameters.text("health")).filter(|path| !path.is_empty()).map(|path| Health {
        path: path.to_owned(),
        every: parameters.duration("health_every"),
        deadline: parameters.duration("health_deadline"),
        fails: parameters.integer("health_fails") as u32,
        passes: parameters.integer("health_passes") as u32,
    })
}

/// How the other server is told who asks, if requests are passed on.
fn proxied(parameters: &Parameters<'_>) -> Option<Forwarded> {
    parameters.bool("proxy").then(|| match parameters.text("forwarded") {
        "append" => Forwarded::Append,
        "keep" => Forwarded::Keep,
        _ => Forwarded::Set,
    })
}

/// A parameter of a proxy, whose value comes from the packet. Refuses a value that the spec sets
/// too.
fn of_packet(parameters: &Parameters<'_>, name: &str, refusals: &mut Vec<Refusal>) -> Item {
    let given = parameters.yaml(name);
    let text = |text: String| Item::scalar(given.span, text, false, None);
    let (own, default) = match name {
        "method" => (text("{{ packet.method }}".to_owned()), "GET".into()),
        "query" => (text("{{ packet.?query.orValue({}) }}".to_owned()), serde_json::json!({})),
        "body" => (given.clone(), serde_json::Value::Null),
        "url" => {
            let url = given.text().unwrap_or_default();
            return match url.contains("{{") {
                true => given.clone(),
                false => text(format!("{}{{{{ packet.path }}}}", url.trim_end_matches('/'))),
            };
        }
        _ => return given.clone(),
    };
    if item_json(given) != default {
        let message = format!("'{name}' is that of the packet with 'proxy: true'");
        refusals.push(Refusal::new(given.span, message, "remove it, or 'proxy'"));
    }
    own
}

/// Refuses targets that are not valid, and a url or `health` that does not fit them.
fn check_targets(parameters: &Parameters<'_>, refusals: &mut Vec<Refusal>) {
    let mut refuse = |name: &str, message: String, help: &str| {
        refusals.push(Refusal::new(parameters.span(name), message, help));
    };
    for base in parameters.texts("targets") {
        let help = "write scheme, host and port, such as http://10.0.0.1:9000";
        match target::parse(base, &Hosts::All) {
            Ok(_) if !base.contains(['?', '#', '{']) => {}
            Ok(_) => {
                refuse("targets", format!("'{base}' has more than scheme, host and port"), help)
            }
            Err(message) => refuse("targets", message, help),
        }
    }
    let url = parameters.yaml("url").text().unwrap_or_default();
    let (has_url, has_targets) = (!url.is_empty(), !parameters.texts("targets").is_empty());
    match (has_url, has_targets) {
        (true, true) if !url.starts_with('/') && !url.starts_with("{{") => {
            let help = "write the path behind the targets, such as '/users/{{ packet.id }}'";
            refuse("url", format!("with 'targets', '{url}' must be a path"), help);
        }
        // The path of the packet is appended to the url, so the url must not have a query or
        // fragment.
        (true, false) if parameters.bool("proxy") && !url.contains("{{") => {
            if let Err(message) = target::parse(url, &Hosts::All) {
                refuse("url", message, "write a url such as http://host:9000");
            } else if url.contains(['?', '#']) {
                refuse(
                    "url",
                    format!("'{url}' has more than scheme, host, port and path"),
                    "leave out the query",
                );
            }
        }
        (false, false) if matches!(parameters.yaml("url").data, Data::Scalar { .. }) => {
            refuse(
                "url",
                "there is neither 'url' nor 'targets'".to_owned(),
                "write url: http://host/path",
            );
        }
        _ => {}
    }
    let path = parameters.text("health");
    let is_path = path.starts_with('/') && has_targets;
    if !path.is_empty() && !is_path {
        let help = "write targets, and health: /health";
        refuse("health", "'health' is a path that 'targets' are asked for".to_owned(), help);
    }
}

/// Compiles the templates; what is the same for every packet is checked here.
pub(super) fn form(parameters: &Parameters<'_>, refusals: &mut Vec<Refusal>) -> Option<Form> {
    let before = refusals.len();
    check_targets(parameters, refusals);
    if refusals.len() > before {
        return None;
    }
    let proxied = proxied(parameters);
    let mut template = |name: &str| {
        let compiled = match proxied {
            Some(_) => Template::compile(&of_packet(parameters, name, refusals)),
            None => Template::compile(parameters.yaml(name)),
        };
        compiled.map_err(|wrong| refusals.extend(wrong)).ok()
    };
    let (url, method) = (template("url"), template("method"));
    let (query, header, body) = (template("query"), template("header"), template("body"));
    let hosts = hosts(parameters).map_err(|wrong| refusals.push(wrong)).ok();
    if let Some(Err(message)) = method.as_ref().and_then(Template::constant).map(ask::method) {
        let help = "write GET, POST, PUT, PATCH or DELETE";
        refusals.push(Refusal::new(parameters.span("method"), message, help));
    }
    check_names(parameters.yaml("header"), refusals);
    let (url, hosts) = (url?, hosts?);
    if parameters.texts("targets").is_empty()
        && let Some(constant) = url.constant()
        && let Err(message) = target::parse(constant.as_text().unwrap_or_default(), &hosts)
    {
        let help = "write a url such as http://host/path";
        refusals.push(Refusal::new(parameters.span("url"), message, help));
    }
    let (method, query, header, body) = (method?, query?, header?, body?);
    Some(Form { url, method, query, header, body, hosts, proxied })
}

/// The hosts of the spec; without any, those of the targets, or else the one in the url.
fn hosts(parameters: &Parameters<'_>) -> Result<Hosts, Refusal> {
    let texts = parameters.texts("hosts");
    if !texts.is_empty() {
        let help = "write names or addresses, with or without a port, such as [api.example:8080]";
        let refusal = |message| Refusal::new(parameters.span("hosts"), message, help);
        return Hosts::read(texts).map_err(refusal);
    }
    let of_target = |base: &String| Hosts::of_url(base);
    let targets: Vec<Hosts> = parameters.texts("targets").iter().filter_map(of_target).collect();
    if !targets.is_empty() {
        return Ok(Hosts::all_of(targets));
    }
    // Values from outside of the spec do not depend on packets, so they are filled in. If one is
    // missing, compiling the url reports it.
    let url = parameters.yaml("url");
    let url = filled(url).unwrap_or_else(|_| url.clone());
    let Data::Scalar { text, .. } = &url.data else {
        let message = format!("url takes a text, found {}", url.sort());
        return Err(Refusal::new(url.span, message, "write a url such as http://host/path"));
    };
    match Hosts::of_url(text) {
        None if text.contains("{{") => {
            let help = "list the hosts that it may name: hosts: [api.example]; '*' means all";
            Err(Refusal::new(url.span, "a packet says which host is asked", help))
        }
        // A constant url without a host is refused where the url itself is checked.
        found => Ok(found.unwrap_or(Hosts::All)),
    }
}

/// Checks the names of headers in the spec.
fn check_names(header: &Item, refusals: &mut Vec<Refusal>) {
    let Data::Map(entries) = &header.data else { return };
    for entry in entries {
        let name = HeaderName::from_bytes(entry.key.as_bytes());
        let (message, help) = match name {
            Err(_) => {
                (format!("{:?} is not a name of a header", entry.key), "write letters and '-'")
            }
            Ok(name) if ask::is_own(&name) => {
                let message = format!("the header '{name}' follows from the url and the body");
                (message, "leave it out")
            }
            Ok(_) => continue,
        };
        refusals.push(Refusal::new(entry.span, message, help));
    }
}

/// Which target is asked.
pub(super) fn balance(parameters: &Parameters<'_>) -> Balance {
    match parameters.text("balance") {
        "least_requests" => Balance::LeastRequests,
        _ => Balance::RoundRobin,
    }
}

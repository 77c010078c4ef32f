//! `http`: asks another server.

mod answer;
mod ask;
mod connect;
mod target;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use answer::Answer;
use ask::{ClientRequest, Form};
pub(crate) use connect::roots;
use connect::{Answered, Connector, Names};
use hyper::body::Incoming;
use hyper::header::HeaderName;
use hyper::http::Extensions;
use hyper::{Response, StatusCode};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input,
    output,
};
use sinew_spec::{Data, Item};
use target::Hosts;
use tokio::time::timeout;

use super::body::Body;
use crate::script::template::Template;

/// The row of the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

/// The other server cannot be reached, or says nonsense.
const BAD_GATEWAY: u16 = 502;
/// The other server is late.
const GATEWAY_TIMEOUT: u16 = 504;

/// So often a request is sent again because the kept connection that it went over turned out to be
/// closed; past that it is an error. Each time takes a dead connection out of the pool.
const REPEATS_MAX: u32 = 3;

const SECOND_NS: u64 = 1_000_000_000;

const fn yaml(name: &'static str, doc: &'static str, default: Option<&'static str>) -> Parameter {
    Parameter { name, doc, unit: "", ty: ParameterType::Yaml, default }
}

const fn flag(name: &'static str, doc: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Bool).or("false").doc(doc)
}

static INFO: Kind = Kind {
    name: "http",
    doc: "Asks another server over HTTP, and passes its answer on as {status, header, body}. An \
          answer is an answer whatever its status, unless 'fail' says otherwise; a server that \
          cannot be reached or answers nonsense is an error with status 502, one that is late 504. \
          Connections are kept and used again, HTTP/2 where the server offers it over TLS.",
    ports: &[
        input("in", "What the templates are filled from."),
        output("out", "The answer."),
        error(),
    ],
    parameters: &[
        yaml("url", "Where to, such as http://host/path; a template.", None),
        yaml("method", "A template.", Some("GET")),
        yaml("query", "What is added to the url's query: a mapping; a template.", Some("{}")),
        yaml("header", "Headers by name: a mapping; a template.", Some("{}")),
        yaml(
            "body",
            "A template: text, bytes, a stream, a listener's request (its body as it came), or \
             nothing; any other value becomes JSON.",
            Some("null"),
        ),
        Parameter::new("hosts", ParameterType::Texts { max: 1024 }).or("[]").doc(
            "Where requests and redirects may go: hosts with or without a port, or '*' for all. \
             Without it only the host in the url, which then must not be a template.",
        ),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("30s")
        .doc(
            "Longest time until the whole answer is there; with 'stream' until it begins, and then \
             for each part.",
        ),
        Parameter::new("redirects", ParameterType::Integer { min: 0, max: 20 }).or("0").doc(
            "How many redirects are followed, to the same scheme only. With 0 a redirect is the \
             answer.",
        ),
        flag("stream", "Whether the body is passed on while it comes, instead of gathered."),
        flag("fail", "Whether an answer with a status of 400 or more is an error (502)."),
        Parameter::new(
            "body_size_max",
            ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 30 },
        )
        .or("8MiB")
        .doc("Longest body that is gathered."),
        Parameter::new("protocol", ParameterType::Choice(&["auto", "http1", "h2"]))
            .or("auto")
            .doc("auto: HTTP/2 where TLS agrees on it, else HTTP/1.1. h2: HTTP/2 without asking."),
        Parameter::new("ca", ParameterType::Text).or("''").doc(
            "A PEM file with the authorities to trust, instead of those that browsers trust; \
             empty: those.",
        ),
        Parameter::new("idle_connections_max", ParameterType::Integer { min: 0, max: 100_000 })
            .or("32")
            .doc("Most unused connections that each worker keeps for a host."),
        Parameter::new(
            "idle_max",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("60s")
        .doc("How long an unused connection is kept."),
    ],
    ..FLOW
};

const OUT: usize = 1;

struct Http {
    form: Form,
    client: Client<Connector, Body<()>>,
    names: Names,
    patience: Duration,
    redirects_max: i64,
    body_size_max: u64,
    streams: bool,
    fails: bool,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let form = form(parameters, &mut refusals);
    let names = Names::default();
    let client = client(parameters, names.clone()).map_err(|message| {
        let help = "write the path of a PEM file, from the folder of the spec";
        refusals.push(Refusal::new(parameters.span("ca"), message, help));
    });
    match (form, client) {
        (Some(form), Ok(client)) if refusals.is_empty() => Ok(Box::new(Http {
            form,
            client,
            names,
            patience: parameters.duration("deadline"),
            redirects_max: parameters.integer("redirects"),
            body_size_max: parameters.size("body_size_max"),
            streams: parameters.bool("stream"),
            fails: parameters.bool("fail"),
        })),
        _ => Err(refusals),
    }
}

/// Compiles the templates; what is the same for every packet is checked here.
fn form(parameters: &Parameters<'_>, refusals: &mut Vec<Refusal>) -> Option<Form> {
    let mut template = |name: &str| {
        let compiled = Template::compile(parameters.yaml(name));
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
    if let Some(constant) = url.constant()
        && let Err(message) = target::parse(constant.as_text().unwrap_or_default(), &hosts)
    {
        let help = "write a url such as http://host/path";
        refusals.push(Refusal::new(parameters.span("url"), message, help));
    }
    let (method, query, header, body) = (method?, query?, header?, body?);
    Some(Form { url, method, query, header, body, hosts })
}

/// The hosts of the spec; without any, the one in the url.
fn hosts(parameters: &Parameters<'_>) -> Result<Hosts, Refusal> {
    let texts = parameters.texts("hosts");
    if !texts.is_empty() {
        let help = "write names or addresses, with or without a port, such as [api.example:8080]";
        let refusal = |message| Refusal::new(parameters.span("hosts"), message, help);
        return Hosts::read(texts).map_err(refusal);
    }
    let url = parameters.yaml("url");
    let Data::Scalar { text, .. } = &url.data else {
        let message = format!("url takes a text, found {}", url.sort());
        return Err(Refusal::new(url.span, message, "write a url such as http://host/path"));
    };
    match Hosts::of_url(text) {
        None if text.contains("{{") => {
            let help = "list the hosts that it may name: hosts: [api.example]; '*' means all";
            Err(Refusal::new(url.span, "a packet says which host is asked", help))
        }
        // A constant url without a host is refused for what it is.
        found => Ok(found.unwrap_or(Hosts::All)),
    }
}

/// Checks the names of headers that stand in the spec.
fn check_names(header: &Item, refusals: &mut Vec<Refusal>) {
    let Data::Map(entries) = &header.data else { return };
    for entry in entries {
        let name = HeaderName::from_bytes(entry.key.as_bytes());
        let (message, help) = match name {
            Err(_) => (format!("{:?} is no name of a header", entry.key), "write letters and '-'"),
            Ok(name) if ask::is_own(&name) => {
                let message = format!("the header '{name}' follows from the url and the body");
                (message, "leave it out")
            }
            Ok(_) => continue,
        };
        refusals.push(Refusal::new(entry.span, message, help));
    }
}

/// A client with its pool of connections, which are made when they are needed.
fn client(
    parameters: &Parameters<'_>,
    names: Names,
) -> Result<Client<Connector, Body<()>>, String> {
    let ca = (!parameters.text("ca").is_empty()).then(|| parameters.path("ca"));
    let roots = roots(ca.as_deref())?;
    let protocol = parameters.text("protocol");
    let connector = connect::connector(roots, names, protocol != "http1");
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(parameters.duration("idle_max"))
        .pool_max_idle_per_host(parameters.integer("idle_connections_max") as usize)
        .http2_only(protocol == "h2")
        .build(connector))
}

impl FlowNode for Http {
    fn attach(&mut self, site: &NodeContext) {
        self.names.attach(site.pool.clone());
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.ask(at.flow(), &packet).await {
                Ok(answer) => {
                    let packet = Value::Document(Arc::new(answer));
                    let prepared = at.flow().prepare(&packet).await;
                    prepared.map_or_else(Step::Fail, |()| Step::Pass(OUT, packet))
                }
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Http {
    /// Asks, and waits for the answer as long as the spec says.
    async fn ask(&self, flow: &Flow, packet: &Value) -> Result<Answer, Error> {
        let mut ask = self.form.fill(flow, packet).await?;
        let patience = self.patience;
        match timeout(patience, self.exchange(&mut ask)).await {
            Ok(outcome) => outcome.map_err(|text| failed(&ask, &text).with_status(BAD_GATEWAY)),
            Err(_) => {
                let text = format!("no answer within {patience:?}; raise 'deadline'");
                Err(failed(&ask, &text).with_status(GATEWAY_TIMEOUT))
            }
        }
    }

    /// Asks, and goes where the answers lead.
    async fn exchange(&self, ask: &mut ClientRequest) -> Result<Answer, String> {
        let mut redirects = 0;
        let response = loop {
            let response = self.send(ask).await?;
            if self.redirects_max == 0 {
                break response;
            }
            let Some(next) = ask.redirected(&response, &self.form.hosts)? else { break response };
            if redirects == self.redirects_max {
                return Err(format!("more than {redirects} redirects; raise 'redirects'"));
            }
            redirects += 1;
            *ask = next;
        };
        let (parts, body) = response.into_parts();
        if self.fails && parts.status >= StatusCode::BAD_REQUEST {
            return Err(format!("answered {}", parts.status));
        }
        let body = if self.streams {
            answer::ReplyBody::Stream(answer::stream(body, self.patience))
        } else {
            let bytes = answer::gather(body, self.body_size_max).await?;
            answer::ReplyBody::Whole(bytes, OnceLock::new())
        };
        Ok(Answer::new(parts, body))
    }

    /// Sends a request, again if the connection that it went over was closed meanwhile.
    async fn send(&self, ask: &mut ClientRequest) -> Result<Response<Incoming>, String> {
        let mut repeats = 0;
        loop {
            match self.client.request(ask.request()).await {
                Ok(response) => {
                    if let Some(answered) = response.extensions().get::<Answered>() {
                        answered.store(true, Ordering::Relaxed);
                    }
                    return Ok(response);
                }
                Err(error) if ask.can_repeat() && repeats < REPEATS_MAX && was_kept(&error) => {
                    repeats += 1;
                }
                Err(error) => return Err(chain(&error)),
            }
        }
    }
}

/// Whether the connection had answered before, and broke without saying anything wrong.
fn was_kept(error: &ClientError) -> bool {
    let mut extensions = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    let reason = std::error::Error::source(error).and_then(|it| it.downcast_ref::<hyper::Error>());
    let is_nonsense = reason.is_some_and(|it| it.is_parse() || it.is_user());
    extensions.get::<Answered>().is_some_and(|it| it.load(Ordering::Relaxed)) && !is_nonsense
}

#[cold]
fn failed(ask: &ClientRequest, text: &str) -> Error {
    Error::new(format_args!("{}: {text}", ask.shown()))
}

/// An error with all its reasons, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(reason) = next {
        let reason_text = reason.to_string();
        if !text.ends_with(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        next = reason.source();
    }
    text
}

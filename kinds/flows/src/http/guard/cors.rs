//! `cors`: lets pages of other sites send requests, as far as the spec allows it (the Fetch
//! standard, 3.2).

#[cfg(test)]
mod tests;

use bytestring::ByteString;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, input, output};

use super::super::response::with_headers;
use super::{OUT, header};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

/// Most names in a list of the spec.
const NAMES_MAX: usize = 64;
const NAMES: ParameterType = ParameterType::Texts { max: NAMES_MAX };

static INFO: Kind = Kind {
    name: "cors",
    doc: "Lets pages of other sites send requests (CORS): it answers a browser's preflight \
          request, passes all other requests on, and adds to each reply, also to an error, the \
          headers that let the page read it. Put it before the router.",
    ports: &[
        input("in", "A request, or a mapping with 'method' and 'header'."),
        output("out", "The same packet; its reply gets the headers."),
    ],
    parameters: &[
        Parameter::new("origins", NAMES)
            .doc("The sites, such as https://app.example; ['*']: any, without credentials."),
        Parameter::new("methods", NAMES)
            .or("[GET, HEAD, POST, PUT, PATCH, DELETE]")
            .doc("Methods that such pages may use."),
        Parameter::new("headers", NAMES)
            .or("[authorization, content-type]")
            .doc("Headers that such pages may send."),
        Parameter::new("expose", NAMES).or("[]").doc("Headers of a reply that they may read."),
        Parameter::new("credentials", ParameterType::Bool)
            .or("false")
            .doc("Whether browsers send cookies along."),
        Parameter::new(
            "max_age",
            ParameterType::Duration { min_ns: 0, max_ns: 86_400_000_000_000 },
        )
        .or("10m")
        .doc("How long a browser may remember the answer to a preflight request."),
    ],
    ..FLOW
};

struct Cors {
    /// `None`: any.
    origins: Option<Vec<ByteString>>,
    methods: ByteString,
    headers: ByteString,
    expose: ByteString,
    credentials: bool,
    max_age_s: ByteString,
}

type Headers = Vec<(&'static str, ByteString)>;

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let credentials = parameters.bool("credentials");
    let mut refuse = |name: &str, text: String, help: &str| {
        refusals.push(Refusal::new(parameters.span(name), text, help));
    };
    for name in ["origins", "methods", "headers", "expose"] {
        let is_any = parameters.texts(name).iter().any(|text| text == "*");
        if is_any && credentials {
            let text = format!("'*' in '{name}' with credentials: any site could act for a user");
            refuse(name, text, "name them, or leave 'credentials' out");
        }
        if is_any && name == "origins" && parameters.texts(name).len() > 1 {
            let text = "'*' is given together with other origins".to_owned();
            refuse(name, text, "write ['*'] alone, or leave it out");
        }
        let is_bad = |text: &&String| {
            let is_sign = |sign: char| sign.is_ascii_graphic() && sign != ',';
            text.is_empty() || !text.chars().all(is_sign)
        };
        if let Some(bad) = parameters.texts(name).iter().find(is_bad) {
            refuse(name, format!("'{bad}' is not a single name"), "write each name by itself");
        }
    }
    let is_site = |text: &&String| *text == "*" || *text == "null" || is_origin(text);
    if let Some(bad) = parameters.texts("origins").iter().find(|text| !is_site(text)) {
        let text = format!("'{bad}' is not an origin");
        refuse("origins", text, "write scheme and name, without a path: https://app.example");
    }
    if parameters.texts("origins").is_empty() {
        refuse("origins", "no origin is named".to_owned(), "write origins: [https://app.example]");
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let joined = |name| parameters.texts(name).join(", ").into();
    let origins = parameters.texts("origins");
    let listed = || origins.iter().map(|origin| origin.to_lowercase().into()).collect();
    Ok(Box::new(Cors {
        origins: (origins[0] != "*").then(listed),
        methods: joined("methods"),
        headers: joined("headers"),
        expose: joined("expose"),
        credentials,
        max_age_s: parameters.duration("max_age").as_secs().to_string().into(),
    }))
}

/// Whether it is a scheme, a name and perhaps a port, and nothing more.
fn is_origin(text: &str) -> bool {
    let site = text.split_once("://").filter(|(scheme, _)| !scheme.is_empty());
    site.is_some_and(|(_, name)| !name.is_empty() && !name.contains(['/', '?', '#', '@', '*']))
}

impl FlowNode for Cors {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let read = || -> Result<(Option<ByteString>, bool), Error> {
            let is_options = packet.field("method")?.as_text() == Some("OPTIONS");
            let asks = is_options && header(&packet, "access-control-request-method")?.is_some();
            Ok((header(&packet, "origin")?, asks))
        };
        let (origin, asks) = match read() {
            Ok(read) => read,
            Err(error) => return Step::Fail(error),
        };
        let mut headers = self.headers(origin.as_ref());
        if origin.is_some() && asks {
            if headers.iter().any(|(name, _)| *name == ALLOW_ORIGIN) {
                headers.push(("access-control-allow-methods", self.methods.clone()));
                headers.push(("access-control-allow-headers", self.headers.clone()));
                headers.push(("access-control-max-age", self.max_age_s.clone()));
            }
            let headers = headers.into_iter().map(|(name, value)| (name, Value::Text(value)));
            let answer = [("status", Value::Integer(204)), ("header", Value::map(headers))];
            return Step::Reply(Some(Value::map(answer)));
        }
        if headers.is_empty() {
            return Step::Pass(OUT, packet);
        }
        Step::wait(async move {
            match at.call(OUT, packet).await {
                Ok(reply) => {
                    let made = with_headers(at.flow(), reply.unwrap_or_default(), headers);
                    made.map_or_else(Step::Fail, |reply| Step::Reply(Some(reply)))
                }
                Err(error) => {
                    let with = |error: Error, (name, value)| error.with_header(name, value);
                    Step::Fail(headers.into_iter().fold(error, with))
                }
            }
        })
    }
}

const ALLOW_ORIGIN: &str = "access-control-allow-origin";

impl Cors {
    /// The headers of a reply to a page of this origin. Where they depend on the origin, `vary`
    /// tells caches so.
    fn headers(&self, origin: Option<&ByteString>) -> Headers {
        let mut headers = Vec::new();
        let allowed = match &self.origins {
            None => origin.map(|_| ByteString::from_static("*")),
            Some(listed) => {
                headers.push(("vary", ByteString::from_static("origin")));
                origin.filter(|origin| listed.contains(&origin.to_lowercase().into())).cloned()
            }
        };
        let Some(allowed) = allowed else { return headers };
        headers.push((ALLOW_ORIGIN, allowed));
        if self.credentials {
            headers.push(("access-control-allow-credentials", ByteString::from_static("true")));
        }
        if !self.expose.is_empty() {
            headers.push(("access-control-expose-headers", self.expose.clone()));
        }
        headers
    }
}

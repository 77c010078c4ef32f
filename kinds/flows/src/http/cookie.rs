//! `cookie`: sets a cookie with the reply. Also reads and writes cookies (RFC 6265).

#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::time::Duration;

use bytestring::ByteString;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Map, Reply, Step, Value, error, input, output,
};

use super::response::{plain_text, with_headers};
use crate::script::taken;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

/// Parameters of a cookie beside its value, the same for all kinds that set one.
pub(crate) const SECURE: Parameter = Parameter::new("secure", ParameterType::Bool)
    .or("true")
    .doc("Whether browsers send it over TLS only; at localhost most of them do not require TLS.");
pub(crate) const SAME_SITE: Parameter =
    Parameter::new("same_site", ParameterType::Choice(&["lax", "strict", "none"])).or("lax").doc(
        "Whether browsers send it with requests from pages of other sites. lax: only when a link \
         is followed; strict: never; none: always.",
    );

static INFO: Kind = Kind {
    name: "cookie",
    doc: "Passes a packet on, and lets the reply set a cookie. Unless the spec says otherwise, \
          scripts of the page cannot read it, and browsers send it over TLS only, and not with \
          requests from pages of other sites. An error sets no cookie.",
    ports: &[input("in", "The packet."), output("out", "The same packet."), error()],
    parameters: &[
        Parameter::new("cookie", ParameterType::Text).doc("The name of the cookie."),
        Parameter::new("value", ParameterType::Yaml)
            .doc("Its value, as a template. Nothing (null) deletes the cookie."),
        Parameter::new("max_age", ParameterType::Duration { min_ns: 0, max_ns: MAX_AGE_NS_MAX })
            .or("0s")
            .doc("How long the browser keeps it; 0s: until the browser is closed."),
        Parameter::new("path", ParameterType::Text)
            .or("/")
            .doc("Browsers send it for this path and all below it."),
        Parameter::new("cookie_domain", ParameterType::Text)
            .or("")
            .doc("Browsers send it to this domain and all below it. Default: to this server only."),
        SECURE,
        SAME_SITE,
        Parameter::new("http_only", ParameterType::Bool)
            .or("true")
            .doc("Whether scripts of the page cannot read it."),
    ],
    ..FLOW
};

const OUT: usize = 1;
/// Longest that a cookie may be kept: browsers keep none for longer than 400 days.
pub(crate) const MAX_AGE_NS_MAX: u64 = 400 * 24 * 3600 * 1_000_000_000;
/// Longest cookie, name and value: browsers drop longer ones.
const LEN_MAX: usize = 4096;

/// A cookie without its value.
#[derive(Debug)]
pub(crate) struct CookieFrame {
    pub(crate) name: ByteString,
    /// The attributes that follow its value, except `Max-Age`.
    traits: String,
    max_age: Duration,
}

struct Cookie {
    frame: CookieFrame,
    value: Template,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let max_age = parameters.duration("max_age");
    let places = (parameters.text("path"), parameters.text("cookie_domain"));
    let is_hidden = parameters.bool("http_only");
    let frame = CookieFrame::of(parameters, places, max_age, is_hidden);
    let frame = taken(frame, &mut refusals);
    let value = taken(Template::compile(parameters.yaml("value")), &mut refusals);
    match (frame, value) {
        (Some(frame), Some(value)) => Ok(Box::new(Cookie { frame, value })),
        _ => Err(refusals),
    }
}

impl FlowNode for Cookie {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.line(at.flow(), &packet).await {
                Ok(line) => {
                    let reply = at.call(OUT, packet).await;
                    Step::answer(reply.and_then(|reply| with_cookie(at.flow(), reply, line)))
                }
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Cookie {
    async fn line(&self, flow: &Flow, packet: &Value) -> Result<ByteString, Error> {
        let value = self.value.render(flow, packet).await?;
        if matches!(value, Value::Null) {
            return Ok(self.frame.deleted());
        }
        let text = plain_text(&value).ok_or_else(|| {
            let (name, sort) = (&self.frame.name, value.sort());
            Error::new(format_args!("the value of the cookie '{name}' is a text, this is {sort}"))
        })?;
        self.frame.line(&text)
    }
}

/// A reply that sets a cookie too.
///
/// # Errors
/// The reply cannot be an answer.
pub(crate) fn with_cookie(flow: &Flow, reply: Option<Value>, line: ByteString) -> Reply {
    with_headers(flow, reply.unwrap_or_default(), vec![("set-cookie", line)]).map(Some)
}

impl CookieFrame {
    /// The cookie that the parameters `cookie`, `secure` and `same_site` describe. Scripts of the
    /// page cannot read it if `is_hidden`.
    ///
    /// # Errors
    /// All reasons why it is not a cookie, or why browsers would drop it.
    pub(crate) fn of(
        parameters: &Parameters<'_>,
        (path, domain): (&str, &str),
        max_age: Duration,
        is_hidden: bool,
    ) -> Result<CookieFrame, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let mut refuse = |name: &str, text: String, help: &str| {
            refusals.push(Refusal::new(parameters.span(name), text, help));
        };
        let (cookie, secure) = (parameters.text("cookie"), parameters.bool("secure"));
        if cookie.is_empty() || cookie.len() > LEN_MAX / 4 || !cookie.bytes().all(is_name_byte) {
            let text = format!("'{cookie}' is not a name of a cookie");
            refuse("cookie", text, "write letters, digits, '-' and '_'");
        }
        if !path.starts_with('/') || path.bytes().any(|byte| byte == b';' || !is_plain(byte)) {
            let help = "write / or /shop, in plain letters and without a semicolon";
            refuse("path", format!("'{path}' is not a path of a cookie"), help);
        }
        let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        if !domain.bytes().all(is_in_name) {
            let text = format!("'{domain}' is not a name of servers");
            refuse("cookie_domain", text, "write shop.example");
        }
        let same_site = parameters.text("same_site");
        if same_site == "none" && !secure {
            let text = "browsers drop a cookie for other sites that is not 'secure'".to_owned();
            refuse("same_site", text, "leave out 'secure: false', or write same_site: lax");
        }
        let is_host = cookie.starts_with("__Host-");
        if (is_host || cookie.starts_with("__Secure-")) && !secure {
            let text = format!("browsers drop the cookie '{cookie}' if it is not 'secure'");
            refuse("cookie", text, "write a name without '__Host-' and '__Secure-'");
        }
        if is_host && !(path == "/" && domain.is_empty()) {
            let text = format!("browsers drop the cookie '{cookie}' with a domain or another path");
            refuse("cookie", text, "leave out 'path' and 'domain', or write another name");
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let mut traits = format!("; Path={path}");
        if !domain.is_empty() {
            traits += &format!("; Domain={domain}");
        }
        traits += match same_site {
            "strict" => "; SameSite=Strict",
            "none" => "; SameSite=None",
            _ => "; SameSite=Lax",
        };
        for (trait_of, text) in [(secure, "; Secure"), (is_hidden, "; HttpOnly")] {
            traits += if trait_of { text } else { "" };
        }
        Ok(CookieFrame { name: cookie.into(), traits, max_age })
    }

    /// The line of a header `set-cookie` with this value.
    ///
    /// # Errors
    /// The value has what a cookie cannot hold, or is too long.
    pub(crate) fn line(&self, value: &str) -> Result<ByteString, Error> {
        let CookieFrame { name, traits, max_age } = self;
        if !value.bytes().all(is_value_byte) {
            return Err(Error::new(format_args!(
                "the value of the cookie '{name}' has spaces, quotes, commas, semicolons, \
                 backslashes or signs beyond ASCII; write it as base64.encode_url(...)"
            )));
        }
        let len = name.len() + value.len();
        if len > LEN_MAX {
            return Err(Error::new(format_args!(
                "the cookie '{name}' has {len} bytes, browsers keep {LEN_MAX} at most"
            )));
        }
        let mut line = format!("{name}={value}{traits}");
        if !max_age.is_zero() {
            // Writing to a text does not fail.
            let _ = write!(line, "; Max-Age={}", max_age.as_secs().max(1));
        }
        Ok(line.into())
    }

    /// The line of a header `set-cookie` that makes a browser forget the cookie.
    pub(crate) fn deleted(&self) -> ByteString {
        format!("{}={}; Max-Age=0", self.name, self.traits).into()
    }
}

/// The cookies of a request, in their order. Of several with the same name the first one counts,
/// which is the one with the longest path. What is not a cookie is left out.
pub(crate) fn parsed(header: &str) -> Map {
    let mut cookies = Map::new();
    for pair in header.split(';') {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let (name, value) = (name.trim(), value.trim());
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        if !name.is_empty() && !cookies.contains_key(name) {
            cookies.insert(name.into(), Value::text(bare.unwrap_or(value)));
        }
    }
    cookies
}

/// The cookie of a packet with this name, from its 'cookies' or its 'header'.
///
/// # Errors
/// The packet is malformed.
pub(crate) fn of_packet(packet: &Value, name: &str) -> Result<Option<ByteString>, Error> {
    let cookies = match packet.field("cookies")? {
        Value::Null => match packet.field("header")?.field("cookie")? {
            Value::Text(header) => Value::Map(parsed(&header).into()),
            _ => Value::Null,
        },
        cookies => cookies,
    };
    match cookies.field(name)? {
        Value::Text(value) => Ok(Some(value)),
        _ => Ok(None),
    }
}

/// A token of HTTP (RFC 9110, 5.6.2).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}

/// What a value may hold (RFC 6265, 4.1.1).
fn is_value_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

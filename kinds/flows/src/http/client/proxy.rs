//! What is passed on to another server as it came, and what is not.

use std::net::SocketAddr;

use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use sinew_flow::{Error, Value};

use crate::http::guard::header;
use crate::http::request::Request as Packet;
use crate::script::refused;

/// What the other server is told of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Forwarded {
    /// What this machine knows, in place of what the client says.
    Set,
    /// The same, appended to what the client says: the client is a trusted proxy.
    Append,
    /// What the client says.
    Keep,
}

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Removes the headers that are of one connection only, and sets those that say who asks.
///
/// # Errors
/// The packet is malformed.
pub(super) fn adapt(
    headers: &mut HeaderMap,
    packet: &Value,
    forwarded: Forwarded,
) -> Result<(), Error> {
    if let Some(named) = header(packet, CONNECTION.as_str())? {
        remove_all(headers, &named);
    }
    if forwarded == Forwarded::Keep {
        return Ok(());
    }
    let text = |name| Ok::<_, Error>(packet.field(name)?.as_text().map(str::to_owned));
    let remote = text("remote")?.and_then(|it| it.parse::<SocketAddr>().ok());
    let remote = remote.map(|it| it.ip().to_string());
    for (name, value) in [(FOR, remote), (PROTO, text("scheme")?), (HOST, text("host")?)] {
        let before = headers.remove(&name).filter(|_| forwarded == Forwarded::Append);
        let before = before.as_ref().and_then(|it| it.to_str().ok()).map(str::to_owned);
        let value = match (before, value) {
            (Some(before), Some(value)) if name == FOR => Some(format!("{before}, {value}")),
            // The scheme and host that the first proxy was asked for stay.
            (Some(before), _) => Some(before),
            (None, value) => value,
        };
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    Ok(())
}

/// Removes the headers that `Connection` names: they are of one connection only (RFC 9110, 7.6.1).
pub(super) fn without_named(headers: &mut HeaderMap) {
    let values: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    values.iter().filter_map(|it| it.to_str().ok()).for_each(|it| remove_all(headers, it));
}

fn remove_all(headers: &mut HeaderMap, names: &str) {
    for name in names.split(',') {
        headers.remove(name.trim());
    }
}

/// The query of a request as it came, if that is known.
pub(super) fn raw_query(packet: &Value) -> Option<&str> {
    Packet::of(packet)?.parts().uri.query()
}

/// Refuses a path that would lead out of the place that the spec names.
///
/// # Errors
/// A segment of it is `.` or `..`, escaped or not, or it does not begin with a slash (400).
pub(super) fn check_path(packet: &Value) -> Result<(), Error> {
    let path = packet.field("path")?;
    let is_dots = |part: &str| [".", ".."].contains(&&*part.to_lowercase().replace("%2e", "."));
    let is_bad = |path: &str| path.split(['/', '\\']).any(is_dots);
    match path.as_text() {
        Some(path) if is_bad(path) => Err(refused(400, "the path has a part '.' or '..'")),
        Some(path) if !path.is_empty() && !path.starts_with('/') => {
            Err(refused(400, "the path does not begin with a slash"))
        }
        _ => Ok(()),
    }
}

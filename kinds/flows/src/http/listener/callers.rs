//! Who may send requests: by the name that was called, and by the page that asks.
//!
//! A browser lets the pages of any site ask this machine. So a listener that only this machine can
//! reach, and every one whose spec says so, checks both.

use std::net::SocketAddr;

use sinew_control::hosts::{Hosts, PortRule};
use sinew_core::{Parameters, Refusal};

/// Allows every name, or every page.
const ALL: &str = "*";

/// Who may ask a listener.
pub(super) struct Callers {
    /// The names that nearly all clients call it by. They are allowed without a further check.
    usual: [String; 2],
    /// The names by which clients may call it; `None`: any.
    hosts: Option<Hosts>,
    /// The origins whose pages may ask, beside the listener's own; `None`: any.
    origins: Option<Vec<String>>,
}

impl Callers {
    /// What the spec says of a listener at this address.
    pub(super) fn of(parameters: &Parameters<'_>, address: SocketAddr) -> Result<Callers, Refusal> {
        let (hosts, origins) = (parameters.texts("hosts"), parameters.texts("origins"));
        if let Some(bad) = hosts.iter().find(|it| *it != ALL && !Hosts::is_name(it)) {
            let text = format!("'{bad}' is not a name of a server");
            let help = "write a name such as api.example, api.example:8443, or '*' for all";
            return Err(Refusal::new(parameters.span("hosts"), text, help));
        }
        if let Some(bad) = origins.iter().find(|it| *it != ALL && !is_origin(it)) {
            let text = format!("'{bad}' is not an origin of a page");
            let help = "write scheme and name, such as https://app.example, or '*' for all";
            return Err(Refusal::new(parameters.span("origins"), text, help));
        }
        let checks = |listed: &[String]| {
            let is_asked = address.ip().is_loopback() || !listed.is_empty();
            is_asked && !listed.iter().any(|it| it == ALL)
        };
        let lower = |origin: &String| origin.to_ascii_lowercase();
        Ok(Callers {
            usual: usual(address),
            hosts: checks(hosts).then(|| Hosts::new(address, hosts)),
            origins: checks(origins).then(|| origins.iter().map(lower).collect()),
        })
    }

    /// Takes in the address that the listener got.
    pub(super) fn listen_at(&mut self, address: SocketAddr) {
        self.usual = usual(address);
        if let Some(hosts) = &mut self.hosts {
            hosts.listen_at(address);
        }
    }

    /// Checks that a client may ask, by the name that it called and its headers `Origin`.
    ///
    /// # Errors
    /// A sentence that says who the client is, and how to allow it.
    pub(super) fn check(&self, host: Option<&[u8]>, origin: Origin<'_>) -> Result<(), String> {
        let is_usual = |host: &[u8]| self.usual.iter().any(|usual| usual.as_bytes() == host);
        if matches!(origin, Origin::None) && host.is_some_and(is_usual) {
            return Ok(());
        }
        self.look(host, origin)
    }

    fn look(&self, host: Option<&[u8]>, origin: Origin<'_>) -> Result<(), String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let host = host.map(text);
        if let (Some(hosts), Some(host)) = (&self.hosts, &host)
            && !hosts.is_ours(host, PortRule::Any)
        {
            return Err(hosts.refusal(host, "listener") + "\n");
        }
        let origin = match origin {
            Origin::None => return Ok(()),
            Origin::One(bytes) => text(bytes),
            Origin::Several => "several origins".to_owned(),
        };
        let is_own = host.is_some_and(|host| Hosts::is_same(&origin, &host));
        if is_own || self.origins.as_ref().is_none_or(|listed| listed.contains(&origin)) {
            return Ok(());
        }
        Err(format!(
            "a page of '{origin}' may not ask this server; to allow it, add it to 'origins' of the \
             listener\n"
        ))
    }
}

/// What a request says of the page that it comes from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// Nothing: the request is from no page, or a page of any site only reads, by a picture or a
    /// link.
    None,
    /// This origin.
    One(&'a [u8]),
    /// More than one origin, which no browser sends.
    Several,
}

fn usual(address: SocketAddr) -> [String; 2] {
    [address.to_string(), format!("localhost:{}", address.port())]
}

fn is_origin(text: &str) -> bool {
    let site = text.split_once("://").filter(|(scheme, _)| !scheme.is_empty());
    site.is_some_and(|(_, name)| Hosts::is_name(name))
}

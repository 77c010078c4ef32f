//! Which callers may use a server. It is decided by the name that the browser called, and by the
//! site of the page that called.
//!
//! A page of any site can make a browser call this machine, and the owner of a site can make its
//! name point here (DNS rebinding). Both can be seen in the browser's headers: `Host` is the name
//! that was called, `Origin` is the site of the page.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The names of a server.
#[derive(Clone, Debug)]
pub struct Hosts {
    address: SocketAddr,
    /// Further names, lower case, with a port or without.
    named: Vec<String>,
}

/// Whether the port in a name must be the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRule {
    /// The port must be the server's own.
    Own,
    /// Any port: a call through a tunnel or a proxy may have named another port.
    Any,
}

impl Hosts {
    /// The names of a server that listens at this address and is also known by these names.
    pub fn new(address: SocketAddr, named: &[String]) -> Hosts {
        Hosts { address, named: named.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Sets the address that the server got: it may have asked for any free port.
    pub fn listen_at(&mut self, address: SocketAddr) {
        self.address = address;
    }

    /// Why `host` is refused, and what to change. `of` says whose 'hosts' list the names.
    pub fn refusal(&self, host: &str, of: &str) -> String {
        format!(
            "'{host}' is not a name of this server, which is {}; to allow it, add it to 'hosts' of \
             the {of}",
            self.shown()
        )
    }

    /// Whether a text can be a name in such a list: it has no scheme and no path.
    pub fn is_name(text: &str) -> bool {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        !text.is_empty() && text.chars().all(is_fit)
    }

    /// Whether `host`, in lower case, is a name of this server.
    pub fn is_ours(&self, host: &str, port: PortRule) -> bool {
        let own = self.address.port();
        let (name, is_port) = match host.rsplit_once(':') {
            Some((name, digits)) if !digits.ends_with(']') => match port {
                PortRule::Own => (name, digits == own.to_string()),
                PortRule::Any => (name, digits.bytes().all(|digit| digit.is_ascii_digit())),
            },
            _ => (host, port == PortRule::Any || own == 80),
        };
        let is_listed = self.named.iter().any(|it| it == host || (is_port && it == name));
        is_listed || (is_port && self.is_own_name(name))
    }

    /// Whether a page of `origin` belongs to the server that it called by the name `host`. Both are
    /// in lower case.
    pub fn is_same(origin: &str, host: &str) -> bool {
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        site == Some(host)
    }

    /// The address that people on this machine open.
    pub fn shown(&self) -> SocketAddr {
        let ip: IpAddr = match self.address {
            _ if !self.is_everywhere() => self.address.ip(),
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Whether the server can be reached from other machines.
    pub fn is_beyond_loopback(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// `localhost`, or an address that this server listens at. A call by address was not made by a
    /// name that somebody else could point here.
    fn is_own_name(&self, name: &str) -> bool {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        match bare.unwrap_or(name).parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.address.ip() || self.is_everywhere(),
            Err(_) => name == "localhost",
        }
    }

    fn is_everywhere(&self) -> bool {
        self.address.ip().is_unspecified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_any_port_the_name_alone_decides() {
        let named = ["Robot.local".to_owned(), "arm.example:443".to_owned()];
        let hosts = Hosts::new("127.0.0.1:8600".parse().expect("an address"), &named);
        for host in
            ["localhost", "localhost:9000", "127.0.0.1", "[::1]:1", "robot.local:2", "[::1]"]
        {
            assert!(hosts.is_ours(host, PortRule::Any), "{host}");
        }
        for host in ["evil.example:8600", "localhost.evil.example", "localhost:a", "", ":8600"] {
            assert!(!hosts.is_ours(host, PortRule::Any), "{host}");
        }
        assert!(!hosts.is_ours("localhost:9000", PortRule::Own));
        assert!(hosts.is_ours("arm.example:443", PortRule::Any));
    }
}

//! Who may speak to the server: by the names that a browser says it has called, and the page it
//! has the call from.
//!
//! A page of any site can make a browser call this machine, and the owner of a site can make its
//! name point here (DNS rebinding). Both show in what the browser sends: `Host` is the name that
//! was called, `Origin` the site of the page.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};

/// The names of a server.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    address: SocketAddr,
    /// Further names, lower case, with a port or without.
    named: Vec<String>,
}

impl Hosts {
    /// Of a server that listens at this address, and is also known by these names.
    pub(super) fn new(address: SocketAddr, named: &[String]) -> Hosts {
        Hosts { address, named: named.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether a request calls this server by one of its names.
    ///
    /// # Errors
    /// A sentence: what was called, and how to allow it.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<String, String> {
        let host = one(headers, &HOST)?.to_ascii_lowercase();
        if self.is_ours(&host) {
            return Ok(host);
        }
        Err(format!(
            "'{host}' is no name of this server, which is http://{}; if it shall be one, add it to \
             'hosts' of the dashboard",
            self.shown()
        ))
    }

    /// Whether the page that opens a WebSocket came from this server too.
    ///
    /// # Errors
    /// As for [`Hosts::check_host`].
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), String> {
        let host = self.check_host(headers)?;
        let origin = one(headers, &ORIGIN)?.to_ascii_lowercase();
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        match site == Some(host.as_str()) {
            true => Ok(()),
            false => Err(format!(
                "a page of '{origin}' may not speak to this server, only one of http://{host}"
            )),
        }
    }

    /// The address that people on this machine open.
    pub(super) fn shown(&self) -> SocketAddr {
        let ip: IpAddr = match self.address {
            _ if !self.is_everywhere() => self.address.ip(),
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Whether the server can be reached from other machines.
    pub(super) fn is_beyond_loopback(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    fn is_ours(&self, host: &str) -> bool {
        let port = self.address.port();
        let (name, is_port) = match host.rsplit_once(':') {
            Some((name, digits)) if !digits.ends_with(']') => (name, digits == port.to_string()),
            _ => (host, port == 80),
        };
        let is_listed = self.named.iter().any(|it| it == host || (is_port && it == name));
        is_listed || (is_port && self.is_own_name(name))
    }

    /// `localhost`, or an address that this server listens at. What is called by its address was
    /// not called by a name that somebody else could point here.
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

/// The value of a header that must be there once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            value.to_str().map_err(|_| format!("the header '{name}' is no plain text"))
        }
        (None, _) => Err(format!("the header '{name}' is missing: browsers send it")),
        (Some(_), Some(_)) => Err(format!("the header '{name}' is there twice, expected once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &[&str], origin: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, values) in [(HOST, host), (ORIGIN, origin)] {
            for value in values {
                headers.append(&name, value.parse().expect("a value"));
            }
        }
        headers
    }

    fn hosts(address: &str, named: &[&str]) -> Hosts {
        let named: Vec<_> = named.iter().map(|&name| name.to_owned()).collect();
        Hosts::new(address.parse().expect("an address"), &named)
    }

    #[test]
    fn a_server_is_known_by_its_own_names_alone() {
        let known = |address: &str, host: &str| {
            hosts(address, &["Robot.local", "arm.example:443"])
                .check_host(&headers(&[host], &[]))
                .is_ok()
        };
        for host in ["localhost:8600", "127.0.0.1:8600", "127.0.0.9:8600", "[::1]:8600"] {
            assert!(known("127.0.0.1:8600", host), "{host}");
            assert!(known("0.0.0.0:8600", host), "{host}");
        }
        for host in ["robot.local", "ROBOT.local:8600", "arm.example:443"] {
            assert!(known("127.0.0.1:8600", host), "{host}");
        }
        let foreign = [
            "evil.example:8600",
            "evil.example",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:8601",
            "localhost.evil.example:8600",
            "127.0.0.1.evil.example:8600",
            "10.0.0.1:8600",
            "robot.local:99",
            "arm.example",
            "",
            ":8600",
            "[::1",
            "::1]:8600",
            "localhost:8600:8600",
        ];
        for host in foreign {
            assert!(!known("127.0.0.1:8600", host), "{host}");
        }
        assert!(known("127.0.0.1:80", "localhost") && known("0.0.0.0:8600", "10.0.0.1:8600"));
        assert!(known("10.0.0.1:8600", "10.0.0.1:8600") && !known("0.0.0.0:8600", "evil:8600"));
    }

    #[test]
    fn a_page_of_another_site_may_not_open_a_websocket() {
        let check = |host: &[&str], origin: &[&str]| {
            hosts("127.0.0.1:8600", &["arm.example"]).check_origin(&headers(host, origin))
        };
        let ours = "localhost:8600";
        assert_eq!(check(&[ours], &["http://localhost:8600"]), Ok(()));
        assert_eq!(check(&["arm.example"], &["https://arm.example"]), Ok(()));
        let foreign = [
            "http://evil.example",
            "null",
            "",
            "localhost:8600",
            "http://localhost",
            "http://localhost:8600/",
            "http://127.0.0.1:8600",
            "file://localhost:8600",
            "http://localhost:8600.evil.example",
        ];
        for origin in foreign {
            let error = check(&[ours], &[origin]).expect_err(origin);
            assert!(error.contains("may not speak"), "{error}");
        }
        let missing = check(&[ours], &[]).expect_err("no origin");
        assert!(missing.contains("'origin' is missing"), "{missing}");
        let twice = check(&[ours, "evil"], &["http://localhost:8600"]).expect_err("two hosts");
        assert!(twice.contains("'host' is there twice"), "{twice}");
        let rebound = check(&["evil.example:8600"], &["http://evil.example:8600"]);
        assert!(rebound.expect_err("a foreign name").contains("add it to 'hosts'"));
    }
}

//! Who may use a server of pages: checks a browser's headers by the rules of [`Hosts`].

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};
pub(crate) use sinew_control::hosts::Hosts;
use sinew_control::hosts::PortRule;

/// Whether a request addresses this server, of a node of this kind, by one of its names.
///
/// # Errors
/// A sentence: which name was used, and how to allow it.
pub(crate) fn check_host(hosts: &Hosts, headers: &HeaderMap, kind: &str) -> Result<String, String> {
    let host = one(headers, &HOST)?.to_ascii_lowercase();
    if hosts.is_ours(&host, PortRule::Own) {
        return Ok(host);
    }
    Err(hosts.refusal(&host, kind))
}

/// Whether the page that sends a request also came from this server.
///
/// # Errors
/// As for [`check_host`].
pub(crate) fn check_origin(hosts: &Hosts, headers: &HeaderMap, kind: &str) -> Result<(), String> {
    let host = check_host(hosts, headers, kind)?;
    let origin = one(headers, &ORIGIN)?.to_ascii_lowercase();
    match Hosts::is_same(&origin, &host) {
        true => Ok(()),
        false => Err(format!(
            "a page of '{origin}' may not speak to this server, only one of http://{host}"
        )),
    }
}

/// The value of a header that must occur exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            value.to_str().map_err(|_| format!("the header '{name}' is not plain text"))
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
            let hosts = hosts(address, &["Robot.local", "arm.example:443"]);
            check_host(&hosts, &headers(&[host], &[]), "dashboard").is_ok()
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
            check_origin(
                &hosts("127.0.0.1:8600", &["arm.example"]),
                &headers(host, origin),
                "dashboard",
            )
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

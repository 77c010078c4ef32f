//! Where a request may go: the url, the hosts that are allowed, and redirects.

use hyper::Uri;
use hyper::http::uri::Authority;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sinew_flow::Value;

use crate::http::response::plain_text;

/// What must be encoded in a name or value of a query (RFC 3986: all but `unreserved`).
const NOT_IN_QUERIES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In a url only what is beyond ASCII is encoded. The rest must be valid as it is.
const BEYOND_ASCII: &AsciiSet = &AsciiSet::EMPTY;

/// The hosts that requests may go to.
#[derive(Debug, PartialEq)]
pub(super) enum Hosts {
    /// Whichever the url says.
    All,
    /// These hosts, each with one port, or with any if that is `None`.
    Some(Vec<(String, Option<u16>)>),
}

impl Hosts {
    /// Reads the list of a spec: `*`, or names with or without a port.
    ///
    /// # Errors
    /// A text is not a host.
    pub(super) fn read(texts: &[String]) -> Result<Hosts, String> {
        if texts.iter().any(|text| text == "*") {
            return Ok(Hosts::All);
        }
        let host = |text: &String| {
            let authority: Option<Authority> = text.parse().ok();
            let authority = authority.filter(|it| !it.as_str().contains('@'));
            let authority = authority.ok_or_else(|| format!("'{text}' is not a host"))?;
            Ok((authority.host().to_ascii_lowercase(), authority.port_u16()))
        };
        Ok(Hosts::Some(texts.iter().map(host).collect::<Result<_, String>>()?))
    }

    /// The one host in a url before its first template, if there is one.
    pub(super) fn of_url(url: &str) -> Option<Hosts> {
        let literal = url.split("{{").next()?;
        let (scheme, rest) = literal.split_once("://")?;
        let authority: Authority = rest.split(['/', '?', '#']).next()?.parse().ok()?;
        let port = authority.port_u16().or_else(|| port_of(scheme));
        let host = authority.host().to_ascii_lowercase();
        (!host.is_empty()).then(|| Hosts::Some(vec![(host, port)]))
    }

    /// The hosts of all of these.
    pub(super) fn all_of(several: Vec<Hosts>) -> Hosts {
        let lists = several.into_iter().map(|hosts| match hosts {
            Hosts::Some(list) => Some(list),
            Hosts::All => None,
        });
        let lists: Option<Vec<_>> = lists.collect();
        lists.map_or(Hosts::All, |lists| Hosts::Some(lists.concat()))
    }

    fn allow(&self, uri: &Uri) -> bool {
        let Hosts::Some(hosts) = self else { return true };
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().or_else(|| port_of(uri.scheme_str().unwrap_or_default()));
        hosts
            .iter()
            .any(|(own, on)| own.eq_ignore_ascii_case(host) && (on.is_none() || *on == port))
    }

    fn text(&self) -> String {
        let Hosts::Some(hosts) = self else { return "*".to_owned() };
        let one = |(host, port): &(String, Option<u16>)| match port {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        hosts.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn port_of(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Reads a url.
///
/// # Errors
/// Why no request can go there.
pub(super) fn parse(url: &str, hosts: &Hosts) -> Result<Uri, String> {
    let ascii = utf8_percent_encode(url, BEYOND_ASCII).to_string();
    let uri: Uri =
        ascii.parse().map_err(|error| format!("the url {url:?} is not valid: {error}"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(format!("the url {url:?} has no scheme and host; write http://host/path"));
    };
    if port_of(scheme).is_none() {
        return Err(format!("the url {url:?} is of scheme '{scheme}', not http or https"));
    }
    if authority.as_str().contains('@') {
        return Err("a url with a user in it; write a header 'authorization'".to_owned());
    }
    if authority.host().is_empty() {
        return Err(format!("the url {url:?} has no host"));
    }
    if !hosts.allow(&uri) {
        let allowed = hosts.text();
        return Err(format!("'{authority}' is not among the hosts ({allowed}); see 'hosts'"));
    }
    Ok(uri)
}

/// A url with `query` added to its own query.
///
/// # Errors
/// `query` is not a mapping of single values and lists of them.
pub(super) fn with_query(url: &str, query: &Value) -> Result<String, String> {
    let (base, _fragment) = url.split_once('#').unwrap_or((url, ""));
    let mut url = base.to_owned();
    let mut push = |name: &str, value: &Value| {
        let text =
            plain_text(value).ok_or_else(|| format!("query '{name}' is {}", value.sort()))?;
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(utf8_percent_encode(name, NOT_IN_QUERIES));
        url.push('=');
        url.extend(utf8_percent_encode(&text, NOT_IN_QUERIES));
        Ok::<(), String>(())
    };
    match query {
        Value::Null => {}
        Value::Map(fields) => {
            for (name, value) in &**fields {
                match value {
                    Value::Null => {}
                    Value::List(values) => values.iter().try_for_each(|value| push(name, value))?,
                    value => push(name, value)?,
                }
            }
        }
        other => return Err(format!("query is {}, expected a mapping", other.sort())),
    }
    Ok(url)
}

/// Where a redirect from `from` leads, by its header `Location` (RFC 3986, 5.2).
///
/// # Errors
/// It is not a url, or one that may not be followed.
pub(super) fn follow(from: &Uri, location: &str, hosts: &Hosts) -> Result<Uri, String> {
    let scheme = from.scheme_str().unwrap_or_default();
    let authority = from.authority().map_or("", Authority::as_str);
    let (reference, _fragment) = location.split_once('#').unwrap_or((location, ""));
    let (path, query) =
        reference.split_once('?').map_or((reference, None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let is_absolute = path.split('/').next().is_some_and(|first| first.contains(':'));
    let url = if is_absolute {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if path.is_empty() {
        format!("{scheme}://{authority}{}{query}", from.path())
    } else if path.starts_with('/') {
        format!("{scheme}://{authority}{}{query}", without_dots(path))
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{}{query}", without_dots(&format!("{folder}/{path}")))
    };
    let to = parse(&url, hosts)?;
    if to.scheme() != from.scheme() {
        return Err(format!("'{location}' leads from {scheme} to another scheme"));
    }
    Ok(to)
}

/// A path without the segments `.` and `..` (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_dots = segment == "." || segment == "..";
        if segment == ".." {
            kept.pop();
        }
        if !is_dots {
            kept.push(segment);
        } else if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_must_be_of_http_and_go_to_an_allowed_host() {
        let hosts = Hosts::of_url("http://Api.example:8080/{{ packet }}").expect("a host");
        assert_eq!(
            parse("http://api.example:8080/ü", &hosts).expect("a url"),
            "http://api.example:8080/%C3%BC"
        );
        for bad in [
            "http://api.example/",
            "http://api.example:8080@evil.example/",
            "http://api.example.evil.example:8080/",
            "http://user@api.example:8080/",
            "ftp://api.example:8080/",
            "http://api.example:8080/a b",
            "http://api.example:8080/a\r\nx: y",
            "/path",
            "",
            "http://",
            "http://:80/",
        ] {
            assert!(parse(bad, &hosts).is_err(), "{bad}");
        }
        assert!(parse("https://h/", &Hosts::of_url("https://h").expect("a host")).is_ok());
    }

    #[test]
    fn hosts_have_a_port_or_any() {
        let list =
            |texts: &[&str]| Hosts::read(&texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>());
        let hosts = list(&["a", "B:81", "[::1]"]).expect("hosts");
        for good in ["http://A:9/", "https://a/", "http://b:81/", "http://[::1]:7/"] {
            assert!(parse(good, &hosts).is_ok(), "{good}");
        }
        for bad in ["http://b/", "http://c/", "http://[::2]/"] {
            assert!(parse(bad, &hosts).is_err(), "{bad}");
        }
        assert_eq!(list(&["a", "*"]), Ok(Hosts::All));
        assert!(list(&["http://a/"]).is_err());
        assert_eq!(Hosts::of_url("http://{{ values.host }}/"), None);
        assert_eq!(Hosts::of_url("{{ values.base }}"), None);
    }

    #[test]
    fn a_query_is_encoded_and_added() {
        let query = Value::map([
            ("a b", Value::text("x&y=ü/?")),
            ("n", Value::list([Value::Integer(1), Value::Bool(true)])),
            ("none", Value::Null),
        ]);
        let url = with_query("http://h/p?q=1#f", &query).expect("a url");
        assert_eq!(url, "http://h/p?q=1&a%20b=x%26y%3D%C3%BC%2F%3F&n=1&n=true");
        assert!(with_query("http://h/", &Value::text("x")).is_err());
        assert!(with_query("http://h/", &Value::map([("a", query)])).is_err());
    }

    #[test]
    fn a_location_is_read_from_where_it_was_found() {
        let from: Uri = "http://h:1/a/b?c".parse().expect("a url");
        let to = |location| follow(&from, location, &Hosts::All).map(|uri| uri.to_string());
        assert_eq!(to("/x?y"), Ok("http://h:1/x?y".to_owned()));
        assert_eq!(to("x"), Ok("http://h:1/a/x".to_owned()));
        assert_eq!(to("../x/./y/..#f"), Ok("http://h:1/x/".to_owned()));
        assert_eq!(to("?z=/:"), Ok("http://h:1/a/b?z=/:".to_owned()));
        assert_eq!(to("//k/x"), Ok("http://k/x".to_owned()));
        assert_eq!(to("http://k/x"), Ok("http://k/x".to_owned()));
        assert!(to("https://h:1/x").is_err());
        assert!(to("file:///etc/passwd").is_err());
    }
}

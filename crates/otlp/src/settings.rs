//! What the environment asks for, in the words of the specification of OpenTelemetry.

use std::env::{self, VarError};
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::Sampler;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// The default address of a collector.
const LOCAL: &str = "http://localhost:4318";
const SAMPLER_DEFAULT: &str = "parentbased_always_on";
/// Longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long spans wait for more spans to be sent with them.
const DELAY: Duration = Duration::from_secs(5);
/// Most spans that wait.
const QUEUE_MAX: usize = 2048;
/// Most spans in a request.
const BATCH_MAX: usize = 512;
/// Upper limit of waiting spans, whatever the environment says: some hundred megabytes.
const QUEUE_LIMIT: usize = 1 << 18;

/// What is not supported here, and what to use instead.
const UNKNOWN: [(&str, &str); 6] = [
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", CERTIFICATES),
    ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", CERTIFICATES),
    ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", NO_CLIENT),
    ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", NO_CLIENT),
    ("OTEL_EXPORTER_OTLP_CLIENT_KEY", NO_CLIENT),
    ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", NO_CLIENT),
];
const CERTIFICATES: &str = "a collector over TLS must have a certificate that browsers trust; for \
                            another one, send to a collector on this machine, which forwards";
const NO_CLIENT: &str = "client certificates are not supported; authenticate with \
                         OTEL_EXPORTER_OTLP_HEADERS";

/// How spans are sent, and which ones.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Decides which traces are recorded.
    pub sampler: Sampler,
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    pub(crate) is_gzip: bool,
    /// Attributes of the sender, by name.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) queue_max: usize,
    pub(crate) batch_max: usize,
}

/// A variable by its name; `None` if it is not set.
type Get<'a> = &'a dyn Fn(&str) -> Result<Option<String>, String>;

impl TraceSettings {
    /// What this process's environment asks for. `None`: no spans.
    ///
    /// # Errors
    /// The first variable that is malformed, or asks for something that is not supported.
    pub fn of_environment() -> Result<Option<TraceSettings>, String> {
        TraceSettings::read(&|name| match env::var(name) {
            Ok(text) => Ok(Some(text)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => {
                Err(format!("{name}: it holds bytes that are not text; set it to UTF-8"))
            }
        })
    }

    /// The same for variables from another source.
    ///
    /// # Errors
    /// As for [`TraceSettings::of_environment`].
    pub fn read(get: Get<'_>) -> Result<Option<TraceSettings>, String> {
        // An empty variable counts as not set, says the specification.
        let get = |name: &str| Ok::<_, String>(get(name)?.filter(|text| !text.trim().is_empty()));
        let get: Get<'_> = &get;
        if is_true(get, "OTEL_SDK_DISABLED")? {
            return Ok(None);
        }
        let Some(url) = url(get)? else { return Ok(None) };
        for (name, instead) in UNKNOWN {
            if get(name)?.is_some() {
                return Err(format!("{name}: this is not supported: {instead}"));
            }
        }
        protocol(get)?;
        let name = get("OTEL_TRACES_SAMPLER")?.unwrap_or_else(|| SAMPLER_DEFAULT.to_owned());
        let argument = get("OTEL_TRACES_SAMPLER_ARG")?;
        let queue_max = count(get, "OTEL_BSP_MAX_QUEUE_SIZE", QUEUE_MAX)?;
        let batch_max = count(get, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH_MAX)?;
        Ok(Some(TraceSettings {
            sampler: Sampler::parse(name.trim(), argument.as_deref())?,
            url,
            headers: headers(get)?,
            timeout: of_traces(get, "TIMEOUT", milliseconds)?.unwrap_or(TIMEOUT),
            is_gzip: of_traces(get, "COMPRESSION", is_gzip)?.unwrap_or(false),
            resource: resource(get)?,
            delay: named(get, "OTEL_BSP_SCHEDULE_DELAY", milliseconds)?.unwrap_or(DELAY),
            queue_max,
            batch_max: batch_max.min(queue_max),
        }))
    }

    /// Adds this program's own name and further attributes, unless the environment sets them.
    pub fn of(
        mut self,
        service: &str,
        more: impl IntoIterator<Item = (&'static str, String)>,
    ) -> TraceSettings {
        let own = [("service.name", service.to_owned())].into_iter().chain(more);
        for (key, value) in own {
            if self.resource.iter().all(|(known, _)| known != key) {
                self.resource.push((key.to_owned(), value));
            }
        }
        self
    }
}

/// Reads and parses a variable.
fn named<T>(
    get: Get<'_>,
    name: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let text = get(name)?;
    text.map(|text| read(text.trim()).map_err(|why| format!("{name}: {why}"))).transpose()
}

/// Reads a variable that may also be set for traces only.
fn of_traces<T>(
    get: Get<'_>,
    end: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match named(get, &format!("OTEL_EXPORTER_OTLP_TRACES_{end}"), &read)? {
        Some(own) => Ok(Some(own)),
        None => named(get, &format!("OTEL_EXPORTER_OTLP_{end}"), read),
    }
}

fn is_true(get: Get<'_>, name: &str) -> Result<bool, String> {
    let read = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("'{text}' is neither true nor false")),
    };
    Ok(named(get, name, read)?.unwrap_or(false))
}

/// The destination of spans. `None` if nobody asked for spans.
fn url(get: Get<'_>) -> Result<Option<Uri>, String> {
    let is_asked = match get("OTEL_TRACES_EXPORTER")?.as_deref().map(str::trim) {
        None => false,
        Some("otlp") => true,
        Some("none") => return Ok(None),
        Some(other) => {
            return Err(format!(
                "OTEL_TRACES_EXPORTER: '{other}' is not supported; write otlp or none"
            ));
        }
    };
    if let Some(url) = named(get, TRACES_ENDPOINT, parse_url)? {
        return Ok(Some(url));
    }
    let with_path = |text: &str| parse_url(&format!("{}/v1/traces", text.trim_end_matches('/')));
    match named(get, ENDPOINT, with_path)? {
        None if is_asked => with_path(LOCAL).map(Some),
        url => Ok(url),
    }
}

fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Option<Uri> = text.parse().ok();
    let is_good = |url: &Uri| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.authority().is_some_and(|it| !it.as_str().contains('@') && !it.host().is_empty())
    };
    // The URL may contain secrets and is not shown.
    let wrong = "this is not a URL of a collector; write one such as http://localhost:4318";
    url.filter(is_good).ok_or_else(|| wrong.to_owned())
}

fn protocol(get: Get<'_>) -> Result<(), String> {
    let read = |text: &str| match text {
        "http/protobuf" => Ok(()),
        _ => Err(format!(
            "'{text}' is not supported; write http/protobuf, and the port of the collector for \
             that, which is 4318 as a rule"
        )),
    };
    of_traces(get, "PROTOCOL", read).map(drop)
}

fn is_gzip(text: &str) -> Result<bool, String> {
    match text {
        "gzip" => Ok(true),
        "none" => Ok(false),
        _ => Err(format!("'{text}' is not supported; write gzip or none")),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(time @ 1..) => Ok(Duration::from_millis(time.into())),
        _ => Err(format!("'{text}' is not a time; write a whole number of milliseconds")),
    }
}

fn count(get: Get<'_>, name: &str, default: usize) -> Result<usize, String> {
    let read = |text: &str| match text.parse() {
        Ok(count) if (1..=QUEUE_LIMIT).contains(&count) => Ok(count),
        _ => {
            Err(format!("'{text}' is not a count of spans; write a number from 1 to {QUEUE_LIMIT}"))
        }
    };
    Ok(named(get, name, read)?.unwrap_or(default))
}

/// Parses `key=value` pairs, separated by commas, escaped as in URLs.
fn list(text: &str) -> Result<Vec<(String, String)>, String> {
    let entries = text.split(',').map(str::trim).enumerate();
    let entries = entries.filter(|(_, entry)| !entry.is_empty());
    let read = |(at, entry): (usize, &str)| {
        // The entry may be secret.
        let wrong = || format!("entry {} is not 'key=value'; write key=value,key=value", at + 1);
        let (key, value) = entry.split_once('=').ok_or_else(wrong)?;
        let decode = |text: &str| percent_decode_str(text.trim()).decode_utf8().map(String::from);
        match (decode(key), decode(value)) {
            (Ok(key), Ok(value)) if !key.is_empty() => Ok((key, value)),
            _ => Err(wrong()),
        }
    };
    entries.map(read).collect()
}

fn headers(get: Get<'_>) -> Result<HeaderMap, String> {
    let read = |text: &str| {
        let mut headers = HeaderMap::new();
        for (key, value) in list(text)? {
            let name = HeaderName::from_bytes(key.as_bytes())
                .map_err(|_| format!("{key:?} is not a name of a header"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("the value of {key:?} is not valid in a header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    };
    Ok(of_traces(get, "HEADERS", read)?.unwrap_or_default())
}

fn resource(get: Get<'_>) -> Result<Vec<(String, String)>, String> {
    let mut resource = named(get, "OTEL_RESOURCE_ATTRIBUTES", list)?.unwrap_or_default();
    if let Some(name) = get("OTEL_SERVICE_NAME")? {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name));
    }
    Ok(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceSettings>, String> {
        TraceSettings::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            Ok(found.map(|(_, value)| (*value).to_owned()))
        })
    }

    fn settings(variables: &[(&str, &str)]) -> TraceSettings {
        read(variables).expect("good variables").expect("spans")
    }

    #[test]
    fn nobody_asks_for_spans_who_names_no_collector() {
        let off: [&[(&str, &str)]; 5] = [
            &[],
            &[(ENDPOINT, " ")],
            &[("OTEL_TRACES_SAMPLER", "always_on"), ("OTEL_SERVICE_NAME", "a")],
            &[(ENDPOINT, "http://a"), ("OTEL_SDK_DISABLED", "TRUE")],
            &[(ENDPOINT, "http://a"), ("OTEL_TRACES_EXPORTER", "none")],
        ];
        for variables in off {
            assert!(read(variables).expect("good").is_none(), "{variables:?}");
        }
        let local = settings(&[("OTEL_TRACES_EXPORTER", "otlp")]);
        assert_eq!(local.url, "http://localhost:4318/v1/traces");
    }

    #[test]
    fn what_is_set_for_traces_alone_goes_first() {
        let base = (ENDPOINT, "https://a:4318/base/");
        assert_eq!(settings(&[base]).url, "https://a:4318/base/v1/traces");
        let own = (TRACES_ENDPOINT, "http://b/in");
        assert_eq!(settings(&[base, own]).url, "http://b/in");
        let both = settings(&[
            base,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20x%3D, x-a = 1,"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ]);
        assert_eq!((both.timeout, both.is_gzip), (Duration::from_millis(250), true));
        assert_eq!(both.headers["authorization"], "Bearer x=");
        assert_eq!(both.headers.len(), 2);
        assert!(!format!("{both:?}").contains("Bearer"), "{both:?}");
    }

    #[test]
    fn a_service_has_the_name_that_is_nearest() {
        let endpoint = (ENDPOINT, "http://a");
        let named = |variables: &[(&str, &str)]| {
            let all: Vec<_> = variables.iter().copied().chain([endpoint]).collect();
            settings(&all).of("graph", [("sinew.graph", "graph".to_owned())]).resource
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(named(&[]), [pair("service.name", "graph"), pair("sinew.graph", "graph")]);
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a%2Cb,zone=1");
        assert_eq!(named(&[attributes])[0], pair("service.name", "a,b"));
        let both = named(&[attributes, ("OTEL_SERVICE_NAME", "c")]);
        let expected = [("zone", "1"), ("service.name", "c"), ("sinew.graph", "graph")];
        assert_eq!(both, expected.map(|(key, value)| pair(key, value)));
    }

    #[test]
    fn what_is_wrong_is_told_and_what_is_secret_is_not_shown() {
        for (name, value, part) in [
            (ENDPOINT, "localhost:4318", "not a URL of a collector"),
            (ENDPOINT, "ftp://secret", "not a URL of a collector"),
            (TRACES_ENDPOINT, "http://me:secret@a", "not a URL of a collector"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "write http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "write http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "write gzip or none"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "whole number of milliseconds"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "whole number of milliseconds"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,secret", "entry 2 is not"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0A", "the value of \"a\" is not valid"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret", "\"a b\" is not a name of a header"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem", "this is not supported"),
            ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "key", "this is not supported"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=1", "entry 1 is not"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%ff", "entry 1 is not"),
            ("OTEL_SDK_DISABLED", "yes", "neither true nor false"),
            ("OTEL_TRACES_EXPORTER", "zipkin", "write otlp or none"),
            ("OTEL_TRACES_SAMPLER", "xray", "no sampler 'xray'"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "a number from 1 to"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "99999999", "a number from 1 to"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1", "whole number of milliseconds"),
        ] {
            let good = (ENDPOINT, "http://a");
            let error = read(&[(name, value), good]).expect_err(name);
            assert!(error.starts_with(name) && error.contains(part), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

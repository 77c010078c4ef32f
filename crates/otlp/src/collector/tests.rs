//! Tests against an independent collector, in Python (tests/python/collector.py).

use std::env;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant as Time;

use serde_json::{Value, json};

use super::*;
use crate::{Attribute, SpanContext, SpanKind};

/// Longest time that a test waits; after it the test counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);

/// A collector in Python, and its output.
struct Other {
    child: Child,
    url: String,
    said: BufReader<ChildStdout>,
}

impl Other {
    /// A collector with these answers. Without a Python that has its messages it is `None`, and
    /// this is printed.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
    fn answering(answers: &[&str]) -> Option<Other> {
        let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/collector.py");
        let mut command = Command::new(&python);
        command.arg(script).args(answers).stdout(Stdio::piped());
        let (mut port, mut begun) = (String::new(), command.spawn());
        if let Ok(child) = &mut begun {
            let mut said = BufReader::new(child.stdout.take().expect("what it says"));
            said.read_line(&mut port).expect("its port");
            if let (Ok(port), Ok(child)) = (port.trim().parse::<u16>(), begun) {
                return Some(Other { child, url: format!("http://127.0.0.1:{port}"), said });
            }
        }
        let missing = format!("'{python}' cannot import opentelemetry.proto; see tests/python");
        assert!(env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        None
    }

    /// The next request.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The collector's answer to the next request, and the first span of the request.
    fn next_of(&mut self) -> (String, String) {
        let request = self.next();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&request["answer"]), text(&request["spans"][0]["span"]))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The connection to a collector, and what it reports.
fn way(url: &str, more: &[(&str, &str)]) -> (Collector, Receiver<String>) {
    let settings = TraceSettings::read(&|name| {
        let all = [("OTEL_EXPORTER_OTLP_ENDPOINT", url)].into_iter().chain(more.iter().copied());
        Ok(all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()))
    });
    let settings = settings.expect("good variables").expect("spans");
    let (tells, told) = sync_channel(100);
    let collector = Collector::begin_telling(settings.of("test", []), move |line| {
        // A test that has ended does not listen any more.
        let _ = tells.send(line.to_owned());
    });
    (collector.expect("a thread"), told)
}

fn record(span: u64) -> SpanRecord {
    let context = SpanContext { trace: 1 << 64, span: 7, is_sampled: true, state: None };
    SpanRecord { ended_ns: 12, ..SpanRecord::below(&context, span, "a".into(), 10) }
}

fn end(collector: &Collector) {
    collector.end(Time::now() + LIMIT);
}

/// How many spans were lost in total, from the report at the end.
fn lost(told: &Receiver<String>) -> Option<u64> {
    let last = told.iter().last()?;
    last.split("ends without ").nth(1)?.split(' ').next()?.parse().ok()
}

#[test]
fn a_span_arrives_as_it_was_sent() {
    for (compression, encoding) in [("none", Value::Null), ("gzip", "gzip".into())] {
        let Some(mut other) = Other::answering(&[]) else { return };
        let more = [
            ("OTEL_EXPORTER_OTLP_COMPRESSION", compression),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x"),
            ("OTEL_RESOURCE_ATTRIBUTES", "zone=1"),
        ];
        let (collector, told) = way(&other.url, &more);
        let text = |text: &str| Attribute::Text(text.to_owned().into());
        let long = "\u{e4}".repeat(2000);
        let attributes =
            vec![("text", text("b")), ("long", text(&long)), ("number", Attribute::Integer(-3))];
        collector.send(vec![SpanRecord {
            kind: SpanKind::Server,
            is_remote: true,
            state: Some("a=1".into()),
            attributes,
            error: Some("why".into()),
            ..record(3)
        }]);
        end(&collector);
        let request = other.next();
        assert_eq!(request["path"], "/v1/traces");
        let headers = &request["headers"];
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["authorization"], "Bearer x");
        assert_eq!(headers["content-encoding"], encoding);
        let expected = json!([{
            "resource": {"zone": "1", "service.name": "test"},
            "scope": "sinew",
            "trace": "00000000000000010000000000000000",
            "span": "0000000000000003",
            "parent": "0000000000000007",
            "state": "a=1",
            "name": "a",
            "kind": "SPAN_KIND_SERVER",
            "attributes": {"text": "b", "long": long[..1024], "number": -3},
            "status": "STATUS_CODE_ERROR",
            "message": "why",
            "is_remote": true,
            "flags": 1,
            "begun": 10,
            "ended": 12,
        }]);
        assert_eq!(request["spans"], expected);
        assert_eq!(told.iter().next(), None, "nothing is to be told");
    }
}

#[test]
fn a_batch_goes_when_it_is_full_and_others_when_their_time_comes() {
    let Some(mut other) = Other::answering(&[]) else { return };
    let count = |request: Value| request["spans"].as_array().map(Vec::len);
    let patient =
        [("OTEL_BSP_SCHEDULE_DELAY", "4000000000"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")];
    let (collector, _told) = way(&other.url, &patient);
    collector.send((1..=4).map(record).collect());
    assert_eq!(count(other.next()), Some(3));
    assert_eq!(count(other.next()), Some(1));
    collector.send((1..=2).map(record).collect());
    end(&collector);
    assert_eq!(count(other.next()), Some(2));
    let (collector, _told) = way(&other.url, &[("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    collector.send(vec![record(1)]);
    assert_eq!(count(other.next()), Some(1));
    end(&collector);
}

#[test]
fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let Some(mut other) = Other::answering(&["503", "429", "400", "reject"]) else { return };
    let (collector, told) = way(&other.url, &[("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    collector.send(vec![record(1)]);
    for answer in ["503", "429", "400"] {
        assert_eq!(other.next_of(), (answer.into(), "0000000000000001".into()));
    }
    collector.send(vec![record(2), record(3)]);
    assert_eq!(other.next_of(), ("reject".into(), "0000000000000002".into()));
    end(&collector);
    let told: Vec<String> = told.iter().collect();
    let parts = [
        "does not take spans: it answers 503",
        "did not get 1 spans, which are lost",
        "takes spans again",
        "ends without 2 spans, all in all",
    ];
    assert_eq!(told.len(), parts.len(), "{told:?}");
    assert!(told.iter().zip(parts).all(|(line, part)| line.contains(part)), "{told:?}");
}

#[test]
fn what_finds_no_room_is_lost_and_counted_and_nobody_waits_for_a_collector_that_is_gone() {
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let more = [("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_BSP_SCHEDULE_DELAY", "4000000000")];
    let (collector, told) = way(&url, &more);
    // The batch is as large as the queue, and the thread may have taken one span.
    (0..100).for_each(|span| collector.send(vec![record(1 + span)]));
    collector.end(Time::now() + Duration::from_millis(100));
    assert_eq!(lost(&told), Some(100));
    // Nothing listens there.
    drop(silent);
    let (collector, told) = way(&url, &[]);
    collector.send(vec![record(1)]);
    end(&collector);
    assert_eq!(lost(&told), Some(1));
}

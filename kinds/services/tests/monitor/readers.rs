//! The official readers of Prometheus' formats, compared with what the run itself reports.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{address, start};
use crate::stage::{self, PATIENCE, Stage, skip};

const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                        encoding=delimited";

/// A whole request or answer, as far as its length header says.
pub(crate) fn request(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let len = text.split("content-length: ").nth(1).and_then(|it| it.split("\r\n").next());
        let body = text.split_once("\r\n\r\n").map(|it| it.1.len());
        if let (Some(len), Some(body)) = (len, body)
            && len.parse() == Ok(body)
        {
            return text;
        }
        match stream.read(&mut buffer).expect("more of it") {
            0 => return text,
            len => bytes.extend(&buffer[..len]),
        }
    }
}

/// The body of the page in the requested format.
fn scrape(address: &str, accept: &str) -> Vec<u8> {
    let at = address.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: {at}\r\naccept: {accept}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers");
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").expect("a head");
    assert!(bytes.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes[..end]));
    bytes.split_off(end + 4)
}

/// What a program reads from the page: one JSON object for each line of figures. `None` if the
/// program does not exist, which is reported, and fails with `CI=true`.
fn read_by(mut command: Command, what: &str, body: &[u8]) -> Option<Vec<Value>> {
    let started =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(&format!("{what}: there is no such program"));
            return None;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    // A program that ends early gives the reason below.
    let _ = child.stdin.take().expect("a pipe").write_all(body);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("No module named") || errors.contains("dial tcp") {
        skip(&format!("{what}: {errors}"));
        return None;
    }
    assert!(output.status.success(), "{what}: {errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// Makes the command that reads a page.
type Reader = fn() -> Command;

/// `prometheus_client`, of the Prometheus project, reading one of its two formats of text.
fn python(parser: &str) -> Command {
    let mut command = Command::new(stage::python());
    let read = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/monitor/read.py");
    command.arg(read).arg(parser);
    command
}

/// `expfmt`, the reader of Prometheus itself.
fn go() -> Command {
    let mut command = Command::new("go");
    command.args(["run", "."]);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/monitor/expfmt"));
    command
}

pub(crate) fn prometheus_reads_what_the_cycles_did() {
    let mut arm = start(
        "signals: true\n    rules: ['overruns > 1e9: event \"never µ\"']\n    listen: 127.0.0.1:0",
    );
    let address = address(&mut arm);
    arm.until("there are cycles", |arm| cycles(arm) > 100);
    let open = "application/openmetrics-text; version=1.0.0";
    let readers: [(&str, &str, Reader); 3] = [
        ("prometheus_client, OpenMetrics", open, || python("openmetrics")),
        ("prometheus_client, text 0.0.4", "text/plain", || python("text")),
        ("expfmt, protobuf", PROTOBUF, go),
    ];
    // All pages are read first, so that the readers do not run beside the arm.
    let pages = readers.map(|(what, accept, reader)| {
        let before = cycles(&arm);
        let mut body = Vec::new();
        // The monitor is one poll behind, 10 ms if the machine allows it.
        arm.until("the monitor knows of them", |_| {
            body = scrape(&address, accept);
            accept != open || counted(&body).is_some_and(|count| count >= before)
        });
        arm.look();
        (what, reader, body, before..=cycles(&arm), accept != open)
    });
    arm.stop();
    for (what, reader, body, counts, is_late) in pages {
        if let Some(rows) = read_by(reader(), what, &body) {
            check(what, &rows, counts, is_late);
            println!("read by {what}: {} rows", rows.len());
        }
    }
}

/// Cycles of the controller, as the run itself counts them.
fn cycles(arm: &Stage) -> u64 {
    let status = arm.run.status();
    let control = status.domains.iter().find(|domain| domain.name == "control");
    control.expect("it is there").threads.first().map_or(0, |thread| thread.cycles)
}

/// The same in a page of text, once the run has also told the monitor that it runs.
fn counted(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    let value = |name: &str, label: &str| {
        let mut lines = text.lines();
        let row = lines.find(|line| line.starts_with(name) && line.contains(label))?;
        row.rsplit_once(' ')?.1.parse::<f64>().ok()
    };
    value("sinew_phase{", "phase=\"running\"").filter(|it| *it == 1.0)?;
    value("sinew_cycles_total{", "domain=\"control\"").map(|count| count as u64)
}

/// Checks that the figures agree with the run, and with each other.
fn check(what: &str, rows: &[Value], counts: RangeInclusive<u64>, is_late: bool) {
    let of = |name: &str, labels: &[(&str, &str)]| -> &Value {
        let is_it = |row: &&Value| {
            row["name"] == name && labels.iter().all(|(key, value)| row["labels"][key] == *value)
        };
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{what}: no {name} {labels:?}"))
    };
    let control = [("graph", "monitored"), ("domain", "control"), ("thread", "0")];
    // The core goes on while the page is written: its figures need not be of the same cycle.
    let is_near = |count: u64| counts.contains(&count) || is_late && count < *counts.start();
    let cycles = of("sinew_cycles_total", &control)["value"].as_f64().expect("a number") as u64;
    assert!(is_near(cycles), "{what}: {cycles}, {counts:?}");
    let latency = of("sinew_cycle_latency_seconds", &control);
    let (sum, count) = (latency["sum"].as_f64(), latency["count"].as_u64().expect("a count"));
    assert!(is_near(count), "{what}: one for each cycle, not {count}, {counts:?}");
    let max = of("sinew_cycle_latency_max_seconds", &control)["value"].as_f64().expect("a number");
    assert!(sum.expect("a sum") <= max * count as f64, "{what}: {sum:?} {max}");
    let buckets = latency["buckets"].as_array().expect("classic buckets");
    assert_eq!(
        (buckets.len(), buckets.last().and_then(Value::as_u64)),
        (17, Some(count)),
        "{what}"
    );
    if what.contains("protobuf") {
        let native = latency["native"].as_array().expect("native buckets");
        let counts = native.iter().map(|it| it["count"].as_f64().expect("a count"));
        assert_eq!(counts.sum::<f64>() as u64, count, "{what}: {native:?}");
        let highest = native.last().expect("a bucket");
        let upper = highest["upper"].as_f64().expect("a bound");
        assert!(max <= upper && max > upper / 1.1, "{what}: {max} in the last of {native:?}");
    }
    let condition = "overruns > 1e9: event \"never µ\"";
    assert_eq!(of("sinew_rule_firing", &[("rule", "1"), ("condition", condition)])["value"], 0.0);
    assert_eq!(of("sinew_phase", &[("phase", "running")])["value"], 1.0);
    assert_eq!(of("sinew_domain_up", &[("domain", "plant")])["value"], 1.0);
    let brake = [("node", "drives"), ("signal", "brake"), ("element", "5")];
    assert!(of("sinew_signal", &brake)["value"].is_number(), "{what}");
}

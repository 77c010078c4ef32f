//! The figures of flows, read by the official readers of Prometheus' formats.

use std::env;
use std::fs::{self, File};
use std::process::Command;

use serde_json::Value;

use crate::api::Api;
use crate::control::Place;
use crate::program::{graph_in, ours, skip, wait_until};

const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                        encoding=delimited";
const MONITOR: &str = "
  - {kind: monitor, name: monitor, domain: watch, listen: '127.0.0.1:0'}
";

/// The page in a format, read by an independent program: a row for each figure. `None`, with a
/// message, if the program is not installed.
fn read(page: &str, accept: &str, mut reader: Command, lack: &str) -> Option<Vec<Value>> {
    let file = format!("{}/flow_figures.page", env!("CARGO_TARGET_TMPDIR"));
    let fetched = Command::new("curl")
        .args(["-sSf", "-o", &file, "-H", &format!("accept: {accept}"), page])
        .output()
        .expect("there is curl");
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    let output = match reader.stdin(File::open(&file).expect("the page")).output() {
        Ok(output) => output,
        Err(_) => return no(lack),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("No module named") || errors.contains("dial tcp") {
        return no(lack);
    }
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn no<T>(lack: &str) -> Option<T> {
    skip(lack);
    None
}

#[test]
fn prometheus_reads_what_flow_nodes_did() {
    let text = fs::read_to_string(ours("graphs/http/apart.yaml")).expect("a graph");
    let text = text.replace("  web: {}\n", "  web: {}\n  watch: {}\n") + MONITOR;
    let place = Place::new("flow_figures");
    let graph = graph_in("flow_figures", &text);
    let (running, pid) = place.run(&["--set", "listener.port=0", &graph]);
    let api = Api::of(&place, &pid, "web");
    for _ in 0..3 {
        assert_eq!(api.ask_with("GET", "/ping", "", "").0, 200);
    }
    let json = "content-type: application/json\r\n";
    assert_eq!(api.ask_with("POST", "/score", json, r#"{"text": 1}"#).0, 500);
    let address = || place.domain(&pid, "watch")["address"].as_str().map(str::to_owned);
    wait_until("the monitor says where it is", || address().is_some());
    let page = address().expect("just seen");
    let monitor = ours("kinds/services/tests/monitor");
    let python = || {
        let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut command = Command::new(python);
        command.arg(monitor.join("read.py")).arg("openmetrics");
        command
    };
    let go = || {
        let mut command = Command::new("go");
        command.args(["run", "."]).current_dir(monitor.join("expfmt"));
        command
    };
    let open = "application/openmetrics-text; version=1.0.0";
    let readers: [(&str, &dyn Fn() -> Command, &str); 2] = [
        (open, &python, "Python's prometheus_client is missing"),
        (PROTOBUF, &go, "Go, or expfmt, is missing"),
    ];
    for (accept, reader, lack) in readers {
        let mut rows = Some(Vec::new());
        let of = |rows: &[Value], name: &str, node: &str| {
            let mut found = rows.iter();
            found.find(|row| row["name"] == name && row["labels"]["node"] == node).cloned()
        };
        // The figures are updated twice a second.
        wait_until("all is counted", || {
            rows = read(&page, accept, reader(), lack);
            rows.as_ref().is_none_or(|rows| {
                let count = |node| of(rows, "sinew_flow_packets_total", node);
                count("listener").is_some_and(|row| row["value"] == 4.0)
                    && count("score").is_some_and(|row| row["value"] == 1.0)
            })
        });
        let Some(rows) = rows else { continue };
        let value = |name, node| of(&rows, name, node).expect(name)["value"].clone();
        assert_eq!(value("sinew_flow_packets_total", "pong"), 3.0);
        assert_eq!(value("sinew_flow_errors_total", "score"), 1.0);
        assert_eq!(value("sinew_flow_in_flight", "listener"), 0.0);
        let times = of(&rows, "sinew_flow_time_seconds", "listener").expect("its times");
        assert_eq!(
            (&times["count"], times["buckets"].as_array().map(Vec::len)),
            (&4.into(), Some(17))
        );
        let longest = value("sinew_flow_time_max_seconds", "listener").as_f64().expect("a number");
        let sum = times["sum"].as_f64().expect("a sum");
        assert!(0.0 < longest && longest <= sum * 1.001, "{longest} {sum}");
    }
    place.stop(running).ended_with(0);
}

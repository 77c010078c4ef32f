//! The arm's REST API, used as a client would use it while the core runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::control::Place;
use crate::program::{graph_in, ours, sinew, wait_until};

/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// The graph, as patient with a busy machine as `calm.yaml`, at any free port.
pub(crate) fn patient(name: &str) -> String {
    let text = fs::read_to_string(ours("graphs/robot/api.yaml")).expect("a spec");
    let overrun = "overrun: {policy: stop, consecutive_max: ";
    let patient = text
        .replace("../arm/", &format!("{}/", ours("graphs/arm").display()))
        .replace("sinew.csv]", &format!("{}]", ours("graphs/robot/sinew.csv").display()))
        .replace("period: 1ms", "period: 5ms")
        .replace(&format!("{overrun}50"), &format!("{overrun}10000"))
        .replace("lost_frames_max: 50", "lost_frames_max: 100")
        .replace("after: 50", "after: 100")
        .replace("wait: spin,", "wait: spin_then_park,")
        .replace("following_mm: 4 ", "following_mm: 1000\n    following_deg: 180 ")
        .replace("port: 8080", "port: 0");
    graph_in(name, &patient)
}

/// The API of a run.
pub(crate) struct Api {
    address: String,
}

impl Api {
    /// What a domain of a run serves, once it has announced its address.
    pub(crate) fn of(place: &Place, pid: &str, domain: &str) -> Api {
        let url = || place.domain(pid, domain)["address"].as_str().map(str::to_owned);
        wait_until("the API says where it is", || url().is_some());
        let url = url().expect("just seen");
        Api { address: url.trim_start_matches("http://").trim_end_matches('/').to_owned() }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request. Returns the status and the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.ask_with(method, path, "Content-Type: application/json\r\n", body)
    }

    /// The same with these headers, one on each line.
    pub(crate) fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, Value) {
        let text = self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: \
             close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        (status.expect("a status"), body)
    }

    /// Sends these bytes. Returns everything that comes back.
    pub(crate) fn raw(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the listener is there");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        // A listener that refuses a request may close the connection before all of it is sent.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.ask("POST", path, body)
    }

    /// The positions of the joints. `None` while the core is too busy to answer.
    fn joints(&self) -> Option<Value> {
        let (status, state) = self.get("/state");
        (status == 200).then(|| state["joint_position_rad"].clone())
    }

    fn wait_for_motion(&self) {
        let mut first = None;
        wait_until("the joints move", || {
            let now = self.joints();
            let has_moved = first.is_some() && now.is_some() && now != first;
            first = first.take().or(now);
            has_moved
        });
    }
}

#[test]
fn the_arm_is_commanded_over_http_and_garbage_does_not_disturb_it() {
    let place = Place::new("api");
    let (running, pid) = place.run(&[&patient("api")]);
    let api = Api::of(&place, &pid, "api");
    wait_until("the core sends its state", || api.get("/state").0 == 200);

    let (_, state) = api.get("/state");
    assert_eq!(state["joint_position_rad"].as_array().map(Vec::len), Some(6), "{state}");
    assert_eq!(state["tool_position_m"].as_array().map(Vec::len), Some(3), "{state}");
    wait_until("the drives are enabled", || api.get("/state").1["is_operational"] == true);
    api.wait_for_motion();

    for body in [r#"{"path": "plate"}"#, r#"{"path": 2}"#] {
        assert_eq!(api.post("/path", body), (202, json!({"accepted": true})), "{body}");
    }
    garbage(&api);
    assert_eq!(api.post("/pause", "").0, 202);
    wait_until("the tool stands", || api.get("/state").1["path_speed_m_per_s"] == 0.0);
    assert_eq!(api.post("/resume", "").0, 202);
    api.wait_for_motion();

    let (_, status) = api.get("/status");
    assert_eq!((&status["phase"], &status["stop"]), (&json!("running"), &Value::Null));
    assert_eq!(api.post("/reset", "").0, 409, "the core runs");
    stop_and_reset(&api);

    // The core never had a fault.
    let report = place.stop(running).json();
    assert_eq!((&report["outcome"], &report["resets"]), (&json!("stopped"), &json!(1)), "{report}");
    assert_eq!(report["earlier_faults"].as_array().map_or(0, Vec::len), 0);
}

/// Requests that are no commands are answered, and the core goes on.
fn garbage(api: &Api) {
    let cases = [
        ("POST", "/path", r#"{"path": "spiral"}"#, 400),
        ("POST", "/path", r#"{"path": 3}"#, 400),
        ("POST", "/path", r#"{"path": -1}"#, 400),
        ("POST", "/path", r#"{"path": [0]}"#, 400),
        ("POST", "/path", r#"{"path": "#, 400),
        ("POST", "/path", "[]", 400),
        ("POST", "/path", "", 400),
        ("GET", "/path", "", 405),
        ("POST", "/state", "", 405),
        ("GET", "/", "", 404),
        ("GET", "/state/../stop", "", 404),
        ("POST", "/stop/", "", 404),
    ];
    for (method, path, body, expected) in cases {
        let (status, answer) = api.ask(method, path, body);
        assert_eq!(status, expected, "{method} {path} {body}: {answer}");
    }
    let huge = format!(r#"{{"path": "{}"}}"#, "x".repeat(4 << 20));
    // A client that keeps sending after the answer may lose the answer with the connection.
    let head = format!("POST /path HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}", huge.len());
    let answer = api.raw(&format!("{head}\r\n\r\n{huge}"));
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
    for bytes in
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "POST /path HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]
    {
        let answer = api.raw(bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(api.get("/status").1["phase"], "running");
}

/// The core stops with figures, its state is no longer shown, and it starts again.
fn stop_and_reset(api: &Api) {
    let (code, stopped) = api.post("/stop", "");
    assert_eq!((code, &stopped["phase"]), (200, &json!("held")), "{stopped}");
    assert!(stopped["stop"]["safe_output_us"].is_u64(), "{stopped}");
    assert!(stopped["stop"]["at_rest_us"].is_u64(), "{stopped}");
    let reason = stopped["stop"]["reason"].as_str().expect("a text");
    assert_eq!(reason, "halt: POST /stop, by service 'api'");
    assert_eq!(api.post("/stop", "").1["stop"], stopped["stop"], "it is held already");
    let (code, state) = api.get("/state");
    assert_eq!((code, &state["error"]), (503, &json!("the core has stopped")));
    let (code, answer) = api.post("/path", r#"{"path": "plate"}"#);
    assert_eq!(code, 503, "nobody would hear it: {answer}");

    let (code, reset) = api.post("/reset", "");
    assert_eq!((code, &reset["phase"]), (200, &json!("running")), "{reset}");
    wait_until("the core sends its state again", || api.get("/state").0 == 200);
    wait_until("the drives are enabled", || api.get("/state").1["is_operational"] == true);
    api.wait_for_motion();
    assert_eq!(api.post("/path", r#"{"path": "plate"}"#).0, 202, "the mailbox is open again");
}

#[test]
fn the_tests_in_the_graph_pass() {
    let graph = ours("graphs/robot/api.yaml").display().to_string();
    let answer = sinew(["test", &graph]).ended_with(0).out;
    assert!(answer.ends_with("10 passed, 0 failed\n"), "{answer}");
}

#[test]
fn a_request_that_outlasts_the_stop_is_answered() {
    let place = Place::new("slow_request");
    let graph = "name: slow
domains: {web: {stop_deadline: 2s}}
nodes:
  - {kind: listener, name: listener, port: 0, deadline: 1h, ports: {out: [{name: slow, port: in}]}}
  - {kind: sleep, name: slow, duration: 1h}
";
    let (running, pid) = place.run(&[&graph_in("slow_request", graph)]);
    let api = Api::of(&place, &pid, "web");
    let in_flight = || {
        let domain = place.domain(&pid, "web");
        let nodes = domain["nodes"].as_array().expect("nodes").clone();
        let slow = nodes.into_iter().find(|node| node["name"] == "slow").expect("the node");
        slow["flow"]["in_flight"].as_u64() == Some(1)
    };
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| api.raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        // The body of this request never comes.
        let half = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf";
        let sends = scope.spawn(|| api.raw(half));
        wait_until("the request waits", in_flight);
        place.stop(running).ended_with(0);
        for answer in [asks, sends].map(|it| it.join().expect("an end")) {
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
        }
    });
}

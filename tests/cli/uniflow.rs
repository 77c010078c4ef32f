//! `sinew import uniflow`: the examples in `tests/uniflow`, which are similar to uniflow's own,
//! become graphs that run. Files that are no workflow are refused.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::Api;
use crate::control::Place;
use crate::program::{Answer, Running, SINEW, folder, graph_in, ours, refused, sinew};

/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The example as a graph in a folder of its own, and what is left to do by hand.
fn imported(name: &str) -> (String, Vec<Value>) {
    let graph = folder(&format!("uniflow_{name}")).join("graph.yaml").display().to_string();
    let example = ours(&format!("tests/uniflow/{name}.yaml")).display().to_string();
    let answer = sinew(["import", "uniflow", "--json", &example, "--out", &graph]);
    let status = answer.status;
    let said = answer.json();
    let left = said["left"].as_array().expect("a list").clone();
    assert_eq!(status, Some(i32::from(!left.is_empty())), "{said}");
    (graph, left)
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port()
}

/// Runs `sinew` on a graph whose listener has this port, with another port in a second variable.
fn with_ports(arguments: &[&str], port: u16, behind: u16) -> Answer {
    let mut command = Command::new(SINEW);
    command.args(arguments).env("PORT", port.to_string()).env("BEHIND", behind.to_string());
    Running::start(command).answer()
}

/// Runs an imported example that has nothing left to do, and sends it requests.
fn asked(name: &str, ask: impl FnOnce(&Api)) {
    let (graph, left) = imported(name);
    assert_eq!(left, Vec::<Value>::new(), "{name}");
    let (port, behind) = (free_port(), free_port());
    with_ports(&["check", &graph], port, behind).ended_with(0);
    let place = Place::new(&format!("uniflow_{name}"));
    let (running, pid) = place.run_with(&[&graph], &[("PORT", port), ("BEHIND", behind)]);
    ask(&Api::of(&place, &pid, "services"));
    place.stop(running).ended_with(0);
}

#[test]
fn ping_answers_and_its_test_passes() {
    asked("ping", |api| assert_eq!(api.get("/ping"), (200, json!("pong"))));
    let (graph, _) = imported("ping");
    let tested = with_ports(&["test", &graph], 0, 0).ended_with(0).out;
    assert_eq!(tested, "ok      answers_a_ping\n1 passed, 0 failed\n");
    let text = fs::read_to_string(&graph).expect("the graph");
    for kept in ["# Which way a request takes.\n- kind: router", "# from the environment", "\n\n"] {
        assert!(text.contains(kept), "{kept}:\n{text}");
    }
    let wrong = text.replace("reply == 'pong'", "reply == 'ping'");
    assert_ne!(wrong, text, "the test expects something");
    fs::write(&graph, wrong).expect("a place for it");
    with_ports(&["test", &graph], 0, 0).ended_with(1);
}

#[test]
fn loopback_gives_back_what_comes() {
    asked("loopback", |api| {
        assert_eq!(api.post("/any", r#"{"a": [1, 2]}"#), (200, json!({"a": [1, 2]})));
        assert_eq!(api.get("/none"), (400, json!({"error": "no body for /none"})));
    });
}

#[test]
fn a_proxy_passes_requests_on() {
    let (graph, left) = imported("httpproxy");
    assert_eq!(left, Vec::<Value>::new());
    let behind = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = behind.local_addr().expect("an address").port();
    let place = Place::new("uniflow_httpproxy");
    let (running, pid) = place.run_with(&[&graph], &[("PORT", 0), ("BEHIND", port)]);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = behind.accept().expect("the proxy asks");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut asked = String::new();
        while !asked.contains("hello") {
            let mut some = [0; 1024];
            let count = stream.read(&mut some).expect("a request");
            assert_ne!(count, 0, "it broke off: {asked}");
            asked += &String::from_utf8_lossy(&some[..count]);
        }
        let answer = "HTTP/1.1 201 Created\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n";
        stream.write_all(format!("{answer}\r\nhi").as_bytes()).expect("a socket");
        asked
    });
    let api = Api::of(&place, &pid, "services");
    assert_eq!(api.post("/a/b?c=d", "hello"), (201, json!("hi")));
    let asked = server.join().expect("it was asked");
    assert!(asked.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{asked}");
    place.stop(running).ended_with(0);
}

#[test]
fn hello_world_says_so_and_its_good_bye_is_left() {
    let (graph, left) = imported("helloworld");
    let [left] = left.as_slice() else { panic!("{left:?}") };
    assert_eq!((&left["line"], &left["message"]), (&json!(24), &json!("there is no port 'term'")));
    sinew(["check", &graph]).ended_with(0);
    let place = Place::new("uniflow_helloworld");
    let answer = place.sinew(&["run", &graph]).ended_with(0);
    assert!(answer.out.contains("Hello, World!"), "{}\n{}", answer.out, answer.err);
}

#[test]
fn users_are_made_listed_changed_and_deleted() {
    asked("users", |api| {
        let create = api.post("/users", r#"{"name": "Ada"}"#);
        assert_eq!(create, (200, json!([{"id": 1, "name": "Ada"}])));
        assert_eq!(api.post("/users", r#"{"name": null}"#).0, 400);
        let body = r#"{"name": "Bob"}"#;
        let header = "Content-Type: application/json\r\n";
        let (status, changed) = api.ask_with("PUT", "/users/1", header, body);
        assert_eq!((status, changed), (200, json!([{"id": 1, "name": "Bob"}])));
        assert_eq!(api.get("/users"), (200, json!([{"id": 1, "name": "Bob"}])));
        assert_eq!(api.ask_with("DELETE", "/users/1", "", "").0, 200);
        assert_eq!(api.get("/users"), (200, json!([])));
        assert_eq!(api.post("/users", "{").0, 500, "whatever else is wrong");
    });
}

#[test]
fn websockets_echo_compute_and_are_passed_on() {
    asked("websocket", |api| {
        assert_eq!(said(api, "/echo"), "hi");
        assert_eq!(said(api, "/loud"), "hi!");
        assert_eq!(said(api, "/proxy"), "hi!");
    });
}

/// The answer of a websocket to `hi`.
fn said(api: &Api, path: &str) -> String {
    let mut stream = TcpStream::connect(api.address()).expect("the listener is there");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("a socket");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{path}: {answer}");
    // A text frame, masked with zeros.
    stream.write_all(b"\x81\x82\0\0\0\0hi").expect("a socket");
    let mut frame = [0; 2];
    stream.read_exact(&mut frame).expect("a frame");
    assert_eq!(frame[0], 0x81, "{path}: a text");
    let mut text = vec![0; usize::from(frame[1])];
    stream.read_exact(&mut text).expect("a text");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_graph_goes_to_standard_output_and_what_is_left_beside() {
    let file = ours("tests/uniflow/helloworld.yaml").display().to_string();
    let answer = sinew(["import", "uniflow", &file]).ended_with(1);
    assert!(answer.out.contains("kind: block\n"), "{}", answer.out);
    let left = format!("{file}:24:5: left: there is no port 'term'; ");
    assert!(answer.err.contains(&left), "{}", answer.err);
    let text = "- kind: session\n  name: s\n- kind: listener\n  name: l\n  port: 0\n  \
                protocol: http\n  ports:\n    out:\n    - {name: s, port: in}\n";
    let unknown = sinew(["import", "uniflow", &graph_in("uniflow_kind", text)]).ended_with(1);
    assert!(unknown.err.contains(":1:9: left: there is no kind 'session' here; 'set' gives"));
    assert!(unknown.out.contains("- kind: session\n"), "{}", unknown.out);
}

#[test]
fn what_is_no_workflow_is_refused() {
    let cases = [
        ("a: [b", "not YAML"),
        ("- kind: [\n", "not YAML"),
        ("", "the file holds no graph"),
        ("just words", "a workflow is a list, found a single value"),
        ("- name: x\n  data: {password: y}\n", "this file holds values of uniflow, not nodes"),
        ("- a: b\n", "this is not a node: it has no 'kind'"),
        ("name: g\nnodes: []\n", "this is a graph of Sinew, not of uniflow"),
        ("- kind: timer\n  name: t\n", "uniflow has no kind 'timer', Sinew has"),
        (
            "- kind: test\n  expect: 'true'\n",
            "this is of Sinew: a 'test' of uniflow has no 'expect'",
        ),
        ("- &a {kind: nop, ports: *a}\n", "this alias stands inside its own anchor"),
        ("- kind: nop\n  kind: if\n", "key 'kind' appears twice in this mapping"),
        ("--- \n- kind: nop\n---\n- kind: nop\n", "a second document begins here"),
    ];
    for (number, (text, expected)) in cases.iter().enumerate() {
        let file = graph_in(&format!("uniflow_bad_{number}"), text);
        refused(&["import", "uniflow", &file], expected);
        let json = sinew(["import", "uniflow", "--json", &file]).ended_with(2).json();
        assert!(json["errors"][0]["message"].is_string(), "{json}");
    }
    let ours = ours("graphs/flows/orders.yaml").display().to_string();
    refused(&["import", "uniflow", &ours], "Sinew");
    refused(&["import", "uniflow", "missing.yaml"], "missing.yaml: cannot read the spec");
    let file = graph_in("uniflow_same", "- kind: nop\n");
    refused(&["import", "uniflow", &file, "--out", &file], "is the file that is read");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "- kind: nop\n");
}

#[test]
fn a_large_file_is_rewritten_or_refused_and_never_hangs() {
    let node = format!(
        "# {}\n- kind: test\n  id: x\n  ports: {{out: [{{name: l, port: io}}]}}\n",
        "#".repeat(1 << 10)
    );
    let last = "- kind: snippet\n  name: l\n  language: cel\n  code: self\n";
    let many = format!("{}{last}", node.repeat((10 << 20) / node.len()));
    let text =
        format!("- kind: snippet\n  name: l\n  language: text\n  code: {}\n", "x".repeat(10 << 20));
    let braces = format!(
        "[{}{{kind: nop}}]",
        "{kind: snippet, language: cel, id: x, code: self}, ".repeat(20_000)
    );
    let too_large = "- kind: nop\n".repeat(2 << 20);
    for (name, text, status) in
        [("many", many, 0), ("text", text, 1), ("braces", braces, 1), ("too_large", too_large, 2)]
    {
        let file = graph_in(&format!("uniflow_{name}"), &text);
        let out = Path::new(&file).with_extension("out").display().to_string();
        sinew(["import", "uniflow", &file, "--out", &out]).ended_with(status);
    }
}

#[test]
fn every_kind_of_paths_does_the_same() {
    let (graph, left) = imported("kinds");
    assert_eq!(left, Vec::<Value>::new());
    let answer = sinew(["test", &graph]);
    let text = fs::read_to_string(&graph).expect("the graph");
    assert!(answer.out.ends_with("5 passed, 0 failed\n"), "{}{}\n{text}", answer.out, answer.err);
}

#[test]
fn json_and_a_single_node_are_workflows_too() {
    let json = r#"[{"kind": "test", "name": "t", "ports": {"out": [{"name": "s", "port": "in"}]}},
        {"kind": "step", "name": "s", "specs": [
            {"kind": "snippet", "language": "json", "code": "1"}]}]"#;
    let file = graph_in("uniflow_json", json);
    let graph = folder("uniflow_json_graph").join("graph.yaml").display().to_string();
    sinew(["import", "uniflow", &file, "--out", &graph]).ended_with(0);
    sinew(["test", &graph]).ended_with(0);
    let one = "# One.\nkind: listener\nname: l\nspecs:\n- a\nprotocol: http\nport: 0\n";
    let answer = sinew(["import", "uniflow", &graph_in("uniflow_one", one)]).ended_with(0);
    assert!(answer.out.starts_with("# One.\n- kind: listener\n  name: l\n"), "{}", answer.out);
}

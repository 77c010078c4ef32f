//! Spans of flows at an independent collector, in Python (tests/python/collector.py).

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::api::Api;
use crate::control::Place;
use crate::program::{Running, graph_in, ours, skip};

const TOKEN: &str = "only-this-t0ken";

/// The graph that the other one sends requests to. It answers in a second domain.
const BEHIND: &str = "
name: behind
domains: {web: {}, inside: {}}
domain: web
nodes:
- {kind: listener, name: listener, port: 0, ports: {out: [{name: answer, port: in}]}}
- {kind: snippet, name: answer, domain: inside, language: text, code: behind}
";

const FRONT: &str = "
name: front
domains: {api: {}}
domain: api
nodes:
- {kind: listener, name: listener, port: 0, ports: {out: [{name: outer, port: in}]}}
- kind: router
  name: outer
  routes: [{method: GET, path: '/{*rest}', port: 'out[0]'}]
  ports: {'out[0]': [{name: router, port: in}]}
- kind: router
  name: router
  routes:
  - {method: GET, path: /users/:id, port: 'out[0]'}
  - {method: GET, path: /bad, port: 'out[1]'}
  - {method: GET, path: /fork, port: 'out[2]'}
  ports:
    'out[0]': [{name: ask, port: in}]
    'out[1]': [{name: bad, port: in}]
    'out[2]': [{name: fork, port: in}]
- {kind: http, name: ask, url: 'http://BEHIND/'}
- {kind: throw, name: bad, message: '{{ env.SINEW_TEST_TOKEN }} was wrong'}
- {kind: fork, name: fork, ports: {out: [{name: later, port: in}]}}
- {kind: snippet, name: later, language: text, code: later}
";

/// A collector, and its output.
struct Collector {
    child: Child,
    url: String,
    said: BufReader<ChildStdout>,
}

impl Collector {
    /// `None`, with a message, without a Python that has its messages.
    fn start() -> Option<Collector> {
        let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut command = Command::new(&python);
        command.arg(ours("tests/python/collector.py")).stdout(Stdio::piped());
        let (mut port, mut begun) = (String::new(), command.spawn());
        if let Ok(child) = &mut begun {
            let mut said = BufReader::new(child.stdout.take().expect("what it says"));
            said.read_line(&mut port).expect("its port");
            if let (Ok(port), Ok(child)) = (port.trim().parse::<u16>(), begun) {
                return Some(Collector { child, url: format!("http://127.0.0.1:{port}"), said });
            }
        }
        skip(&format!("'{python}' cannot import opentelemetry.proto; see tests/python"));
        None
    }

    /// All spans that have arrived.
    fn spans(mut self) -> Spans {
        self.child.kill().expect("it runs");
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        assert!(!said.contains(TOKEN), "{said}");
        let requests = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        Spans(requests.flat_map(|it| it["spans"].as_array().expect("a list").clone()).collect())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Spans(Vec<Value>);

impl Spans {
    /// The spans that a service made in a trace, for a flow or a node.
    fn of(&self, trace: &str, service: &str, name: &str) -> Vec<&Value> {
        let is_it = |span: &&Value| {
            span["trace"] == trace
                && span["resource"]["service.name"] == service
                && span["name"] == name
        };
        self.0.iter().filter(is_it).collect()
    }

    /// The same, if there is exactly one.
    #[track_caller]
    fn one(&self, trace: &str, service: &str, name: &str) -> &Value {
        match self.of(trace, service, name).as_slice() {
            [one] => one,
            several => panic!("{} of '{name}': {:#?}", several.len(), self.0),
        }
    }
}

/// Both graphs, run and sent requests.
struct Hops {
    place: Place,
    front: (Running, String),
    behind: (Running, String),
    api: Api,
}

impl Hops {
    fn run(name: &str, collector: &str, more: &[(&str, &str)]) -> Hops {
        let place = Place::new(name);
        let own = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector), ("SINEW_TEST_TOKEN", TOKEN)];
        let environment = [&own, more].concat();
        let behind = place.run_in(&environment, &[&graph_in(&format!("{name}_behind"), BEHIND)]);
        let address = Api::of(&place, &behind.1, "web").address().to_owned();
        let text = FRONT.replace("BEHIND", &address);
        let front = place.run_in(&environment, &[&graph_in(&format!("{name}_front"), &text)]);
        let api = Api::of(&place, &front.1, "api");
        Hops { place, front, behind, api }
    }

    fn ask(&self, path: &str, headers: &str) -> u16 {
        self.api.ask_with("GET", path, headers, "").0
    }

    fn stop(self) {
        self.place.stop(self.front.0);
        self.place.stop(self.behind.0);
    }
}

#[test]
fn a_trace_goes_through_two_programs_and_three_domains() {
    let Some(collector) = Collector::start() else { return };
    let hops = Hops::run("two_hops", &collector.url, &[]);
    let [made, unmade, failed, forked] = ["1", "2", "3", "4"].map(|digit| digit.repeat(32));
    let parent = |trace: &str, flags: &str| {
        format!("traceparent: 00-{trace}-00000000000000aa-{flags}\r\ntracestate: other=1\r\n")
    };
    assert_eq!(hops.ask("/users/7?secret", &parent(&unmade, "00")), 200);
    assert_eq!(hops.ask("/users/7?secret", &parent(&made, "01")), 200);
    assert_eq!(hops.ask("/bad", &parent(&failed, "01")), 500);
    assert_eq!(hops.ask("/fork", &parent(&forked, "01")), 204);
    assert_eq!(hops.ask("/none", "traceparent: nonsense\r\n"), 404);
    hops.stop();
    let spans = collector.spans();
    assert!(spans.0.iter().all(|span| span["trace"] != *unmade), "{:#?}", spans.0);
    let of_made = |span: &&Value| span["trace"] == *made;
    assert!(spans.0.iter().filter(of_made).all(|it| it["state"] == "other=1"));
    let asks = asked_first(&spans, &made);
    asked_by(&spans, &made, &asks);
    fails(&spans, &failed);
    forks(&spans, &forked);
    let begun = spans.0.iter().find(|span| span["attributes"]["url.path"] == "/none");
    let begun = begun.expect("a trace that begins here");
    assert_eq!((&begun["parent"], &begun["status"]), (&"".into(), &"STATUS_CODE_UNSET".into()));
}

/// Checks the program that the client sends its request to. Returns the span of its request to the
/// other program.
fn asked_first(spans: &Spans, trace: &str) -> Value {
    let flow = spans.one(trace, "front", "GET /users/{id}");
    assert_eq!((&flow["parent"], &flow["is_remote"]), (&"00000000000000aa".into(), &true.into()));
    let kind_and_status = (&flow["kind"], &flow["status"]);
    assert_eq!(kind_and_status, (&"SPAN_KIND_SERVER".into(), &"STATUS_CODE_UNSET".into()));
    let attributes = &flow["attributes"];
    for (name, expected) in [
        ("http.request.method", json!("GET")),
        ("url.path", json!("/users/7")),
        ("url.scheme", json!("http")),
        ("http.route", json!("/users/{id}")),
        ("http.response.status_code", json!(200)),
        ("sinew.node", json!("listener")),
        ("sinew.kind", json!("listener")),
    ] {
        assert_eq!(attributes[name], expected, "{name} of {flow:#}");
    }
    let resource = json!({"service.name": "front", "sinew.graph": "front", "sinew.domain": "api"});
    assert_eq!(flow["resource"], resource);
    let (router, ask) = (spans.one(trace, "front", "router"), spans.one(trace, "front", "ask"));
    for (node, kind) in [(router, "SPAN_KIND_INTERNAL"), (ask, "SPAN_KIND_CLIENT")] {
        let at = (&node["parent"], &node["is_remote"], &node["kind"]);
        assert_eq!(at, (&flow["span"], &false.into(), &kind.into()), "{node:#}");
        assert_eq!(node["attributes"]["sinew.flow"], attributes["sinew.flow"]);
    }
    assert_eq!(ask["attributes"]["sinew.kind"], "http");
    ask["span"].clone()
}

/// Checks the program behind it, and that program's other domain.
fn asked_by(spans: &Spans, trace: &str, asks: &Value) {
    let flow = spans.one(trace, "behind", "GET");
    assert_eq!((&flow["parent"], &flow["kind"]), (asks, &"SPAN_KIND_SERVER".into()));
    // In the listener's domain the node represents the one in the other domain.
    let answers = spans.of(trace, "behind", "answer");
    let within = |domain: &str, parent: &Value| {
        let is_it = |span: &&&Value| {
            span["resource"]["sinew.domain"] == domain && span["parent"] == *parent
        };
        let found: Vec<_> = answers.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "of 'answer' in '{domain}' below {parent}: {answers:#?}");
        found[0]["span"].clone()
    };
    let caller = within("web", &flow["span"]);
    let called = within("inside", &caller);
    within("inside", &called);
    assert_eq!(answers.len(), 3, "{answers:#?}");
}

fn fails(spans: &Spans, trace: &str) {
    for name in ["GET /bad", "bad"] {
        let span = spans.one(trace, "front", name);
        assert_eq!(span["status"], "STATUS_CODE_ERROR", "{span:#}");
        let message = span["message"].as_str().unwrap_or_default();
        assert!(message.contains("*** was wrong"), "{span:#}");
    }
}

fn forks(spans: &Spans, trace: &str) {
    let flow = spans.one(trace, "front", "GET /fork");
    // The node, and the child flow that it began.
    let mut forks = spans.of(trace, "front", "fork");
    forks.sort_by_key(|span| span["parent"] != flow["span"]);
    let [node, child] = forks.as_slice() else { panic!("{forks:#?}") };
    assert_eq!((&node["parent"], &child["parent"]), (&flow["span"], &node["span"]));
    assert_eq!(child["attributes"]["sinew.parent"], flow["attributes"]["sinew.flow"]);
    assert_eq!(spans.one(trace, "front", "later")["parent"], child["span"]);
}

#[test]
fn what_nobody_wants_is_not_made_and_others_are_told_so() {
    let Some(collector) = Collector::start() else { return };
    let sampler = [("OTEL_TRACES_SAMPLER", "parentbased_always_off"), ("OTEL_SERVICE_NAME", "all")];
    let hops = Hops::run("unsampled", &collector.url, &sampler);
    assert_eq!(hops.ask("/users/7", ""), 200);
    let made = "1".repeat(32);
    let parent = format!("traceparent: 00-{made}-00000000000000aa-01\r\n");
    assert_eq!(hops.ask("/users/7", &parent), 200);
    hops.stop();
    let spans = collector.spans();
    assert!(spans.0.iter().all(|span| span["trace"] == *made), "{:#?}", spans.0);
    // Both programs, with the name that the environment gives them.
    assert_eq!(spans.of(&made, "all", "GET").len(), 1);
    assert_eq!(spans.of(&made, "all", "GET /users/{id}").len(), 1);
}

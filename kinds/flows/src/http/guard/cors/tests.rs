//! What pages of other sites may read.

use serde_json::{Value as Json, json};
use sinew_flow::Value;

use crate::testing::{refusals, reply};

fn graph(more: &str, behind: &str) -> String {
    format!(
        "
        - kind: cors
          name: c
          origins: [https://app.example, 'http://localhost:5173']
          {more}
          ports: {{out: [{{name: a, port: in}}]}}
        - {{name: a, {behind}}}
        "
    )
}

fn request(method: &str, headers: Json) -> Value {
    Value::from(json!({"method": method, "header": headers}))
}

fn said(graph: &str, packet: Value) -> Json {
    reply(graph, packet).expect("a reply").expect("a value").to_json().expect("JSON")
}

const ECHO: &str = "kind: snippet, language: json, code: {a: 1}";

#[test]
fn a_page_of_a_listed_site_may_read_and_no_other() {
    let graph = graph("expose: [x-count, etag]", ECHO);
    let from = |origin: &str| said(&graph, request("GET", json!({"origin": origin})));
    let listed = json!({"header": {
        "vary": "origin", "access-control-allow-origin": "https://app.example",
        "access-control-expose-headers": "x-count, etag",
    }, "body": {"a": 1}});
    assert_eq!(from("https://app.example"), listed);
    for other in ["https://app.example.evil", "http://app.example", "null", "https://app.examp"] {
        assert_eq!(from(other), json!({"header": {"vary": "origin"}, "body": {"a": 1}}), "{other}");
    }
    let none = said(&graph, request("GET", json!({})));
    assert_eq!(none["header"], json!({"vary": "origin"}));
}

#[test]
fn what_a_browser_asks_before_is_answered_here() {
    let graph = graph("credentials: true\n          max_age: 1m", "kind: throw");
    let asks = |origin: &str, method: &str| {
        let headers = json!({"origin": origin, "access-control-request-method": "PUT"});
        reply(&graph, request(method, headers))
    };
    let answer = asks("http://localhost:5173", "OPTIONS").expect("a reply").expect("a value");
    let expected = json!({"status": 204, "header": {
        "vary": "origin", "access-control-allow-origin": "http://localhost:5173",
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "60",
    }});
    assert_eq!(answer.to_json(), Ok(expected));
    let other = asks("https://evil.example", "OPTIONS").expect("a reply").expect("a value");
    assert_eq!(other.to_json(), Ok(json!({"status": 204, "header": {"vary": "origin"}})));
    // An error can be read too, and an OPTIONS request that is not a preflight goes on.
    let error = asks("http://localhost:5173", "PUT").expect_err("thrown");
    let allows = |(name, _): &(_, _)| *name == "access-control-allow-origin";
    assert!(error.status() == 500 && error.headers().iter().any(allows), "{error}");
    let plain = request("OPTIONS", json!({"origin": "http://localhost:5173"}));
    assert_eq!(reply(&graph, plain).expect_err("thrown").status(), 500);
}

#[test]
fn a_reply_keeps_what_it_says_itself() {
    let code = "kind: snippet, language: json, code: {status: 201, header: {Vary: accept, \
                set-cookie: [a, b], x: y}, body: hi}";
    let packet = request("GET", json!({"origin": "https://app.example"}));
    let header = json!({"Vary": "accept, origin", "set-cookie": ["a", "b"], "x": "y",
        "access-control-allow-origin": "https://app.example"});
    let expected = json!({"status": 201, "header": header, "body": "hi"});
    assert_eq!(said(&graph("", code), packet.clone()), expected);
    let nothing = said(&graph("", "kind: snippet, language: cel, code: 'null'"), packet);
    assert_eq!(nothing["status"], 204);
    let any = graph("", ECHO).replace("[https://app.example, 'http://localhost:5173']", "['*']");
    let asked = said(&any, request("GET", json!({"origin": "https://x.example"})));
    assert_eq!(asked["header"], json!({"access-control-allow-origin": "*"}));
    assert_eq!(said(&any, request("GET", json!({}))), json!({"a": 1}));
}

#[test]
fn what_would_open_all_doors_is_refused() {
    for (parameters, expected) in [
        ("origins: ['*'], credentials: true", "any site could act"),
        ("origins: [https://a.example], headers: ['*'], credentials: true", "any site could act"),
        ("origins: ['*', https://a.example]", "together with other origins"),
        ("origins: [a.example]", "not an origin"),
        ("origins: ['https://a.example/']", "not an origin"),
        ("origins: ['https://*.a.example']", "not an origin"),
        ("origins: []", "no origin is named"),
        ("origins: ['*'], methods: ['GET, PUT']", "is not a single name"),
    ] {
        let refusals = refusals(&format!("- {{kind: cors, name: c, {parameters}}}"));
        assert!(refusals[0].message.contains(expected), "{parameters}: {refusals:?}");
    }
}

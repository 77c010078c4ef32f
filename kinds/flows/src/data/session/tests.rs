//! Sessions: which requests are recognised, and which are not.

use sinew_flow::{FlowFixture, Reply, Value};

use crate::testing::{LIMIT, fixture, refusals, run};

/// The outputs of `begin` cannot be chosen, so a request goes by its path.
const GRAPH: &str = "
    - kind: router
      name: r
      routes:
        - {method: POST, path: /login, port: 'out[0]'}
        - {method: POST, path: /logout, port: 'out[1]'}
        - {method: ANY, path: /me, port: 'out[2]'}
        - {method: GET, path: /perhaps, port: 'out[3]'}
        - {method: POST, path: /fails, port: 'out[4]'}
        - {method: GET, path: /figures, port: 'out[5]'}
      ports:
        'out[0]': [{name: login, port: in}]
        'out[1]': [{name: logout, port: in}]
        'out[2]': [{name: me, port: in}]
        'out[3]': [{name: perhaps, port: in}]
        'out[4]': [{name: fails, port: in}]
        'out[5]': [{name: figures, port: in}]
    - kind: session
      name: login
      do: begin
      store: s
      value: {user: '{{ packet.body }}'}
      ports: {out: [{name: hello, port: in}]}
    - {kind: snippet, name: hello, language: text, code: 'hello {{ values.session.user }}'}
    - {kind: session, name: logout, do: end, store: s, ports: {out: [{name: bye, port: in}]}}
    - {kind: snippet, name: bye, language: yaml, code: {status: 204}}
    - kind: session
      name: me
      store: s
      origins: [https://app.example]
      ports: {out: [{name: shown, port: in}]}
    - {kind: snippet, name: shown, language: cel, code: values.session}
    - kind: session
      name: perhaps
      store: s
      ports: {out: [{name: shown, port: in}], otherwise: [{name: nobody, port: in}]}
    - {kind: snippet, name: nobody, language: text, code: nobody}
    - kind: session
      name: fails
      do: begin
      store: s
      value: 1
      ports: {out: [{name: t, port: in}]}
    - {kind: throw, name: t, status: 418}
    - {kind: state, name: figures, store: s, do: figures}
    - {kind: store, name: s}
";

fn request(method: &str, path: &str, headers: &[(&'static str, &str)]) -> Value {
    let headers = headers.iter().map(|(name, value)| (*name, Value::text(*value)));
    Value::map([
        ("method", Value::text(method)),
        ("path", Value::text(path)),
        ("host", Value::text("shop.example")),
        ("header", Value::map(headers)),
        ("body", Value::text("ada")),
    ])
}

fn ask(graph: &FlowFixture, method: &str, path: &str, headers: &[(&'static str, &str)]) -> Reply {
    run(graph.open("begin", 0, request(method, path, headers), LIMIT))
}

/// The cookie that a reply sets, as a browser sends it back.
fn cookie(reply: Reply) -> String {
    let answer = reply.expect("a reply").expect("an answer");
    let line = answer.field("header").and_then(|it| it.field("set-cookie")).expect("a header");
    let line = line.as_text().unwrap_or_else(|| panic!("{answer:?}"));
    let (pair, traits) = line.split_once("; ").expect("traits");
    assert_eq!(traits, "Path=/; SameSite=Lax; Secure; HttpOnly; Max-Age=43200", "{line}");
    pair.to_owned()
}

fn status(reply: Reply) -> u16 {
    reply.expect_err("nobody").status()
}

fn ada() -> Reply {
    Ok(Some(Value::map([("user", Value::text("ada"))])))
}

#[test]
fn who_logged_in_is_known_until_he_logs_out() {
    let graph = fixture(GRAPH);
    assert_eq!(status(ask(&graph, "GET", "/me", &[])), 401);
    assert_eq!(ask(&graph, "GET", "/perhaps", &[]), Ok(Some(Value::text("nobody"))));
    let login = ask(&graph, "POST", "/login", &[]);
    let body = login.as_ref().ok().and_then(Option::as_ref).map(|it| it.field("body"));
    assert_eq!(body, Some(Ok(Value::text("hello ada"))));
    let cookie = cookie(login);
    let number = cookie.strip_prefix("__Host-session=").expect("its name");
    assert_eq!(number.len(), 43);
    let of_two = format!("a=b; {cookie}");
    for path in ["/me", "/perhaps"] {
        assert_eq!(ask(&graph, "GET", path, &[("cookie", &of_two)]), ada());
    }
    let bye = ask(&graph, "POST", "/logout", &[("cookie", &cookie)]).expect("a reply");
    let line = bye.expect("an answer").field("header").and_then(|it| it.field("set-cookie"));
    let gone = "__Host-session=; Path=/; SameSite=Lax; Secure; HttpOnly; Max-Age=0";
    assert_eq!(line, Ok(Value::text(gone)));
    assert_eq!(status(ask(&graph, "GET", "/me", &[("cookie", &cookie)])), 401);
}

#[test]
fn a_number_that_somebody_brings_is_never_that_of_a_session() {
    let graph = fixture(GRAPH);
    let first = cookie(ask(&graph, "POST", "/login", &[]));
    let second = cookie(ask(&graph, "POST", "/login", &[("cookie", &first)]));
    assert_ne!(first, second);
    assert_eq!(status(ask(&graph, "GET", "/me", &[("cookie", &first)])), 401, "it has ended");
    assert_eq!(ask(&graph, "GET", "/me", &[("cookie", &second)]), ada());
    let planted = cookie(ask(&graph, "POST", "/login", &[("cookie", "__Host-session=planted")]));
    assert!(!planted.contains("planted"));
    let long = format!("__Host-session={}", "x".repeat(8000));
    for bad in ["__Host-session=planted", "__Host-session=", "other=1", &long] {
        assert_eq!(status(ask(&graph, "GET", "/me", &[("cookie", bad)])), 401, "{bad}");
    }
}

#[test]
fn a_login_that_fails_leaves_no_session_behind() {
    let graph = fixture(GRAPH);
    let error = ask(&graph, "POST", "/fails", &[]).expect_err("it fails");
    assert_eq!((error.status(), error.headers()), (418, &[][..]));
    let figures = ask(&graph, "GET", "/figures", &[]).expect("a reply").expect("figures");
    assert_eq!(figures.field("entries"), Ok(Value::Integer(0)));
}

#[test]
fn a_page_of_another_site_can_only_read() {
    let graph = fixture(GRAPH);
    let cookie = cookie(ask(&graph, "POST", "/login", &[]));
    let ask = |method: &str, headers: &[(&'static str, &str)]| {
        let headers = [&[("cookie", &*cookie)], headers].concat();
        ask(&graph, method, "/me", &headers)
    };
    let own = "https://shop.example";
    for headers in [
        &[][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[("origin", own)],
        &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
        &[("origin", "https://app.example")],
    ] {
        assert_eq!(ask("POST", headers), ada(), "{headers:?}");
    }
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site"), ("origin", own)],
        &[("sec-fetch-site", "what")],
        &[("origin", "https://evil.example")],
        &[("origin", "https://shop.example.evil.example")],
        &[("origin", "null")],
    ] {
        for method in ["POST", "DELETE", "PUT", "PATCH", "post"] {
            assert_eq!(status(ask(method, headers)), 403, "{method} {headers:?}");
        }
        assert_eq!(ask("GET", headers), ada(), "{headers:?}");
        let websocket = [&[("upgrade", "websocket")], headers].concat();
        assert_eq!(status(ask("GET", &websocket)), 403, "{headers:?}");
    }
}

#[test]
fn a_login_and_a_logout_by_a_page_of_another_site_are_refused() {
    let graph = fixture(GRAPH);
    let foreign = ("sec-fetch-site", "cross-site");
    assert_eq!(status(ask(&graph, "POST", "/login", &[foreign])), 403);
    let cookie = cookie(ask(&graph, "POST", "/login", &[]));
    assert_eq!(status(ask(&graph, "POST", "/logout", &[foreign, ("cookie", &cookie)])), 403);
    assert_eq!(ask(&graph, "GET", "/me", &[("cookie", &cookie)]), ada());
}

#[test]
fn what_makes_no_session_is_refused() {
    let store = "\n- {kind: store, name: s}";
    for (parameters, expected) in [
        ("store: t", "no store 't'"),
        ("store: s, do: begin", "needs 'value'"),
        ("store: s, value: 1", "has a meaning with 'do: begin' only"),
        ("store: s, secure: false", "not 'secure'"),
        ("store: s, cookie: 'a b'", "not a name of a cookie"),
    ] {
        let text = format!("- {{kind: session, name: a, {parameters}}}{store}");
        let refusals = refusals(&text);
        assert!(refusals[0].message.contains(expected), "{parameters}: {refusals:?}");
    }
}

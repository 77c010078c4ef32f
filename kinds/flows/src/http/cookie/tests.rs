//! Cookies that are set, and those that came.

use std::process::Command;

use sinew_flow::Value;

use super::{of_packet, parsed};
use crate::testing::{python, refusals, reply};

fn graph(parameters: &str) -> String {
    format!("- {{kind: cookie, name: c, {parameters}}}")
}

fn set(parameters: &str, packet: Value) -> String {
    let answer = reply(&graph(parameters), packet).expect("a reply").expect("an answer");
    let line = answer.field("header").and_then(|it| it.field("set-cookie")).expect("a header");
    line.as_text().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[test]
fn a_cookie_is_safe_unless_the_spec_says_otherwise() {
    let packet = || Value::text("x1");
    for (parameters, expected) in [
        ("cookie: a, value: '{{ packet }}'", "a=x1; Path=/; SameSite=Lax; Secure; HttpOnly"),
        (
            "cookie: a, value: 7, max_age: 1h, path: /shop, cookie_domain: shop.example, \
             same_site: strict",
            "a=7; Path=/shop; Domain=shop.example; SameSite=Strict; Secure; HttpOnly; Max-Age=3600",
        ),
        ("cookie: a, value: true, secure: false, http_only: false", "a=true; Path=/; SameSite=Lax"),
        (
            "cookie: __Host-a, value: null, same_site: none, max_age: 1h",
            "__Host-a=; Path=/; SameSite=None; Secure; HttpOnly; Max-Age=0",
        ),
        (
            "cookie: a, value: x, max_age: 1ms",
            "a=x; Path=/; SameSite=Lax; Secure; HttpOnly; Max-Age=1",
        ),
    ] {
        assert_eq!(set(parameters, packet()), expected);
    }
}

#[test]
fn several_cookies_stand_beside_one_another_and_an_error_sets_none() {
    let text = "
        - {kind: cookie, name: one, cookie: one, value: 1, ports: {out: [{name: two, port: in}]}}
        - {kind: cookie, name: two, cookie: two, value: 2, ports: {out: [{name: a, port: in}]}}
        - kind: snippet
          name: a
          language: yaml
          code: {status: 201, header: {set-cookie: c=3}, body: '{{ packet }}'}
    ";
    let answer = reply(text, Value::Integer(7)).expect("a reply").expect("an answer");
    let lines = answer.field("header").and_then(|it| it.field("set-cookie")).expect("a header");
    let Value::List(lines) = lines else { panic!("{lines:?}") };
    let names: Vec<_> = lines.iter().map(|it| it.as_text().map(|it| &it[..3])).collect();
    assert_eq!(names, [Some("c=3"), Some("two"), Some("one")]);
    assert_eq!(answer.field("status"), Ok(Value::Integer(201)));
}

#[test]
fn what_a_cookie_cannot_hold_is_an_error_and_never_another_cookie() {
    let value = "cookie: a, value: '{{ packet }}'";
    for bad in
        ["a; Domain=evil.example", "a\r\nset-cookie: b=1", "a b", "\"a\"", "a,b", "\u{e4}", "a\\"]
    {
        let error = reply(&graph(value), Value::text(bad)).expect_err(bad);
        assert!(error.status() == 500 && error.text().contains("cookie 'a'"), "{bad}: {error}");
    }
    let error = reply(&graph(value), Value::text("x".repeat(5000))).expect_err("long");
    assert!(error.text().contains("5001 bytes"), "{error}");
    let error = reply(&graph(value), Value::list([])).expect_err("a list");
    assert!(error.text().contains("is a list"), "{error}");
}

#[test]
fn what_browsers_would_drop_is_refused() {
    for (parameters, expected) in [
        ("cookie: 'a b', value: 1", "not a name of a cookie"),
        ("cookie: '', value: 1", "not a name of a cookie"),
        ("cookie: a, value: 1, path: shop", "not a path of a cookie"),
        ("cookie: a, value: 1, path: '/a;b'", "not a path of a cookie"),
        ("cookie: a, value: 1, cookie_domain: 'a;b'", "not a name of servers"),
        ("cookie: a, value: 1, same_site: none, secure: false", "not 'secure'"),
        ("cookie: __Secure-a, value: 1, secure: false", "not 'secure'"),
        ("cookie: __Host-a, value: 1, path: /a", "another path"),
        ("cookie: __Host-a, value: 1, cookie_domain: a.example", "a domain"),
    ] {
        let refusals = refusals(&graph(parameters));
        assert!(refusals[0].message.contains(expected), "{parameters}: {refusals:?}");
    }
}

#[test]
fn cookies_that_come_are_a_mapping() {
    let text = " a=1; b=\"two\" ;c=x=y;; none; =7; a=2; d=";
    let expected = [("a", "1"), ("b", "two"), ("c", "x=y"), ("d", "")];
    let expected = Value::map(expected.map(|(name, value)| (name, Value::text(value))));
    assert_eq!(Value::Map(parsed(text).into()), expected);
    let header = Value::map([("cookie", Value::text(text))]);
    let by_header = Value::map([("header", header)]);
    let by_cookies = Value::map([("cookies", expected)]);
    for packet in [by_header, by_cookies] {
        assert_eq!(of_packet(&packet, "b"), Ok(Some("two".into())));
        assert_eq!(of_packet(&packet, "e"), Ok(None));
    }
    assert_eq!(of_packet(&Value::Null, "a"), Ok(None));
}

#[test]
fn pythons_cookies_are_the_same() {
    let Some(python) = python("http.cookies") else { return };
    let script = "import sys, http.cookies\n\
                  jar = http.cookies.SimpleCookie(sys.argv[1])\n\
                  for name, it in jar.items():\n\
                  \x20   print(name, it.value, it['path'], it['samesite'], it['secure'],\n\
                  \x20         it['httponly'], it['max-age'], it['domain'])\n";
    let line = set("cookie: __Host-a, value: 'x-1', max_age: 1h", Value::Null);
    let output = Command::new(python).args(["-c", script, &line]).output().expect("python");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.trim(), "__Host-a x-1 / Lax True True 3600");
}

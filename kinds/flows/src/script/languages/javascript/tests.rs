//! What scripts see, and what they cannot do.

use std::sync::Arc;

use sinew_flow::{Error, FlowLimits, Reply, Value};

use crate::testing::{LIMIT, MalformedRequest, fixture, refusals, reply, run};

/// A graph with so much time that other work on this machine does not matter.
fn graph(code: &str) -> String {
    let code = code.replace('\n', "\n            ");
    format!(
        "
        - kind: snippet
          name: a
          language: javascript
          memory: 8MiB
          time: 10s
          code: |
            {code}
        "
    )
}

fn answer(code: &str, packet: Value) -> Reply {
    reply(&graph(code), packet)
}

fn value(code: &str, packet: Value) -> Value {
    answer(code, packet).unwrap_or_else(|error| panic!("{code}: {error}")).unwrap_or_default()
}

fn error(graph: &str) -> Error {
    reply(graph, Value::Null).expect_err(graph)
}

fn json(text: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(text).expect("JSON"))
}

#[test]
fn values_go_in_and_come_back() {
    let packet =
        json(r#"{"a": [1, 2.5, "x", null, true, []], "b": {}, "c": "é😀", "__proto__": {"d": 1}}"#);
    assert_eq!(value("return packet", packet.clone()), packet);
    for (code, expected) in [
        ("return {b: 1, a: [2, , 3]}", r#"{"b": 1, "a": [2, null, 3]}"#),
        ("const x = 1", "null"),
        ("return undefined", "null"),
        ("return 7 / 2 + 0.5", "4"),
        ("return [1e300, 1.5, -0]", "[1e300, 1.5, 0]"),
        ("return JSON.parse('[1, null]')", "[1, null]"),
        ("return Object.keys(JSON.parse('{\"__proto__\": 1}'))", r#"["__proto__"]"#),
        ("return env.PATH.length > 0 && env.SINEW_NO === undefined", "true"),
        ("return typeof flow.id", "\"number\""),
    ] {
        assert_eq!(value(code, Value::Null), json(expected), "{code}");
    }
}

#[test]
fn whole_numbers_and_bytes_stay_what_they_are() {
    for whole in [0, -1, (1 << 53) - 1, 1 << 53, i64::MAX, i64::MIN] {
        assert_eq!(value("return packet", Value::Integer(whole)), Value::Integer(whole));
    }
    let error = answer("return packet + 1", Value::Integer(i64::MAX)).expect_err("two sorts");
    assert!(error.text().contains("TypeError"), "{error}");
    let bytes: Vec<u8> = (0..=255).cycle().take(9000).collect();
    let bytes = Value::Bytes(bytes.into());
    assert_eq!(value("return packet", bytes.clone()), bytes);
    assert_eq!(value("return packet[255]", bytes), Value::Integer(255));
}

#[test]
fn functions_that_expressions_have_are_there_too() {
    for (code, expected) in [
        ("hash('sha1', 'abc')", r#""a9993e364706816aba3e25717850c26c9cd0d89d""#),
        ("base64.encode('abc')", r#""YWJj""#),
        ("time.format(1500 * 2, '%S', undefined)", r#""03""#),
        ("time.duration('2s') / 2 + time.parse('1970-01-01T00:00:01Z')", "2000"),
        ("same_secret('a', 'a') && html_escape('<')", r#""&lt;""#),
        ("uuid().length + uuid7().length + random(3, 3)", "75"),
        ("now() > 1700000000000 && random() < 1", "true"),
    ] {
        assert_eq!(value(&format!("return {code}"), Value::Null), json(expected), "{code}");
    }
    let wrong = error(&graph("return hash('md4', 'abc')"));
    assert!(wrong.text().contains("hash: there is no algorithm 'md4'"), "{wrong}");
}

#[test]
fn values_of_the_flow_are_read_and_set() {
    let text = "
        - kind: snippet
          name: a
          language: javascript
          code: |
            values.user = {name: packet, tags: [1]};
            return values.nothing === undefined && values.user.name;
          ports: {out: [{name: b, port: in}]}
        - {kind: snippet, name: b, language: cel, code: '[packet, values.user]'}
    ";
    let expected = json(r#"["ada", {"name": "ada", "tags": [1]}]"#);
    assert_eq!(reply(text, Value::text("ada")), Ok(Some(expected)));
}

#[test]
fn what_a_script_throws_says_where() {
    let text = error(&graph("const a = 1;\nconst b = a.c.d;\nreturn b"));
    assert!(text.text().contains("javascript: test.yaml:9: TypeError"), "{text}");
    assert_eq!((text.status(), text.shown()), (500, None));
    let text = error(&graph("function f() {\n  throw new Error('no luck');\n}\nf()"));
    assert!(text.text().contains("test.yaml:9: Error: no luck"), "{text}");
    for code in [
        "throw {status: 404, message: 'no user'}",
        "const e = new Error('no user');\ne.status = 404;\nthrow e",
    ] {
        let error = error(&graph(code));
        assert_eq!((error.status(), error.text()), (404, "no user"), "{code}");
        assert_eq!(error.shown(), Some(&Value::text("no user")));
    }
    let inner = error(&graph("throw {status: 503, message: 'secret'}"));
    assert_eq!((inner.status(), inner.shown()), (503, None));
    assert!(error(&graph("throw 'plain'")).text().contains("plain"));
    assert_eq!(
        value("try { null.x } catch (e) { return e instanceof TypeError }", Value::Null),
        Value::Bool(true)
    );
}

#[test]
fn what_is_no_value_of_a_flow_is_told() {
    for (code, expected) in [
        ("return () => 1", "a function"),
        ("return Symbol('a')", "a symbol"),
        ("return new Date(0)", "an instance of Date"),
        ("return new Map()", "an instance of Map"),
        ("class User {}\nreturn new User()", "an instance of User"),
        ("return (async () => 1)()", "a promise"),
        ("return 2n ** 70n", "more than 64 bits"),
        ("const a = {};\na.a = a;\nreturn a", "nested deeper"),
        ("return '\\ud800'", "surrogate"),
        ("return new Error('x')", "an Error"),
    ] {
        let error = error(&graph(code));
        assert!(error.text().contains(expected), "{code}: {error}");
    }
}

#[test]
fn a_malformed_part_of_a_request_is_its_own_error_and_only_if_asked_for() {
    let request = || Value::Document(Arc::new(MalformedRequest));
    assert_eq!(value("return packet.path + packet.query.a", request()), Value::text("/x1"));
    for code in
        ["return packet.body", "return {...packet}", "return packet", "JSON.stringify(packet)"]
    {
        let error = answer(code, request()).expect_err(code);
        assert_eq!((error.status(), error.text()), (400, "the body is not JSON"), "{code}");
    }
    let caught = "try { return packet.body } catch (e) { return 'caught' }";
    assert_eq!(value(caught, request()), Value::text("caught"));
    assert_eq!(value("packet.body = 1;\nreturn packet.body", request()), Value::Integer(1));
}

#[test]
fn no_script_goes_on_past_its_limits() {
    let limits = "time: 50ms\n          instructions_max: 10000000000";
    let short = |code: &str| graph(code).replace("time: 10s", limits);
    let few = |code: &str| {
        graph(code).replace("time: 10s", "time: 10s\n          instructions_max: 1000000")
    };
    for code in [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch (e) {} finally { for (;;) {} } }",
        "const f = () => { try { f() } finally { f() } };\nf()",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "function* g() { for (;;) yield 1 }\nfor (const x of g()) {}",
        "const a = [3, 1, 2];\na.sort(() => { for (;;) {} })",
        "Array.prototype.indexOf.call([], 1);\nconst a = {get x() { for (;;) {} }};\nreturn a",
        "return {get a() { return JSON.stringify({toJSON() { for (;;) {} }}) }}",
    ] {
        let slow = error(&short(code));
        assert!(slow.text().contains("raise 'time'"), "{code}: {slow}");
        let many = error(&few(code));
        assert!(many.text().contains("raise 'instructions_max'"), "{code}: {many}");
    }
    let searches = "const a = 'a'.repeat(1e6), b = a.slice(1) + 'b';\nfor (;;) a.indexOf(b)";
    assert!(error(&few(searches)).text().contains("instructions_max"));
}

#[test]
fn no_script_takes_more_memory_than_it_may() {
    for code in [
        "const a = [];\nfor (;;) a.push('x'.repeat(1000) + a.length)",
        "let a = 'x';\nfor (;;) a += a",
        "return 'x'.repeat(1 << 29)",
        "return new Uint8Array(1 << 30)",
        "return Array.from({length: 2 ** 31})",
        "const a = [];\nfor (;;) { try { for (;;) a.push({a}) } catch (e) {} }",
        "const a = 'x'.repeat(1e6);\nreturn Array(100).fill(a)",
    ] {
        let error = error(&graph(code));
        let text = error.text();
        let is_told =
            ["raise 'memory'", "raise 'time'", "raise 'instructions_max'", "string too long"];
        assert!(is_told.iter().any(|told| text.contains(told)), "{code}: {error}");
    }
}

#[test]
fn what_would_go_on_inside_the_engine_is_refused() {
    for code in [
        "const f = () => f() + 1;\nf()",
        "const a = [];\na.length = 2 ** 32 - 1;\nreturn a.join()",
        "return Array.prototype.join.call({length: 2 ** 53}, '')",
        "return Array.prototype.reverse.call({length: 2 ** 53})",
        "return [].concat(Array(2 ** 32 - 1))",
        "let a = [];\nfor (let i = 0; i < 100000; i++) a = [a];\nreturn JSON.stringify(a)",
        "let a = '';\nfor (let i = 0; i < 100000; i++) a += '[';\nreturn JSON.parse(a)",
        "return new RegExp('('.repeat(100000) + ')'.repeat(100000))",
    ] {
        let error = error(&graph(code));
        assert_eq!(error.status(), 500, "{code}: {error}");
    }
}

#[test]
fn nothing_stays_behind_and_no_code_is_made() {
    for code in [
        "x = 1",
        "globalThis.x = 1",
        "Object.prototype.x = 1",
        "Array.prototype.push = 1",
        "Math.x = 1",
        "JSON.parse.x = 1",
        "time.now = 1",
        "delete globalThis.JSON",
        "env.PATH = 1",
        "eval('1')",
        "new Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "(function* () {}).constructor('return 1')()",
        "return import('fs')",
        "return require('fs')",
        "return process.env",
        "return new Proxy({}, {})",
        "(function () { this.x = 1 })()",
        "([])[Symbol.iterator]().__proto__.next = 1",
        "/a/.constructor.prototype.exec = 1",
    ] {
        let refused = answer(code, Value::Null);
        let is_refused = refused.is_err() || code.starts_with("return import");
        assert!(is_refused, "{code}: {refused:?}");
    }
    let names =
        "return Object.getOwnPropertyNames(globalThis).filter(n => /^[a-z_]/.test(n)).sort()";
    let expected = r#"["base64", "decodeURI", "decodeURIComponent", "encodeURI",
        "encodeURIComponent", "escape", "globalThis", "hash", "hmac", "html_escape", "isFinite",
        "isNaN", "now", "parseFloat", "parseInt", "random", "same_secret", "time", "undefined",
        "unescape", "uuid", "uuid7"]"#;
    assert_eq!(value(names, Value::Null), json(expected));
    let fixture = fixture(&graph(
        "(values.n ??= []).push(1);\nconst r = /a/g;\nr.test('aa');\nreturn r.lastIndex",
    ));
    for _ in 0..3 {
        let made = run(fixture.open("begin", 0, Value::Null, LIMIT));
        assert_eq!(made, Ok(Some(Value::Integer(1))));
    }
}

#[test]
fn a_script_that_was_stopped_leaves_the_next_call_whole() {
    let code = "if (packet) { for (;;) {} }\nreturn 1";
    let text = graph(code).replace("time: 10s", "time: 50ms");
    let fixture = fixture(&text);
    for (packet, is_fine) in
        [(false, true), (true, false), (false, true), (true, false), (false, true)]
    {
        let made = run(fixture.open("begin", 0, Value::Bool(packet), LIMIT));
        assert_eq!(made.is_ok(), is_fine, "{made:?}");
    }
}

#[test]
fn what_a_script_does_its_flow_pays() {
    let fixture =
        fixture(&graph("let sum = 0;\nfor (let i = 0; i < packet; i++) sum += i;\nreturn sum"));
    let paid = |count: i64, work: u64| {
        let flow = fixture.flow();
        let limits = FlowLimits { deadline: LIMIT, work };
        let made = run(fixture.send(&flow, "begin", 0, Value::Integer(count), limits));
        (made, work - flow.work_left())
    };
    let (made, few) = paid(10, 5_000_000);
    assert_eq!(made, Ok(Some(Value::Integer(45))));
    let (_, many) = paid(1_000_000, 5_000_000);
    assert!(few < 20_000 && many > 90_000, "{few}, {many}");
    let (made, _) = paid(1_000_000_000, 10_000);
    assert_eq!(made.expect_err("no work").status(), 503);
}

#[test]
fn ordinary_code_runs_as_elsewhere() {
    for (code, expected) in [
        (
            "class E extends Error { constructor(m) { super(m); this.name = 'E' } }\n\
             try { throw new E('x') } catch (e) { return `${e}` }",
            r#""E: x""#,
        ),
        ("const o = {};\no.toString = () => 'me';\nreturn `${o}`", r#""me""#),
        ("return [3, 1, 10].sort((a, b) => a - b)", "[1, 3, 10]"),
        ("return 'a-b-c'.split('-').map(x => x.toUpperCase()).join('+')", r#""A+B+C""#),
        ("return 'a1b22'.replace(/\\d+/g, d => `<${d}>`)", r#""a<1>b<22>""#),
        ("return 'aXbX'.replaceAll('X', '$&$&')", r#""aXXbXX""#),
        ("return Object.entries({a: 1}).flat()", r#"["a", 1]"#),
        ("const {a, ...b} = {a: 1, b: 2};\nreturn [a, b]", r#"[1, {"b": 2}]"#),
        ("return [...new Set([1, 1, 2])]", "[1, 2]"),
        ("return packet?.x ?? 'none'", r#""none""#),
        ("return new Date(0).toISOString()", r#""1970-01-01T00:00:00.000Z""#),
        (
            "return Object.groupBy([1, 2, 3], x => x % 2 ? 'odd' : 'even')",
            r#"{"odd": [1, 3], "even": [2]}"#,
        ),
    ] {
        assert_eq!(value(code, Value::Null), json(expected), "{code}");
    }
}

#[test]
fn the_least_memory_is_enough_for_little() {
    let text = graph("return packet + 1").replace("memory: 8MiB", "memory: 1MiB");
    let fixture = fixture(&text);
    for at in 0..1000 {
        let made = run(fixture.open("begin", 0, Value::Integer(at), LIMIT));
        assert_eq!(made, Ok(Some(Value::Integer(at + 1))));
    }
}

#[test]
fn what_is_no_javascript_is_shown_where_it_stands() {
    let text = graph("const a = 1;\nconst b = = 2;");
    let refusals = refusals(&text);
    assert!(refusals[0].message.contains("not JavaScript"), "{refusals:?}");
    let start = refusals[0].span.expect("a place").start as usize;
    assert!(text[start..].starts_with("const b"), "{}", &text[start..]);
}

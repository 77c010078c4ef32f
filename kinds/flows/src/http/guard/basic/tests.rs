//! Names and passwords: which requests pass and which do not.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sinew_flow::{FlowLimits, Value};

use crate::testing::{LIMIT, fixture, refusals, reply, run};

/// Made by argon2-cffi 25.1, Python's binding of the reference implementation.
const SESAME: &str = "$argon2id$v=19$m=64,t=1,p=1$HLct6btup/ArUnuX2XhBpQ$AChaOSfTNp/Vdl/9x/6daMFLg\
                      i43oY331I6I3fmoQPw";
const OTHER: &str = "$argon2i$v=19$m=64,t=1,p=1$EwTL6tb15ThXxOfAeTUyag$XkpkVfa7SfHr6nlOseQaApy+Fdq\
                     oXwM2gqIzft3E2pQ";
const COLON: &str = "$argon2id$v=19$m=19456,t=2,p=1$KKrLowtubxyopwf+0Ztl5w$vmKc/YQBBJINY/x/oOSL83R\
                     hyvRvabujP+YWgP2A9iE";

fn graph() -> String {
    format!(
        "
        - kind: basic
          name: b
          users: {{ada: '{SESAME}', bob: '{OTHER}', 'h\u{e4}ns': '{COLON}'}}
          realm: staff
          ports: {{out: [{{name: a, port: in}}]}}
        - {{kind: snippet, name: a, language: cel, code: values.user}}
        "
    )
}

fn packet(authorization: &str) -> Value {
    let header = Value::map([("authorization", Value::text(authorization))]);
    Value::map([("header", header)])
}

fn shown(credentials: impl AsRef<[u8]>) -> Value {
    packet(&format!("Basic {}", BASE64_STANDARD.encode(credentials)))
}

#[test]
fn who_knows_the_password_passes() {
    for (credentials, name) in [
        ("ada:open sesame", "ada"),
        ("bob:open sesame", "bob"),
        ("h\u{e4}ns:p\u{e4}:ss", "h\u{e4}ns"),
    ] {
        assert_eq!(reply(&graph(), shown(credentials)), Ok(Some(Value::text(name))), "{name}");
    }
}

#[test]
fn nobody_else_does() {
    let long = format!("ada:{}", "x".repeat(5000));
    let wrong = ["ada:open", "ada:", "ada", ":", "", "eve:open sesame", ":open sesame", &long];
    let others = ["Bearer x", "Basic", "Basic !", "basic =", ""].map(packet);
    let bytes = shown(b"\xff\xfe:open sesame");
    for packet in wrong.map(shown).into_iter().chain(others).chain([bytes, Value::Null]) {
        let error = reply(&graph(), packet.clone()).expect_err("nobody");
        let asks = ("www-authenticate".into(), "Basic realm=\"staff\", charset=\"UTF-8\"".into());
        assert_eq!((error.status(), error.headers()), (401, &[asks][..]), "{packet:?}");
    }
}

#[test]
fn a_password_is_hashed_once_and_wrong_ones_are_paid_each_time() {
    let fixture = fixture(&graph());
    let paid = |credentials: &str| {
        let flow = fixture.flow();
        let limits = FlowLimits { deadline: LIMIT, work: 1_000_000 };
        let _ = run(fixture.send(&flow, "begin", 0, shown(credentials), limits));
        1_000_000 - flow.work_left()
    };
    let first = paid("ada:open sesame");
    assert!(first >= 64 * 5, "{first}");
    assert!(paid("ada:open sesame") < first);
    assert_eq!([paid("ada:x"), paid("ada:x"), paid("eve:x")].map(|it| it >= 64 * 5), [true; 3]);
}

#[test]
fn users_that_are_none_are_refused_where_they_stand() {
    for (users, word, expected) in [
        ("[ada]", "[ada]", "a mapping"),
        ("{}", "{}", "0 users"),
        ("{ada: secret}", "secret", "no hash of Argon2"),
        ("{ada: $2b$12$abcdefghijklmnopqrstuv}", "$2b", "no hash of Argon2"),
        ("{ada: $argon2id$v=19$m=64,t=1,p=1$HLct6btup/ArUnuX2XhBpQ}", "$argon2id", "no hash"),
        ("{'a:b': x}", "'a:b'", "no colon"),
    ] {
        let text = format!("- {{kind: basic, name: b, users: {users}}}");
        let refusals = refusals(&text);
        assert!(refusals[0].message.contains(expected), "{users}: {refusals:?}");
        let start = refusals[0].span.expect("a place").start as usize;
        assert!(text[start..].starts_with(word), "{users}: points at {:?}", &text[start..]);
    }
    let greedy = SESAME.replace("m=64", "m=1048576");
    let text = format!("- {{kind: basic, name: b, users: {{a: '{greedy}'}}}}");
    assert!(refusals(&text)[0].message.contains("at most 65536 KiB"));
}

//! Hashes of passwords: other libraries read ours, and we read theirs.

use std::process::Command;

use sinew_flow::{FlowLimits, Value};

use crate::testing::{LIMIT, fixture, python, refusals, reply, run};

/// Made by argon2-cffi 25.1, Python's binding of the reference implementation.
const SESAME: &str = "$argon2id$v=19$m=64,t=1,p=1$HLct6btup/ArUnuX2XhBpQ$AChaOSfTNp/Vdl/9x/6daMFLg\
                      i43oY331I6I3fmoQPw";
/// A small hash is quick.
const SMALL: &str = "memory: 64KiB, passes: 1";

fn making(more: &str) -> String {
    format!("- {{kind: password, name: p, password: packet.password, {more}}}")
}

fn checking(more: &str) -> String {
    making(&format!("hash: packet.hash, {more}"))
}

fn shown(password: &str, hash: Value) -> Value {
    Value::map([("password", Value::text(password)), ("hash", hash)])
}

fn made(password: &str) -> String {
    let made = reply(&making(SMALL), shown(password, Value::Null)).expect("a hash");
    made.expect("a value").as_text().expect("a text").to_owned()
}

#[test]
fn who_knows_the_password_passes_and_keeps_the_packet() {
    let own = made("p\u{e4}ss wort");
    for (password, hash) in [("open sesame", SESAME), ("p\u{e4}ss wort", &*own)] {
        let packet = shown(password, Value::text(hash));
        assert_eq!(reply(&checking(SMALL), packet.clone()), Ok(Some(packet)));
    }
    assert_ne!(made("p\u{e4}ss wort"), own, "each has a salt of its own");
    assert!(own.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{own}");
}

#[test]
fn nobody_else_does_and_is_not_told_why() {
    let long = "x".repeat(5000);
    let wrong = ["open", "", "Open sesame", "open sesame\0", &long].map(|it| (it, SESAME.into()));
    let nobody = ("open sesame", Value::Null);
    let wrong = wrong.map(|(password, hash): (&str, String)| (password, Value::text(hash)));
    for (password, hash) in wrong.into_iter().chain([nobody]) {
        let error = reply(&checking(SMALL), shown(password, hash)).expect_err(password);
        let said = Value::map([("error", Value::text("name or password is wrong"))]);
        assert_eq!((error.status(), error.shown()), (401, Some(&said)), "{password}");
    }
}

#[test]
fn a_user_who_is_not_there_costs_as_much_as_a_wrong_password() {
    let fixture = fixture(&checking(SMALL));
    let paid = |hash: Value| {
        let flow = fixture.flow();
        let limits = FlowLimits { deadline: LIMIT, work: 1_000_000 };
        let reply = run(fixture.send(&flow, "begin", 0, shown("wrong", hash), limits));
        assert!(reply.is_err(), "{reply:?}");
        1_000_000 - flow.work_left()
    };
    let [known, unknown] = [Value::text(SESAME), Value::Null].map(paid);
    assert_eq!(known, unknown);
    assert!(known >= 64 * 5, "{known}");
}

#[test]
fn the_hash_becomes_a_value_where_it_is_asked_to() {
    let text = format!(
        "
        - kind: password
          name: p
          password: packet.password
          into: hash
          {}
          ports: {{out: [{{name: a, port: in}}]}}
        - {{kind: snippet, name: a, language: cel, code: '[packet.password, values.hash]'}}
        ",
        SMALL.replace(", ", "\n          ")
    );
    let made = reply(&text, shown("open sesame", Value::Null)).expect("a hash").expect("a value");
    let Value::List(parts) = made else { panic!("{made:?}") };
    assert_eq!(parts[0].as_text(), Some("open sesame"));
    assert!(parts[1].as_text().expect("a text").starts_with("$argon2id$"));
}

#[test]
fn what_can_be_no_password_is_refused() {
    let short = reply(&making(SMALL), shown("open", Value::Null)).expect_err("short");
    assert_eq!(short.status(), 422);
    assert!(short.text().contains("4 characters; at least 8"), "{short}");
    let least = format!("length_min: 4, {SMALL}");
    assert!(reply(&making(&least), shown("\u{e4}pen", Value::Null)).is_ok(), "characters count");
    let long = reply(&making(SMALL), shown(&"x".repeat(1025), Value::Null)).expect_err("long");
    assert_eq!(long.status(), 422);
    assert!(long.text().contains("1025 bytes; at most 1024"), "{long}");
    let none = Value::map([("password", Value::Integer(12_345_678))]);
    for text in [
        making(SMALL),
        format!("- {{kind: password, name: p, password: packet.password, hash: \"'{SESAME}'\"}}"),
    ] {
        let error = reply(&text, none.clone()).expect_err("no text");
        assert_eq!(error.status(), 400, "{error}");
    }
}

#[test]
fn a_hash_that_is_none_is_the_operators_mistake() {
    let greedy = SESAME.replace("m=64", "m=1048576");
    let bcrypt = "$2b$12$abcdefghijklmnopqrstuv";
    for (hash, expected) in [
        (Value::text("open sesame"), "no hash of Argon2"),
        (Value::text(bcrypt), "no hash of Argon2"),
        (Value::text(""), "no hash of Argon2"),
        (Value::text(greedy), "at most 65536 KiB"),
        (Value::Integer(7), "a hash is a text"),
    ] {
        let error = reply(&checking(SMALL), shown("open sesame", hash)).expect_err(expected);
        assert_eq!((error.status(), error.shown()), (500, None), "{error}");
        assert!(error.text().contains(expected), "{error}");
    }
    let text = "- {kind: password, name: p, password: packet.a, hash: \"'secret'\"}";
    assert!(refusals(text)[0].message.contains("no hash of Argon2"));
    let text = "- {kind: password, name: p, password: packet.a, hash: packet.b, into: c}";
    assert!(refusals(text)[0].message.contains("'into' gets a hash that is made"));
}

#[test]
fn a_flow_without_the_work_for_it_makes_none() {
    let fixture = fixture(&making(SMALL));
    let limits = FlowLimits { deadline: LIMIT, work: 300 };
    let packet = shown("open sesame", Value::Null);
    let error = run(fixture.send(&fixture.flow(), "begin", 0, packet, limits)).expect_err("none");
    assert_eq!(error.status(), 503);
}

#[test]
fn pythons_argon2_reads_ours_and_we_read_its() {
    let Some(python) = python("argon2") else { return };
    let script = "import sys, argon2\n\
                  hasher = argon2.PasswordHasher()\n\
                  hasher.verify(sys.argv[1], 'open sesame')\n\
                  print(hasher.hash('open sesame'), end='')\n";
    let by_default = reply(&making("length_min: 8"), shown("open sesame", Value::Null));
    let by_default = by_default.expect("a hash").expect("a value");
    for ours in [by_default.as_text().expect("a text"), &made("open sesame")] {
        let output = Command::new(&python).args(["-c", script, ours]).output().expect("python");
        assert!(output.status.success(), "{ours}: {}", String::from_utf8_lossy(&output.stderr));
        let theirs = String::from_utf8(output.stdout).expect("text");
        let packet = shown("open sesame", Value::text(theirs.clone()));
        assert!(reply(&checking(SMALL), packet).is_ok(), "{theirs}");
        let wrong = shown("open sesamE", Value::text(theirs.clone()));
        assert!(reply(&checking(SMALL), wrong).is_err(), "{theirs}");
    }
}

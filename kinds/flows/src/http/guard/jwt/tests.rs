//! Tokens that come in, and the parameters of both kinds.

use sinew_flow::{Error, Value};

use crate::testing::{refusals, reply};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn bearer(token: &str) -> Value {
    let header = Value::map([("authorization", Value::text(format!("Bearer {token}")))]);
    Value::map([("header", header)])
}

fn token(claims: &str, more: &str) -> String {
    let graph = format!(
        "- {{kind: jwt_sign, name: s, secret: {SECRET}, claims: {claims}, expires: 1h{more}}}"
    );
    match reply(&graph, Value::map([("user", Value::text("ada"))])) {
        Ok(Some(Value::Text(token))) => token.to_string(),
        other => panic!("{other:?}"),
    }
}

fn graph(more: &str) -> String {
    format!(
        "
        - {{kind: jwt, name: j, secret: {SECRET}{more}, ports: {{out: [{{name: a, port: in}}]}}}}
        - {{kind: snippet, name: a, language: cel, code: values.claims.sub}}
        "
    )
}

fn refused(more: &str, packet: Value) -> (u16, String) {
    let error = reply(&graph(more), packet).expect_err("an error");
    (error.status(), asks(&error))
}

/// What the answer says in `www-authenticate`.
fn asks(error: &Error) -> String {
    let header = error.headers().iter().find(|(name, _)| name == "www-authenticate");
    header.map(|(_, value)| value.to_string()).unwrap_or_default()
}

#[test]
fn who_signs_in_gets_a_token_that_lets_him_pass() {
    let token = token("{sub: '{{ packet.user }}', role: admin}", ", issuer: me, audience: us");
    let passes = ", issuer: me, audience: us, require: \"claims.role == 'admin'\"";
    assert_eq!(reply(&graph(passes), bearer(&token)), Ok(Some(Value::text("ada"))));
    let elsewhere = ", token: packet.t";
    let packet = Value::map([("t", Value::text(token.clone()))]);
    assert_eq!(reply(&graph(elsewhere), packet), Ok(Some(Value::text("ada"))));
    let lower = Value::map([("authorization", Value::text(format!("bearer  {token}")))]);
    let lower = Value::map([("header", lower)]);
    assert_eq!(reply(&graph(""), lower), Ok(Some(Value::text("ada"))));
    let scope = "Bearer error=\"insufficient_scope\"".to_owned();
    let role = ", require: \"claims.role == 'owner'\"";
    assert_eq!(refused(role, bearer(&token)), (403, scope.clone()));
    let absent = ", require: claims.owner";
    assert_eq!(refused(absent, bearer(&token)), (403, scope));
    let invalid =
        |why: &str| (401, format!("Bearer error=\"invalid_token\", error_description=\"{why}\""));
    let other = ", issuer: you";
    assert_eq!(refused(other, bearer(&token)), invalid("it is of another issuer"));
    let unsigned = "its signature is not of a key that is known here";
    let forged = token.replace('.', ".e30");
    assert_eq!(refused("", bearer(&forged[..token.len()])).0, 401);
    let key = graph("").replace(SECRET, &SECRET.replace('0', "1"));
    let error = reply(&key, bearer(&token)).expect_err("another key");
    assert_eq!((error.status(), asks(&error)), invalid(unsigned));
}

#[test]
fn who_brings_none_is_asked_for_one() {
    for packet in [
        Value::Null,
        Value::map([("header", Value::map([("authorization", Value::text("Basic eDp5"))]))]),
        Value::map([("header", Value::map([("authorization", Value::text("Bearer"))]))]),
    ] {
        assert_eq!(refused("", packet), (401, "Bearer".to_owned()));
    }
    assert_eq!(refused(", token: packet.t", Value::map([("t", Value::Integer(1))])).0, 401);
}

#[test]
fn a_key_of_the_wrong_sort_is_refused() {
    let jwt = |more: &str| refusals(&format!("- {{kind: jwt, name: j{more}}}"));
    for (more, expected) in [
        ("", "there is no 'secret'"),
        (", secret: short", "at least 32 are needed"),
        (", secret: '-----BEGIN PUBLIC KEY-----'", "others may know"),
        (", public_key: k.pem", "HS256 has a secret"),
        (", algorithm: RS256, secret: x", "RS256 has a public key"),
        (", algorithm: ES256", "ES256 needs a 'public_key'"),
        (", algorithm: ES256, public_key: none.pem", "none.pem"),
    ] {
        let refusals = jwt(more);
        assert!(refusals[0].message.contains(expected), "{more}: {refusals:?}");
    }
    let sign = refusals("- {kind: jwt_sign, name: s, secret: x, claims: 5}");
    assert_eq!(sign.len(), 2, "{sign:?}");
    let wrong = refusals("- {kind: jwt, name: j, secret: x, token: '1 +', require: '(', into: c}");
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn claims_that_are_none_and_tokens_that_no_head_takes_are_errors() {
    let sign = |claims: &str| {
        let graph = format!("- {{kind: jwt_sign, name: s, secret: {SECRET}, claims: {claims}}}");
        reply(&graph, Value::text("x".repeat(20_000))).expect_err(claims).text().to_owned()
    };
    assert!(sign("'{{ packet }}'").contains("claims are a mapping"));
    assert!(sign("{a: '{{ packet }}'}").contains("at most 16384"));
}

//! Signatures as services document them.

use std::path::Path;

use super::*;
use crate::testing::{fixture, plan, refusals, reply};

/// A request that some service sends.
fn request(headers: &[(&'static str, &str)], body: &str) -> Value {
    let headers = headers.iter().map(|(name, value)| (*name, Value::text(*value)));
    Value::map([("header", Value::map(headers)), ("body", Value::text(body))])
}

fn graph(parameters: &str) -> String {
    format!("- {{kind: verify, name: v, {parameters}}}")
}

/// What a node of these parameters says at that time.
fn checked(parameters: &str, packet: &Value, now_s: i64) -> Result<(), Error> {
    let text = format!(
        "- {{kind: begin, name: begin, ports: {{out: [{{name: v, port: in}}]}}}}\n{}",
        graph(parameters)
    );
    let plan = plan(&text);
    let node = plan.nodes.iter().find(|node| node.kind.name == "verify").expect("a node");
    let verify = read(&Parameters::of(&plan, node, Path::new("."))).expect("parameters");
    verify.check(&fixture(&text).flow(), packet, now_s)
}

/// The example of GitHub's guide "Validating webhook deliveries".
#[test]
fn the_signature_that_github_documents_holds() {
    let parameters = "secret: 'It''s a Secret to Everybody', header: X-Hub-Signature-256, \
                      prefix: 'sha256='";
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let sent = |signature: &str, body: &str| request(&[("x-hub-signature-256", signature)], body);
    let graph = graph(parameters);
    let good = sent(signature, "Hello, World!");
    assert_eq!(reply(&graph, good.clone()), Ok(Some(good)));
    for (signature, body) in [
        (signature, "Hello, World"),
        (&signature[7..], "Hello, World!"),
        (&signature[..70], "Hello, World!"),
        (&signature[..69], "Hello, World!"),
        (&signature.replace('7', "g"), "Hello, World!"),
        (&signature.replace("757107", "757108"), "Hello, World!"),
        ("sha256=", "Hello, World!"),
        ("", ""),
    ] {
        let error = reply(&graph, sent(signature, body)).expect_err(signature);
        assert_eq!((error.status(), error.shown()), (401, None), "{signature}");
    }
    assert_eq!(reply(&graph, request(&[], "Hello, World!")).expect_err("none").status(), 401);
}

/// The example of Slack's guide "Verifying requests from Slack".
#[test]
fn the_signature_that_slack_documents_holds_for_five_minutes() {
    let parameters = "secret: 8f742231b10e8888abcd99yyyzzz85a5, header: x-slack-signature, \
                      prefix: 'v0=', timestamp_header: x-slack-request-timestamp, \
                      signed: 'v0:{timestamp}:{body}'";
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&chan\
                nel_id=G8PSS9T3V&chan\
                nel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect\
                &text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F3977008\
                85554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14\
                d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let at = |time: &str| {
        request(&[("x-slack-signature", signature), ("x-slack-request-timestamp", time)], body)
    };
    let sent_s = 1_531_420_618;
    let checked = |time: &str, now_s| checked(parameters, &at(time), now_s);
    for now_s in [sent_s - 300, sent_s, sent_s + 300] {
        assert_eq!(checked("1531420618", now_s), Ok(()));
    }
    for (time, now_s, why) in [
        ("1531420618", sent_s + 301, "301 s from now; at most 300 s"),
        ("1531420618", sent_s - 301, "301 s from now"),
        ("1531420619", sent_s, "not that of this body"),
        ("9223372036854775807", -9, "s from now"),
        ("soon", sent_s, "no time"),
        ("", sent_s, "no time"),
    ] {
        let error = checked(time, now_s).expect_err(time);
        assert!(error.status() == 401 && error.text().contains(why), "{error}");
    }
}

/// As Stripe's guide "Verify webhook signatures" describes it; made by Python's hmac.
#[test]
fn a_header_with_several_parts_is_taken_apart() {
    let parameters = "secret: whsec_test_secret, header: stripe-signature, prefix: 'v1=', \
                      timestamp_header: stripe-signature, timestamp_prefix: 't=', \
                      signed: '{timestamp}.{body}'";
    let right = "v1=799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";
    let wrong = "v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd";
    let checked = |header: &str| {
        let request = request(&[("stripe-signature", header)], "{\"id\":\"evt_1\"}");
        checked(parameters, &request, 1_492_774_600).is_ok()
    };
    assert!(checked(&format!("t=1492774577,{right}")));
    assert!(checked(&format!("t=1492774577, {wrong}, {right},v0=6ffb")));
    assert!(!checked(&format!("t=1492774577,{wrong}")));
    assert!(!checked(&format!("t=1492774578,{right}")));
    assert!(!checked(right));
    let many = format!("t=1492774577,{}", [wrong; 8].join(","));
    assert!(!checked(&format!("{many},{right}")), "no more than eight are tried");
}

/// The example of standardwebhooks.com and Svix; made by Python's hmac too.
#[test]
fn a_standard_webhook_signs_its_number_too() {
    let parameters = "secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, secret_base64: true, \
                      header: webhook-signature, encoding: base64, \
                      signed: '{webhook-id}.{timestamp}.{body}', \
                      timestamp_header: webhook-timestamp";
    let send = |id: &str| {
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let headers = [("webhook-signature", signature), ("webhook-timestamp", "1614265330")];
        let headers = [&headers[..], &[("webhook-id", id)]].concat();
        checked(parameters, &request(&headers, "{\"test\": 2432232314}"), 1_614_265_331).is_ok()
    };
    assert!(send("msg_p5jXN8AQM9LWM0D4loKWxJek"));
    assert!(!send("msg_p5jXN8AQM9LWM0D4loKWxJel"));
}

#[test]
fn what_would_let_others_sign_is_refused() {
    for (parameters, expected) in [
        ("header: a", "there is no 'secret'"),
        ("header: a, secret: short", "at least 8"),
        ("header: '', secret: long enough", "no header"),
        ("header: a, secret: long enough, signed: '{timestamp}'", "no {body}"),
        ("header: a, secret: long enough, signed: '{timestamp}{body}'", "where it stands"),
        ("header: a, secret: long enough, timestamp_header: b", "not part of 'signed'"),
        ("header: a, secret: long enough, signed: '{body'", "not closed"),
        ("header: a, secret: long enough, signed: '{}{body}'", "nothing between"),
        ("header: a, secret: long enough, secret_base64: true", "not base64"),
    ] {
        let refusals = refusals(&graph(parameters));
        assert!(refusals[0].message.contains(expected), "{parameters}: {refusals:?}");
    }
    let decoded = Value::map([("header", Value::map([("a", Value::text("00"))]))]);
    let Value::Map(map) = decoded else { panic!("a mapping") };
    let mut map = (*map).clone();
    map.insert("body".into(), Value::list([]));
    let graph = graph("header: a, secret: long enough");
    let error = reply(&graph, Value::Map(map.into())).expect_err("it was decoded");
    assert!(error.status() == 500 && error.text().contains("as it came"), "{error}");
}

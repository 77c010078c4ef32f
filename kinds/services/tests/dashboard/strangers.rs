//! Tests with clients that are not viewers, or should not be: without a token, from other sites,
//! with messages that are not orders.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use serde_json::json;
use sinew_control::status::EventKind;
use sinew_services::dashboard::protocol::{FLAG_STOPPING, ORDER_LEN_MAX, WRONG_TOKENS_MAX};
use tungstenite::Message;

use super::client::{Viewer, ask, connect};
use super::shown::Shown;

pub(crate) fn without_a_token() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let almost = format!("{}g", &token[..token.len() - 1]);
    let too_long = format!("{token}0");
    let orders = [
        ("", json!({"do": "halt"})),
        (almost.as_str(), json!({"do": "reset"})),
        (too_long.as_str(), json!({"do": "restart", "domain": "page"})),
        (&token[1..], json!({"do": "choose", "path": 1})),
    ];
    assert_eq!(orders.len() as u32, WRONG_TOKENS_MAX - 1);
    for (wrong, order) in orders {
        let answer = viewer.order(wrong, order).expect_err("a wrong token");
        assert!(answer.contains("wrong token") && answer.contains("#token="), "{answer}");
    }
    // With the right token it would have worked all the time.
    assert_eq!(viewer.order(&token, json!({"do": "check"})), Ok("the token is right".into()));
    viewer.say(json!({"do": "halt", "id": 1, "token": "0"}).to_string());
    let closed = viewer.closed().expect("a good bye");
    assert_eq!((u16::from(closed.code), closed.reason.as_str()), (1008, "too many wrong tokens"));
    // Nothing of it was carried out.
    let motion = Viewer::open(&address).motion_that("the core runs", |it| it.cycle > 0.0);
    assert_eq!((motion.signals[0], motion.flags & FLAG_STOPPING), (0.0, 0));
    let requests = shown.events().into_iter().filter(|it| it.what == EventKind::Request);
    assert_eq!(requests.count(), 0, "nobody asked the supervisor");
    shown.stop();
}

pub(crate) fn tapping() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let tap = |domain: &str| json!({"do": "tap", "domain": domain, "node": "probe"});
    for (token, domain, expected) in [
        ("0", "film", "wrong token"),
        (token.as_str(), "nowhere", "there is no domain 'nowhere'"),
        (token.as_str(), "film", "domain 'film' shows no flows"),
    ] {
        let answer = viewer.order(token, tap(domain)).expect_err("no tap");
        assert!(answer.contains(expected), "{answer}");
    }
    // Nothing is tapped, so there is nothing to end; this is not an error.
    assert_eq!(viewer.order(&token, json!({"do": "untap"})), Ok("no more ways are shown".into()));
    shown.stop();
}

pub(crate) fn tuning() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let many = vec!["probe.x=1"; 100];
    for (token, settings, expected) in [
        ("0", json!(["probe.x=1"]), "wrong token"),
        (token.as_str(), json!([]), "name 1 to 64"),
        (token.as_str(), json!(many), "name 1 to 64"),
        (token.as_str(), json!(["probe"]), "NODE.PARAMETER=VALUE"),
        (token.as_str(), json!(["prob.x=1"]), "there is no node 'prob'"),
        (token.as_str(), json!(["probe.path=1"]), "no tunable parameters"),
    ] {
        let order = json!({"do": "set", "settings": settings, "save": true});
        let answer = viewer.order(token, order).expect_err(expected);
        assert!(answer.contains(expected), "{answer}");
    }
    shown.stop();
}

pub(crate) fn redacted() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let said = |json: &serde_json::Value| json.to_string().contains("#token=");
    let events = viewer.text_that("events", said);
    let status = viewer.text_that("status", |it| it.to_string().contains("http://"));
    for seen in [&viewer.hello, &events, &status] {
        assert!(!seen.to_string().contains(&token), "{seen}");
    }
    assert!(events.to_string().contains("#token=..."), "{events}");
    shown.stop();
}

pub(crate) fn foreign() {
    let shown = Shown::start(&[("page.hosts", "[robot.local]")]);
    let (address, _) = shown.address();
    let get = |host: &str, path: &str| {
        ask(&address, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    for host in [address.as_str(), "robot.local"] {
        let answer = get(host, "/");
        assert!(!answer.starts_with("HTTP/1.1 403"), "{answer}");
        let lower = answer.to_lowercase();
        for header in ["default-src 'none'", "frame-ancestors 'none'", "nosniff"] {
            assert!(lower.contains(header), "{answer}");
        }
    }
    assert!(get(&address, "/../Cargo.toml").starts_with("HTTP/1.1 404"));
    for path in ["/", "/ws", "/app.js"] {
        let answer = get("evil.example", path);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(answer.contains("'evil.example' is not a name of this server"), "{answer}");
    }
    let post = format!("POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert!(ask(&address, &post).starts_with("HTTP/1.1 405"));
    let long = format!("GET / HTTP/1.1\r\nHost: {address}\r\nx: {}\r\n\r\n", "x".repeat(20_000));
    assert!(ask(&address, &long).starts_with("HTTP/1.1 431"), "a head that is too long");
    for origin in [Some("http://evil.example"), Some("null"), None] {
        let refused = connect(&address, origin).expect_err("a foreign origin");
        assert!(refused.contains("403"), "{refused}");
    }
    let own = format!("http://{address}");
    assert!(connect(&address, Some(&own)).is_ok(), "one of our own is let in");
    shown.stop();
}

pub(crate) fn malformed() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut witness = Viewer::open(&address);
    let closes = |message: Message| {
        let mut viewer = Viewer::open(&address);
        viewer.say(message);
        viewer.closed().map(|frame| (u16::from(frame.code), frame.reason.to_string()))
    };
    let long = "x".repeat(ORDER_LEN_MAX + 1);
    let (code, reason) = closes(Message::text(long)).expect("a good bye");
    assert_eq!((code, reason.contains("longer than 4096 bytes")), (1009, true), "{reason}");
    let (code, _) = closes(Message::binary(vec![1, 2, 3])).expect("a good bye");
    assert_eq!(code, 1003);
    // Not a browser's frame: it is not masked, has a reserved bit, or has an unknown type.
    for bytes in
        [&[0x81, 0x02, b'{', b'}'][..], &[0xf1, 0x80, 0, 0, 0, 0], &[0x8f, 0x80, 0, 0, 0, 0]]
    {
        let mut viewer = Viewer::open(&address);
        viewer.stream().write_all(bytes).expect("it is read");
        assert_eq!(viewer.closed().map(|frame| u16::from(frame.code)), Some(1002), "{bytes:?}");
    }
    let mut viewer = Viewer::open(&address);
    for text in ["", "null", "{\"do\":\"explode\"}", "{\"do\":\"ping\"}"] {
        viewer.say(text);
        let error = viewer.text("error");
        assert!(error["text"].as_str().is_some_and(|it| it.contains("not an order")), "{error}");
    }
    assert!(viewer.order(&token, json!({"do": "check"})).is_ok(), "a few are borne");
    (0..30).for_each(|_| viewer.say("?"));
    assert_eq!(viewer.closed().map(|frame| u16::from(frame.code)), Some(1008));
    // Other viewers did not notice anything.
    let now = witness.motion().sequence;
    witness.motion_that("frames go on", |it| it.sequence > now);
    assert_eq!(shown.texts(EventKind::Faulted, "page"), [""; 0]);
    shown.stop();
}

/// More silent clients than there are places, again and again.
pub(crate) fn silent() {
    let shown = Shown::start(&[]);
    let (address, _) = shown.address();
    let (mut witness, mut silent) = (Viewer::open(&address), Vec::new());
    for _ in 0..8 {
        silent.extend((0..64).map(|_| {
            let mut stream = TcpStream::connect(&address).expect("it listens");
            stream.write_all(b"GET / HTTP/1.1\r\n").expect("it takes a line");
            stream
        }));
        Viewer::open(&address).motion();
    }
    let now = witness.motion().sequence;
    witness.motion_that("frames go on", |it| it.sequence > now);
    shown.stop();
}

pub(crate) fn in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let shown = Shown::start(&[("page.listen", &address)]);
    let fault = shown.until("the dashboard faults", |shown| {
        shown.texts(EventKind::Faulted, "page").into_iter().next()
    });
    assert!(fault.contains(&address) && fault.contains("'listen'"), "{fault}");
    // Once the port is free, its restart policy starts it again.
    drop(taken);
    assert_eq!(shown.address().0, address);
    Viewer::open(&address).motion_that("the core runs", |it| it.cycle > 0.0);
    shown.stop();
}

//! Webhooks that answer, that do not answer, and that do not exist.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use prometheus_client::registry::Registry;

use super::*;
use crate::monitor::server::{Net, Page};

/// A wait that is longer than this is a hang. This is never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn counted(outcomes: &Family<Labels, Counter>, outcome: &str) -> u64 {
    outcomes.get_or_create(&vec![("outcome", outcome.to_owned())]).get()
}

/// Delivers what is put into the outbox to this address.
fn deliver(to: &str) -> (Outbox, AllTold, Family<Labels, Counter>, Net) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let page = Page { registry: Registry::default().into(), address, looked_ns: 0.into() };
    let outcomes = Family::default();
    let webhook = Webhook::parse(to).expect("an address");
    let (outbox, post, told) = outbox(webhook, Family::clone(&outcomes));
    (outbox, told, outcomes, Net::start(listener, page.into(), Some(post)).expect("a thread"))
}

/// Answers each request with the next of these answers; returns the bodies of the requests.
fn answering(
    listener: TcpListener,
    answers: &'static [&'static str],
) -> thread::JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let one = |answer: &&str| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let mut len = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(text) = line.strip_prefix("content-length: ") {
                    len = text.trim().parse().expect("a length");
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; len];
            reader.read_exact(&mut body).expect("a body");
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("it listens");
            String::from_utf8(body).expect("UTF-8")
        };
        answers.iter().map(one).collect()
    })
}

fn local() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}/hook?x=y"))
}

#[test]
fn an_address_is_read_or_refused_with_what_was_expected() {
    let webhook = Webhook::parse("http://alarm.local:9093/a?b=c").expect("an address");
    let expected = Webhook { host: "alarm.local".into(), port: 9093, path: "/a?b=c".into() };
    assert_eq!(webhook, expected);
    assert_eq!(
        Webhook::parse("http://[::1]").map(|it| (it.host, it.port, it.path)),
        Ok(("[::1]".into(), 80, "/".into()))
    );
    for (text, expected) in [
        ("https://a.b/", "only http is supported; for https"),
        ("http://me:secret@a.b/", "a user and a password are not supported"),
        ("/hook", "expected an address such as http://"),
        ("a b", "expected an address such as http://"),
        ("ftp://a.b/", "expected an address such as http://"),
    ] {
        let wrong = Webhook::parse(text).expect_err(text);
        assert!(wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn what_an_overloaded_receiver_refuses_is_told_again() {
    let (listener, address) = local();
    let receiver = answering(listener, &["503 Busy", "429 Busy", "204 No Content", "200 OK"]);
    let (outbox, told, outcomes, _net) = deliver(&address);
    assert!(outbox.put("first".into()) && outbox.put("second".into()));
    drop(outbox);
    assert!(told.within(PATIENCE), "all is told");
    assert_eq!(receiver.join().expect("a receiver"), ["first", "first", "first", "second"]);
    assert_eq!((counted(&outcomes, "delivered"), counted(&outcomes, "failed")), (2, 0));
}

#[test]
fn what_a_receiver_does_not_want_is_not_told_again() {
    let (listener, address) = local();
    let receiver = answering(listener, &["404 Not Found", "200 OK"]);
    let (outbox, told, outcomes, _net) = deliver(&address);
    assert!(outbox.put("first".into()) && outbox.put("second".into()));
    drop(outbox);
    assert!(told.within(PATIENCE), "all is over");
    assert_eq!(receiver.join().expect("a receiver"), ["first", "second"]);
    assert_eq!((counted(&outcomes, "delivered"), counted(&outcomes, "failed")), (1, 1));
}

#[test]
fn a_receiver_that_is_not_there_is_given_up() {
    let (listener, address) = local();
    drop(listener);
    let (outbox, told, outcomes, _net) = deliver(&address);
    assert!(outbox.put("first".into()));
    drop(outbox);
    assert!(told.within(PATIENCE), "it is given up");
    assert_eq!((counted(&outcomes, "delivered"), counted(&outcomes, "failed")), (0, 1));
}

#[test]
fn a_receiver_that_never_answers_makes_nobody_wait() {
    let (listener, address) = local();
    let (outbox, told, outcomes, net) = deliver(&address);
    // The first is being sent, as far as that is possible.
    assert!(outbox.put("first".into()));
    let (_silent, _) = listener.accept().expect("a connection");
    let taken = (0..WAITING_MAX + 10).filter(|at| outbox.put(at.to_string())).count();
    assert_eq!((taken, counted(&outcomes, "dropped")), (WAITING_MAX, 10));
    drop(outbox);
    assert!(!told.within(Duration::from_millis(10)), "it is not told all");
    // The end does not wait for the webhook either.
    drop(net);
}

//! The page against readers that mean well and others.

use std::io::{Read, Write};
use std::net::TcpStream;

use prometheus_client::metrics::counter::Counter;

use super::*;

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn served(looked_ns: u64) -> (Net, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut registry = Registry::default();
    registry.register("a", "A", Counter::<u64>::default());
    let page = Page { registry, address, looked_ns: AtomicU64::new(looked_ns) };
    (Net::start(listener, Arc::new(page), None).expect("a thread"), address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// What is answered to these bytes.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    // The other side may have heard enough, and close.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn each_request_gets_a_clear_answer() {
    let (_net, address) = served(now_ns());
    let long =
        format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nx: {}\r\n\r\n", "a".repeat(99_999));
    let many =
        format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n{}\r\n", "x: y\r\n".repeat(500));
    for (request, status, text) in [
        ("GET /metrics HTTP/1.1\r\nhost: HERE\r\n\r\n", "200 OK", "\na_total 0\n"),
        ("GET /metrics HTTP/1.1\r\nhost: localhost:1\r\n\r\n", "200 OK", "version=0.0.4"),
        ("GET /metrics?x=y HTTP/1.1\r\nhost: [::1]\r\n\r\n", "200 OK", "a_total 0"),
        (
            "GET /metrics HTTP/1.1\r\nhost: HERE\r\naccept: application/openmetrics-text\r\n\r\n",
            "200 OK",
            "# EOF",
        ),
        ("HEAD /metrics HTTP/1.1\r\nhost: HERE\r\n\r\n", "200 OK", "content-length"),
        ("GET /healthz HTTP/1.1\r\nhost: HERE\r\n\r\n", "200 OK", "ok\n"),
        ("GET / HTTP/1.1\r\nhost: HERE\r\n\r\n", "404", "expected /metrics or /healthz"),
        ("GET /../metrics HTTP/1.1\r\nhost: HERE\r\n\r\n", "404", "there is no '/../metrics'"),
        ("DELETE /metrics HTTP/1.1\r\nhost: HERE\r\n\r\n", "405", "allow: GET, HEAD"),
        ("GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n", "403", "not 'evil.example'"),
        (
            "GET /metrics HTTP/1.1\r\nhost: localhost.evil.example:9600\r\n\r\n",
            "403",
            "ask http://",
        ),
        ("GET /metrics HTTP/1.1\r\nhost: \u{7f}\r\n\r\n", "400", ""),
        ("GET /metrics HTTP/1.1\r\n\r\n", "403", "not ''"),
        ("nonsense\r\n\r\n", "400", ""),
        (&long, "431", ""),
        (&many, "431", ""),
    ] {
        let answer = ask(address, &request.replace("HERE", &address.to_string()));
        let start: String = request.chars().take(60).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{start}: {answer}");
        assert!(answer.contains(text), "{start}: {answer}");
    }
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let (_net, address) = served(now_ns());
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.extend((0..LIMITS.connections).map(|_| connect(address)));
        let answer = ask(address, &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The server closes them: the oldest to make room, the others at their deadline.
    for mut stream in silent {
        let mut answer = Vec::new();
        assert!(stream.read_to_end(&mut answer).is_ok(), "it was closed");
    }
}

#[test]
fn a_monitor_that_looks_no_more_is_not_healthy() {
    let (_net, address) = served(0);
    let answer = ask(address, &format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("was looked at"), "{answer}");
}

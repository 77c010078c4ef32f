//! The page with readers that behave well, and others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use prometheus_client::metrics::counter::Counter;

use super::*;

/// A wait that is longer than this is a hang. This is never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn served(looked_ns: u64) -> (Net, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut registry = Registry::default();
    registry.register("a", "A", Counter::<u64>::default());
    let page =
        Page { registry: Mutex::new(registry), address, looked_ns: AtomicU64::new(looked_ns) };
    (Net::start(listener, Arc::new(page), None).expect("a thread"), address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// The answer to these bytes.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    // The server may have read enough, and close.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn each_request_gets_a_clear_answer() {
    let (_net, address) = served(now_ns());
    let own = address.to_string();
    let get = |path: &str, host: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{more}\r\n")
    };
    let open = "accept: application/openmetrics-text\r\n";
    let long = format!("x: {}\r\n", "a".repeat(99_999));
    for (request, status, text) in [
        (get("/metrics", &own, ""), "200 OK", "\na_total 0\n"),
        (get("/metrics", "localhost:1", ""), "200 OK", "version=0.0.4"),
        (get("/metrics?x=y", "[::1]", ""), "200 OK", "a_total 0"),
        (get("/metrics", &own, open), "200 OK", "# EOF"),
        (get("/metrics", &own, "").replace("GET", "HEAD"), "200 OK", "content-length"),
        (get("/healthz", &own, ""), "200 OK", "ok\n"),
        (get("/", &own, ""), "404", "expected /metrics or /healthz"),
        (get("/../metrics", &own, ""), "404", "there is no '/../metrics'"),
        (get("/metrics", &own, "").replace("GET", "DELETE"), "405", "allow: GET, HEAD"),
        (get("/metrics", "evil.example", ""), "403", "not 'evil.example'"),
        (get("/metrics", "localhost.evil.example:9600", ""), "403", "ask http://"),
        (get("/metrics", "\u{7f}", ""), "400", ""),
        ("GET /metrics HTTP/1.1\r\n\r\n".into(), "403", "not ''"),
        ("nonsense\r\n\r\n".into(), "400", ""),
        (get("/metrics", &own, &long), "431", ""),
        (get("/metrics", &own, &"x: y\r\n".repeat(500)), "431", ""),
    ] {
        let answer = ask(address, &request);
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

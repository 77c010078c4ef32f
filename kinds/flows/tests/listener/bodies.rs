//! Bodies that are streamed, not collected first: `stream: true`.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::server::{Client, Server, post, until};

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A request whose body comes in chunks; the first chunk is sent.
fn begin(server: &Server, path: &str, first: &str) -> Client {
    let mut client = server.client();
    client.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\n{CHUNKED}\r\n{}", chunk(first)));
    client
}

#[test]
fn a_body_is_answered_while_it_comes() {
    let server = Server::start("stream: true");
    let mut client = begin(&server, "/echo", "one");
    assert!(client.head().starts_with("HTTP/1.1 200"));
    assert_eq!(client.chunk(), "one");
    client.send(chunk("two"));
    assert_eq!(client.chunk(), "two");
    client.send("0\r\n\r\n");
    assert_eq!(client.chunk(), "");
    // The connection can be used again.
    let answer = client.ask(&post("/echo", "", "three"));
    assert_eq!((answer.status, answer.text()), (200, "three".to_owned()));
    assert_eq!(answer.header("content-length"), Some("5"));
}

#[test]
fn a_request_without_a_body_is_as_ever() {
    let server = Server::start("stream: true");
    let answer = server.ask("GET /json HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(answer.text().contains("\"body\":null"), "{answer:?}");
}

#[test]
fn a_body_too_long_or_too_slow_or_cut_off_breaks_what_reads_it() {
    let server = Server::start("stream: true, body_size_max: 1KiB, body_deadline: 200ms");
    assert_eq!(server.ask(&post("/echo", "", &"x".repeat(1025))).status, 413);
    let ends_short = |mut client: Client| {
        assert_eq!(client.chunk(), "12345");
        let _ = client.stream.get_ref().shutdown(Shutdown::Write);
        client.is_closed()
    };
    let first = || {
        let mut client = begin(&server, "/echo", "12345");
        assert!(client.head().starts_with("HTTP/1.1 200"));
        client
    };
    let mut too_long = first();
    too_long.send(chunk(&"x".repeat(1020)));
    assert!(ends_short(too_long));
    let mut too_slow = first();
    assert_eq!(too_slow.chunk(), "12345");
    assert!(too_slow.is_closed());
    assert!(ends_short(first()), "cut off");
}

#[test]
fn who_sends_what_nobody_takes_gets_his_answer() {
    let server = Server::start("stream: true, body_size_max: 1GiB");
    let long = "x".repeat(8 << 20);
    let mut client = server.client();
    client.send(post("/text", "", &long));
    assert_eq!(client.answer(true).text(), "pong");
    assert!(client.is_closed(), "where the next request begins is not known");
}

#[test]
fn a_body_that_nobody_takes_is_not_read() {
    let server = Server::start("stream: true, body_size_max: 1GiB, deadline: 2s");
    let mut client = server.client();
    let stream = client.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a limit");
    let head = "POST /never?id=body HTTP/1.1\r\nHost: test\r\nContent-Length: 500000000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    let (piece, mut sent) = (vec![b'x'; 1 << 20], 0);
    let full = loop {
        match stream.write(&piece) {
            Ok(len) => sent += len,
            Err(error) => break error,
        }
        assert!(sent < 64 << 20, "somebody reads it");
    };
    assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&full.kind()), "{full}");
}

#[test]
fn a_client_that_leaves_when_all_is_read_is_noticed() {
    let server = Server::start("stream: true");
    let client = begin(&server, "/take?id=left", "one");
    let mut client = client;
    client.send("0\r\n\r\n");
    assert!(until(|| server.figures.waiting() > 0));
    drop(client);
    assert!(super::server::is_cancelled("left"));
}

#[test]
fn a_proxy_passes_both_bodies_on_while_they_come() {
    let back = Server::start("stream: true");
    let front = Server::of_graph(&format!(
        "
        - kind: listener
          name: listener
          port: 0
          hosts: ['*']
          stream: true
          ports: {{out: [{{name: backend, port: in}}]}}
        - kind: http
          name: backend
          url: http://{}/echo
          method: '{{{{ packet.method }}}}'
          body: '{{{{ packet }}}}'
          stream: true
        ",
        back.address
    ));
    let mut client = begin(&front, "/", "one");
    assert!(client.head().starts_with("HTTP/1.1 200"));
    assert_eq!(client.chunk(), "one");
    client.send(chunk("two"));
    assert_eq!(client.chunk(), "two");
    client.send("0\r\n\r\n");
    assert_eq!(client.chunk(), "");
    let answer = front.ask(&post("/", "", "three"));
    assert_eq!((answer.status, answer.text()), (200, "three".to_owned()));
}

/// A request whose body is compressed.
fn packed(target: &str, coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
         Content-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a_compressed_body_is_decoded_within_limits() {
    for options in ["body_size_max: 100KiB", "stream: true, body_size_max: 100KiB"] {
        let server = Server::start(options);
        let ask = |target, coding, body: &[u8]| {
            let mut client = server.client();
            client.send(packed(target, coding, body));
            client.answer(true)
        };
        let answer = ask("/echo", "gzip", &gzip(r#"{"a": "b"}"#));
        assert_eq!((answer.status, answer.text()), (200, r#"{"a": "b"}"#.to_owned()), "{options}");
        let answer = ask("/echo", "br", b"x");
        assert_eq!((answer.status, answer.header("accept-encoding")), (415, Some("gzip")));
    }
    let server = Server::start("body_size_max: 100KiB");
    let ask = |body: &[u8]| {
        let mut client = server.client();
        client.send(packed("/json", "gzip", body));
        client.answer(true)
    };
    let answer = ask(&gzip(r#"{"a": "b"}"#));
    let fields: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
    assert_eq!(fields["body"]["a"], "b");
    assert!(fields["header"].get("content-encoding").is_none(), "{fields}");
    assert_eq!(ask(&gzip(&"x".repeat(200 << 10))).status, 413);
    assert_eq!(ask(b"no gzip at all").status, 400);
}

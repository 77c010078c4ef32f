//! Clients that are slow, send too much, or are too many.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::server::{Client, Server, get, post, until};

#[test]
fn a_head_that_does_not_come_closes_its_connection() {
    let server = Server::start("head_deadline: 300ms");
    let mut slow = server.client();
    slow.send("GET / HTTP/1.1\r\nHost:");
    assert!(slow.is_closed());
    let mut later = server.client();
    assert_eq!(later.ask(&get("/text")).status, 200);
    later.send("GET /");
    assert!(later.is_closed());
}

#[test]
fn a_head_byte_by_byte_is_slow_too() {
    let server = Server::start("head_deadline: 300ms");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\n");
    assert!(until(|| client.stream.get_ref().write(b"A").is_err()));
}

#[test]
fn a_body_that_does_not_come_is_408() {
    let server = Server::start("body_deadline: 200ms");
    let mut client = server.client();
    let answer = client.ask(&post("/", "", "hello").replace("hello", "he"));
    assert_eq!(answer.status, 408);
    client.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
    assert!(client.is_closed());
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let server = Server::start("");
    let mut client = server.client();
    client.send(post("/never?id=short", "", "hello").replace("hello", "he"));
    client.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
    let mut rest = String::new();
    client.stream.read_to_string(&mut rest).expect("closed");
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400"), "{rest}");
}

#[test]
fn a_head_too_large_is_431() {
    let server = Server::start("head_size_max: 8KiB, headers_max: 20");
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "x".repeat(9000));
    assert_eq!(server.ask(&long).status, 431);
    let many = (0..20).map(|at| format!("A{at}: b\r\n")).collect::<String>();
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n");
    assert_eq!(server.ask(&many).status, 431);
    let target = format!("/{}", "x".repeat(9000));
    assert!([414, 431].contains(&server.ask(&get(&target)).status));
    assert_eq!(server.ask(&get("/text")).status, 200);
}

#[test]
fn a_body_too_large_is_413_and_the_client_gets_to_read_it() {
    let server = Server::start("body_size_max: 1KiB");
    let whole = "x".repeat(1024);
    assert_eq!(server.ask(&post("/", "", &whole)).body.len(), 1024);
    let large = "x".repeat(4 << 20);
    assert_eq!(server.ask(&post("/", "", &large)).status, 413);
    let chunks = "400\r\n".to_owned() + &whole + "\r\n1\r\nx\r\n0\r\n\r\n";
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(server.ask(&(head.to_owned() + &chunks)).status, 413);
}

#[test]
fn a_large_body_in_pieces_comes_whole() {
    let server = Server::start("body_size_max: 8MiB");
    let body: String = (0..1_000_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    assert_eq!(server.ask(&post("/", "", &body)).text(), body);
}

#[test]
fn a_slow_download_is_not_idle() {
    let server = Server::start("idle_max: 300ms, head_deadline: 300ms");
    let size: usize = 16 << 20;
    let mut client = server.slow_client(64 << 10, &get(&format!("/big?size={size}")));
    let mut left = size;
    let mut bytes = [0; 64 << 10];
    while left > 0 {
        // Some seconds in all: much longer than a connection may be idle.
        sleep(Duration::from_millis(20));
        let read = client.stream.read(&mut bytes).expect("an answer");
        assert!(read > 0, "closed {left} bytes before the end");
        left = left.saturating_sub(read);
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Server::start("idle_max: 200ms");
    let mut silent = server.client();
    assert!(silent.is_closed());
    let mut once = server.client();
    assert_eq!(once.ask(&get("/text")).status, 200);
    assert!(once.is_closed());
}

#[test]
fn a_client_that_takes_nothing_is_closed() {
    let server = Server::start("stall_max: 300ms");
    let mut client = server.client();
    let size = 64 << 20;
    client.send(get(&format!("/big?size={size}")));
    // The client reads nothing until the server has given up; the bytes that the server could not
    // send are lost.
    assert!(until(|| client.stream.get_ref().peek(&mut [0]).is_ok()));
    sleep(Duration::from_secs(2));
    let mut rest = Vec::new();
    let ended = client.stream.read_to_end(&mut rest);
    assert!(ended.is_err() || rest.len() < size, "{} bytes came", rest.len());
    assert_eq!(server.ask(&get("/text")).status, 200);
}

#[test]
fn a_flow_past_its_deadline_is_504() {
    let server = Server::start("deadline: 100ms");
    assert_eq!(server.ask(&get("/never?id=late")).status, 504);
    assert!(super::server::is_cancelled("late"));
}

#[test]
fn a_connection_too_many_is_503() {
    let server = Server::start("connections_max: 2");
    let mut first = server.client();
    assert_eq!(first.ask(&get("/text")).status, 200);
    let mut second = server.client();
    assert_eq!(second.ask(&get("/text")).status, 200);
    let mut third = server.client();
    assert_eq!(third.ask(&get("/text")).status, 503);
    drop(second);
    assert!(until(|| server.ask(&get("/text")).status == 200));
    assert_eq!(first.ask(&get("/text")).status, 200);
}

/// The environment variable with the server's address, for the process that holds idle connections.
const ADDRESS: &str = "SINEW_TEST_IDLE";
const IDLE: usize = 10_000;

/// The clients are in a process of their own: each side of a connection takes a descriptor, and
/// both together may be more than one process is allowed.
#[test]
fn ten_thousand_idle_connections_disturb_nobody() {
    allow_open_files();
    let server = Server::start("");
    let mut clients = Command::new(env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "--nocapture", "limits::holds_idle_connections"])
        .env(ADDRESS, server.address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the clients");
    // Kept to the end, because the clients' process prints more, and must be able to.
    let mut lines = BufReader::new(clients.stdout.take().expect("piped")).lines();
    let is_open = |line: std::io::Result<String>| line.is_ok_and(|it| it.contains("all are open"));
    let held = lines.any(is_open);
    assert!(held, "the clients opened {IDLE} connections");
    for _ in 0..100 {
        assert_eq!(server.ask(&get("/text")).status, 200);
    }
    drop(clients.stdin.take());
    assert!(clients.wait().expect("they end").success());
}

/// The clients' process; only the test above runs it.
#[test]
#[ignore = "holds connections for another test"]
#[expect(clippy::print_stdout, reason = "tells the other process")]
fn holds_idle_connections() {
    let Ok(address) = env::var(ADDRESS) else { return };
    allow_open_files();
    let connect = |_| TcpStream::connect(&address).expect("connected");
    let idle: Vec<TcpStream> = (0..IDLE).map(connect).collect();
    println!("all are open");
    let mut word = String::new();
    std::io::stdin().read_line(&mut word).expect("the end of the other process's wish");
    for stream in idle.iter().step_by(IDLE / 20) {
        let mut client = Client::of(stream.try_clone().expect("a descriptor"));
        assert_eq!(client.ask(&get("/text")).text(), "pong");
    }
}

fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(2 * IDLE as u64, |most| most.min(2 * IDLE as u64));
    // An error is ignored: the limit may be high enough already, and if not, the connections fail
    // later.
    let current = limit.current.map_or(wanted, |now| now.max(wanted));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
}

#[test]
fn an_answer_that_costs_more_than_its_flow_may_is_503_and_counted() {
    let server = Server::start("compression: true, work_max: 10000");
    let numbers = |count: usize, header: &str| {
        server.ask(&format!("GET /numbers?count={count} HTTP/1.1\r\nHost: a\r\n{header}\r\n"))
    };
    let gzip = "Accept-Encoding: gzip\r\n";
    assert_eq!(numbers(30_000, "").status, 200);
    assert_eq!(server.figures.errors(), 0);
    assert_eq!(numbers(50_000, "").status, 503, "to write it");
    assert_eq!(numbers(15_000, gzip).header("content-encoding"), Some("gzip"));
    let refused = numbers(30_000, gzip);
    assert_eq!((refused.status, refused.header("content-encoding")), (503, None), "to compress it");
    assert_eq!(server.figures.errors(), 2);
    assert_eq!(server.ask(&get("/text")).text(), "pong");
}

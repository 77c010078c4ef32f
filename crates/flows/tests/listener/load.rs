//! More than there is room for: it is refused, counted, and keeps nobody out who stops the run.

use std::net::TcpStream;

use socket2::{Domain, Socket, Type};

use super::server::{Answer, Client, Server, get, is_cancelled, post, until};

fn is_refused(answer: &Answer) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
}

#[test]
fn all_bodies_together_hold_no_more_than_they_may() {
    let server = Server::start("body_size_max: 64KiB, held_size_max: 100KiB");
    let body = "x".repeat(64 << 10);
    let mut first = server.client();
    first.send(post("/never?id=holds", "", &body));
    let mut second = server.client();
    assert!(until(|| server.figures.waiting() == 1), "the first is there");
    is_refused(&second.ask(&post("/text", "", &body)));
    let mut chunked = server.client();
    chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    chunked.send(format!("c000\r\n{}\r\n", "x".repeat(0xc000)));
    is_refused(&chunked.answer(true));
    assert_eq!(server.ask(&post("/text", "", "small")).status, 200);
    assert_eq!(server.figures.refusals(), 2);
    drop(first);
    assert!(is_cancelled("holds"));
    assert!(until(|| server.ask(&post("/text", "", &body)).status == 200));
}

#[test]
fn a_request_too_many_is_refused_and_what_ends_the_run_is_not() {
    let server = Server::start("requests_max: 1");
    let mut first = server.client();
    first.send(get("/never?id=one"));
    assert!(until(|| server.ask(&get("/text")).status == 503));
    let mut kept = server.client();
    is_refused(&kept.ask(&get("/text")));
    assert_eq!(kept.ask(&get("/stop")).text(), "stopped");
    is_refused(&kept.ask(&get("/text")));
    let large = "x".repeat(100 << 10);
    is_refused(&server.ask(&post("/stop", "", &large)));
    drop(first);
    assert!(until(|| kept.ask(&get("/text")).status == 200));
}

#[test]
fn what_ends_the_run_is_answered_however_many_connections_are_held() {
    let server = Server::start("connections_max: 2");
    let held: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(server.address).expect("connected")).collect();
    let stops = || {
        let mut client = server.client();
        client.ask(&get("/stop")).text() == "stopped"
    };
    assert!(stops() && stops());
    let mut other = server.client();
    let refused = other.ask(&get("/text"));
    is_refused(&refused);
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(other.is_closed());
    assert!(server.figures.refusals() > 80);
    drop(held);
    assert!(until(|| server.ask(&get("/text")).status == 200));
}

#[test]
fn who_is_slow_to_take_his_answer_makes_room_for_others() {
    let server = Server::start("held_size_max: 2MiB");
    let slow: Vec<Client> = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_recv_buffer_size(1).expect("a tiny window");
            socket.connect(&server.address.into()).expect("connected");
            let mut client = Client::of(socket.into());
            client.send(get("/big?size=16777216"));
            client
        })
        .collect();
    assert!(until(|| server.ask(&get("/text")).status == 503), "all room is held");
    assert_eq!(server.ask(&get("/stop")).text(), "stopped");
    assert!(until(|| server.ask(&get("/text")).status == 200), "they were closed");
    drop(slow);
}

#[test]
fn a_kept_connection_is_told_when_another_listener_takes_over() {
    let server = Server::start("");
    let (mut asks, mut silent) = (server.client(), server.client());
    for client in [&mut asks, &mut silent] {
        assert_eq!(client.ask(&get("/text")).header("connection"), None);
    }
    server.make_way();
    std::thread::sleep(std::time::Duration::from_millis(600));
    let last = asks.ask(&get("/text"));
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    assert!(asks.is_closed());
    assert!(silent.is_closed(), "it does not wait for ever");
    assert!(server.has_ended());
}

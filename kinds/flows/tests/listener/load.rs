//! More requests than there is room for: they are refused and counted, and a request that stops the
//! run still gets in.

use std::net::TcpStream;

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
fn half_requests_keep_nobody_from_ending_the_run() {
    let half = "POST /stop HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    // All requests are under way; all connections are open.
    for (options, count) in [("requests_max: 1", 20), ("connections_max: 1", 50)] {
        let server = Server::start(options);
        let mut first = server.client();
        first.send(get("/never?id=half"));
        assert!(until(|| server.ask(&get("/text")).status == 503));
        let send = |_| {
            let mut client = server.client();
            client.send(half);
            client
        };
        let mut clients: Vec<Client> = (0..count).map(send).collect();
        assert!(until(|| server.figures.refusals() > 8), "they are there, and some gave way");
        assert_eq!(server.ask(&post("/stop", "", "now")).text(), "stopped");
        if options.starts_with("requests") {
            // A request whose body comes at last is answered too, unless enough newer ones came.
            let last = clients.last_mut().expect("a client");
            last.send("12345");
            assert_eq!(last.answer(true).text(), "stopped");
        }
    }
}

#[test]
fn who_is_slow_to_take_his_answer_makes_room_for_others() {
    let server = Server::start("held_size_max: 2MiB");
    let slow = [(); 4].map(|()| server.slow_client(1, &get("/big?size=16777216")));
    assert!(until(|| server.ask(&get("/text")).status == 503), "all room is held");
    assert_eq!(server.ask(&get("/stop")).text(), "stopped");
    assert!(until(|| server.ask(&get("/text")).status == 200), "they were closed");
    drop(slow);
}

#[test]
fn an_answer_that_is_compressed_counts_until_all_of_it_is() {
    let server = Server::start("held_size_max: 2MiB, compression: true");
    let ask = "GET /noise?size=8388608 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
    let slow = server.slow_client(1, ask);
    assert!(until(|| server.ask(&get("/text")).status == 503), "all room is held");
    assert!(until(|| server.ask(&get("/text")).status == 200), "it was closed");
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

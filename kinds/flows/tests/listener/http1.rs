//! HTTP/1.1, correct and malformed.

use std::net::{Shutdown, TcpStream};

use serde_json::{Value as Json, json};

use super::server::{Answer, Client, Server, get, is_cancelled, post, until};

fn fields(answer: &Answer) -> Json {
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_slice(&answer.body).expect("JSON")
}

#[test]
fn a_reply_is_the_answer() {
    let server = Server::start("");
    let mut client = server.client();
    let answer = client.ask(&get("/text"));
    assert_eq!((answer.status, answer.text().as_str()), (200, "pong"));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(answer.header("date").is_some());
    let answer = client.ask(&get("/fail"));
    assert_eq!((answer.status, answer.text().as_str()), (500, "Internal Server Error"));
    let answer = client.ask(&post("/", "Content-Type: image/png\r\n", "png"));
    assert_eq!(answer.header("content-type"), Some("image/png"));
    assert_eq!(answer.text(), "png");
    assert_eq!(client.ask(&get("/stream")).text(), "abc");
    assert_eq!(client.ask(&get("/text")).text(), "pong");
}

#[test]
fn a_request_comes_as_it_is() {
    let server = Server::start("");
    let headers = "Content-Type: application/json\r\nX-A: 1\r\nx-a: 2\r\n";
    let seen = fields(&server.ask(&post("/json?a=b%20c&a=%C3%A4", headers, "{\"n\": 1}")));
    assert_eq!(seen["method"], "POST");
    assert_eq!((&seen["scheme"], &seen["host"]), (&json!("http"), &json!("test")));
    assert_eq!(seen["query"], json!({"a": ["b c", "ä"]}));
    assert_eq!(seen["header"]["x-a"], "1, 2");
    assert_eq!(seen["body"], json!({"n": 1}));
    assert_eq!(seen["protocol"], "HTTP/1.1");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start("");
    let mut client = server.client();
    let paths = |at: usize| if at.is_multiple_of(3) { "/slow" } else { "/json" };
    let all: String = (0..10).map(|at| get(&format!("{}?n={at}", paths(at)))).collect();
    client.send(all);
    for at in 0..10 {
        let answer = client.answer(true);
        match paths(at) {
            "/slow" => assert_eq!(answer.text(), "slow"),
            _ => assert_eq!(fields(&answer)["query"]["n"], at.to_string()),
        }
    }
}

#[test]
fn head_is_answered_as_get_without_a_body() {
    let server = Server::start("");
    let mut client = server.client();
    let answer = client.ask("HEAD /text HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("4")));
    assert_eq!(client.ask(&get("/text")).text(), "pong");
}

#[test]
fn a_client_that_asks_whether_to_go_on_is_told() {
    let server = Server::start("body_size_max: 1KiB");
    let mut client = server.client();
    let expect = "Expect: 100-continue\r\n";
    client.send(post("/", expect, "hello").replace("hello", ""));
    assert_eq!(client.answer(false).status, 100);
    client.send("hello");
    assert_eq!(client.answer(true).text(), "hello");
    client.send(post("/", expect, &"x".repeat(1025)).replace('x', ""));
    assert_eq!(client.answer(true).status, 413);
    let answer = server.ask(&post("/", "Expect: tea\r\n", "x"));
    assert_eq!(answer.status, 417);
}

#[test]
fn a_host_is_needed_and_only_one() {
    let server = Server::start("");
    assert_eq!(server.ask("GET / HTTP/1.1\r\n\r\n").status, 400);
    assert_eq!(server.ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").status, 400);
    let seen = fields(&server.ask(&get("http://other:81/json?x")));
    assert_eq!((&seen["host"], &seen["path"]), (&json!("other:81"), &json!("/json")));
    let mut old = server.client();
    let answer = old.ask("GET /json HTTP/1.0\r\n\r\n");
    assert_eq!(fields(&answer)["protocol"], "HTTP/1.0");
    assert!(old.is_closed());
}

#[test]
fn a_tunnel_is_refused() {
    let server = Server::start("");
    assert_eq!(server.ask("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n").status, 501);
}

#[test]
fn what_is_malformed_is_the_clients_error_where_it_is_asked_for() {
    let server = Server::start("");
    assert_eq!(server.ask(&get("/json?a=%ff")).status, 400);
    assert_eq!(server.ask(&get("/text?a=%ff")).status, 200);
    assert_eq!(fields(&server.ask(&get("/json?a=%25")))["query"]["a"], "%");
    assert_eq!(server.ask(&get("/a%ff")).status, 200);
    let mut client = server.client();
    client.send(b"GET /\xff\xfe HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.answer(true).status, 400);
    let body = |target| post(target, "Content-Type: application/json\r\n", "{");
    assert_eq!(server.ask(&body("/text")).status, 200);
    let answer = server.ask(&body("/json"));
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("not JSON"), "{}", answer.text());
}

#[test]
fn a_malformed_request_is_answered_and_its_connection_closed() {
    let server = Server::start("");
    let malformed = [
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: five\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\
         \r\n0\r\n\r\n",
        // Another reader may see another end of the following requests.
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA: b\nB: c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA: b\rB: c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: five\r\n\r\n\
         0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n\
         0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;a\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\nB: c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\rB: c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ];
    for request in malformed {
        let mut client = server.client();
        let answer = client.ask(request);
        assert!([400, 505].contains(&answer.status), "{request:?}: {answer:?}");
        assert!(client.is_closed(), "{request:?}");
    }
    assert_eq!(server.ask(&get("/text")).text(), "pong");
}

#[test]
fn what_came_before_a_malformed_request_is_answered_first() {
    let server = Server::start("");
    let mut client = server.client();
    client.send(format!("{}GET /text HTTP/1.1\nHost: test\r\n\r\n", get("/slow")).as_bytes());
    assert_eq!(client.answer(true).status, 200);
    assert_eq!(client.answer(true).status, 400);
    assert!(client.is_closed());
}

#[test]
fn a_length_beyond_all_numbers_is_a_body_too_large() {
    let server = Server::start("");
    for length in ["18446744073709551613", "18446744073709551615", "99999999999999999999999999"] {
        let mut client = server.client();
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(client.ask(&request).status, 413, "{length}");
    }
}

#[test]
fn chunks_make_a_body() {
    let server = Server::start("");
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: x\r\n\r\n";
    assert_eq!(server.ask(chunked).text(), "hello");
}

#[test]
fn chunks_are_believed_before_a_length_and_the_connection_is_closed() {
    let server = Server::start("");
    for order in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
    ] {
        let request =
            format!("POST / HTTP/1.1\r\nHost: a\r\n{order}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        let mut client = server.client();
        assert_eq!(client.ask(&request).text(), "hello", "{order}");
        // A client that sends both headers may hide a second request behind the first (RFC 9112,
        // 6.1).
        assert!(client.is_closed(), "{order}");
    }
}

#[test]
fn the_flow_of_a_client_that_went_away_is_cancelled() {
    let server = Server::start("");
    let mut client = server.client();
    client.send(get("/never?id=gone"));
    // The request has arrived once a second connection was answered.
    assert_eq!(server.ask(&get("/text")).status, 200);
    drop(client);
    assert!(is_cancelled("gone"));
}

#[test]
fn half_closed_is_gone_unless_the_answer_is_there_at_once() {
    let server = Server::start("");
    // With this many at once, a request and the connection's end are often there together when a
    // worker looks.
    let clients: Vec<Client> = (0..200)
        .map(|_| {
            let mut client = server.client();
            client.send(get("/text"));
            client.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
            client
        })
        .collect();
    for mut client in clients {
        assert_eq!(client.answer(true).text(), "pong");
    }
    let mut client = server.client();
    client.send(get("/never?id=half"));
    client.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
    assert!(is_cancelled("half"));
    assert!(client.is_closed());
}

#[test]
fn a_stop_lets_what_has_begun_be_answered() {
    let server = Server::start("");
    let (mut busy, mut idle) = (server.client(), server.client());
    assert_eq!(idle.ask(&get("/text")).status, 200);
    busy.send(get("/slow"));
    assert_eq!(server.ask(&get("/text")).status, 200);
    server.stop();
    assert!(until(|| TcpStream::connect(server.address).is_err()), "it listens on");
    let answer = busy.answer(true);
    assert_eq!((answer.status, answer.text().as_str()), (200, "slow"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(busy.is_closed() && idle.is_closed());
    assert!(server.has_ended());
}

#[test]
fn who_takes_gzip_gets_it_where_it_pays() {
    let server = Server::start("compression: true");
    let accept =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let packed = server.ask(&accept("/page"));
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 500);
    let mut plain = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&*packed.body);
    std::io::Read::read_to_string(&mut decoder, &mut plain).expect("gzip");
    assert_eq!(plain, "page ".repeat(1000));
    let answer = server.ask(&get("/page"));
    assert_eq!((answer.header("content-encoding"), answer.body.len()), (None, 5000));
    assert_eq!(answer.header("vary"), Some("accept-encoding"));
    assert_eq!(server.ask(&accept("/text")).header("content-encoding"), None);
}

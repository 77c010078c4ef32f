//! Servers that are slow, silent or gone, or send what is not HTTP.

use std::rc::Rc;

use futures_util::StreamExt;
use sinew_flow::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::server::{Server, read_head};
use super::{Duration, ask, body, fail, fixture, get, graph, run};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";

#[test]
fn a_server_that_is_not_there_is_a_bad_gateway() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        drop(listener);
        let error = fail(&format!("url: 'http://{address}/'")).await;
        assert_eq!(error.status(), 502);
        assert!(error.text().contains("onnection refused"), "{error}");
        let error = fail("url: 'http://nowhere.invalid/'").await;
        assert_eq!((error.status(), error.shown()), (502, None));
        assert!(error.text().contains("dns error"), "{error}");
    });
}

#[test]
fn nonsense_is_a_bad_gateway() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 20));
    for said in [
        "",
        "nonsense\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\na b\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy",
        &format!("{chunked}zz\r\nx"),
        &format!("{chunked}5\r\nx"),
        &format!("{chunked}fffffffffffffffff\r\nx"),
        &endless,
    ] {
        run(async {
            let server = Server::says(said).await;
            let error = fail(&server.url("/")).await;
            assert_eq!(error.status(), 502, "{error}");
            // A new connection that breaks is not tried again: the node 'retry' is for that.
            assert_eq!(server.connections(), 1, "{error}");
        });
    }
}

#[test]
fn an_answer_that_breaks_off_ends_its_stream_with_an_error() {
    run(async {
        let server = Server::says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").await;
        let answer = get(&(server.url("/") + ", stream: true")).await;
        let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
        let parts: Vec<_> = stream.take().expect("a stream").collect().await;
        let (last, parts) = parts.split_last().expect("parts");
        assert_eq!(parts, [Ok("x".into())]);
        assert!(last.as_ref().expect_err("an end").text().contains("breaks off"));
    });
}

#[test]
fn a_long_answer_is_refused_unless_it_is_streamed() {
    run(async {
        let chunks = format!("400\r\n{}\r\n", "x".repeat(1024)).repeat(64);
        let long = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let server = Server::says(format!("{long}{chunks}0\r\n\r\n")).await;
        let url = server.url("/") + ", body_size_max: 16KiB";
        let error = fail(&url).await;
        assert!(error.text().contains("more than 16384 bytes; raise 'body_size_max'"), "{error}");
        let answer = get(&format!("{url}, stream: true")).await;
        let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
        let parts = stream.take().expect("a stream");
        let count = parts.fold(0, async |all, part| all + part.expect("a part").len()).await;
        assert_eq!(count, 64 * 1024);
    });
}

/// A server that answers nothing, and says when a connection is closed.
async fn silent() -> (Server, Rc<Notify>) {
    let closed = Rc::new(Notify::new());
    let says = Rc::clone(&closed);
    let server = Server::raw(move |mut stream| {
        let says = Rc::clone(&says);
        async move {
            read_head(&mut stream).await?;
            let end = stream.read(&mut [0; 1]).await;
            assert!(!matches!(end, Ok(1)), "more than one request");
            says.notify_one();
            Ok(())
        }
    });
    (server.await, closed)
}

#[test]
fn a_silent_server_is_a_gateway_timeout_and_its_connection_is_closed() {
    run(async {
        let (server, closed) = silent().await;
        let fixture = fixture(&graph(&(server.url("/") + ", deadline: 50ms")));
        let error = ask(&fixture, Value::Null).await.expect_err("nothing comes");
        assert_eq!(error.status(), 504);
        assert!(error.text().contains("no answer within 50ms"), "{error}");
        closed.notified().await;
    });
}

#[test]
fn a_flow_that_ends_lets_go_of_its_request() {
    run(async {
        let (server, closed) = silent().await;
        let fixture = fixture(&graph(&server.url("/")));
        let limit = Duration::from_millis(50);
        let error = fixture.open("begin", 0, Value::Null, limit).await.expect_err("no time");
        assert_eq!(error.status(), 504);
        closed.notified().await;
    });
}

#[test]
fn a_stream_that_stands_still_ends_with_an_error() {
    run(async {
        let server = Server::raw(|mut stream| async move {
            read_head(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").await?;
            stream.read(&mut [0; 1]).await.map(drop)
        })
        .await;
        let url = server.url("/") + ", stream: true, deadline: 50ms";
        let answer = get(&url).await;
        let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
        let parts: Vec<_> = stream.take().expect("a stream").collect().await;
        let last = parts.last().expect("an end").as_ref().expect_err("an error");
        assert!(last.text().contains("no part of the answer has come for 50ms"), "{last}");
    });
}

/// A server that answers once on each connection and closes it at the next request, unanswered.
async fn forgetful() -> Server {
    Server::raw(|mut stream| async move {
        read_head(&mut stream).await?;
        stream.write_all(OK.as_bytes()).await?;
        read_head(&mut stream).await.map(drop)
    })
    .await
}

#[test]
fn a_connection_that_was_closed_meanwhile_fails_no_request_that_can_be_repeated() {
    run(async {
        let server = forgetful().await;
        let fixture = fixture(&graph(&server.url("/")));
        for _ in 0..5 {
            ask(&fixture, Value::Null).await.expect("an answer");
        }
        assert_eq!(server.connections(), 5);
        let post = server.url("/") + ", method: POST";
        let post = self::fixture(&graph(&post));
        ask(&post, Value::Null).await.expect("an answer");
        let error = ask(&post, Value::Null).await.expect_err("it may have been done");
        assert_eq!(error.status(), 502);
    });
}

#[test]
fn an_answer_before_the_request_is_over_is_an_answer() {
    run(async {
        let server = Server::raw(|mut stream| async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnull").await?;
            read_head(&mut stream).await.map(drop)
        })
        .await;
        let url = server.url("/") + ", method: PUT, body: x";
        // The bytes came before a request was sent: they are taken either as the answer or as an
        // error.
        match ask(&fixture(&graph(&url)), Value::Null).await {
            Ok(answer) => assert_eq!(body(&answer.expect("a value")), "null"),
            Err(error) => assert_eq!(error.status(), 502),
        }
    });
}

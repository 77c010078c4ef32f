//! Compared with hyper, which must read what passes just as it reads it without this check.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;

use futures_util::future::join;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::Builder;

use super::super::begun::Begun;
use super::*;

/// Bodies that look like heads, lines and chunks.
const BODIES: [&str; 6] =
    ["a", "\n", "\r\n\r\n", "0\r\n\r\n", "GET / HTTP/1.1\nA: b\n\n", "0123456789abcdef\r"];

const FIELDS: [&str; 12] = [
    "Host: a",
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Content-Type: text/plain",
    "content-lengthy: 7",
    "Content: 5",
    "TE: trailers",
    "transfer: chunked",
    "C:",
    "Cookie: c=\u{e4}; content-length: 9",
    "X: Transfer-Encoding: chunked",
];

/// Bytes that others are changed into.
const CHANGED: &[u8] = b"\r\n \t:;,0a5fGc\0\xff";

fn one_of<T: Copy + Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|at| all[at])
}

/// A good request.
fn request() -> impl Strategy<Value = String> {
    let body = vec(one_of(&BODIES), 0..4);
    let fields = vec(one_of(&FIELDS), 0..5);
    let line = one_of(&["GET / HTTP/1.1", "POST /content-length: HTTP/1.1", "\r\nPUT /a HTTP/1.1"]);
    (line, fields, body, 0..4_u8, any::<usize>()).prop_map(|(line, mut fields, body, kind, at)| {
        let (framing, body) = match kind {
            0 => ("A: b".to_owned(), String::new()),
            1 => (format!("cOntent-Length: \t{} ", body.concat().len()), body.concat()),
            2 => (format!("Content-Length:000{}", body.concat().len()), body.concat()),
            _ => {
                let chunk = |text: &&str| match text.len() % 2 {
                    0 => format!("{:X}\r\n{text}\r\n", text.len()),
                    _ => format!("00{:x};a=\"b\r\n{text}\r\n", text.len()),
                };
                let chunks = body.iter().map(chunk).collect::<String>();
                let trailers = ["", "A: b\r\n", "Content-Length: 5\r\nT:\r\n"][body.len() % 3];
                ("TRANSFER-encoding:Chunked".to_owned(), format!("{chunks}0\r\n{trailers}\r\n"))
            }
        };
        fields.insert(at % (fields.len() + 1), &framing);
        format!("{line}\r\n{}\r\n\r\n{body}", fields.join("\r\n"))
    })
}

/// A text in pieces.
fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    (1..cuts.len()).map(move |at| &text[cuts[at - 1]..cuts[at]])
}

/// What a server is told, and what it answers, if a text comes in these pieces.
fn served(text: &[u8], cuts: &[usize], is_framed: bool) -> (Vec<String>, Vec<u8>) {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let (mut client, server) = duplex(1 << 20);
    let told = RefCell::new(Vec::new());
    let service = async |request: Request<Incoming>| {
        let (head, mut body) = request.into_parts();
        let mut line = format!("{} {} {:?} ", head.method, head.uri, head.headers);
        loop {
            match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                None => break,
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        line += &data.escape_ascii().to_string();
                    }
                }
                Some(Err(_)) => {
                    line += " and no more";
                    break;
                }
            }
        }
        told.borrow_mut().push(line.clone());
        Ok::<_, Infallible>(Response::new(line))
    };
    let answered = runtime.block_on(async {
        let mut wire = Begun::new(server);
        let serves = async {
            if is_framed {
                assert!(!wire.is_http2().await.expect("no error"));
            }
            let mut builder = http1::Builder::new();
            builder.half_close(true).auto_date_header(false);
            // How the connection ends can be seen from what was told.
            let _ = builder.serve_connection(TokioIo::new(wire), service_fn(&service)).await;
        };
        let asks = async {
            for piece in pieces(text, cuts) {
                // A client that is refused may be gone before all is sent.
                let _ = client.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            let _ = client.shutdown().await;
            let mut answered = Vec::new();
            client.read_to_end(&mut answered).await.expect("no error");
            answered
        };
        join(serves, asks).await.1
    });
    (told.into_inner(), answered)
}

/// The requests whose body came to its end.
fn whole(told: &[String]) -> Vec<&String> {
    told.iter().filter(|line| !line.ends_with("no more")).collect()
}

/// How much of the text passes, in these pieces; and whether it ends where a request does.
fn passes(text: &[u8], cuts: &[usize]) -> (usize, bool) {
    let (mut framing, mut passed) = (Framing::new(), 0);
    for piece in pieces(text, cuts) {
        if !framing.has_refused() {
            passed += framing.check(&mut piece.to_vec());
        }
    }
    (passed, matches!(framing.part, Part::Request) && framing.line.is_empty())
}

#[test]
fn a_bad_head_ends_where_it_is_bad_however_little_is_read_at_a_time() {
    let mut framing = Framing::new();
    let (mut text, mut read) = (b"GET / HTTP/1.1\r\nA: b\nB: c".iter(), Vec::new());
    loop {
        let mut room = [0];
        let mut buffer = ReadBuf::new(&mut room);
        if !framing.has_refused() {
            buffer.put_slice(&[*text.next().expect("refused before the end")]);
        }
        framing.pass(&mut buffer, 0);
        match buffer.filled() {
            [] => break,
            filled => read.extend_from_slice(filled),
        }
    }
    assert_eq!(read, b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n");
    assert_eq!(text.as_slice(), b"B: c");
}

#[test]
fn no_line_of_a_chunk_is_kept_without_end() {
    let mut framing = Framing::new();
    let head = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(framing.check(&mut head.to_vec()), head.len());
    while !framing.has_refused() {
        framing.check(&mut [b'0'; 1000]);
        assert!(framing.line.len() < LINE_LEN_MAX + 2000, "it is kept");
    }
}

proptest! {
    #[test]
    fn good_requests_pass_as_they_are(
        requests in vec(request(), 1..5),
        cuts in vec(any::<usize>(), 0..6),
    ) {
        let text = requests.concat().into_bytes();
        prop_assert_eq!(passes(&text, &cuts), (text.len(), true), "{}", text.escape_ascii());
        let (told, answered) = served(&text, &cuts, true);
        prop_assert_eq!(told.len(), requests.len());
        prop_assert_eq!((told, answered), served(&text, &cuts, false));
    }

    #[test]
    fn any_bytes_are_read_as_without_it_or_refused(
        requests in vec(request(), 1..4),
        changes in vec((any::<usize>(), one_of(CHANGED), any::<bool>()), 1..4),
        cuts in vec(any::<usize>(), 0..6),
    ) {
        let mut text = requests.concat().into_bytes();
        for (at, byte, replaces) in changes {
            let at = at % text.len();
            text.splice(at..at + usize::from(replaces), [byte]);
        }
        let (passed, _) = passes(&text, &[]);
        prop_assert_eq!(passed, passes(&text, &cuts).0, "{}", text.escape_ascii());
        let (with, without) = (served(&text, &cuts, true).0, served(&text, &cuts, false).0);
        if passed == text.len() {
            prop_assert_eq!(with, without, "{}", text.escape_ascii());
        } else {
            // The requests before the refused one are the same, and no part of the refused one is
            // told as if it were whole.
            let (with, without) = (whole(&with), whole(&without));
            prop_assert!(without.starts_with(&with), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_line_that_ends_with_a_line_feed_alone_is_refused_where_it_ends(
        before in vec(request(), 0..3),
        place in any::<usize>(),
        cuts in vec(any::<usize>(), 0..4),
    ) {
        let good = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n\
                    2;a\r\nab\r\n0\r\nA: b\r\n\r\n";
        let ends: Vec<_> = good.match_indices("\r\n").map(|(at, _)| at).collect();
        let at = before.concat().len() + ends[place % ends.len()];
        let mut text = format!("{}{good}", before.concat()).into_bytes();
        text.remove(at);
        prop_assert_eq!(passes(&text, &cuts).0, at, "{}", text.escape_ascii());
        prop_assert_eq!(whole(&served(&text, &cuts, true).0).len(), before.len());
    }
}

//! Servers for the tests of the client: one that speaks HTTP, and one that sends a given text.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::Builder;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::http::{Here, decode};

/// A server that runs until the test ends.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

impl Server {
    /// Answers every request by `answer`.
    pub(super) async fn start<F>(answer: impl Fn(Request<Incoming>) -> F + 'static) -> Server
    where
        F: Future<Output = Response<Parts>> + 'static,
    {
        let answer = Arc::new(answer);
        Server::listen(move |stream, counts| converse(stream, Arc::clone(&answer), counts)).await
    }

    /// Runs `speak` on every connection.
    pub(super) async fn raw<F>(speak: impl Fn(TcpStream) -> F + 'static) -> Server
    where
        F: Future<Output = io::Result<()>> + 'static,
    {
        Server::listen(move |stream, _| {
            let speaking = speak(stream);
            async move {
                // An error is not a failure: in some tests the client goes away.
                let _ = speaking.await;
            }
        })
        .await
    }

    /// Sends this text to the first request of each connection, and closes it.
    pub(super) async fn says(text: impl Into<String>) -> Server {
        let text = text.into();
        Server::raw(move |mut stream| {
            let text = text.clone();
            async move {
                read_head(&mut stream).await?;
                stream.write_all(text.as_bytes()).await
            }
        })
        .await
    }

    async fn listen<F>(speak: impl Fn(TcpStream, Arc<Counts>) -> F + 'static) -> Server
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                spawn_local(speak(stream, Arc::clone(&shared)));
            }
        });
        Server { address, counts }
    }

    /// The parameter `url` of a client that asks for `target`.
    pub(super) fn url(&self, target: &str) -> String {
        format!("url: 'http://{}{target}'", self.address)
    }

    /// How many connections there were.
    pub(super) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// How many requests there were.
    pub(super) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::Relaxed)
    }
}

/// HTTP on a connection.
async fn converse<F>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    answer: Arc<impl Fn(Request<Incoming>) -> F + 'static>,
    counts: Arc<Counts>,
) where
    F: Future<Output = Response<Parts>> + 'static,
{
    let service = service_fn(move |request| {
        counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // An error is not a failure: in some tests the client goes away.
    let _ = Builder::new(Here).serve_connection(TokioIo::new(stream), service).await;
}

/// HTTP on a connection that is already there.
pub(super) async fn echo_on(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
    converse(stream, Arc::new(echo), Arc::default()).await;
}

/// Answers with what came.
pub(super) async fn echo(request: Request<Incoming>) -> Response<Parts> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|all| all.to_bytes()).unwrap_or_default();
    let said = json!({
        "method": parts.method.as_str(),
        "target": parts.uri.path_and_query().map(ToString::to_string),
        "protocol": format!("{:?}", parts.version),
        "header": decode::headers(&parts.headers).to_json().expect("JSON"),
        "body": String::from_utf8_lossy(&body),
    });
    let response = Response::builder().header("content-type", "application/json");
    response.body(whole(said.to_string())).expect("an answer")
}

/// Answers with a text.
pub(super) async fn text(status: StatusCode, text: &'static str) -> Response<Parts> {
    let response = Response::builder().status(status).header("content-type", "text/plain");
    response.body(whole(text)).expect("an answer")
}

/// The body of an answer.
pub(super) type Parts = UnsyncBoxBody<Bytes, Infallible>;

/// A body that is there.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Parts {
    Full::new(bytes.into()).boxed_unsync()
}

/// Two parts; the second one comes when `wait` is notified.
pub(super) fn parts(texts: [&'static str; 2], wait: Arc<Notify>) -> Parts {
    let stream = unfold((0, wait), move |(at, wait)| async move {
        let part = Bytes::from_static(texts.get(at)?.as_bytes());
        if at == 1 {
            wait.notified().await;
        }
        Some((Ok(part), (at + 1, wait)))
    });
    StreamBody::new(stream.map_ok(Frame::data)).boxed_unsync()
}

/// Reads the head of a request.
pub(super) async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

//! The page that Prometheus reads. What comes from the network is hostile: it is bounded in size,
//! number and time, and nothing of it reaches the run.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use sinew_control::hosts::{Hosts, Port};
use sinew_core::clock::now_ns;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::exposition::Format;
use crate::connections::{Asked, Connections};

/// Connections at a time; a further one takes the place of an older one. Prometheus needs one.
const CONNECTIONS_MAX: usize = 32;
/// Bytes of a request's head; a longer one is answered with 431.
const HEAD_LEN_MAX: usize = 16 << 10;
/// So long a request may take to come.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// So long a connection may last: there is one answer for each.
const DEADLINE: Duration = Duration::from_secs(10);
/// Pause when no connection can be taken, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A monitor that has not looked at the run for so long is not healthy.
const LOOK_NS_MAX: u64 = 5_000_000_000;

/// What is served.
pub(super) struct Page {
    /// The figures.
    pub(super) registry: Registry,
    /// Where it is served.
    pub(super) address: SocketAddr,
    /// When the run was looked at last.
    pub(super) looked_ns: AtomicU64,
}

/// Serves it for ever.
pub(super) async fn serve(listener: TcpListener, page: Arc<Page>) {
    let mut open = Connections::at_most(CONNECTIONS_MAX);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let page = Arc::clone(&page);
        open.begin(|asked| async move {
            // Whether it was answered or is cut off is the other side's affair.
            let _ = timeout(DEADLINE, connection(stream, page, asked)).await;
        });
    }
}

async fn connection(stream: TcpStream, page: Arc<Page>, asked: Asked) {
    let service = service_fn(|request| {
        asked.set();
        let answer = page.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_DEADLINE);
    server.max_buf_size(HEAD_LEN_MAX).keep_alive(false);
    // As above.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Page {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if let Err(text) = self.check_host(request.headers()) {
            return plain(StatusCode::FORBIDDEN, text);
        }
        let path = request.uri().path();
        if !["/metrics", "/healthz"].contains(&path) {
            return plain(
                StatusCode::NOT_FOUND,
                format!("there is no '{path}' here; expected /metrics or /healthz\n"),
            );
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let text = format!("expected GET, not {}\n", request.method());
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, text);
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if path == "/healthz" { self.health() } else { self.figures(request.headers()) }
    }

    fn figures(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let accept = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let format = Format::of(&accept.collect::<Vec<_>>().join(","));
        match format.encode(&self.registry) {
            Ok(body) => respond(StatusCode::OK, format.content_type(), body),
            Err(text) => plain(StatusCode::INTERNAL_SERVER_ERROR, text),
        }
    }

    fn health(&self) -> Response<Full<Bytes>> {
        // Nothing is ordered by it: a moment sooner or later is as good.
        let age_ns = now_ns().saturating_sub(self.looked_ns.load(Ordering::Relaxed));
        if age_ns < LOOK_NS_MAX {
            return plain(StatusCode::OK, "ok\n".into());
        }
        let text = format!("the run was looked at {} s ago\n", age_ns / 1_000_000_000);
        plain(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// A page of somebody else may have its name resolved to this machine, and then read in the
    /// browser what only this machine should see. Such a request bears the other name.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), String> {
        if !self.address.ip().is_loopback() {
            return Ok(());
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
        let own = self.address;
        match Hosts::new(own, &[]).is_ours(&host.to_ascii_lowercase(), Port::Any) {
            true => Ok(()),
            false => Err(format!("this is {own}, not '{host}'; ask http://{own}/metrics\n")),
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text.into_bytes())
}

fn respond(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

//! The server: the page's files, and the WebSocket of each viewer. It has a thread of its own.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Request, State, WebSocketUpgrade};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::unfold;
use tokio::runtime::Handle;
use tokio::select;
use tokio::time::{sleep, timeout};

use super::hub::Hub;
use super::page::{FILES, MISSING};
use super::protocol::ORDER_LEN_MAX;
use super::viewer;
use crate::hosts::{Hosts, check_host, check_origin};
use crate::server::{self, Limits};

/// Limits for connections that are not yet viewers: a browser opens six at once.
const LIMITS: Limits =
    Limits { connections: 64, lasts: Duration::from_secs(60), keeps_alive: true };
/// Bytes that are read from a viewer at once; an order takes about 100. The buffer is cleared
/// before each read, which happens with every frame that is sent: the usual 128 KiB would push the
/// core's own memory out of the caches.
const READ_LEN: usize = 512;
/// How long viewers may take to receive the last word.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// What the server is, for clients that call it by another name.
const KIND: &str = "dashboard";

/// Only what this server serves, no scripts or styles within the page, and no embedding in other
/// pages. Images are shown from memory.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // The browser asks again, and an unchanged file is not sent again.
    (CACHE_CONTROL, "no-cache"),
];

/// The content types of captures, by the extension of the file.
const CAPTURES: [(&str, &str); 2] =
    [("csv", "text/csv; charset=utf-8"), ("mcap", "application/octet-stream")];

/// Captures are sent in parts, so that it is known when one has been received.
const PART_LEN: usize = 64 << 10;

/// State that every request uses.
struct Server {
    hub: Arc<Hub>,
    hosts: Hosts,
}

/// Serves on a thread of its own until the hub closes. Returns a handle for further work on that
/// thread, and the thread.
///
/// # Errors
/// The kernel refuses a thread or a poller.
pub(super) fn start(
    listener: TcpListener,
    hub: Arc<Hub>,
    hosts: Hosts,
) -> io::Result<(Handle, JoinHandle<()>)> {
    let server = Arc::new(Server { hub, hosts });
    server::start("viewers", listener, async move |listener| {
        let mut closing = server.hub.closing.subscribe();
        select! {
            // An error means that the hub is gone, and then the server ends too.
            _ = closing.wait_for(Option::is_some) => {}
            () = server::serve(listener, &LIMITS, app(&server)) => {}
        }
        let all_gone = async {
            while server.hub.viewers() > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        // A viewer that does not receive it notices the closed connection.
        let _ = timeout(CLOSING_MAX, all_gone).await;
    })
}

fn app(server: &Arc<Server>) -> Router {
    Router::new()
        .route("/ws", any(websocket))
        .route("/scope/{file}", any(scope_file))
        .fallback(file)
        .layer(from_fn_with_state(Arc::clone(server), guard))
        .with_state(Arc::clone(server))
}

/// Runs before and after everything else.
async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let mut response = match check_host(&server.hosts, request.headers(), KIND) {
        Err(text) => (StatusCode::FORBIDDEN, text).into_response(),
        Ok(_) if !matches!(*request.method(), Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, "expected GET").into_response()
        }
        Ok(_) => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn websocket(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if let Err(text) = check_origin(&server.hosts, &headers, KIND) {
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    match upgrade {
        Ok(upgrade) => upgrade
            .read_buffer_size(READ_LEN)
            .max_message_size(ORDER_LEN_MAX)
            .max_frame_size(ORDER_LEN_MAX)
            .on_upgrade(async move |socket| viewer::serve(socket, &server.hub).await),
        Err(rejection) => rejection.into_response(),
    }
}

/// What a scope shows, as a file to keep. Every viewer may have it.
async fn scope_file(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Response {
    let found = name.rsplit_once('.').and_then(|(key, end)| {
        let (end, content_type) = CAPTURES.into_iter().find(|known| known.0 == end)?;
        Some((key.parse::<u64>().ok()?, end, content_type))
    });
    let Some((key, end, content_type)) = found else {
        let text = "no such file; expected KEY.csv or KEY.mcap, with the key of a scope";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let made = Handle::current().spawn_blocking(move || server.hub.captures.file(key, end)).await;
    match made.unwrap_or_else(|error| Err(format!("a bug: {error}"))) {
        Err(text) => (StatusCode::CONFLICT, text).into_response(),
        Ok((bytes, permit)) => {
            let body = Body::from_stream(unfold((Bytes::from(bytes), permit), async |mut left| {
                let part = left.0.split_to(left.0.len().min(PART_LEN));
                (!part.is_empty()).then_some((Ok::<_, Infallible>(part), left))
            }));
            let kept = format!("attachment; filename=\"scope.{end}\"");
            ([(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, kept)], body)
                .into_response()
        }
    }
}

/// A file of the page.
async fn file(request: Request) -> Response {
    let path = request.uri().path();
    if let (Some(missing), "/") = (MISSING, path) {
        let text = format!("The dashboard's page is not in this program: {missing}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    let Some(&(_, content_type, bytes)) = FILES.iter().find(|file| file.0 == path) else {
        return (StatusCode::NOT_FOUND, "no such file; the page is at /").into_response();
    };
    let mark = mark(bytes);
    if request.headers().get(IF_NONE_MATCH).is_some_and(|known| *known == mark) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, mark)]).into_response();
    }
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(content_type)), (ETAG, mark)];
    (headers, Bytes::from_static(bytes)).into_response()
}

/// Distinguishes the files of different builds.
fn mark(bytes: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let mark = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::from_str(&mark).expect("digits in quotes are a value")
}

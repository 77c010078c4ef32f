//! The server: the page's files, and the WebSocket of each viewer. One thread beside the node's.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State, WebSocketUpgrade};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::select;
use tokio::time::{sleep, timeout};

use super::hosts::{Hosts, check_host, check_origin};
use super::hub::Hub;
use super::page::{FILES, MISSING};
use super::protocol::ORDER_LEN_MAX;
use super::viewer;
use crate::connections::{Asked, Connections};

/// Connections that are no viewers yet: a browser opens six at once. A further one takes the place
/// of the oldest without a whole request, else of the oldest: who is new always gets in.
const CONNECTIONS_MAX: usize = 64;
/// How long a request's head may take.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// How long a connection may last that never becomes a viewer's.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// Bytes of a request's head.
const HEAD_LEN_MAX: usize = 16 << 10;
/// Bytes that are read from a viewer at once; an order takes about 100. They are cleared before
/// each look, one with every frame that is sent: the 128 KiB which are usual would push the core's
/// own memory out of the caches.
const READ_LEN: usize = 512;
/// How long viewers may take to hear that it is over.
const CLOSING_MAX: Duration = Duration::from_secs(1);
/// After the kernel has refused a connection: it has no descriptors left, say.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Nothing but what this server serves, no scripts or styles within the page, in nobody's frame.
/// Images are shown from memory.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // Asked for again, and not sent again if it is the same.
    (CACHE_CONTROL, "no-cache"),
];

/// What every request meets.
struct Server {
    hub: Arc<Hub>,
    hosts: Hosts,
}

/// Serves on a thread of its own until the hub closes; what it may be given to do, and its end.
///
/// # Errors
/// If the kernel gives no thread or no means to wait.
pub(super) fn start(
    listener: TcpListener,
    hub: Arc<Hub>,
    hosts: Hosts,
) -> io::Result<(Handle, JoinHandle<()>)> {
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let (server, handle) = (Arc::new(Server { hub, hosts }), runtime.handle().clone());
    let work = move || {
        runtime.block_on(serve(listener, &server));
        // What still asks the supervisor need not be waited for.
        runtime.shutdown_background();
    };
    Ok((handle, thread::Builder::new().name("viewers".into()).spawn(work)?))
}

async fn serve(listener: TcpListener, server: &Arc<Server>) {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("a listener that does not block belongs to a runtime");
    let mut closing = server.hub.closing();
    let mut open = Connections::at_most(CONNECTIONS_MAX);
    let app = app(server);
    loop {
        let accepted = select! {
            // An error: the hub is gone, and so are we.
            _ = closing.wait_for(Option::is_some) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => open.begin(|asked| connection(stream, app.clone(), asked)),
            Err(_) => sleep(REFUSED_PAUSE).await,
        }
    }
    let all_gone = async {
        while server.hub.viewers() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    // Who does not hear it learns it from the closed connection.
    let _ = timeout(CLOSING_MAX, all_gone).await;
}

/// Speaks HTTP with a peer, until it becomes a viewer or leaves.
async fn connection(stream: TcpStream, app: Router, asked: Asked) {
    // Without it a frame may wait for the answer to the one before. One that refuses is broken.
    let _ = stream.set_nodelay(true);
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |request| {
        asked.set();
        app.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // How a peer breaks off is its own affair.
    let _ = timeout(CONNECTION_MAX, connection).await;
}

fn app(server: &Arc<Server>) -> Router {
    Router::new()
        .route("/ws", any(websocket))
        .fallback(file)
        .layer(from_fn_with_state(Arc::clone(server), guard))
        .with_state(Arc::clone(server))
}

/// Before and after everything else.
async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let mut response = match check_host(&server.hosts, request.headers()) {
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
    if let Err(text) = check_origin(&server.hosts, &headers) {
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

/// Tells one build's file from another's.
fn mark(bytes: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let mark = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::from_str(&mark).expect("digits in quotes are a value")
}

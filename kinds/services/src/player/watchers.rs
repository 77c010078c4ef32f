//! The viewers: a page, a stream of JPEGs over HTTP, and the viewers' orders. It has a thread
//! beside the node's thread, which never waits for it.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde::Deserialize;
use sinew_core::clock::now_ns;
use sinew_media::Order;
use tokio::sync::{Notify, watch};

use super::orders::Wanted;
use crate::hosts::{Hosts, check_host, check_origin};
use crate::server::{self, Limits};

/// A stream may last as long as a film.
const LIMITS: Limits =
    Limits { connections: 32, lasts: Duration::from_secs(24 * 3600), keeps_alive: true };
/// Most bytes of an order.
const ORDER_LEN_MAX: usize = 256;
/// Most orders that may wait.
const ORDERS_MAX: usize = 64;
/// How long after a request for a single picture the next such request is expected, ns.
const ASKED_NS: u64 = 2_000_000_000;
/// Separates the pictures of a stream. No JPEG contains it: in a JPEG a byte 0xff is followed by
/// other bytes.
const BOUNDARY: &str = "sinew-picture";
/// Scripts, styles and pictures of this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors \
                      'none'";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
/// What the server is, for clients that call it by another name.
const KIND: &str = "player";

/// State that both threads use.
pub(crate) struct Audience {
    hosts: Hosts,
    jpeg: watch::Sender<Bytes>,
    state: Mutex<String>,
    orders: Mutex<VecDeque<Wanted>>,
    /// When a single picture was last requested.
    asked_ns: AtomicU64,
    end: Notify,
}

/// Serves the viewers. Ends when it is dropped.
pub(crate) struct Watchers {
    audience: Arc<Audience>,
    thread: Option<JoinHandle<()>>,
}

impl Watchers {
    /// Serves at a listener.
    ///
    /// # Errors
    /// The kernel refuses a thread or a poller.
    pub(crate) fn start(listener: TcpListener, hosts: Hosts) -> io::Result<Watchers> {
        let audience = Arc::new(Audience {
            hosts,
            jpeg: watch::Sender::default(),
            state: Mutex::new("{}".into()),
            orders: Mutex::default(),
            asked_ns: AtomicU64::new(0),
            end: Notify::new(),
        });
        let app = app(&audience);
        let ends = Arc::clone(&audience);
        let (_, thread) = server::start("watchers", listener, async move |listener| {
            tokio::spawn(async move { server::serve(listener, &LIMITS, app).await });
            ends.end.notified().await;
        })?;
        Ok(Watchers { audience, thread: Some(thread) })
    }

    /// Number of viewers of the stream.
    pub(crate) fn streams(&self) -> usize {
        self.audience.jpeg.receiver_count()
    }

    /// Whether any viewer would see a picture.
    pub(crate) fn wants_pictures(&self) -> bool {
        // Relaxed: it is a hint, and no other memory goes with it.
        let asked_ns = self.audience.asked_ns.load(Ordering::Relaxed);
        self.streams() > 0 || now_ns().saturating_sub(asked_ns) < ASKED_NS && asked_ns > 0
    }

    /// Shows a picture.
    pub(crate) fn show(&self, jpeg: Bytes) {
        self.audience.jpeg.send_replace(jpeg);
    }

    /// Publishes the player's state.
    pub(crate) fn tell(&self, state: String) {
        *self.audience.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The next order of a viewer; it has no serial yet.
    pub(crate) fn next_order(&self) -> Option<Wanted> {
        self.audience.orders.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.audience.end.notify_one();
        // A panic of that thread was printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

type Shared = State<Arc<Audience>>;

fn app(audience: &Arc<Audience>) -> Router {
    let file = |content: &'static str, text: &'static str| {
        get(move || async move { ([(CONTENT_TYPE, content)], text) })
    };
    Router::new()
        .route("/", file(HTML, include_str!("page/index.html")))
        .route("/player.js", file(SCRIPT, include_str!("page/player.js")))
        .route("/player.css", file(STYLE, include_str!("page/player.css")))
        .route("/stream.mjpeg", get(stream))
        .route("/picture.jpg", get(picture))
        .route("/state", get(state))
        .route("/order", post(order))
        .fallback(|| async { (StatusCode::NOT_FOUND, "no such thing; the page is at /") })
        .layer(DefaultBodyLimit::max(ORDER_LEN_MAX))
        .layer(from_fn_with_state(Arc::clone(audience), guard))
        .with_state(Arc::clone(audience))
}

/// Runs before and after everything else.
async fn guard(State(audience): Shared, request: Request, next: Next) -> Response {
    let is_order = request.uri().path() == "/order";
    let checked = match is_order {
        // A page of another site must not give orders.
        true => check_origin(&audience.hosts, request.headers(), KIND),
        false => check_host(&audience.hosts, request.headers(), KIND).map(drop),
    };
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(text) => (StatusCode::FORBIDDEN, text).into_response(),
    };
    let headers: [(HeaderName, &str); 2] =
        [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-store")];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Every picture from now on for which the connection is fast enough.
async fn stream(State(audience): Shared) -> Response {
    let mut pictures = audience.jpeg.subscribe();
    pictures.mark_changed();
    let parts = stream::unfold(pictures, |mut pictures| async {
        loop {
            pictures.changed().await.ok()?;
            let jpeg = pictures.borrow_and_update().clone();
            if !jpeg.is_empty() {
                return Some((Ok::<_, io::Error>(part(&jpeg)), pictures));
            }
        }
    });
    let content = format!("multipart/x-mixed-replace; boundary={BOUNDARY}");
    ([(CONTENT_TYPE, content)], Body::from_stream(parts)).into_response()
}

fn part(jpeg: &[u8]) -> Bytes {
    let len = jpeg.len();
    let head = format!("--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len}\r\n\r\n");
    [head.as_bytes(), jpeg, b"\r\n"].concat().into()
}

/// The picture that is shown now.
async fn picture(State(audience): Shared) -> Response {
    // Relaxed: as where it is read.
    audience.asked_ns.store(now_ns(), Ordering::Relaxed);
    let jpeg = audience.jpeg.borrow().clone();
    if jpeg.is_empty() {
        return (StatusCode::SERVICE_UNAVAILABLE, "no picture yet; try again").into_response();
    }
    ([(CONTENT_TYPE, "image/jpeg")], jpeg).into_response()
}

async fn state(State(audience): Shared) -> Response {
    let text = audience.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// An order in the form in which it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    order: String,
    /// Seconds for `seek`, a factor for `speed`.
    #[serde(default)]
    value: Option<f64>,
}

async fn order(State(audience): Shared, body: Bytes) -> (StatusCode, String) {
    let wanted = match wanted(&body) {
        Ok(wanted) => wanted,
        Err(text) => return (StatusCode::BAD_REQUEST, text),
    };
    let mut orders = audience.orders.lock().unwrap_or_else(PoisonError::into_inner);
    if orders.len() >= ORDERS_MAX {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many orders wait; try again".into());
    }
    orders.push_back(wanted);
    (StatusCode::ACCEPTED, String::new())
}

/// The order in a body.
fn wanted(body: &[u8]) -> Result<Wanted, String> {
    let Sent { order, value } = serde_json::from_slice(body).map_err(|error| {
        format!("{error}; expected such as {{\"order\": \"seek\", \"value\": 12.5}}")
    })?;
    let known = || Order::ALL.map(|row| row.1).join(", ");
    let row = Order::ALL.into_iter().find(|row| row.1 == order);
    let (order, word) =
        row.ok_or_else(|| format!("there is no order '{order}'; expected one of {}", known()))?;
    let (scale, most) = match order {
        Order::Pause | Order::Play => return Ok(Wanted { order, serial: 0, value: 0 }),
        Order::Seek => (1e9, 1e9),
        Order::Speed => (1e3, 4.0),
    };
    match value {
        Some(value) if (0.0..=most).contains(&value) => {
            Ok(Wanted { order, serial: 0, value: (value * scale) as u64 })
        }
        _ => Err(format!("'{word}' needs a 'value' from 0 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_what_it_says_or_refused_with_what_was_expected() {
        let good = |body: &str| wanted(body.as_bytes()).expect(body);
        assert_eq!(good(r#"{"order": "pause"}"#).order, Order::Pause);
        let seek = good(r#"{"order": "seek", "value": 12.5}"#);
        assert_eq!((seek.order, seek.value), (Order::Seek, 12_500_000_000));
        assert_eq!(good(r#"{"order": "speed", "value": 0.5}"#).value, 500);
        for (body, said) in [
            ("", "expected such as"),
            ("{}", "missing field `order`"),
            (r#"{"order": "stop"}"#, "expected one of pause, play, seek, speed"),
            (r#"{"order": "seek"}"#, "'seek' needs a 'value'"),
            (r#"{"order": "seek", "value": -1}"#, "from 0 to 1000000000"),
            (r#"{"order": "speed", "value": 5}"#, "from 0 to 4"),
            (r#"{"order": "seek", "value": "x"}"#, "expected f64"),
            (r#"{"order": "play", "much": 1}"#, "unknown field"),
        ] {
            let error = wanted(body.as_bytes()).expect_err(body);
            assert!(error.contains(said), "{body}: {error}");
        }
    }

    #[test]
    fn a_part_of_a_stream_says_how_long_it_is() {
        let part = part(b"jpeg");
        let text = std::str::from_utf8(&part).expect("text here");
        assert!(text.starts_with("--sinew-picture\r\n") && text.ends_with("\r\n\r\njpeg\r\n"));
        assert!(text.contains("Content-Length: 4\r\n"));
    }
}

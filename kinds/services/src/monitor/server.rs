//! The page that Prometheus reads. Input from the network is hostile: its size, number and duration
//! are limited, and nothing of it reaches the run.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use prometheus_client::registry::Registry;
use sinew_control::hosts::{Hosts, PortRule};
use sinew_core::clock::now_ns;
use tokio::sync::Notify;

use super::exposition::Format;
use super::webhook::Delivery;
use crate::server::{self, Limits};

/// Prometheus needs one connection.
const LIMITS: Limits =
    Limits { connections: 32, lasts: Duration::from_secs(10), keeps_alive: false };
/// A monitor that has not polled the run for this long is not healthy.
const LOOK_NS_MAX: u64 = 5_000_000_000;

/// The thread that handles the network; the node's own thread never waits for it. It ends when this
/// is dropped.
pub(super) struct Net {
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// Serves the page at the listener, and delivers the webhook's messages.
    ///
    /// # Errors
    /// The kernel refuses a thread or a poller.
    pub(super) fn start(
        listener: TcpListener,
        page: Arc<Page>,
        post: Option<Delivery>,
    ) -> io::Result<Net> {
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        let app = Router::new().fallback(answer).with_state(page);
        let (_, thread) = server::start("monitor-net", listener, async move |listener| {
            tokio::spawn(server::serve(listener, &LIMITS, app));
            if let Some(post) = post {
                tokio::spawn(post.run());
            }
            ended.notified().await;
        })?;
        Ok(Net { end, thread: Some(thread) })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it has panicked, there is nothing left to end.
            let _ = thread.join();
        }
    }
}

/// What is served.
pub(super) struct Page {
    /// The figures. It is locked while a status is published, so that a page shows one status only.
    pub(super) registry: Mutex<Registry>,
    /// The address at which it is served.
    pub(super) address: SocketAddr,
    /// When the run was last polled.
    pub(super) looked_ns: AtomicU64,
}

/// Locks a registry, also after a panic: its figures are complete at any time.
pub(super) fn held(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(page): State<Arc<Page>>, request: Request) -> Response {
    if let Err(text) = page.check_host(request.headers()) {
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let path = request.uri().path();
    if !["/metrics", "/healthz"].contains(&path) {
        let text = format!("there is no '{path}' here; expected /metrics or /healthz\n");
        return (StatusCode::NOT_FOUND, text).into_response();
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let text = format!("expected GET, not {}\n", request.method());
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], text).into_response();
    }
    if path == "/healthz" { page.health() } else { page.figures(request.headers()) }
}

impl Page {
    fn figures(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let format = Format::of(&accept.collect::<Vec<_>>().join(","));
        let registry = held(&self.registry);
        match format.encode(&registry) {
            Ok(body) => ([(CONTENT_TYPE, format.content_type())], body).into_response(),
            Err(text) => (StatusCode::INTERNAL_SERVER_ERROR, text).into_response(),
        }
    }

    fn health(&self) -> Response {
        // It orders no other memory: a slightly older or newer value is as good.
        let age_ns = now_ns().saturating_sub(self.looked_ns.load(Ordering::Relaxed));
        if age_ns < LOOK_NS_MAX {
            return "ok\n".into_response();
        }
        let text = format!("the run was looked at {} s ago\n", age_ns / 1_000_000_000);
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }

    /// Another site's page may have its name resolved to this machine, and then read in the browser
    /// what only this machine should see. Such a request carries the other name.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), String> {
        if !self.address.ip().is_loopback() {
            return Ok(());
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
        let own = self.address;
        match Hosts::new(own, &[]).is_ours(&host.to_ascii_lowercase(), PortRule::Any) {
            true => Ok(()),
            false => Err(format!("this is {own}, not '{host}'; ask http://{own}/metrics\n")),
        }
    }
}

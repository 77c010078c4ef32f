//! HTTP: what listens, what finds the way, what asks others.

mod body;
pub(crate) mod client;
pub(crate) mod cookie;
pub mod decode;
pub(crate) mod guard;
pub(crate) mod listener;
pub(crate) mod multipart;
pub(crate) mod openapi;
pub(crate) mod request;
mod response;
pub(crate) mod router;
pub(crate) mod static_files;
mod upgrade;
pub(crate) mod websocket;

use hyper::rt::Executor;
use tokio::task::spawn_local;

/// Runs what a connection of HTTP/2 does beside itself, on its worker.
#[derive(Clone)]
struct Here;

impl<F> Executor<F> for Here
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

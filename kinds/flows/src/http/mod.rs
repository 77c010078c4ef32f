//! HTTP: listeners, routes, clients.

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

/// Runs the other futures of an HTTP/2 connection on the worker of the connection.
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

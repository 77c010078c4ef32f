//! WebSockets (RFC 6455): messages both ways over a connection that began as HTTP/1.1.

pub(crate) mod client;
pub(crate) mod server;
mod session;

//! The kind `listener` against real sockets: what is right, and what clients should not do.

mod bodies;
mod callers;
mod events;
mod foreign;
mod http1;
mod http2;
mod limits;
mod load;
mod server;
mod sockets;
mod tls;
mod websockets;

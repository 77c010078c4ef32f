//! The kind `listener` with real sockets: correct clients, and clients that do what they should
//! not.

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

//! HTTP: what listens, what finds the way, what asks others.

mod body;
pub(crate) mod client;
pub mod decode;
pub(crate) mod listener;
pub(crate) mod request;
mod response;
pub(crate) mod router;

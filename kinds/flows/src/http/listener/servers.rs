//! What is spoken over a connection: HTTP/1.1 and HTTP/2, with the limits of the listener.

use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use tokio::task::spawn_local;

use super::options::Options;

/// Most headers that hyper takes if nobody says how many.
const HEADERS_MAX: usize = 100;

/// Bytes that a client of HTTP/2 may send into a stream, and into all streams of a connection,
/// before a worker has taken them: they are held beside what the listener counts.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

/// Both versions, set up once for all connections of a worker.
pub(super) struct Servers {
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<Here>,
}

impl Servers {
    /// What a listener with these options speaks.
    pub(super) fn new(options: &Options) -> Servers {
        let (mut http1, mut http2) = (http1::Builder::new(), http2::Builder::new(Here));
        http1.max_buf_size(options.head_size_max);
        // Else hyper reads on as soon as it has a request, to learn whether the client leaves, into
        // a new buffer, for the request still holds the old one. Our socket looks instead, and only
        // if the flow takes its time.
        http1.half_close(options.tls.is_none());
        // Told what it takes anyway, hyper clears room for so many headers with each request.
        if options.headers_max != HEADERS_MAX {
            http1.max_headers(options.headers_max);
        }
        http2
            .max_header_list_size(options.head_size_max as u32)
            .max_concurrent_streams(options.streams_max)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        Servers { http1, http2 }
    }
}

/// Runs what a connection of HTTP/2 does beside itself, on its worker.
#[derive(Clone)]
pub(super) struct Here;

impl<F> Executor<F> for Here
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

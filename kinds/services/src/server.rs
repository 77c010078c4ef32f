//! A server that is open to strangers, on a thread of its own: the number and duration of its
//! connections are limited, and a new one is always accepted.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener as Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// How long the head of a request may take to arrive.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// Most bytes of a request's head; a longer one is answered with 431.
const HEAD_LEN_MAX: usize = 16 << 10;
/// Pause after the kernel refused a connection, for example because no descriptors are left.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Limits for clients.
pub(crate) struct Limits {
    /// Most connections at a time. A further one replaces the oldest without a whole request, or
    /// otherwise the oldest of all.
    pub(crate) connections: usize,
    /// Longest duration of a connection.
    pub(crate) lasts: Duration,
    /// Whether a connection may have more than one answer.
    pub(crate) keeps_alive: bool,
}

/// Runs `work` with a listener on a thread of its own until it ends. Returns a handle for further
/// work on that thread, and the thread.
///
/// # Errors
/// The kernel refuses a thread or a poller.
pub(crate) fn start<F: Future<Output = ()>>(
    name: &str,
    listener: Bound,
    work: impl FnOnce(TcpListener) -> F + Send + 'static,
) -> io::Result<(Handle, JoinHandle<()>)> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    listener.set_nonblocking(true)?;
    let handle = runtime.handle().clone();
    let listener = {
        let _inside = handle.enter();
        TcpListener::from_std(listener)?
    };
    let work = move || {
        runtime.block_on(work(listener));
        // Work that still waits, for a name look-up for example, need not end.
        runtime.shutdown_background();
    };
    Ok((handle, thread::Builder::new().name(name.into()).spawn(work)?))
}

/// Serves without end.
pub(crate) async fn serve(listener: TcpListener, limits: &Limits, app: Router) {
    let mut open = Connections::at_most(limits.connections);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(REFUSED_PAUSE).await;
            continue;
        };
        let (lasts, keeps_alive, app) = (limits.lasts, limits.keeps_alive, app.clone());
        open.begin(|asked| async move {
            // How a peer closes the connection does not matter.
            let _ = timeout(lasts, connection(stream, keeps_alive, app, asked)).await;
        });
    }
}

async fn connection(stream: TcpStream, keeps_alive: bool, app: Router, asked: Asked) {
    // Without it a frame may wait for the answer to the one before. If this fails, the connection
    // is broken anyway.
    let _ = stream.set_nodelay(true);
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |request| {
        asked.set();
        app.call(request)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    server.max_buf_size(HEAD_LEN_MAX).keep_alive(keeps_alive);
    // How a peer closes the connection does not matter.
    let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// The open connections, the oldest first.
struct Connections {
    max: usize,
    open: VecDeque<Connection>,
}

struct Connection {
    work: AbortHandle,
    asked: Asked,
}

/// Whether a whole request has come over a connection.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<AtomicBool>);

impl Asked {
    /// A request has come.
    fn set(&self) {
        // Relaxed, here and below: it is a hint, and no other memory goes with it.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connections {
    /// With at most `max` at a time.
    fn at_most(max: usize) -> Connections {
        Connections { max, open: VecDeque::with_capacity(max) }
    }

    /// Begins to serve a further connection. If there is no room, it replaces the oldest over which
    /// no whole request has come, or otherwise the oldest of all.
    fn begin<F: Future<Output = ()> + Send + 'static>(&mut self, serve: impl FnOnce(Asked) -> F) {
        self.open.retain(|connection| !connection.work.is_finished());
        if self.open.len() == self.max {
            let place = self.open.iter().position(|it| !it.asked.is_set()).unwrap_or(0);
            self.open.remove(place).inspect(|connection| connection.work.abort());
        }
        let asked = Asked::default();
        let work = tokio::spawn(serve(asked.clone())).abort_handle();
        self.open.push_back(Connection { work, asked });
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Reports that its connection is closed.
    struct Closes(usize, tokio::sync::mpsc::UnboundedSender<usize>);

    impl Drop for Closes {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }

    #[test]
    fn the_oldest_that_has_asked_nothing_makes_room_for_the_newest() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (closed, mut closes) = unbounded_channel();
            let mut connections = Connections::at_most(3);
            let mut begin = |number, has_asked: bool| {
                let closed = Closes(number, closed.clone());
                connections.begin(|asked| async move {
                    let _closed = closed;
                    if has_asked {
                        asked.set();
                    }
                    pending().await
                });
            };
            for (number, has_asked, closes_next) in [
                (0, true, None),
                (1, false, None),
                (2, false, None),
                (3, true, Some(1)),
                (4, true, Some(2)),
                (5, true, Some(0)),
                (6, false, Some(3)),
            ] {
                begin(number, has_asked);
                // Every connection gets a turn.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                assert_eq!(closes.try_recv().ok(), closes_next, "after {number}");
            }
        });
    }
}

//! A worker's share of a listener: it accepts connections, looks after them, and ends them.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use sinew_runtime::flow::{Error, Outlet, Stop};
use sinew_runtime::{Cause, Fault};
use slab::Slab;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::connection::{Here, Wire, serve, unless_ended};
use super::exchange::Peer;
use super::life::{Life, Patience, ROUND, Round, rounds};
use super::log::AccessLog;
use super::options::Options;
use super::tls::Tls;

/// Pause when no connection can be taken, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Most headers that hyper takes if nobody says how many.
const HEADERS_MAX: usize = 100;

/// For a connection too many.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What is spoken, with its limits.
pub(super) struct Servers {
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<Here>,
}

impl Servers {
    fn new(options: &Options) -> Servers {
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
            .max_concurrent_streams(options.streams_max);
        Servers { http1, http2 }
    }
}

/// A worker's share of a listener.
pub(super) struct Worker {
    pub(super) options: Arc<Options>,
    pub(super) outlet: Outlet,
    pub(super) log: Option<AccessLog>,
    pub(super) servers: Servers,
    now: Rc<Cell<Round>>,
    lives: RefCell<Slab<Rc<Life>>>,
    /// Said when the last connection has ended.
    empty: Notify,
}

impl Worker {
    /// One that begins flows through `outlet`.
    pub(super) fn new(options: Arc<Options>, log: Option<AccessLog>, outlet: Outlet) -> Worker {
        Worker {
            servers: Servers::new(&options),
            options,
            outlet,
            log,
            now: Rc::default(),
            lives: RefCell::default(),
            empty: Notify::new(),
        }
    }

    /// The round that it is.
    pub(super) fn now(&self) -> Round {
        self.now.get()
    }

    /// Serves until it is told to stop, and what has begun is answered.
    pub(super) async fn serve(self, held: Arc<StdListener>, mut stop: Stop) -> Result<(), Fault> {
        let socket = held.try_clone().and_then(TcpListener::from_std).map_err(|error| {
            Fault::new(Cause::System, format_args!("cannot watch the socket: {error}"))
        })?;
        // From now on only a listener that may take its place holds it.
        drop(held);
        let worker = Rc::new(self);
        let patrol = spawn_local(Rc::clone(&worker).patrol());
        tokio::select! {
            () = Rc::clone(&worker).accept(&socket) => {}
            () = stop.wait() => {}
        }
        drop(socket);
        worker.lives.borrow().iter().for_each(|(_, life)| life.stop(worker.now()));
        while !worker.lives.borrow().is_empty() {
            worker.empty.notified().await;
        }
        patrol.abort();
        Ok(())
    }

    /// Takes connections, for ever.
    async fn accept(self: Rc<Self>, socket: &TcpListener) {
        let mut is_short = false;
        loop {
            match socket.accept().await {
                Ok((stream, address)) => {
                    is_short = false;
                    self.begin(stream, address);
                }
                // The client has gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Those that are served go on, and when one of them ends there is room again.
                Err(error) => {
                    if !is_short {
                        self.outlet.tell(&no_room(&error));
                    }
                    is_short = true;
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn begin(self: &Rc<Self>, stream: TcpStream, address: SocketAddr) {
        let mut lives = self.lives.borrow_mut();
        if lives.len() >= self.options.connections_max {
            // Over TLS nothing can be said before the handshake.
            if self.options.tls.is_none() {
                refuse(stream);
            }
            return;
        }
        let life = Rc::new(Life::new(self.now()));
        let place = Place { worker: Rc::clone(self), key: lives.insert(Rc::clone(&life)) };
        let watches = self.options.tls.is_none();
        let wire = Wire::new(stream, Rc::clone(&life), Rc::clone(&self.now), watches);
        spawn_local(async move {
            let worker = &place.worker;
            match &worker.options.tls {
                None => serve(worker, &life, Peer { address, scheme: "http" }, wire).await,
                // In a place of its own: without TLS a connection need not have room for it.
                Some(tls) => Box::pin(secure(worker, &life, address, tls, wire)).await,
            }
        });
    }

    /// Looks after the connections, for ever.
    async fn patrol(self: Rc<Self>) {
        let patience = Patience {
            head: rounds(self.options.head_deadline),
            idle: rounds(self.options.idle_max),
            stall: rounds(self.options.stall_max),
        };
        loop {
            sleep(ROUND).await;
            let now = self.now.get().saturating_add(1);
            self.now.set(now);
            self.lives.borrow().iter().for_each(|(_, life)| life.judge(now, &patience));
        }
    }
}

/// Shakes hands, and serves the connection.
async fn secure(worker: &Rc<Worker>, life: &Rc<Life>, address: SocketAddr, tls: &Tls, wire: Wire) {
    // Who speaks no TLS was told so by an alert.
    if let Some(Ok(wire)) = unless_ended(life, tls.acceptor.accept(wire)).await {
        life.rest(worker.now());
        serve(worker, life, Peer { address, scheme: "https" }, wire).await;
    }
}

/// A connection's place among those of its worker.
struct Place {
    worker: Rc<Worker>,
    key: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lives = self.worker.lives.borrow_mut();
        lives.remove(self.key);
        if lives.is_empty() {
            self.worker.empty.notify_one();
        }
    }
}

fn no_room(error: &io::Error) -> Error {
    Error::new(format_args!(
        "no connection can be taken: {error}; allow more open files (ulimit -n), or lower \
         'connections_max'"
    ))
}

/// Says that there is no room, if that goes at once.
fn refuse(stream: TcpStream) {
    // Who gets no answer sees that the connection is closed.
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(REFUSAL));
}

//! A worker's share of a listener: it accepts connections, looks after them, and ends them.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::server::conn::{http1, http2};
use sinew_runtime::flow::{Error, Local, Outlet, Stop};
use sinew_runtime::{Cause, Fault};
use slab::Slab;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use super::connection::{Here, Wire, serve, unless_ended};
use super::exchange::Peer;
use super::life::{Life, Patience, ROUND, Round, Seat, rounds};
use super::log::AccessLog;
use super::options::Options;
use super::room::{RESERVED_MAX, RETRY_AFTER_S, Room, SPARE_MAX, Why};
use super::tls::Tls;

/// Pause when no connection can be taken, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Most headers that hyper takes if nobody says how many.
const HEADERS_MAX: usize = 100;

/// Bytes that a client of HTTP/2 may send into a stream, and into all streams of a connection,
/// before a worker has taken them: they are held beside what the listener counts.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

/// Time without a shortage of descriptors after which the next one is told again.
const SHORTAGE_SPACING: Duration = Duration::from_secs(60);

/// When this process was short of descriptors last: they are not a worker's, nor a listener's.
static SHORTAGE: Mutex<Option<Instant>> = Mutex::new(None);

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
            .max_concurrent_streams(options.streams_max)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        Servers { http1, http2 }
    }
}

/// A worker's share of a listener.
pub(super) struct Worker {
    pub(super) options: Arc<Options>,
    pub(super) outlet: Outlet,
    pub(super) log: Option<AccessLog>,
    pub(super) servers: Servers,
    pub(super) room: Arc<Room>,
    /// Requests that it may have under way, and has.
    share: usize,
    pub(super) ordinary: Cell<usize>,
    /// Those that have a way of their own.
    pub(super) reserved: Cell<usize>,
    /// How many requests have begun for which there was room only in those places.
    coming: watch::Sender<usize>,
    /// Connections beyond those that the listener has for all.
    spares: Cell<usize>,
    now: Rc<Cell<Round>>,
    lives: RefCell<Slab<Rc<Life>>>,
    /// Said when the last connection has ended.
    empty: Notify,
}

impl Worker {
    /// One that begins flows through `outlet`.
    pub(super) fn new(
        options: Arc<Options>,
        room: Arc<Room>,
        share: usize,
        log: Option<AccessLog>,
        outlet: Outlet,
    ) -> Worker {
        Worker {
            servers: Servers::new(&options),
            room,
            share,
            ordinary: Cell::new(0),
            reserved: Cell::new(0),
            coming: watch::Sender::new(0),
            spares: Cell::new(0),
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

    /// Why it takes no more requests now; `None`: it does.
    #[inline]
    pub(super) fn is_short_of(&self) -> Option<Why> {
        if self.ordinary.get() >= self.share {
            Some(Why::Requests)
        } else if self.outlet.is_behind(self.options.wait_max) {
            Some(Why::Behind)
        } else if self.room.held.is_full() {
            Some(Why::Held)
        } else {
            None
        }
    }

    /// Whether it takes one more of those that have a way of their own.
    pub(super) fn takes_reserved(&self) -> bool {
        self.reserved.get() < RESERVED_MAX
    }

    /// What a reserved request waits for beside its body: it gives way when so many newer ones have
    /// begun as there are places.
    pub(super) fn gives_way(&self) -> Local<'static, ()> {
        self.coming.send_modify(|count| *count += 1);
        let (own, mut coming) = (*self.coming.borrow(), self.coming.subscribe());
        Box::pin(async move {
            // Whoever waits holds the worker, and so the sender.
            let _ = coming.wait_for(|count| count - own >= RESERVED_MAX).await;
        })
    }

    /// Counts what it did not take.
    #[cold]
    pub(super) fn refused(&self, why: Why) {
        self.outlet.refused();
        self.room.refused(why);
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
        let yields = stop.yields();
        worker.lives.borrow().iter().for_each(|(_, life)| life.stop(worker.now(), yields));
        let all_ended = async {
            while !worker.lives.borrow().is_empty() {
                worker.empty.notified().await;
            }
        };
        let hurried = async {
            stop.wait_for_end().await;
            worker.lives.borrow().iter().for_each(|(_, life)| life.hurry(worker.now()));
            std::future::pending().await
        };
        tokio::select! {
            () = all_ended => {}
            () = hurried => {}
        }
        patrol.abort();
        Ok(())
    }

    /// Takes connections, for ever.
    async fn accept(self: Rc<Self>, socket: &TcpListener) {
        loop {
            match socket.accept().await {
                Ok((stream, address)) => match self.seat().await {
                    Some(seat) => self.begin(stream, address, seat),
                    None => {
                        self.refused(Why::Connections);
                        // Over TLS nothing can be said before the handshake.
                        if self.options.tls.is_none() {
                            refuse(stream);
                        }
                    }
                },
                // The client has gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Those that are served go on, and when one of them ends there is room again.
                Err(error) => {
                    if is_news(&mut SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner)) {
                        self.outlet.tell(&no_room(&error));
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// A place for one more connection; `None`: there is none.
    async fn seat(&self) -> Option<Seat> {
        if self.room.enter() {
            return Some(Seat::Own);
        }
        if self.spares.get() >= SPARE_MAX {
            // Those that came just now have a moment to say what they want.
            for _ in 0..2 {
                yield_now().await;
            }
            let lives = self.lives.borrow();
            let idle = lives.iter().map(|(_, life)| life).filter(|life| life.gives_way());
            let oldest = idle.min_by_key(|life| life.since())?;
            oldest.seat.set(Seat::None);
            self.spares.set(self.spares.get() - 1);
            self.refused(Why::Connections);
            oldest.close();
        }
        self.spares.set(self.spares.get() + 1);
        Some(Seat::Spare)
    }

    /// Whether a connection has a place of those that are for all, or gets one now.
    pub(super) fn seats(&self, life: &Life) -> bool {
        if life.seat.get() == Seat::Spare && self.room.enter() {
            life.seat.set(Seat::Own);
            self.spares.set(self.spares.get() - 1);
        }
        life.seat.get() == Seat::Own
    }

    fn begin(self: &Rc<Self>, stream: TcpStream, address: SocketAddr, seat: Seat) {
        let mut lives = self.lives.borrow_mut();
        let life = Rc::new(Life::new(self.now()));
        life.seat.set(seat);
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
            self.make_room(now);
            if let Some(news) = self.room.tell(Instant::now()) {
                self.outlet.say(format_args!("{news}"));
            }
        }
    }

    /// If more is held than may be, closes connections whose clients are slow to take it: the
    /// slowest first, until there is room.
    fn make_room(&self, now: Round) {
        let mut excess = self.room.to_free();
        if excess == 0 {
            return;
        }
        let lives = self.lives.borrow();
        let slow = |(_, life): (usize, &Rc<Life>)| Some((life.slow_since(now)?, Rc::clone(life)));
        let mut slow: Vec<_> = lives.iter().filter_map(slow).collect();
        slow.sort_by_key(|(since, _)| *since);
        for (_, life) in slow {
            if excess == 0 {
                return;
            }
            excess = excess.saturating_sub(life.held_size());
            self.refused(Why::Slow);
            life.close();
        }
    }
}

/// Shakes hands, and serves the connection.
async fn secure(worker: &Rc<Worker>, life: &Rc<Life>, address: SocketAddr, tls: &Tls, wire: Wire) {
    // Who speaks no TLS was told so by an alert.
    if let Some(Ok(wire)) = unless_ended(worker, life, tls.acceptor.accept(wire)).await {
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
        match lives.remove(self.key).seat.get() {
            Seat::Own => self.worker.room.leave(),
            Seat::Spare => self.worker.spares.set(self.worker.spares.get() - 1),
            Seat::None => {}
        }
        if lives.is_empty() {
            self.worker.empty.notify_one();
        }
    }
}

/// Whether a shortage of descriptors is to be told: it comes again and again while it lasts, in all
/// workers.
fn is_news(shortage: &mut Option<Instant>) -> bool {
    let before = shortage.replace(Instant::now());
    before.is_none_or(|before| before.elapsed() > SHORTAGE_SPACING)
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
    let refusal = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: {RETRY_AFTER_S}\r\nconnection: close\r\n\
         content-length: 0\r\n\r\n"
    );
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(refusal.as_bytes()));
}

//! A worker's share of a listener: what its connections and requests use.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use sinew_flow::{Local, Outlet};
use slab::Slab;
use tokio::sync::{Notify, watch};

use super::life::{Life, Round, Seat};
use super::log::AccessLog;
use super::options::Options;
use super::room::{RESERVED_MAX, Room, Why};
use crate::http::Here;

/// A worker's share of a listener.
pub(super) struct Worker {
    pub(super) options: Arc<Options>,
    pub(super) outlet: Outlet,
    pub(super) log: Option<AccessLog>,
    pub(super) servers: Servers,
    pub(super) room: Arc<Room>,
    /// Most ordinary requests that it may have under way; `ordinary` counts those that it has.
    share: usize,
    pub(super) ordinary: Cell<usize>,
    /// Reserved requests under way.
    pub(super) reserved: Cell<usize>,
    /// How many requests have begun for which there was room only in reserved places.
    coming: watch::Sender<usize>,
    /// Connections beyond those that the listener has for all.
    pub(super) spares: Cell<usize>,
    /// The current round; each of its sockets reads it.
    pub(super) round: Rc<Cell<Round>>,
    pub(super) lives: RefCell<Slab<Rc<Life>>>,
    /// Notified when the last connection has ended.
    pub(super) empty: Notify,
}

impl Worker {
    /// A share that begins flows through `outlet`.
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
            round: Rc::default(),
            lives: RefCell::default(),
            empty: Notify::new(),
        }
    }

    /// The current round.
    pub(super) fn now(&self) -> Round {
        self.round.get()
    }

    /// Why it takes no more requests now; `None` if it takes more.
    #[inline]
    pub(super) fn is_short_of(&self) -> Option<Why> {
        if self.ordinary.get() >= self.share {
            Some(Why::Requests)
        } else if self.outlet.is_behind(self.options.wait_max) {
            Some(Why::Behind)
        } else if self.room.held.excess() > 0 {
            Some(Why::Held)
        } else {
            None
        }
    }

    /// Whether it takes one more reserved request.
    pub(super) fn takes_reserved(&self) -> bool {
        self.reserved.get() < RESERVED_MAX
    }

    /// Ends when a reserved request whose body is still to come must give way: when as many newer
    /// ones have begun as there are places.
    pub(super) fn gives_way(&self) -> Local<'static, ()> {
        self.coming.send_modify(|count| *count += 1);
        let (own, mut coming) = (*self.coming.borrow(), self.coming.subscribe());
        Box::pin(async move {
            // The request that waits holds the worker, and so the sender: this does not fail.
            let _ = coming.wait_for(|count| count - own >= RESERVED_MAX).await;
        })
    }

    /// Counts a connection or request that it did not take.
    #[cold]
    pub(super) fn refused(&self, why: Why) {
        self.outlet.refused();
        self.room.refused(why);
    }

    /// Whether a connection has one of the places for all requests, or gets one now.
    pub(super) fn seats(&self, life: &Life) -> bool {
        if life.seat.get() == Seat::Spare && self.room.enter() {
            life.seat.set(Seat::Own);
            self.spares.set(self.spares.get() - 1);
        }
        life.seat.get() == Seat::Own
    }
}

/// Most headers that hyper takes by default.
const HEADERS_MAX: usize = 100;

/// Bytes that a client of HTTP/2 may send into a stream, and into all streams of a connection,
/// before a worker has taken them. The listener does not count them.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

/// Both versions of HTTP, set up once for all connections of a worker.
pub(super) struct Servers {
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<Here>,
}

impl Servers {
    /// What a listener with these options speaks.
    pub(super) fn new(options: &Options) -> Servers {
        let (mut http1, mut http2) = (http1::Builder::new(), http2::Builder::new(Here));
        http1.max_buf_size(options.head_size_max);
        // Without this, hyper reads on as soon as it has a request, to learn whether the client
        // leaves. It reads into a new buffer, because the request still holds the old one. Our
        // socket checks that instead, and only if the flow takes its time.
        http1.half_close(options.tls.is_none());
        // If hyper is told a number, even its default, it clears room for so many headers with each
        // request.
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

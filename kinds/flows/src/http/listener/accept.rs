//! A worker's connections: it accepts them, looks after them, and ends them.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sinew_core::{Cause, Fault};
use sinew_flow::{Error, StopSignal};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::connection::{Wire, serve, serve_upgraded, unless_ended};
use super::life::{Life, ROUND, Round, Seat, Verdict};
use super::room::{RETRY_AFTER_S, SPARE_MAX, Why};
use super::tls::Tls;
use super::worker::Worker;

/// Pause when no connection can be accepted, because descriptors or memory are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time without a shortage of descriptors after which the next shortage is reported again.
const SHORTAGE_SPACING: Duration = Duration::from_secs(60);

/// When this process was last short of descriptors, which all its workers and listeners share.
static SHORTAGE: Mutex<Option<Instant>> = Mutex::new(None);

impl Worker {
    /// Serves until it is told to stop and all that has begun is answered.
    pub(super) async fn serve(
        self: Rc<Self>,
        held: Arc<StdListener>,
        mut stop: StopSignal,
    ) -> Result<(), Fault> {
        let socket = held.try_clone().and_then(TcpListener::from_std).map_err(|error| {
            Fault::new(Cause::System, format_args!("cannot watch the socket: {error}"))
        })?;
        // From now on only a listener that may take this one's place holds that socket.
        drop(held);
        let patrol = spawn_local(Rc::clone(&self).patrol());
        tokio::select! {
            // The stop is checked first: connections that come after an edit are for the listener
            // that takes this one's place.
            biased;
            () = stop.wait() => {}
            () = self.accept(&socket) => {}
        }
        drop(socket);
        let (now, yields) = (self.now(), stop.yields());
        self.lives.borrow().iter().for_each(|(_, life)| life.stop(now, yields));
        let all_ended = async {
            while !self.lives.borrow().is_empty() {
                self.empty.notified().await;
            }
        };
        let hurried = async {
            stop.wait_for_end().await;
            let now = self.now();
            self.lives.borrow().iter().for_each(|(_, life)| life.hurry(now));
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
    async fn accept(self: &Rc<Self>, socket: &TcpListener) {
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
                // Open connections go on, and when one of them ends there is room again.
                Err(error) => {
                    self.tell_shortage(&error);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Reports a shortage of descriptors, unless one was reported just now. While it lasts, all
    /// workers meet it again and again.
    fn tell_shortage(&self, error: &io::Error) {
        let mut shortage = SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shortage.replace(Instant::now());
        if before.is_none_or(|before| before.elapsed() > SHORTAGE_SPACING) {
            self.outlet.tell(&Error::new(format_args!(
                "no connection can be taken: {error}; allow more open files (ulimit -n), or lower \
                 'connections_max'"
            )));
        }
    }

    /// A place for one more connection; `None`: there is none.
    async fn seat(&self) -> Option<Seat> {
        if self.room.enter() {
            return Some(Seat::Own);
        }
        if self.spares.get() >= SPARE_MAX {
            // Connections that came just now get a moment to send their request.
            for _ in 0..2 {
                yield_now().await;
            }
            let lives = self.lives.borrow();
            let idle = lives.iter().map(|(_, life)| life).filter(|life| life.gives_way());
            let oldest = idle.min_by_key(|life| life.since.get())?;
            oldest.seat.set(Seat::None);
            self.spares.set(self.spares.get() - 1);
            self.refused(Why::Connections);
            oldest.end_with(Verdict::Close);
        }
        self.spares.set(self.spares.get() + 1);
        Some(Seat::Spare)
    }

    fn begin(self: &Rc<Self>, stream: TcpStream, address: SocketAddr, seat: Seat) {
        let mut lives = self.lives.borrow_mut();
        let life = Rc::new(Life::new(self.now()));
        life.seat.set(seat);
        let place = Place { worker: Rc::clone(self), key: lives.insert(Rc::clone(&life)) };
        let watches = self.options.tls.is_none();
        let wire = Wire::new(stream, Rc::clone(&life), Rc::clone(&self.round), watches);
        spawn_local(async move {
            let worker = &place.worker;
            // One type for both, so that the code that serves them is compiled once.
            let wire = match &worker.options.tls {
                None => Either::Left(wire),
                // Boxed, so that a connection without TLS has no room for it.
                Some(tls) => match Box::pin(secure(worker, &life, tls, wire)).await {
                    Some(wire) => Either::Right(wire),
                    None => return,
                },
            };
            if let Some(goes_on) = serve(worker, &life, address, wire).await {
                // In a future of its own, without the room that HTTP needs: such a connection may
                // be idle for days.
                spawn_local(async move { serve_upgraded(&place.worker, &life, goes_on).await });
            }
        });
    }

    /// Looks after the connections, for ever.
    async fn patrol(self: Rc<Self>) {
        let patience = &self.options.patience;
        loop {
            sleep(ROUND).await;
            let now = self.now().saturating_add(1);
            self.round.set(now);
            self.lives.borrow().iter().for_each(|(_, life)| life.judge(now, patience));
            self.make_room(now);
            if let Some(news) = self.room.tell(Instant::now()) {
                self.outlet.say(format_args!("{news}"));
            }
        }
    }

    /// If more bytes are held than allowed, closes connections whose clients are slow to take them:
    /// the slowest first, until there is room.
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
            life.end_with(Verdict::Close);
        }
    }
}

/// Does the TLS handshake. A client that speaks no TLS was told so by an alert.
async fn secure(
    worker: &Worker,
    life: &Life,
    tls: &Tls,
    wire: Wire,
) -> Option<Box<TlsStream<Wire>>> {
    let wire = unless_ended(worker, life, tls.acceptor.accept(wire)).await?.ok()?;
    life.rest(worker.now());
    Some(Box::new(wire))
}

/// A connection's place among those of its worker.
struct Place {
    worker: Rc<Worker>,
    key: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let worker = &self.worker;
        let mut lives = worker.lives.borrow_mut();
        match lives.remove(self.key).seat.get() {
            Seat::Own => worker.room.leave(),
            Seat::Spare => worker.spares.set(worker.spares.get() - 1),
            Seat::None => {}
        }
        if lives.is_empty() {
            worker.empty.notify_one();
        }
    }
}

/// Answers that there is no room, if that can be written at once.
fn refuse(stream: TcpStream) {
    // A client that gets no answer sees that the connection is closed.
    let refusal = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: {RETRY_AFTER_S}\r\nconnection: close\r\n\
         content-length: 0\r\n\r\n"
    );
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(refusal.as_bytes()));
}

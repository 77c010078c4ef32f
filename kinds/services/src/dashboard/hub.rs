//! Connects the node's thread, which polls the run, and the server's thread, which talks to the
//! viewers: neither ever waits for the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::ws::Utf8Bytes;
use sinew_control::Supervisor;
use sinew_control::status::Event;
use tokio::sync::mpsc::Sender;
use tokio::sync::{broadcast, watch};

use super::captures::Captures;
use super::protocol::scope::ScopeWanted;
use super::protocol::{Hello, Text};

/// Texts by which a viewer may be behind: some ten seconds. A viewer that is further behind is
/// closed, because it would miss some.
const TEXTS_HELD: usize = 64;
/// Events that a new viewer gets.
const EVENTS_KEPT: usize = 200;
/// Orders for the planner that may wait for the node's thread; people give about one a second.
const WISHES_MAX: usize = 16;
/// The same for orders to scopes; a page sends a few a second.
const SCOPE_WISHES_MAX: usize = 64;
/// Replaces the token for viewers: the token is in the address that is announced.
const REDACTED: &str = "...";

/// The state that both threads share.
pub(super) struct Hub {
    hello: Utf8Bytes,
    /// Number of paths that can be chosen.
    paths: usize,
    takes_commands: bool,
    pub(super) owner: Owner,
    /// The bytes of messages, for all viewers that are fast enough.
    pub(super) motion: watch::Sender<Bytes>,
    pub(super) image: watch::Sender<Bytes>,
    pub(super) values: watch::Sender<Bytes>,
    /// The last word, once it is set: viewers are told and closed.
    pub(super) closing: watch::Sender<Option<Closing>>,
    /// Locked while a text is sent, so that a new viewer misses none and gets none twice.
    lasting: Mutex<Lasting>,
    wishes: Mutex<Vec<Wish>>,
    scope_wishes: Mutex<Vec<ScopeWish>>,
    pub(super) captures: Captures,
    /// Number of viewers that have ever been here.
    seats: AtomicU64,
    viewers: AtomicUsize,
    /// Numbers of viewers that want images, and values.
    wanting: [AtomicUsize; 2],
}

/// What a new viewer is told, in addition to what comes later.
struct Lasting {
    texts: broadcast::Sender<Utf8Bytes>,
    status: Option<Utf8Bytes>,
    figures: Option<Utf8Bytes>,
    stop: Option<Utf8Bytes>,
    tunables: Option<Utf8Bytes>,
    events: VecDeque<Event>,
    /// Number of events before those.
    missed: u64,
}

/// The last word to all viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    /// Close code of the WebSocket.
    pub(super) code: u16,
    pub(super) text: &'static str,
}

/// An order for the planner, on its way to the mailbox.
pub(super) struct Wish {
    /// Is repeated in the answer.
    pub(super) id: u64,
    /// One of `PLANNER_*`.
    pub(super) what: u32,
    /// Number of a path.
    pub(super) path: u32,
    /// The viewer that gets the answer.
    pub(super) answers: Sender<Utf8Bytes>,
}

/// An order of a viewer to its scope.
pub(super) enum ScopeAsk {
    Set(Box<ScopeWanted>),
    Arm(u64),
    Close(u64),
}

/// The order on its way to the node's thread.
pub(super) struct ScopeWish {
    /// The viewer that it belongs to.
    pub(super) key: u64,
    pub(super) ask: ScopeAsk,
    /// The viewer that gets the answer.
    pub(super) answers: Sender<Utf8Bytes>,
    /// The viewer that gets the pictures; without a receiver the viewer is gone.
    pub(super) pictures: watch::Sender<Utf8Bytes>,
}

/// A viewer's place; it is given back when dropped.
pub(super) struct Seat<'a> {
    hub: &'a Hub,
    /// Unique among all viewers that this hub has or had.
    pub(super) key: u64,
    wants: Wants,
}

/// What a viewer wants in addition to the rest: images, values of ports.
pub(super) type Wants = [bool; 2];

/// The messages that a viewer follows.
pub(super) struct Feed {
    /// To be sent first.
    pub(super) greeting: Vec<Utf8Bytes>,
    pub(super) texts: broadcast::Receiver<Utf8Bytes>,
    pub(super) motion: watch::Receiver<Bytes>,
    pub(super) image: watch::Receiver<Bytes>,
    pub(super) values: watch::Receiver<Bytes>,
    pub(super) closing: watch::Receiver<Option<Closing>>,
}

/// The node that owns the hub.
pub(super) struct Owner {
    /// The secret that must come with an order.
    pub(super) secret: String,
    /// Carries out orders.
    pub(super) supervisor: Supervisor,
    pub(super) viewers_max: usize,
}

impl Hub {
    /// A hub without viewers.
    pub(super) fn new(hello: &Hello, owner: Owner) -> Hub {
        let lasting = Lasting {
            texts: broadcast::Sender::new(TEXTS_HELD),
            status: None,
            figures: None,
            stop: None,
            tunables: None,
            events: VecDeque::new(),
            missed: 0,
        };
        Hub {
            hello: redacted(&Text::Hello(hello), &owner.secret),
            paths: hello.paths.len(),
            takes_commands: hello.commands,
            owner,
            motion: watch::Sender::default(),
            image: watch::Sender::default(),
            values: watch::Sender::default(),
            closing: watch::Sender::default(),
            lasting: Mutex::new(lasting),
            wishes: Mutex::default(),
            scope_wishes: Mutex::default(),
            captures: Captures::default(),
            seats: AtomicU64::new(0),
            viewers: AtomicUsize::new(0),
            wanting: [const { AtomicUsize::new(0) }; 2],
        }
    }

    /// Number of viewers. It is a momentary count and orders no other memory.
    pub(super) fn viewers(&self) -> usize {
        self.viewers.load(Relaxed)
    }

    /// Whether a viewer wants images. A momentary count, as for [`Hub::viewers`].
    pub(super) fn wants_images(&self) -> bool {
        self.wanting[0].load(Relaxed) > 0
    }

    /// Whether a viewer wants the values of ports. A momentary count, as for [`Hub::viewers`].
    pub(super) fn wants_values(&self) -> bool {
        self.wanting[1].load(Relaxed) > 0
    }

    /// Sends a text to all viewers, and to those who come later.
    pub(super) fn show(&self, text: &Text<'_>) {
        let json = self.encode(text);
        let mut lasting = self.lasting();
        // Without viewers there is nothing to be done.
        let _ = lasting.texts.send(json.clone());
        match text {
            Text::Status { .. } => lasting.status = Some(json),
            Text::Figures(_) => lasting.figures = Some(json),
            Text::Stop(_) => lasting.stop = Some(json),
            Text::Tunables { .. } => lasting.tunables = Some(json),
            Text::Events { events, missed } => lasting.keep(events, *missed),
            _ => {}
        }
    }

    /// Called without viewers: forgets what would be out of date when the next one comes.
    pub(super) fn forget(&self) {
        let mut lasting = self.lasting();
        (lasting.status, lasting.figures) = (None, None);
    }

    /// A place for a viewer, if there is one left.
    pub(super) fn seat(&self) -> Option<Seat<'_>> {
        // Only counts: what viewers see is ordered by the senders above.
        let taken = self.viewers.fetch_add(1, Relaxed);
        let key = self.seats.fetch_add(1, Relaxed);
        let seat = Seat { hub: self, key, wants: Wants::default() };
        (taken < self.owner.viewers_max).then_some(seat)
    }

    /// A feed of everything from now on.
    pub(super) fn view(&self) -> Feed {
        let lasting = self.lasting();
        let (first, _) = lasting.events.as_slices();
        debug_assert_eq!(first.len(), lasting.events.len(), "kept in one piece");
        let events = Text::Events { events: first, missed: lasting.missed };
        let mut greeting = vec![self.hello.clone(), self.encode(&events)];
        let known = [&lasting.status, &lasting.figures, &lasting.stop, &lasting.tunables];
        greeting.extend(known.into_iter().flatten().cloned());
        Feed {
            greeting,
            texts: lasting.texts.subscribe(),
            motion: self.motion.subscribe(),
            image: self.image.subscribe(),
            values: self.values.subscribe(),
            closing: self.closing.subscribe(),
        }
    }

    /// Puts an order for the planner where the node's thread finds it.
    ///
    /// # Errors
    /// Why it cannot be carried out.
    pub(super) fn wish(&self, wish: Wish, is_choice: bool) -> Result<(), String> {
        if !self.takes_commands {
            let why = "the dashboard's port 'command' is linked with no planner";
            return Err(format!("this order is not possible: {why}"));
        }
        if is_choice && wish.path as usize >= self.paths {
            let (path, paths) = (wish.path, self.paths);
            return Err(format!("there is no path {path}, expected less than {paths}"));
        }
        // Nothing panics while it is locked.
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        if wishes.len() >= WISHES_MAX {
            return Err(format!("{WISHES_MAX} orders wait already; try again"));
        }
        wishes.push(wish);
        Ok(())
    }

    /// The orders for the planner since the last call.
    pub(super) fn take_wishes(&self) -> Vec<Wish> {
        // Nothing panics while it is locked.
        std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a viewer's order to its scope where the node's thread finds it.
    ///
    /// # Errors
    /// Too many wait already.
    pub(super) fn scope(&self, wish: ScopeWish) -> Result<(), String> {
        // Nothing panics while it is locked.
        let mut wishes = self.scope_wishes.lock().unwrap_or_else(PoisonError::into_inner);
        if wishes.len() >= SCOPE_WISHES_MAX {
            return Err(format!("{SCOPE_WISHES_MAX} orders for scopes wait already; try again"));
        }
        wishes.push(wish);
        Ok(())
    }

    /// The orders to scopes since the last call.
    pub(super) fn take_scope_wishes(&self) -> Vec<ScopeWish> {
        // Nothing panics while it is locked.
        std::mem::take(&mut *self.scope_wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The text as JSON, without the token.
    pub(super) fn encode(&self, text: &Text<'_>) -> Utf8Bytes {
        redacted(text, &self.owner.secret)
    }

    fn lasting(&self) -> MutexGuard<'_, Lasting> {
        // Nothing panics while it is locked.
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service may write the token into an event, and the dashboard does: it announces it with the
/// address. Whoever may see the run may not therefore give orders.
fn redacted(text: &Text<'_>, secret: &str) -> Utf8Bytes {
    let json = text.json();
    match secret.is_empty() {
        true => json.into(),
        false => json.replace(secret, REDACTED).into(),
    }
}

impl Lasting {
    fn keep(&mut self, events: &[Event], missed: u64) {
        self.missed += missed;
        self.events.extend(events.iter().cloned());
        let spare = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..spare);
        self.missed += spare as u64;
        self.events.make_contiguous();
    }
}

impl Seat<'_> {
    /// Sets what this viewer wants from now on.
    pub(super) fn want(&mut self, wants: Wants) {
        for (at, count) in self.hub.wanting.iter().enumerate() {
            // Relaxed, as for the count of viewers.
            match (self.wants[at], wants[at]) {
                (false, true) => count.fetch_add(1, Relaxed),
                (true, false) => count.fetch_sub(1, Relaxed),
                _ => continue,
            };
        }
        self.wants = wants;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.want(Wants::default());
        // Relaxed, as for the other counts.
        self.hub.viewers.fetch_sub(1, Relaxed);
    }
}

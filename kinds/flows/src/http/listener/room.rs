//! What a listener has room for, all its workers together: connections, and bytes of bodies and
//! answers that it holds. What finds no room is refused, counted and reported.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Most requests of each worker at a time that end the run or report on it, beyond all other
/// limits.
pub(super) const RESERVED_MAX: usize = 8;

/// Largest body of such a request.
pub(super) const RESERVED_BODY_SIZE_MAX: usize = 64 << 10;

/// Connections of each worker beyond `connections_max`. Such a connection gets answers only to
/// reserved requests, and gives way to a newer one.
pub(super) const SPARE_MAX: usize = 16;

/// Over HTTP/1.1 a body or an answer of at most so many bytes is not counted: a connection holds
/// one of each, beside buffers that are larger.
pub(super) const SMALL_LEN: usize = 4 << 10;

/// How long a refused client is to wait, in s: the shortest time that the header can say.
pub(super) const RETRY_AFTER_S: u16 = 1;

/// Time between two lines about refusals.
const NEWS_SPACING: Duration = Duration::from_secs(10);

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// All connections are taken.
    Connections,
    /// Too many requests are under way.
    Requests,
    /// The worker has more to do than it can.
    Behind,
    /// Bodies and answers hold all the bytes that they may.
    Held,
    /// A client has held an answer for too long while there was no room for others.
    Slow,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::Connections => "'connections_max' are open",
            Why::Requests => "'requests_max' are under way",
            Why::Behind => "flows wait longer than 'wait_max' for their turn",
            Why::Held => "bodies and answers hold 'held_size_max'",
            Why::Slow => "they took their answers too slowly while 'held_size_max' were held",
        }
    }
}

/// What a listener has room for.
pub(super) struct Room {
    connections: AtomicUsize,
    connections_max: usize,
    workers: usize,
    pub(super) held: Arc<Held>,
    news: Mutex<News>,
}

/// What was refused since the last report.
#[derive(Default)]
struct News {
    count: u64,
    why: Option<Why>,
    told: Option<Instant>,
}

impl Room {
    /// Room for so many connections, which hold so many bytes.
    pub(super) fn new(connections_max: usize, held_size_max: usize, workers: usize) -> Room {
        let held = Held { size: AtomicUsize::new(0), size_max: held_size_max };
        Room {
            connections: AtomicUsize::new(0),
            connections_max,
            workers,
            held: Arc::new(held),
            news: Mutex::default(),
        }
    }

    /// Takes a place for a connection, if one is free. Relaxed: no other data depends on this
    /// number.
    pub(super) fn enter(&self) -> bool {
        let more = |now: usize| (now < self.connections_max).then_some(now + 1);
        self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives the place back.
    pub(super) fn leave(&self) {
        // Relaxed: as above.
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many bytes a worker is to free: its part of the excess, because each worker sees all of
    /// the excess.
    pub(super) fn to_free(&self) -> usize {
        self.held.excess().div_ceil(self.workers.max(1))
    }

    /// Counts something that was refused.
    #[cold]
    pub(super) fn refused(&self, why: Why) {
        let mut news = self.news();
        news.count += 1;
        news.why = Some(why);
    }

    /// The report on refusals, if one is due now.
    pub(super) fn tell(&self, now: Instant) -> Option<String> {
        let mut news = self.news();
        let is_early = news.told.is_some_and(|told| now.duration_since(told) < NEWS_SPACING);
        let why = news.why.filter(|_| news.count > 0 && !is_early)?;
        let count = std::mem::take(&mut news.count);
        news.told = Some(now);
        Some(format!("refused {count} connections or requests: {}", why.text()))
    }

    fn news(&self) -> MutexGuard<'_, News> {
        // After a panic the lock can be used: nobody can have left the value half changed.
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of bodies and answers that are held.
pub(super) struct Held {
    size: AtomicUsize,
    size_max: usize,
}

impl Held {
    /// Whether more is held than allowed. Relaxed, here and below: no other data depends on this
    /// number.
    pub(super) fn is_over(&self) -> bool {
        self.size.load(Ordering::Relaxed) > self.size_max
    }

    /// How many bytes more are held than there is room for; 1 if the room is just full.
    pub(super) fn excess(&self) -> usize {
        (self.size.load(Ordering::Relaxed) + 1).saturating_sub(self.size_max)
    }

    /// Room for so many bytes, if there is any.
    pub(super) fn try_take(self: &Arc<Self>, size: usize) -> Option<Share> {
        let mut share = self.take(0, None);
        share.grow(size).then_some(share)
    }

    /// The same, whether there is room or not, for bytes that are already here. `also` counts them
    /// too.
    pub(super) fn take(self: &Arc<Self>, size: usize, also: Option<Arc<AtomicUsize>>) -> Share {
        self.size.fetch_add(size, Ordering::Relaxed);
        if let Some(also) = &also {
            also.fetch_add(size, Ordering::Relaxed);
        }
        Share { held: Arc::clone(self), also, size }
    }
}

/// Bytes that somebody holds, until this is dropped.
pub(super) struct Share {
    held: Arc<Held>,
    /// Counts the bytes of one connection.
    also: Option<Arc<AtomicUsize>>,
    size: usize,
}

impl Share {
    /// Makes the share at least `size` bytes large; gives whether there was room for that.
    pub(super) fn grow(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.size);
        let size_max = self.held.size_max;
        let add = |now: usize| now.checked_add(more).filter(|sum| *sum <= size_max);
        let is_there = more == 0
            || self.held.size.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if is_there {
            self.size += more;
        }
        is_there
    }

    /// The same bytes, which are counted until the last handle to them is dropped.
    pub(super) fn keep(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Kept { bytes, _share: self })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.held.size.fetch_sub(self.size, Ordering::Relaxed);
        if let Some(also) = &self.also {
            also.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}

struct Kept {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_until_the_last_of_them_is_dropped() {
        let room = Room::new(1, 100, 4);
        let share = room.held.try_take(60).expect("room");
        assert!(room.held.try_take(41).is_none(), "no room");
        let bytes = share.keep(Bytes::from(vec![0; 60]));
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert!(room.held.try_take(41).is_none(), "a part of them is still there");
        drop(slice);
        let mut all = room.held.try_take(99).expect("room again");
        assert!(room.held.excess() == 0 && all.grow(100) && room.held.excess() == 1);
        assert!(!room.held.is_over(), "just full is no more than may be");
        assert!(!all.grow(101));
        let one = Arc::<AtomicUsize>::default();
        let beyond = room.held.take(7, Some(Arc::clone(&one)));
        assert_eq!((room.held.excess(), one.load(Ordering::Relaxed)), (8, 7));
        assert_eq!(room.to_free(), 2, "four workers free all of it");
        assert!(room.held.is_over());
        drop((all, beyond));
        assert_eq!((room.held.excess(), one.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn connections_are_counted_and_refusals_told_now_and_then() {
        let room = Room::new(1, 0, 1);
        assert!(room.enter() && !room.enter());
        room.leave();
        assert!(room.enter());
        let begun = Instant::now();
        assert_eq!(room.tell(begun), None);
        room.refused(Why::Connections);
        let said = room.tell(begun).expect("news");
        assert_eq!(said, "refused 1 connections or requests: 'connections_max' are open");
        room.refused(Why::Held);
        room.refused(Why::Held);
        assert_eq!(room.tell(begun), None, "too early");
        let said = room.tell(begun + NEWS_SPACING).expect("news");
        assert!(said.starts_with("refused 2") && said.contains("'held_size_max'"), "{said}");
    }
}

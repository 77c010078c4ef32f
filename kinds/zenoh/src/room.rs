//! How many calls, and bytes of them, may be under way at once.

use std::sync::{Arc, Mutex, PoisonError};

/// Most calls of one direction that may be under way, of all hosts together. One more is refused,
/// and counted. Each call holds its packet, and waits for a reply.
pub(crate) const CALLS_MAX: usize = 256;
/// Most bytes of their packets, as they cross.
pub(crate) const BYTES_MAX: usize = 32 << 20;

/// The room of one direction.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<(usize, usize)>);

/// The place of a call. When it is dropped, it is free for another call.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// A place for one more call of so many bytes, if there is one.
    pub(crate) fn take(self: &Arc<Room>, bytes: usize) -> Option<Place> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, all) = (taken.0 + 1, taken.1 + bytes);
        if calls > CALLS_MAX || all > BYTES_MAX {
            return None;
        }
        *taken = (calls, all);
        Some(Place { room: Arc::clone(self), bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = (taken.0 - 1, taken.1 - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_find_a_place_and_who_goes_leaves_it() {
        let room = Arc::<Room>::default();
        let mut taken: Vec<_> = (0..CALLS_MAX).map_while(|_| room.take(1)).collect();
        assert_eq!((taken.len(), room.take(1).is_some()), (CALLS_MAX, false));
        taken.pop();
        assert!(room.take(BYTES_MAX).is_none(), "too many bytes");
        assert!(room.take(BYTES_MAX - CALLS_MAX + 1).is_some());
        taken.clear();
        assert!(room.take(BYTES_MAX).is_some());
    }
}

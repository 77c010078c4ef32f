//! Semaphore: tokens that two sides take and post, with loads and stores only.
//!
//! Without compare-and-swap two sides can take from one pool of tokens only under a lock, and a
//! side that dies with the lock blocks the other. So each token belongs to one side at any time. A
//! side takes only its own tokens, and hands those that it does not need to a peer that waits. Each
//! side writes four words of its own, and none of the peer's:
//!
//! ```text
//! posted   tokens that it has made
//! given    tokens that it has handed to the peer
//! taken    tokens that its threads have taken
//! waiting  how many of its threads wait for one
//! ```
//!
//! So a side owns `posted + given by the peer - given - taken` tokens. Of these only `given by the
//! peer` is not its own word, and it only grows. So nobody can take away a token that a side has
//! found to be its own.
//!
//! **Death at any instant.** Taking and giving are one store each. Posting to a waiting peer is
//! two, `posted` then `given`; between them the token is the poster's. So nothing is half done: a
//! side that dies keeps what it owned, and the other goes on with its own tokens and those that it
//! posts. Neither side ever waits for the other to leave a section. The tokens of a dead side come
//! back only when its next life creates the semaphore anew.
//!
//! **A peer that lies** can hand out tokens that it does not have, as any user of a semaphore can
//! post too often. A count outside [`TOKENS_MAX`] is [`Corrupt`].
//!
//! Each side makes sure that its threads use the semaphore one at a time (a lock, or interrupts
//! off). Each side [serves](Semaphore::serve) the other from time to time, or when it is rung.

use crate::Corrupt;
use crate::cells::{Ordering, Site, ordered};
use crate::memory::Memory;
use crate::words::SharedWords;

/// Bytes of a semaphore: a pair of cache lines for each side.
pub const SEMAPHORE_BYTES: usize = 256;
/// Most tokens that a side may own; past it the words are taken for garbage.
pub const TOKENS_MAX: u32 = 1 << 30;

const LINE: usize = 128;
const POSTED: usize = 0;
const GIVEN: usize = 4;
const TAKEN: usize = 8;
const WAITING: usize = 12;

/// One side's view of a semaphore.
#[derive(Clone, Debug)]
pub struct Semaphore<M> {
    words: SharedWords<M>,
    mine: usize,
    theirs: usize,
}

impl<M: Memory> Semaphore<M> {
    /// The view of side 0 or 1. It has no state of its own, so a side may have several views if it
    /// uses them one at a time.
    ///
    /// # Panics
    /// If the memory has less than [`SEMAPHORE_BYTES`], or there is no such side.
    pub fn new(memory: M, side: usize) -> Semaphore<M> {
        assert!(memory.len() >= SEMAPHORE_BYTES && side < 2, "side {side} of {}", memory.len());
        let words = SharedWords::new(memory);
        Semaphore { words, mine: side * LINE, theirs: (1 - side) * LINE }
    }

    /// Starts the semaphore with this many tokens; all are the peer's if `for_peer`. Call it before
    /// the peer knows of the semaphore.
    pub fn create(&self, tokens: u32, for_peer: bool) {
        for word in [POSTED, GIVEN, TAKEN, WAITING] {
            self.words.set(self.mine + word, 0);
            self.words.set(self.theirs + word, 0);
        }
        self.words.set(self.mine + POSTED, tokens);
        if for_peer {
            self.words.set(self.mine + GIVEN, tokens);
        }
    }

    /// Takes one of this side's tokens; returns whether there was one.
    ///
    /// # Errors
    /// The words are garbage.
    pub fn try_take(&self) -> Result<bool, Corrupt> {
        let has_one = self.owned(self.mine, self.theirs)? > 0;
        if has_one {
            self.add(TAKEN, 1);
        }
        Ok(has_one)
    }

    /// Makes a token, and hands it to the peer if the peer waits for one and no thread here does.
    ///
    /// # Errors
    /// The words are garbage, or this side has [`TOKENS_MAX`] tokens.
    pub fn post(&self) -> Result<(), Corrupt> {
        if self.owned(self.mine, self.theirs)? == TOKENS_MAX {
            return Err(Corrupt);
        }
        self.add(POSTED, 1);
        self.serve().map(drop)
    }

    /// Says that one more thread of this side waits, so the peer hands over what it does not need.
    /// Call it once for each [`Semaphore::end_wait`].
    pub fn begin_wait(&self) {
        self.add(WAITING, 1);
    }

    /// Says that one thread fewer waits.
    pub fn end_wait(&self) {
        self.add(WAITING, u32::MAX);
    }

    /// Hands tokens to a peer that waits for more than it has, except those that threads here wait
    /// for; returns how many. So a token never goes back and forth between two sides that wait.
    ///
    /// # Errors
    /// The words are garbage.
    pub fn serve(&self) -> Result<u32, Corrupt> {
        let waiting = |side: usize| self.words.get(side + WAITING);
        let wanted = waiting(self.theirs).saturating_sub(self.owned(self.theirs, self.mine)?);
        let spare = self.owned(self.mine, self.theirs)?.saturating_sub(waiting(self.mine));
        let handed = wanted.min(spare);
        if handed > 0 {
            self.add(GIVEN, handed);
        }
        Ok(handed)
    }

    /// The tokens of this side, and of the peer.
    ///
    /// # Errors
    /// The words are garbage.
    pub fn tokens(&self) -> Result<(u32, u32), Corrupt> {
        Ok((self.owned(self.mine, self.theirs)?, self.owned(self.theirs, self.mine)?))
    }

    /// Tokens that `side` owns. Of the peer's own words, those that count what it has spent are
    /// read first. So the peer may seem richer than it is, and gets a token later rather than one
    /// too many.
    fn owned(&self, side: usize, other: usize) -> Result<u32, Corrupt> {
        let acquire = ordered(Site::SemaphoreGive, Ordering::Acquire);
        let spent = self.words.get(side + TAKEN).wrapping_add(self.words.get(side + GIVEN));
        // Acquire: a side that takes a given token sees what the peer did before.
        let given = self.words.word(other + GIVEN).load(acquire);
        let owned = self.words.get(side + POSTED).wrapping_add(given).wrapping_sub(spent);
        if owned > TOKENS_MAX { Err(Corrupt) } else { Ok(owned) }
    }

    fn add(&self, word: usize, by: u32) {
        let word = self.words.word(self.mine + word);
        // Relaxed: only this side writes it. Release: a peer that sees it sees what this side did
        // before.
        let now = word.load(Ordering::Relaxed).wrapping_add(by);
        word.store(now, ordered(Site::SemaphoreGive, Ordering::Release));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::shape::Shape;

    fn both(tokens: u32, for_peer: bool) -> (Semaphore<Heap>, Semaphore<Heap>) {
        // Zeros, and more than enough.
        let memory = Heap::of(&Shape::latest(8, 0));
        let one = Semaphore::new(memory.clone(), 0);
        one.create(tokens, for_peer);
        (one, Semaphore::new(memory, 1))
    }

    #[test]
    fn a_token_goes_to_who_waits_for_it() {
        let (one, two) = both(2, true);
        assert_eq!((one.try_take(), two.try_take()), (Ok(false), Ok(true)));
        one.begin_wait();
        assert_eq!((two.serve(), two.serve()), (Ok(1), Ok(0)));
        assert_eq!((one.try_take(), two.try_take()), (Ok(true), Ok(false)));
        one.end_wait();
        two.begin_wait();
        assert_eq!(one.serve(), Ok(0), "there is none left");
        one.post().expect("room");
        assert_eq!((one.tokens(), two.try_take()), (Ok((0, 1)), Ok(true)));
        two.end_wait();
        one.post().expect("room");
        assert_eq!(one.tokens(), Ok((1, 0)), "nobody waits: it stays");
    }

    #[test]
    fn two_that_wait_do_not_hand_a_token_back_and_forth() {
        let (one, two) = both(1, false);
        one.begin_wait();
        two.begin_wait();
        for _ in 0..10 {
            assert_eq!((one.serve(), two.serve()), (Ok(0), Ok(0)));
        }
        assert_eq!((one.try_take(), two.try_take()), (Ok(true), Ok(false)));
    }

    /// After each single store of each operation there are as many tokens as before, except for the
    /// one that was taken or made. So a side that dies there leaves the other its own tokens.
    #[test]
    fn who_dies_between_two_stores_leaves_every_token_with_somebody() {
        let (one, two) = both(0, false);
        two.begin_wait();
        // The first store of `post`; the second never comes.
        one.add(POSTED, 1);
        assert_eq!(two.tokens(), Ok((0, 1)));
        two.post().expect("room");
        assert_eq!((two.try_take(), two.tokens()), (Ok(true), Ok((0, 1))));
        // A thread that died while it waited is handed tokens, and takes none.
        assert_eq!(one.serve(), Ok(1));
        assert_eq!(two.tokens(), Ok((1, 0)));
    }

    #[test]
    fn garbage_is_corrupt_or_a_count_within_bounds() {
        let (one, two) = both(1, false);
        let mut corrupt = 0;
        for word in (0..SEMAPHORE_BYTES).step_by(4).filter(|at| at % LINE < 16) {
            for garbage in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
                one.words.set(word, garbage);
                for side in [&one, &two] {
                    let outcomes = [side.post(), side.serve().map(drop), side.try_take().map(drop)];
                    corrupt += outcomes.iter().filter(|it| it.is_err()).count();
                    assert!(side.tokens().is_ok_and(|it| it.0 <= TOKENS_MAX) || corrupt > 0);
                }
            }
        }
        assert!(corrupt > 10, "only {corrupt} were seen");
    }
}

//! The turn: a word in shared memory says which side has it, and that side hands it over in one of
//! several ways. No side polls for it except by `sched_yield`. No wait that we can end lasts for
//! ever.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::sched_yield;
use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::Kernel;
use sinew_link::Os;

use super::case::HandedBy;
use crate::harness::{Gone, SILENT_NS_MAX};

/// A peer that has not handed the turn over for this long is gone. With `sched_yield` this replaces
/// [`SILENT_NS_MAX`], because polling takes the CPU from everybody meanwhile. The longest walk
/// takes about ten milliseconds, at a priority above everything else on its CPU.
const YIELD_NS_MAX: u64 = 1_000_000_000;
/// Calls of `sched_yield` between two looks at the clock.
const YIELDS: u32 = 256;
/// The message through an eventfd or a pipe.
const MESSAGE: [u8; 8] = 1_u64.to_ne_bytes();

/// The words that both sides share.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum TurnWord {
    /// Counts turns: while it is even, the near side has the turn.
    Turn,
    /// Whether the far side has started.
    Ready,
    /// Whether the near side has started, too. Until then the far side sleeps, because with
    /// `sched_yield` it would keep the CPU from the near side.
    Go,
    /// Whether the far side must end with this turn.
    Stop,
    /// The time at which the far side got its turn: the lower and the upper half.
    ArrivedLow,
    ArrivedHigh,
    /// Whether the words below are written.
    Done,
    /// The counts of the far side.
    Handed,
    Switches,
    Policy,
    Priority,
}

/// What both sides share.
#[derive(Clone, Debug)]
pub(super) struct TurnWords(pub(super) Region);

impl TurnWords {
    fn at(&self, word: TurnWord) -> &AtomicU32 {
        &self.0.words()[word as usize]
    }

    /// The value of a word.
    pub(super) fn get(&self, word: TurnWord) -> u32 {
        // Acquire: whatever the other side wrote before this word is seen, too.
        self.at(word).load(Ordering::Acquire)
    }

    /// Sets a word.
    pub(super) fn set(&self, word: TurnWord, value: u32) {
        // Release: a side that sees this value also sees whatever was written before it.
        self.at(word).store(value, Ordering::Release);
    }

    /// Writes 1 and wakes the side that waits for the word.
    pub(super) fn say(&self, word: TurnWord) {
        self.set(word, 1);
        Kernel.futex_wake(self.at(word));
    }

    /// Sleeps until the other side [`say`](TurnWords::say)s this word.
    pub(super) fn hear(&self, word: TurnWord) -> Result<(), Gone> {
        self.sleep_until(word, |value| value == 1)
    }

    fn sleep_until(&self, word: TurnWord, mut is_it: impl FnMut(u32) -> bool) -> Result<(), Gone> {
        let mut until_ns = None;
        loop {
            let value = self.get(word);
            if is_it(value) {
                return Ok(());
            }
            let now_ns = now_ns();
            let until_ns = *until_ns.get_or_insert(now_ns + SILENT_NS_MAX);
            if now_ns >= until_ns {
                return Err(silent(SILENT_NS_MAX));
            }
            Kernel.futex_wait(self.at(word), value, until_ns - now_ns);
        }
    }
}

fn silent(ns: u64) -> Gone {
    Gone(format!("the other side did nothing for {} s", ns / 1_000_000_000))
}

/// How one side hands the turn over.
enum Means {
    Yield,
    Futex,
    /// Eventfds or pipes: messages arrive from one and are sent to the other.
    Files {
        from: File,
        to: File,
    },
}

/// One side's access to the turn.
pub(super) struct Baton {
    words: TurnWords,
    /// 0 for the near side, 1 for the far one.
    side: u32,
    means: Means,
    /// How often it gave the CPU away, or should have: once for every turn that it handed over.
    /// With `sched_yield` every call counts, even if the turn was not back after it.
    pub(super) handed: u64,
}

/// The descriptors of both sides, near and far: the one from which a side gets messages, and the
/// one to which it sends them.
pub(super) fn open(by: HandedBy) -> io::Result<[Vec<OwnedFd>; 2]> {
    if matches!(by, HandedBy::Yield | HandedBy::Futex) {
        return Ok([vec![], vec![]]);
    }
    let ((there_end, there), (back_end, back)) = (way(by)?, way(by)?);
    Ok([vec![back_end, there], vec![there_end, back]])
}

/// The descriptor to read from, and the one to write to.
fn way(by: HandedBy) -> io::Result<(OwnedFd, OwnedFd)> {
    if by == HandedBy::Eventfd {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        return Ok((bell.try_clone()?, bell));
    }
    let (from, to) = io::pipe()?;
    Ok((from.into(), to.into()))
}

impl Baton {
    /// The turn of one side, with its descriptors.
    pub(super) fn new(
        by: HandedBy,
        words: TurnWords,
        side: u32,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Baton, Gone> {
        let means = match by {
            HandedBy::Yield => Means::Yield,
            HandedBy::Futex => Means::Futex,
            HandedBy::Eventfd | HandedBy::Pipe => {
                let [from, to] = <[OwnedFd; 2]>::try_from(descriptors)
                    .map_err(|found| Gone(format!("got {} descriptors, not 2", found.len())))?;
                Means::Files { from: from.into(), to: to.into() }
            }
        };
        Ok(Baton { words, side, means, handed: 0 })
    }

    fn has_turn(&self) -> bool {
        self.words.get(TurnWord::Turn) % 2 == self.side
    }

    /// Hands the turn over, and waits until it is back.
    #[inline]
    pub(super) fn pass(&mut self) -> Result<(), Gone> {
        self.give()?;
        self.take()
    }

    /// Hands the turn over.
    pub(super) fn give(&mut self) -> Result<(), Gone> {
        let next = self.words.get(TurnWord::Turn).wrapping_add(1);
        self.words.set(TurnWord::Turn, next);
        match &mut self.means {
            Means::Yield => return Ok(()),
            Means::Futex => Kernel.futex_wake(self.words.at(TurnWord::Turn)),
            Means::Files { to, .. } => to.write_all(&MESSAGE).map_err(broken)?,
        }
        self.handed += 1;
        Ok(())
    }

    /// Waits for the turn.
    pub(super) fn take(&mut self) -> Result<(), Gone> {
        match &mut self.means {
            Means::Yield => return self.yield_until(),
            Means::Futex => {
                let side = self.side;
                return self.words.sleep_until(TurnWord::Turn, |turn| turn % 2 == side);
            }
            Means::Files { from, .. } => from.read_exact(&mut [0; 8]).map_err(broken)?,
        }
        if self.has_turn() {
            return Ok(());
        }
        Err(Gone("a message came without the turn; that is a bug of ours".into()))
    }

    fn yield_until(&mut self) -> Result<(), Gone> {
        let (mut calls, mut until_ns) = (0_u32, u64::MAX);
        loop {
            sched_yield();
            self.handed += 1;
            if self.has_turn() {
                return Ok(());
            }
            calls += 1;
            if calls.is_multiple_of(YIELDS) {
                let now_ns = now_ns();
                until_ns = until_ns.min(now_ns + YIELD_NS_MAX);
                if now_ns >= until_ns {
                    return Err(silent(YIELD_NS_MAX));
                }
            }
        }
    }
}

fn broken(error: io::Error) -> Gone {
    Gone(format!("the turn cannot be handed over: {error}"))
}

/// The calls of a turn without a partner: the part of a turn that is no switch.
pub(super) enum CallsAlone {
    Futex(AtomicU32),
    Files { from: File, to: File },
}

impl CallsAlone {
    /// `None` for `sched_yield`: without another thread on the CPU, it does something else.
    pub(super) fn new(by: HandedBy) -> Result<Option<CallsAlone>, Gone> {
        Ok(match by {
            HandedBy::Yield => None,
            HandedBy::Futex => Some(CallsAlone::Futex(AtomicU32::new(0))),
            HandedBy::Eventfd | HandedBy::Pipe => {
                let (from, to) = way(by).map_err(broken)?;
                Some(CallsAlone::Files { from: from.into(), to: to.into() })
            }
        })
    }

    /// Makes the calls once.
    pub(super) fn call(&mut self) -> Result<(), Gone> {
        match self {
            CallsAlone::Futex(word) => {
                Kernel.futex_wake(word);
                // The value is not the expected one: the kernel compares it and returns.
                Kernel.futex_wait(word, 1, SILENT_NS_MAX);
                Ok(())
            }
            CallsAlone::Files { from, to } => {
                to.write_all(&MESSAGE).map_err(broken)?;
                from.read_exact(&mut [0; 8]).map_err(broken)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn both(by: HandedBy) -> [Baton; 2] {
        let words = TurnWords(Region::shared("sinew-lab-test", 4096).expect("memory"));
        let [near, far] = open(by).expect("descriptors");
        let side = |side, fds| Baton::new(by, words.clone(), side, fds).expect("they are right");
        [side(0, near), side(1, far)]
    }

    #[test]
    fn both_sides_take_turns_by_every_way() {
        for &by in HandedBy::ALL {
            let [mut near, mut far] = both(by);
            let words = near.words.clone();
            let other = thread::spawn(move || {
                for turn in 0..100 {
                    far.take()?;
                    assert_eq!(far.words.get(TurnWord::Turn), 2 * turn + 1);
                    far.give()?;
                }
                Ok::<_, Gone>(())
            });
            for turn in 0..100 {
                assert_eq!(words.get(TurnWord::Turn), 2 * turn, "{by:?}");
                near.pass().expect("the other side lives");
            }
            other.join().expect("it does not panic").expect("this side lives");
            assert!(near.handed >= 100, "{by:?}");
        }
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error() {
        for by in [HandedBy::Yield, HandedBy::Pipe] {
            let [mut near, far] = both(by);
            drop(far);
            assert!(near.pass().is_err(), "{by:?}");
        }
    }

    #[test]
    fn calls_alone_come_back() {
        for &by in HandedBy::ALL {
            let alone = CallsAlone::new(by).expect("descriptors");
            assert_eq!(alone.is_none(), by == HandedBy::Yield);
            alone.into_iter().for_each(|mut alone| alone.call().expect("nobody is needed"));
        }
    }
}

//! The peer: a guest that misbehaves. It writes false values over a part of the carve-out, word
//! after word. In between it does what a correct guest does, so that Linux goes on with it.

use std::iter::zip;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use fastrand::Rng;
use sinew_carve_out::{
    AgentLetter, Ask, CarveOut, FaultKind, GuestFault, GuestState, Letters, MadeBy, Name,
    NodeTally, Registry, SharedClass, SharedRefusal, SharedWish,
};
use sinew_core::sys::Region;

use super::{SIZE, name};

/// The parts that a peer attacks, in bytes. A peer that spoils the guest's state soon ends the
/// life. So the other parts are also attacked alone, and there Linux goes on as long as it can.
pub(crate) const AIMS: &[(&str, Range<usize>)] = &[
    ("header, order and beat", 0..0x100),
    ("state and fault of the guest", 0x100..0x240),
    ("what nobody uses", 0x240..0x1000),
    ("nodes and what they have done", 0x1000..0x4000),
    ("rows and their states", 0x4000..0x8000),
    ("entries of Linux", 0x8000..0x9000),
    ("entries of the guest", 0x9000..0xa000),
    ("who holds them", 0xa000..0xb000),
    ("letters", 0xb000..0x10000),
    ("links and named memory", 0x10000..SIZE),
    ("all of it", 0..SIZE),
];

/// Extreme values of a word, and of the tokens of a semaphore.
const EXTREMES: [u32; 9] =
    [0, 1, 2, u32::MAX, u32::MAX - 1, i32::MAX as u32, i32::MAX as u32 + 1, 1 << 30, 4096];

pub(crate) const NAMES: [&str; 7] = ["r", "s", "q", "of_guest", "s_of_guest", "q_of_guest", "new"];

/// A message queue of the tests.
pub(crate) fn queue() -> SharedWish {
    SharedWish::queue(8, 4, 5)
}

pub(crate) struct Peer {
    memory: Region,
    rng: Rng,
    /// Index in [`AIMS`] of the part that it attacks; `None`: it rests.
    pub(crate) aim: Option<usize>,
    /// Count of words that it writes at a time.
    pub(crate) burst: usize,
    pub(crate) is_over: bool,
    /// Which words it has overwritten.
    pub(crate) written: Vec<bool>,
    /// The word that it overwrites next.
    next: usize,
    /// The content of the memory before the first false word of this life.
    good: Vec<u32>,
    /// Its part as a correct guest.
    honest: Option<Honest>,
}

struct Honest {
    carve_out: CarveOut<Region>,
    registry: Registry<Region>,
    letters: Letters<Region>,
}

impl Peer {
    pub(crate) fn new(memory: Region) -> Peer {
        let (rng, written) = (Rng::with_seed(15), vec![false; SIZE / 4]);
        let (aim, honest, good) = (None, None, vec![]);
        let (burst, is_over, next) = (1, false, 0);
        Peer { memory, rng, aim, burst, is_over, written, next, good, honest }
    }

    /// The guest of a new life gets ready, makes named things, and runs.
    pub(crate) fn begin(&mut self) {
        let (carve_out, header) = CarveOut::open(self.memory.clone()).expect("just made");
        let mut registry = Registry::new(carve_out.clone(), &header, MadeBy::Guest);
        let letters = Letters::open(&carve_out, MadeBy::Guest).expect("just made");
        let wishes = [SharedWish::region(4096, 7), SharedWish::semaphore(2), queue()];
        for (text, wish) in NAMES[3..6].iter().zip(&wishes) {
            registry.get(name(text), wish, false).expect("room");
            registry.attach(name(text)).expect("there");
        }
        carve_out.reached(GuestState::Running, header.epoch);
        self.good = self.memory.words().iter().map(|word| word.load(Relaxed)).collect();
        self.honest = Some(Honest { carve_out, registry, letters });
    }

    /// One step of its work.
    pub(crate) fn act(&mut self) {
        let Some((_, part)) = self.aim.map(|aim| &AIMS[aim]) else { return };
        let words = part.start / 4..part.end / 4;
        match self.rng.u8(..32) {
            // All is restored, so that Linux gets further before the next false word.
            0..4 => words.for_each(|at| self.memory.words()[at].store(self.good[at], Relaxed)),
            4..10 => self.play_guest(),
            10..18 => self.play_and_lie(&words),
            _ => (0..self.burst).for_each(|_| self.lie_in(&words)),
        }
    }

    fn lie_in(&mut self, words: &Range<usize>) {
        self.next = if self.next + 1 < words.end { self.next + 1 } else { words.start };
        self.next = self.next.max(words.start);
        let at = if self.rng.bool() { self.next } else { self.used(words) };
        self.write(at);
    }

    /// Does what a correct guest does, and spoils one of the words that this changed, or the word
    /// after one, before Linux has seen it.
    fn play_and_lie(&mut self, words: &Range<usize>) {
        let now = |it: &Peer| -> Vec<u32> {
            it.memory.words()[words.clone()].iter().map(|word| word.load(Relaxed)).collect()
        };
        let before = now(self);
        self.play_guest();
        let changed: Vec<_> = zip(words.clone(), before.iter().zip(now(self)))
            .filter(|(_, (before, now))| *before != now)
            .map(|(at, _)| at)
            .collect();
        if !changed.is_empty() {
            let at = changed[self.rng.usize(..changed.len())] + self.rng.usize(..3);
            self.write(at.min(words.end - 1));
        }
    }

    fn write(&mut self, at: usize) {
        let lie = self.lie(at);
        self.memory.words()[at].store(lie, Relaxed);
        self.written[at] = true;
    }

    /// A word that is not zero, if there is one near a random place: zeros are of little use.
    fn used(&mut self, words: &Range<usize>) -> usize {
        let from = self.rng.usize(words.clone());
        let is_used = |at: &usize| self.memory.words()[*at].load(Relaxed) != 0;
        (from..words.end.min(from + 256)).find(is_used).unwrap_or(from)
    }

    /// A random value, or one near to a plausible value.
    fn lie(&mut self, at: usize) -> u32 {
        let word = |at: usize| -> &AtomicU32 { &self.memory.words()[at] };
        let now = word(at).load(Relaxed);
        match self.rng.u8(..8) {
            0 => self.rng.u32(..),
            1 => EXTREMES[self.rng.usize(..EXTREMES.len())],
            2 => self.rng.u32(..32),
            3 => now ^ 1 << self.rng.u32(..32),
            4 => word(self.rng.usize(..SIZE / 4)).load(Relaxed),
            5 => self.good[at],
            _ => now.wrapping_add(self.rng.u32(..5)).wrapping_sub(2),
        }
    }

    /// Some work of a guest: letters, names, its state. Linux goes on because it answers at all;
    /// the answers are often wrong.
    fn play_guest(&mut self) {
        let Some(Honest { carve_out, registry, letters }) = &mut self.honest else { return };
        let rng = &mut self.rng;
        for _ in 0..4 {
            let Ok(Some(asked)) = letters.asked() else { break };
            let answer = registry.answer(&asked).unwrap_or_else(|| asked.done());
            let _ = letters.answer(&if rng.u8(..4) > 0 { answer } else { odd(rng, &answer) });
        }
        let shared = any_name(rng);
        let mut ask = odd(rng, &AgentLetter::ask(Ask::Get, shared));
        ask.what = rng.u32(..12);
        let _ = letters.ask(&ask);
        let _ = letters.answers();
        let wishes = [SharedWish::region(rng.u32(..9000), 7), SharedWish::semaphore(1), queue()];
        let _ = registry.get(shared, &wishes[rng.usize(..3)], false);
        let _ = (registry.attach(shared), registry.send(shared, &[1; 8]));
        let _ = (registry.receive(shared, &mut [0; 8]), registry.serve_semaphores());
        if let Ok(semaphore) = registry.semaphore(shared) {
            let _ = (semaphore.post(), semaphore.try_take());
        }
        if rng.bool() {
            let _ = (registry.detach(shared), registry.remove(shared));
        }
        carve_out.beat_of_guest(1000);
        carve_out.set_tally(0, &NodeTally { cycles: rng.u32(..), ..NodeTally::default() });
        if rng.u8(..8) == 0 && self.aim == Some(1) {
            carve_out.set_fault(&GuestFault::new(FaultKind::Panic, any_name(rng)));
        }
    }
}

/// A letter of which something is wrong.
fn odd(rng: &mut Rng, letter: &AgentLetter) -> AgentLetter {
    let number = |rng: &mut Rng| if rng.bool() { rng.u32(..) } else { rng.u32(..70) };
    let numbers = std::array::from_fn(|_| number(rng));
    let bytes: Vec<u8> = (0..rng.usize(..80)).map(|_| rng.u8(..)).collect();
    let mut letter = *letter;
    match rng.u8(..5) {
        0 => return letter.numbered(numbers),
        1 => return letter.with(&bytes),
        2 => return letter.named(any_name(rng)),
        3 => letter.what = rng.u32(..30),
        _ => letter.id = letter.id.wrapping_add(rng.u32(..3)),
    }
    letter
}

pub(crate) fn any_name(rng: &mut Rng) -> Name {
    name(NAMES[rng.usize(..NAMES.len())])
}

/// A wish of Linux, of any class.
pub(crate) fn any_wish(rng: &mut Rng) -> SharedWish {
    match [SharedClass::Region, SharedClass::Semaphore, SharedClass::Queue][rng.usize(..3)] {
        SharedClass::Region => SharedWish::region(rng.u32(..9000), 7),
        SharedClass::Semaphore => SharedWish::semaphore(rng.u32(..4)),
        SharedClass::Queue => queue(),
    }
}

/// Whether a side has detected a false value.
pub(crate) fn is_lie(why: SharedRefusal) -> bool {
    why == SharedRefusal::Corrupt
}

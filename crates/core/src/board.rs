//! The board: a page that a domain's process and the parent share. Orders go down, state, faults
//! and privileges go up; each word has one writer.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use crate::fault::{Cause, Fault, TEXT_MAX};
use crate::privileges::Obtained;
use crate::sys::Region;
use crate::sys::timespec;

/// Threads that a domain may have: the board has a place for this many.
pub const THREADS_MAX: usize = 64;

const ORDER: usize = 0;
const STATE: usize = 1;
const START_LOW: usize = 2;
const START_HIGH: usize = 3;
const CAUSE: usize = 4;
const NODE: usize = 5;
const CYCLE_LOW: usize = 6;
const CYCLE_HIGH: usize = 7;
const TEXT_LEN: usize = 8;
const TEXT: usize = 9;
const THREADS: usize = TEXT + TEXT_MAX / 4;
const THREAD_WORDS: usize = 5;
const EDITION: usize = THREADS + THREADS_MAX * THREAD_WORDS;
const WORDS: usize = EDITION + 1;

/// What the parent wants of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DomainOrder {
    /// Make ready, then wait.
    Wait = 0,
    /// Start at the time on the board.
    Run = 1,
    /// Bring the actuators to rest and end.
    Stop = 2,
}

/// What a domain is to do with an edited graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wish {
    /// Make all that it needs, and say whether that went well.
    Prepare = 0,
    /// Let flows begin in it.
    Swap = 1,
    /// Drop it.
    Withdraw = 2,
}

/// How far a domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BoardState {
    /// It makes its nodes and links.
    Starting = 0,
    /// It waits for the order to run.
    Ready = 1,
    /// It runs.
    Running = 2,
    /// A node said that the job is done.
    Finished = 3,
    /// Something went wrong: the board says what.
    Faulted = 4,
}

/// A fault, and where it happened.
#[derive(Clone, Debug)]
pub struct FaultAt {
    /// The fault.
    pub fault: Fault,
    /// Index of the node in the plan.
    pub node: Option<usize>,
    /// Number of the cycle.
    pub cycle: Option<u64>,
}

/// The page. Clones share it.
#[derive(Clone, Debug)]
pub struct Board(Region);

impl Board {
    /// A new page.
    ///
    /// # Errors
    /// The kernel refuses a shared region.
    pub fn create() -> std::io::Result<Board> {
        Region::shared("sinew-board", (WORDS * 4).next_multiple_of(4096)).map(Board)
    }

    /// The page that the parent made.
    pub fn attach(region: Region) -> Option<Board> {
        (region.words().len() >= WORDS).then_some(Board(region))
    }

    /// The memory behind it.
    pub fn region(&self) -> &Region {
        &self.0
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        &self.0.words()[at]
    }

    fn get(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Relaxed)
    }

    fn set(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// The parent orders to run, first release at `start_ns` of the monotonic clock.
    pub fn order_run(&self, start_ns: u64) {
        self.set(START_LOW, start_ns as u32);
        self.set(START_HIGH, (start_ns >> 32) as u32);
        self.order(DomainOrder::Run);
    }

    /// The parent orders to stop.
    pub fn order_stop(&self) {
        self.order(DomainOrder::Stop);
    }

    fn order(&self, order: DomainOrder) {
        // Release: the start time is there before the order; pairs with the load in current_order.
        self.word(ORDER).store(order as u32, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Waking nobody is no failure.
        let _ = futex::wake(self.word(ORDER), futex::Flags::empty(), i32::MAX as u32);
    }

    /// The parent says what to do with an edited graph; they are numbered from 1. A thread that
    /// sleeps in [`Board::sleep_while`] wakes up, or looks when that ends.
    pub fn say_edition(&self, number: u32, wish: Wish) {
        self.set(EDITION, number << 2 | wish as u32);
        self.wake();
    }

    /// The newest edited graph, and what to do with it; `None` before the first.
    pub fn edition(&self) -> Option<(u32, Wish)> {
        let word = self.get(EDITION);
        let wish = match word & 3 {
            0 => Wish::Prepare,
            1 => Wish::Swap,
            _ => Wish::Withdraw,
        };
        Some((word >> 2, wish)).filter(|(number, _)| *number > 0)
    }

    /// What the parent wants now.
    #[inline]
    pub fn current_order(&self) -> DomainOrder {
        // Acquire: pairs with the store in order.
        match self.word(ORDER).load(Ordering::Acquire) {
            0 => DomainOrder::Wait,
            1 => DomainOrder::Run,
            _ => DomainOrder::Stop,
        }
    }

    /// Sleeps while the order is `order`, `for_ns` at most.
    pub fn sleep_while(&self, order: DomainOrder, for_ns: u64) {
        // Whatever ends the sleep, the caller looks again.
        let time = timespec(for_ns);
        let _ = futex::wait(self.word(ORDER), futex::Flags::empty(), order as u32, Some(&time));
    }

    /// Time of the first release, monotonic ns.
    pub fn start_ns(&self) -> u64 {
        u64::from(self.get(START_HIGH)) << 32 | u64::from(self.get(START_LOW))
    }

    /// The domain says how far it is.
    pub fn set_state(&self, state: BoardState) {
        // Release: what the domain wrote before (fault, privileges) is there; pairs with state.
        self.word(STATE).store(state as u32, Ordering::Release);
    }

    /// How far the domain is.
    pub fn state(&self) -> BoardState {
        // Acquire: pairs with the store in set_state.
        match self.word(STATE).load(Ordering::Acquire) {
            0 => BoardState::Starting,
            1 => BoardState::Ready,
            2 => BoardState::Running,
            3 => BoardState::Finished,
            _ => BoardState::Faulted,
        }
    }

    /// The domain says what went wrong.
    pub fn report(&self, at: &FaultAt) {
        self.set(CAUSE, at.fault.cause as u32);
        self.set(NODE, at.node.map_or(0, |node| node as u32 + 1));
        let cycle = at.cycle.map_or(0, |cycle| cycle + 1);
        self.set(CYCLE_LOW, cycle as u32);
        self.set(CYCLE_HIGH, (cycle >> 32) as u32);
        let text = at.fault.text().as_bytes();
        self.set(TEXT_LEN, text.len() as u32);
        for (at, bytes) in text.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.set(TEXT + at, u32::from_le_bytes(word));
        }
        self.set_state(BoardState::Faulted);
    }

    /// What went wrong, if the domain said so.
    pub fn fault(&self) -> Option<FaultAt> {
        if self.state() != BoardState::Faulted {
            return None;
        }
        let cause = Cause::from_number(self.get(CAUSE)).unwrap_or(Cause::Died);
        let words = (TEXT..THREADS).flat_map(|at| self.get(at).to_le_bytes());
        let text: Vec<u8> = words.take(self.get(TEXT_LEN) as usize).collect();
        // Control characters would act on the terminal of the reader.
        let text = String::from_utf8_lossy(&text)
            .replace('\n', " ")
            .replace(|c: char| c.is_control(), "\u{fffd}");
        let fault = Fault::new(cause, format_args!("{text}"));
        let node = (self.get(NODE) as usize).checked_sub(1);
        let cycle = u64::from(self.get(CYCLE_HIGH)) << 32 | u64::from(self.get(CYCLE_LOW));
        Some(FaultAt { fault, node, cycle: cycle.checked_sub(1) })
    }

    /// Thread `thread` of the domain says what the kernel gave it.
    pub fn set_obtained(&self, thread: usize, obtained: &Obtained) {
        let at = THREADS + thread * THREAD_WORDS;
        self.set(at, obtained.policy as u32);
        self.set(at + 1, u32::from(obtained.priority));
        self.set(at + 2, obtained.cpu.map_or(0, |cpu| cpu + 1));
        self.set(at + 3, obtained.locked_kib);
    }

    /// Thread `thread` of the domain says its number in the kernel.
    pub fn set_thread_id(&self, thread: usize, id: u32) {
        self.set(THREADS + thread * THREAD_WORDS + 4, id);
    }

    /// The kernel's number of thread `thread`; `None` before it has started.
    pub fn thread_id(&self, thread: usize) -> Option<u32> {
        Some(self.get(THREADS + thread * THREAD_WORDS + 4)).filter(|&id| id != 0)
    }

    /// What the kernel gave to thread `thread`.
    pub fn obtained(&self, thread: usize) -> Obtained {
        let at = THREADS + thread * THREAD_WORDS;
        Obtained {
            policy: self.get(at) as i32,
            priority: self.get(at + 1) as u8,
            cpu: self.get(at + 2).checked_sub(1),
            locked_kib: self.get(at + 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let board = Board::create().expect("memfd");
        let same = board.region().file().expect("fd").try_clone_to_owned().expect("dup");
        let other = Board::attach(Region::map(same).expect("mmap")).expect("long enough");
        assert_eq!(
            (other.current_order(), other.state()),
            (DomainOrder::Wait, BoardState::Starting)
        );
        board.order_run(0x1234_5678_9abc_def0);
        assert_eq!(
            (other.current_order(), other.start_ns()),
            (DomainOrder::Run, 0x1234_5678_9abc_def0)
        );
        let fault = Fault::new(Cause::Overrun, format_args!("late by {} us", 137));
        other.report(&FaultAt { fault, node: Some(2), cycle: Some(u64::MAX - 1) });
        let seen = board.fault().expect("a fault");
        assert_eq!(seen.fault.text(), "late by 137 us");
        assert_eq!((seen.fault.cause, seen.node), (Cause::Overrun, Some(2)));
        assert_eq!(other.edition(), None);
        board.say_edition(7, Wish::Swap);
        assert_eq!(other.edition(), Some((7, Wish::Swap)));
        assert_eq!(seen.cycle, Some(u64::MAX - 1));
        let obtained = Obtained { policy: 1, priority: 80, cpu: Some(0), locked_kib: 4096 };
        other.set_obtained(THREADS_MAX - 1, &obtained);
        assert_eq!(board.obtained(THREADS_MAX - 1), obtained);
    }

    #[test]
    fn a_board_full_of_garbage_is_only_garbage() {
        let board = Board::create().expect("memfd");
        for word in board.region().words() {
            word.store(u32::MAX, Ordering::Relaxed);
        }
        assert_eq!(board.state(), BoardState::Faulted);
        assert_eq!(board.fault().expect("a fault").fault.cause, Cause::Died);
        assert_eq!(board.current_order(), DomainOrder::Stop);
    }
}

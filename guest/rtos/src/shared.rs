//! Named memory that this guest and Linux share: regions, semaphores, message queues.
//!
//! All functions take the name of the thing. Those with a deadline may block the calling node. So a
//! node with a short period gives 0 and calls again, or leaves the work to a job
//! ([`jobs!`](crate::jobs!)).

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use sinew_carve_out::{
    AgentLetter, Ask, CarveOut, Letters, LettersBroken, MadeBy, Name, Registry, SharedClass,
    SharedEntry, SharedHolds, SharedRefusal, SharedWish,
};
use sinew_link::{RawMemory, SharedWords};

use crate::once::Once;
use crate::{board, kernel};

/// Most requests of this guest that wait for an answer. A further request is refused as busy.
const WAITING_MAX: usize = 8;

/// This side of everything that is shared.
pub(crate) struct Desk {
    pub(crate) registry: Registry<RawMemory>,
    letters: Letters<RawMemory>,
    /// Whether the letters of Linux are nonsense. Then nothing more is read or sent.
    is_broken: bool,
    last_id: u32,
    /// Requests that were sent, with their answers.
    waiting: [Option<(u32, Option<AgentLetter>)>; WAITING_MAX],
}

/// A value that only one thread uses at a time, while the others do not run.
struct Alone<T>(UnsafeCell<T>, AtomicBool);

// SAFETY: reached through `with` only, where no other thread runs; interrupts do not use it.
unsafe impl<T: Send> Sync for Alone<T> {}

/// Room for one letter, from when it is put there until it is cleared.
pub(crate) struct Slot(UnsafeCell<Option<AgentLetter>>);

// SAFETY: reached while no other thread runs.
unsafe impl Sync for Slot {}

impl Slot {
    pub(crate) const fn new() -> Slot {
        Slot(UnsafeCell::new(None))
    }

    /// Puts a letter there. Returns whether there was room.
    pub(crate) fn put(&self, letter: AgentLetter) -> bool {
        // SAFETY: see `Sync`; the borrow ends here.
        let slot = || unsafe { &mut *self.0.get() };
        kernel::alone(|| {
            let is_free = slot().is_none();
            if is_free {
                *slot() = Some(letter);
            }
            is_free
        })
    }

    /// A copy of the letter.
    pub(crate) fn get(&self) -> Option<AgentLetter> {
        // SAFETY: as in `put`.
        kernel::alone(|| unsafe { *self.0.get() })
    }

    /// Frees the room.
    pub(crate) fn clear(&self) {
        // SAFETY: as in `put`.
        kernel::alone(|| unsafe { *self.0.get() = None });
    }
}

static DESK: Once<Alone<Box<Desk>>> = Once::new();

// SAFETY: memory at a fixed address, and ends of links in it: any thread may use them.
unsafe impl Send for Desk {}

/// Opens this side. Must be called by the start.
pub(crate) fn open(carve_out: &CarveOut<RawMemory>) -> Result<(), &'static str> {
    let memory = *carve_out.memory();
    let (carve_out, header) = CarveOut::open(memory).map_err(|_| "the carve-out has changed")?;
    let letters = Letters::open(&carve_out, MadeBy::Guest).map_err(|_| "its letters are none")?;
    let registry = Registry::new(carve_out, &header, MadeBy::Guest);
    let waiting = [const { None }; WAITING_MAX];
    let desk = Desk { registry, letters, is_broken: false, last_id: 0, waiting };
    DESK.set(Alone(UnsafeCell::new(Box::new(desk)), AtomicBool::new(false)));
    Ok(())
}

/// Calls `act` with the desk while no other thread runs. `act` must not wait.
///
/// Tables, letters and semaphores are words that both sides write all the time. There are no cache
/// operations for them here: a board whose caches Linux does not share maps them uncached. The
/// bytes of regions and queues are put in step where they are used.
pub(crate) fn with<T>(act: impl FnOnce(&mut Desk) -> T) -> T {
    let desk = DESK.get().expect("the start opens it before anybody runs");
    kernel::alone(|| {
        // Relaxed: one core, and no other thread runs.
        assert!(!desk.1.swap(true, Ordering::Relaxed), "the desk is used within its use");
        // SAFETY: no other thread runs, and this one is not inside already.
        let done = act(unsafe { &mut *desk.0.get() });
        desk.1.store(false, Ordering::Relaxed);
        done
    })
}

impl Desk {
    /// The next request of Linux.
    pub(crate) fn asked(&mut self) -> Option<AgentLetter> {
        let asked = if self.is_broken { Ok(None) } else { self.letters.asked() };
        self.or_broken(asked).flatten()
    }

    /// Answers Linux. If there is no room the answer is lost, and the deadline of Linux reports
    /// that.
    pub(crate) fn answer(&mut self, letter: &AgentLetter) {
        let answered = if self.is_broken { Ok(false) } else { self.letters.answer(letter) };
        self.or_broken(answered);
    }

    /// Matches the answers that have come to their requests. An answer to no request came too late,
    /// and is dropped.
    pub(crate) fn sort(&mut self) {
        for _ in 0..WAITING_MAX {
            let answers = if self.is_broken { Ok(None) } else { self.letters.answers() };
            let Some(Some(answer)) = self.or_broken(answers) else { break };
            let slot = self.waiting.iter_mut().flatten().find(|(id, _)| *id == answer.id);
            if let Some((_, place)) = slot {
                *place = Some(answer);
            }
        }
    }

    fn or_broken<T>(&mut self, outcome: Result<T, LettersBroken>) -> Option<T> {
        self.is_broken |= outcome.is_err();
        outcome.ok()
    }

    /// Sends a request to Linux. Returns the index in `waiting` at which the answer will be.
    fn ask(&mut self, letter: &AgentLetter) -> Result<usize, SharedRefusal> {
        let slot = self.waiting.iter().position(Option::is_none).ok_or(SharedRefusal::Busy)?;
        self.last_id = self.last_id.wrapping_add(1);
        let request = letter.as_request(self.last_id);
        let sent = if self.is_broken { Err(LettersBroken) } else { self.letters.ask(&request) };
        match self.or_broken(sent) {
            Some(true) => self.waiting[slot] = Some((request.id, None)),
            Some(false) => return Err(SharedRefusal::Busy),
            None => return Err(SharedRefusal::Corrupt),
        }
        Ok(slot)
    }
}

/// Repeats `attempt` until it succeeds or the deadline is over. Other threads run between two
/// attempts.
fn until<T>(
    deadline_ms: u32,
    mut attempt: impl FnMut() -> Result<Option<T>, SharedRefusal>,
) -> Result<T, SharedRefusal> {
    let since = kernel::ticks();
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        if kernel::ticks().wrapping_sub(since) >= deadline_ms || !kernel::has_started() {
            return Err(SharedRefusal::Late);
        }
        kernel::pause(1);
    }
}

/// Sends a request to Linux and waits for the answer.
fn ask(letter: &AgentLetter, deadline_ms: u32) -> Result<AgentLetter, SharedRefusal> {
    let slot = with(|desk| desk.ask(letter))?;
    board::ring(0);
    let answer = until(deadline_ms, || {
        Ok(with(|desk| {
            desk.sort();
            desk.waiting[slot].and_then(|(_, answer)| answer)
        }))
    });
    with(|desk| desk.waiting[slot] = None);
    let answer = answer?;
    answer.outcome().map(|()| answer)
}

fn name_of(name: &str) -> Result<Name, SharedRefusal> {
    Name::new(name).ok_or(SharedRefusal::BadName)
}

/// Finds the thing with this name, or has it made: by this guest's allocator, or by Linux's.
///
/// # Errors
/// The name belongs to something else, the wish cannot be met, or Linux did not answer.
pub fn get(
    name: &str,
    wish: &SharedWish,
    maker: MadeBy,
    deadline_ms: u32,
) -> Result<SharedEntry, SharedRefusal> {
    let name = name_of(name)?;
    let found = with(|desk| desk.registry.find(name));
    if found.is_some() || maker == MadeBy::Guest {
        return with(|desk| desk.registry.get(name, wish, false));
    }
    let SharedWish { class, size, hash, detail: [first, second] } = *wish;
    let letter =
        AgentLetter::ask(Ask::Get, name).numbered([class as u32, size, hash, first, second]);
    ask(&letter, deadline_ms)?;
    // Linux wrote its entry before it answered.
    with(|desk| desk.registry.find(name)).ok_or(SharedRefusal::Unknown)
}

/// Attaches the thing with this name: it stays until this side detaches it.
///
/// # Errors
/// There is no such thing.
pub fn attach(name: &str) -> Result<SharedEntry, SharedRefusal> {
    let name = name_of(name)?;
    with(|desk| desk.registry.attach(name))
}

/// Detaches it, once for each [`attach`].
///
/// # Errors
/// This side does not hold it.
pub fn detach(name: &str) -> Result<(), SharedRefusal> {
    let name = name_of(name)?;
    with(|desk| desk.registry.detach(name))
}

/// Removes it. If Linux made it, Linux is asked to remove it.
///
/// # Errors
/// A side holds it, there is no such thing, or Linux did not answer.
pub fn remove(name: &str, deadline_ms: u32) -> Result<(), SharedRefusal> {
    let name = name_of(name)?;
    let found = with(|desk| desk.registry.find(name)).ok_or(SharedRefusal::Unknown)?;
    match found.maker {
        MadeBy::Guest => with(|desk| desk.registry.remove(name)),
        MadeBy::Linux => ask(&AgentLetter::ask(Ask::Remove, name), deadline_ms).map(drop),
    }
}

/// The thing at place `place` of 64 in the registry.
pub fn at(place: usize) -> Option<SharedHolds> {
    with(|desk| desk.registry.at(place))
}

/// The bytes of a region that this side holds, with its entry.
pub(crate) fn region(
    name: &str,
) -> Result<(SharedEntry, SharedWords<impl sinew_link::Memory + use<>>), SharedRefusal> {
    let name = name_of(name)?;
    with(|desk| {
        let entry = desk.registry.held(name, SharedClass::Region)?;
        desk.registry.region(name).map(|words| (entry, words))
    })
}

fn is_inside(entry: &SharedEntry, at: usize, len: usize) -> Result<usize, SharedRefusal> {
    let ends = at.checked_add(len).is_some_and(|end| end <= entry.wish.size as usize);
    let base = board::CARVE_OUT + entry.offset as usize + at;
    if ends && at.is_multiple_of(4) { Ok(base) } else { Err(SharedRefusal::BadSize) }
}

/// Copies bytes out of a region that this side holds, from a multiple of 4 on.
///
/// # Errors
/// This side does not hold it, or not all of the bytes are inside.
pub fn read(name: &str, at: usize, bytes: &mut [u8]) -> Result<(), SharedRefusal> {
    let (entry, words) = region(name)?;
    board::before_read(is_inside(&entry, at, bytes.len())?, bytes.len());
    words.read(at, bytes);
    Ok(())
}

/// Writes bytes into a region that this side holds, from a multiple of 4 on.
///
/// # Errors
/// As for [`read`].
pub fn write(name: &str, at: usize, bytes: &[u8]) -> Result<(), SharedRefusal> {
    let (entry, words) = region(name)?;
    let base = is_inside(&entry, at, bytes.len())?;
    words.write(at, bytes);
    board::after_write(base, bytes.len());
    Ok(())
}

/// Adds a token to a semaphore that this side holds.
///
/// # Errors
/// This side does not hold it, or its words are garbage.
pub fn post(name: &str) -> Result<(), SharedRefusal> {
    let name = name_of(name)?;
    with(|desk| desk.registry.semaphore(name)?.post().map_err(|_| SharedRefusal::Corrupt))?;
    board::ring(0);
    Ok(())
}

/// Takes a token of a semaphore that this side holds, within `deadline_ms`.
///
/// # Errors
/// There was no token in time, this side does not hold it, or its words are garbage.
pub fn take(name: &str, deadline_ms: u32) -> Result<(), SharedRefusal> {
    let name = name_of(name)?;
    with(|desk| desk.registry.semaphore(name).map(|semaphore| semaphore.begin_wait()))?;
    // Linux checks whether it has a token to spare.
    board::ring(0);
    let taken = until(deadline_ms, || {
        let taken = with(|desk| Ok(desk.registry.semaphore(name)?.try_take()));
        taken?.map(|taken| taken.then_some(())).map_err(|_| SharedRefusal::Corrupt)
    });
    with(|desk| desk.registry.semaphore(name).map(|semaphore| semaphore.end_wait()))?;
    taken
}

/// Sends a message through a queue that this side holds, within `deadline_ms`.
///
/// # Errors
/// There was no room in time, this side does not hold it, the message has another size, or its
/// words are garbage.
pub fn send(name: &str, message: &[u8], deadline_ms: u32) -> Result<(), SharedRefusal> {
    through(name, deadline_ms, |desk, name| desk.registry.send(name, message))?;
    board::ring(0);
    Ok(())
}

/// Receives a message through a queue that this side holds, within `deadline_ms`.
///
/// # Errors
/// No message came in time, or as for [`send`].
pub fn receive(name: &str, message: &mut [u8], deadline_ms: u32) -> Result<(), SharedRefusal> {
    through(name, deadline_ms, |desk, name| desk.registry.receive(name, message))?;
    // Linux may wait for the room that this frees.
    board::ring(0);
    Ok(())
}

fn through(
    name: &str,
    deadline_ms: u32,
    mut act: impl FnMut(&mut Desk, Name) -> Result<bool, SharedRefusal>,
) -> Result<(), SharedRefusal> {
    let name = name_of(name)?;
    until(deadline_ms, || {
        with(|desk| {
            let entry = desk.registry.held(name, SharedClass::Queue)?;
            let (at, len) = (board::CARVE_OUT + entry.offset as usize, entry.wish.size as usize);
            board::before_read(at, len);
            let done = act(desk, name)?;
            board::after_write(at, len);
            Ok(done.then_some(()))
        })
    })
}

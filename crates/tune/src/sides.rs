//! Two sides with a pair of links between them, one in each direction. Everything that is measured
//! has this form, and is timed here. The far side answers until it is told to stop ([`answer`]).
//! The near side measures: [`round_trips`] one message at a time, [`stream`] as many as possible.

mod life;
mod place;
pub mod token;
mod waits;

pub use life::{Life, Patience, SILENT_NS_MAX};
pub use place::{Cpus, on_thread, on_threads, other_pages, stay_on};
use sinew_core::clock::Clock;
pub use waits::Waits;

/// The links broke: the other side is gone, or the contender failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone(pub String);

/// One side of a contender.
pub trait Side {
    /// Writes every byte of the next message, as words that all equal `word`, and sends it. Waits
    /// for room with the contender's own wait strategy.
    ///
    /// # Errors
    /// The other side is gone.
    fn send(&mut self, word: u64) -> Result<(), Gone>;

    /// Waits for a message with the contender's own wait strategy, reads every byte of it, and
    /// returns its first word.
    ///
    /// # Errors
    /// The other side is gone.
    fn receive(&mut self) -> Result<u64, Gone>;
}

impl<S: Side> Side for &mut S {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        (**self).send(word)
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        (**self).receive()
    }
}

/// The upper bits of a message's words tell the far side what to do with it.
const ORDER: u64 = 0b11 << 62;
/// Send it back.
const ECHO: u64 = 0b00 << 62;
/// Do not answer.
const SINK: u64 = 0b01 << 62;
/// Stop.
const STOP: u64 = 0b11 << 62;

/// The far side: carries out each order until it is told to stop.
///
/// # Errors
/// The near side is gone.
pub fn answer(side: &mut impl Side) -> Result<(), Gone> {
    loop {
        let word = side.receive()?;
        match word & ORDER {
            ECHO => side.send(word)?,
            STOP => return Ok(()),
            _ => {}
        }
    }
}

/// Tells the far side to stop.
///
/// # Errors
/// The far side is already gone.
pub fn stop(side: &mut impl Side) -> Result<(), Gone> {
    side.send(STOP)
}

/// Sends one message there and back, `trips` times. `each` is called with the time of every trip,
/// ns.
///
/// # Errors
/// The far side is gone, or answers with something that it was not sent.
#[inline]
pub fn round_trips(
    side: &mut impl Side,
    clock: Clock,
    trips: u64,
    mut each: impl FnMut(u64),
) -> Result<(), Gone> {
    let mut before = clock.ticks();
    for trip in 0..trips {
        side.send(ECHO | trip)?;
        let back = side.receive()?;
        let now = clock.ticks();
        if back != ECHO | trip {
            return Err(Gone(format!("sent {trip}, got {back:#x} back")));
        }
        each(clock.ns(now.wrapping_sub(before)));
        // The time that `each` takes is not part of the next trip.
        before = clock.ticks();
    }
    Ok(())
}

/// Sends `messages` one after another, as fast as possible. The last one comes back, which shows
/// that all have arrived. Returns the time per message, ns.
///
/// # Errors
/// The far side is gone.
#[inline]
pub fn stream(side: &mut impl Side, clock: Clock, messages: u64) -> Result<f64, Gone> {
    let before = clock.ticks();
    for message in 1..messages {
        side.send(SINK | message)?;
    }
    side.send(ECHO | messages)?;
    side.receive()?;
    let ns = clock.ns(clock.ticks().wrapping_sub(before));
    Ok(ns as f64 / messages as f64)
}

//! The jobs in every image: enough to try everything that crosses, from either side.

use core::fmt::Write as _;

use sinew_carve_out::{MadeBy, SharedRefusal, SharedWish};

use super::{Job, JobAnswer, JobCall};
use crate::{Fault, board, fault, kernel, shared};

/// Longest nap and longest wait, ms, as a job cannot be interrupted.
const WAIT_MS_MAX: u32 = 10_000;
/// Longest message that `pass` passes on.
const MESSAGE_MAX: usize = 256;

/// The jobs. The text of a call is the name of the thing that the job works with.
pub(super) const OURS: [Job; 9] = [
    Job { name: "echo", doc: "answers with the text and the numbers of the call", run: echo },
    Job { name: "nap", doc: "sleeps so many ms, at most 10000", run: nap },
    Job { name: "invert", doc: "inverts each byte of a region", run: invert },
    Job { name: "fill", doc: "fills a region with a pattern that begins with a number", run: fill },
    Job { name: "get", doc: "gets a region: bytes, made by (0 linux, 1 guest)", run: get },
    Job { name: "remove", doc: "removes what has this name", run: remove },
    Job { name: "take", doc: "takes a token of a semaphore within so many ms", run: take },
    Job { name: "post", doc: "posts a token to a semaphore", run: post },
    Job { name: "pass", doc: "sends back a message: bytes, within so many ms", run: pass },
];

fn echo(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    answer.numbers = *call.numbers();
    // A text that is too long is cut.
    let _ = answer.write_str(call.text());
    Ok(())
}

fn nap(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    let pause_ms = call.numbers()[0];
    if !(1..=WAIT_MS_MAX).contains(&pause_ms) {
        return Err(fault!("a nap of {pause_ms} ms; give 1 to {WAIT_MS_MAX}"));
    }
    kernel::pause(pause_ms);
    answer.numbers[0] = pause_ms;
    Ok(())
}

fn refused(call: &JobCall, why: SharedRefusal) -> Fault {
    fault!("'{}': {why}", call.text())
}

/// Attaches the thing that the call names, works with it, and detaches it.
fn held(call: &JobCall, act: impl FnOnce(&str) -> Result<(), SharedRefusal>) -> Result<(), Fault> {
    let name = call.text();
    let done = shared::attach(name).and_then(|_| {
        let done = act(name);
        shared::detach(name).and(done)
    });
    done.map_err(|why| refused(call, why))
}

/// Applies `act` to each word of a region.
fn through(
    call: &JobCall,
    answer: &mut JobAnswer,
    mut act: impl FnMut(usize, u32) -> u32,
) -> Result<(), Fault> {
    held(call, |name| {
        let (entry, words) = shared::region(name)?;
        let (at, len) = (board::CARVE_OUT + entry.offset as usize, entry.wish.size as usize);
        board::before_read(at, len);
        for place in (0..len).step_by(4) {
            words.set(place, act(place / 4, words.get(place)));
        }
        board::after_write(at, len);
        answer.numbers = [entry.wish.size, at as u32, entry.offset, 0, 0];
        Ok(())
    })
}

fn invert(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    through(call, answer, |_, word| !word)
}

fn fill(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    let first = call.numbers()[0];
    through(call, answer, |place, _| first.wrapping_add((place as u32).wrapping_mul(0x9e37_79b9)))
}

fn get(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    let [bytes, maker, ..] = *call.numbers();
    let maker = if maker == 0 { MadeBy::Linux } else { MadeBy::Guest };
    let entry = shared::get(call.text(), &SharedWish::region(bytes, 0), maker, WAIT_MS_MAX / 10)
        .map_err(|why| refused(call, why))?;
    answer.numbers = [entry.offset, entry.wish.size, entry.maker as u32, entry.index, 0];
    Ok(())
}

fn remove(call: &JobCall, _: &mut JobAnswer) -> Result<(), Fault> {
    shared::remove(call.text(), WAIT_MS_MAX / 10).map_err(|why| refused(call, why))
}

fn take(call: &JobCall, _: &mut JobAnswer) -> Result<(), Fault> {
    let within_ms = call.numbers()[0].min(WAIT_MS_MAX);
    held(call, |name| shared::take(name, within_ms))
}

fn post(call: &JobCall, _: &mut JobAnswer) -> Result<(), Fault> {
    held(call, shared::post)
}

fn pass(call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
    let [bytes, within_ms, ..] = *call.numbers();
    let mut message = [0; MESSAGE_MAX];
    let message = message
        .get_mut(..bytes as usize)
        .ok_or_else(|| fault!("a message of {bytes} bytes; at most {MESSAGE_MAX}"))?;
    held(call, |name| {
        let within_ms = within_ms.min(WAIT_MS_MAX);
        shared::receive(name, message, within_ms)?;
        shared::send(name, message, within_ms)
    })?;
    answer.numbers[0] = bytes;
    Ok(())
}

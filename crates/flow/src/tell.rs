//! Lines for the log: what went wrong inside, which callers do not get to see.
//!
//! A flow never waits for the log. A worker puts a line into a bounded queue; lines that find no
//! room are only counted. The crew writes the lines to standard error, a limited number a second,
//! and says how many were left out.

use std::cell::Cell;
use std::fmt;
use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sinew_control::outside;

/// Most lines of a domain in a second. The supervisor keeps 50 of a service, and other parts of the
/// service also write lines.
const LINES_PER_S_MAX: u32 = 20;

/// Longest line, in characters; longer ones are cut. The log breaks lines of 1000 bytes.
const LINE_CHARS_MAX: usize = 900;

/// Takes the lines of a worker's nodes.
#[derive(Clone)]
pub(crate) struct Teller(Option<Queue>);

#[derive(Clone)]
struct Queue {
    lines: SyncSender<String>,
    /// Lines that found no room.
    lost: Arc<AtomicU64>,
}

/// The lines that the tellers of a domain have taken.
pub(crate) struct Told {
    lines: Receiver<String>,
    sender: SyncSender<String>,
    lost: Vec<Arc<AtomicU64>>,
    /// How many of the lost lines were reported.
    lost_told: u64,
    /// Lines written in the second that began at `second`.
    written: u32,
    second: Cell<Instant>,
}

impl Teller {
    /// A teller that writes at once, for use without a crew: in tests and `sinew test`.
    pub(crate) fn direct() -> Teller {
        Teller(None)
    }

    /// Takes a line.
    pub(crate) fn say(&self, line: fmt::Arguments<'_>) {
        let line = one_line(&line.to_string());
        match &self.0 {
            None => write(&line),
            Some(queue) => {
                if queue.lines.try_send(line).is_err() {
                    // Relaxed: it is a number alone, and no other data goes with it. Only this
                    // worker adds to it.
                    queue.lost.store(queue.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Told {
    /// No lines and no tellers yet.
    pub(crate) fn new() -> Told {
        let (sender, lines) = sync_channel(LINES_PER_S_MAX as usize);
        let second = Cell::new(Instant::now());
        Told { lines, sender, lost: Vec::new(), lost_told: 0, written: 0, second }
    }

    /// The teller of a new worker.
    pub(crate) fn teller(&mut self) -> Teller {
        let lost = Arc::new(AtomicU64::new(0));
        self.lost.push(Arc::clone(&lost));
        Teller(Some(Queue { lines: self.sender.clone(), lost }))
    }

    /// Writes the waiting lines, as many as this second allows. To be called again and again.
    pub(crate) fn write(&mut self) {
        self.hand_over(Instant::now(), &mut write);
    }

    fn hand_over(&mut self, now: Instant, each: &mut dyn FnMut(&str)) {
        if now.duration_since(self.second.get()) >= Duration::from_secs(1) {
            self.second.set(now);
            self.written = 0;
            // Relaxed: as in `Teller::say`.
            let lost: u64 = self.lost.iter().map(|lost| lost.load(Ordering::Relaxed)).sum();
            let more = lost - self.lost_told;
            self.lost_told = lost;
            if more > 0 {
                each(&format!("{more} more errors of flows, which are not shown"));
            }
        }
        while self.written < LINES_PER_S_MAX
            && let Ok(line) = self.lines.try_recv()
        {
            self.written += 1;
            each(&line);
        }
    }
}

/// A text as one line that is not too long, without secrets. One line, so that a caller cannot
/// write lines of his own into the log.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LINE_CHARS_MAX));
    // A character has at most four bytes.
    let text = outside::hide_first(text, 4 * LINE_CHARS_MAX);
    for (count, char) in text.chars().enumerate() {
        if count == LINE_CHARS_MAX {
            line += "...";
            break;
        }
        match char.is_control() {
            true => line.extend(char.escape_default()),
            false => line.push(char),
        }
    }
    line
}

fn write(line: &str) {
    // If standard error is closed, only the counters tell.
    let _ = writeln!(stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_line_of_bounded_length() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(one_line(&"x".repeat(5000)).len(), LINE_CHARS_MAX + 3);
    }

    #[test]
    fn too_many_lines_are_counted_and_the_count_is_told() {
        let mut told = Told::new();
        let teller = told.teller();
        (0..50).for_each(|at| teller.say(format_args!("line {at}")));
        let (begun, mut seen) = (told.second.get(), Vec::new());
        told.hand_over(begun, &mut |line| seen.push(line.to_owned()));
        assert_eq!(seen.len(), LINES_PER_S_MAX as usize);
        assert_eq!(seen.last().map(String::as_str), Some("line 19"));
        teller.say(format_args!("later"));
        told.hand_over(begun, &mut |line| seen.push(line.to_owned()));
        assert_eq!(seen.len(), LINES_PER_S_MAX as usize, "this second is full");
        let next = begun + Duration::from_secs(1);
        told.hand_over(next, &mut |line| seen.push(line.to_owned()));
        let news = &seen[LINES_PER_S_MAX as usize..];
        assert_eq!(news, ["30 more errors of flows, which are not shown", "later"]);
    }
}

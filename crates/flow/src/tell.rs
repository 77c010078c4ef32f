//! Lines for the log: what went wrong inside, which nobody who asked gets to see.
//!
//! A flow never waits for them. A worker puts a line into a bounded queue; past that it counts. The
//! crew writes them to standard error, so many a second, and says how many it left out.

use std::cell::Cell;
use std::fmt;
use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sinew_control::outside;

/// Lines of a domain in a second. The supervisor keeps 50 of a service, and others have something
/// to say too.
const LINES_PER_S_MAX: u32 = 20;

/// Longest line, in characters; the log breaks lines of 1000 bytes. What is longer is cut.
const LINE_CHARS_MAX: usize = 900;

/// Where the nodes of a worker say what went wrong.
#[derive(Clone)]
pub(crate) struct Teller(Option<Queue>);

#[derive(Clone)]
struct Queue {
    lines: SyncSender<String>,
    /// Lines that found no room.
    lost: Arc<AtomicU64>,
}

/// What tellers of a domain have said.
pub(crate) struct Told {
    lines: Receiver<String>,
    sender: SyncSender<String>,
    lost: Vec<Arc<AtomicU64>>,
    /// As many of those were told.
    lost_told: u64,
    /// Of the second that began then.
    written: u32,
    second: Cell<Instant>,
}

impl Teller {
    /// One that writes at once, where there is no crew: in tests and `sinew test`.
    pub(crate) fn direct() -> Teller {
        Teller(None)
    }

    /// Says a line.
    pub(crate) fn say(&self, line: fmt::Arguments<'_>) {
        let line = one_line(&line.to_string());
        match &self.0 {
            None => write(&line),
            Some(queue) => {
                if queue.lines.try_send(line).is_err() {
                    // Relaxed: a number, and nothing that goes with it; this worker alone adds.
                    queue.lost.store(queue.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Told {
    /// Nothing yet.
    pub(crate) fn new() -> Told {
        let (sender, lines) = sync_channel(LINES_PER_S_MAX as usize);
        let second = Cell::new(Instant::now());
        Told { lines, sender, lost: Vec::new(), lost_told: 0, written: 0, second }
    }

    /// Where the lines of a new worker go.
    pub(crate) fn teller(&mut self) -> Teller {
        let lost = Arc::new(AtomicU64::new(0));
        self.lost.push(Arc::clone(&lost));
        Teller(Some(Queue { lines: self.sender.clone(), lost }))
    }

    /// Writes what was said, if this second bears it; to be called again and again.
    pub(crate) fn write(&mut self) {
        self.hand_over(Instant::now(), &mut write);
    }

    fn hand_over(&mut self, now: Instant, each: &mut dyn FnMut(&str)) {
        if now.duration_since(self.second.get()) >= Duration::from_secs(1) {
            self.second.set(now);
            self.written = 0;
            // Relaxed: as above.
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

/// A text in one line that is not too long, without what nobody is shown: nobody who asks may write
/// lines of his own.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LINE_CHARS_MAX));
    // A character has four bytes at most.
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
    // Nobody listens: then the counters tell.
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

//! Where each thread of a recording ends, in each life of the core. A replay proves nothing about
//! what a thread did after that.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::format::RecordedGap;

/// The recorder visits threads one after another, so the threads of one life end at most this far
/// apart. A thread that is further behind has lost its last cycles, or ended before the others.
const APART_NS_MAX: u64 = 100_000_000;

/// The cycles of a thread that are in a recording, in one life of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Start of the last one, monotonic.
    pub(super) start_ns: u64,
    /// Whether the last cycle was part of a stop, or failed.
    pub(super) is_of_stop: bool,
}

/// The end of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadEnd {
    life: u32,
    thread: String,
    /// `None` if none of its cycles is there.
    seen: Option<Seen>,
    /// Time from its last cycle to the last cycle of the life.
    behind_ns: u64,
}

/// The ends of the threads of a life, each with its name.
pub(super) fn of_life<'a>(
    life: u32,
    threads: impl Iterator<Item = (&'a str, Option<Seen>)> + Clone,
) -> Vec<ThreadEnd> {
    let last_ns = threads.clone().filter_map(|(_, seen)| Some(seen?.start_ns)).max();
    let end = |(thread, seen): (&str, Option<Seen>)| ThreadEnd {
        life,
        thread: thread.into(),
        seen,
        behind_ns: last_ns.zip(seen).map_or(0, |(last_ns, seen)| last_ns - seen.start_ns),
    };
    threads.map(end).collect()
}

/// Gaps of a recording: how many cycles are missing and why, by life, thread and first cycle.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<(u32, String, u64), (u64, String)>);

impl Gaps {
    pub(super) fn add(&mut self, gap: RecordedGap) {
        let thread = format!("{}/{}", gap.domain, gap.thread);
        self.0.insert((gap.life, thread, gap.first), (gap.cycles, gap.reason));
    }

    /// Why cycles of a thread are missing from this one on, if that is known.
    pub(super) fn reason(&self, life: u32, thread: &str, first: u64) -> Option<&str> {
        self.0.get(&(life, thread.into(), first)).map(|(_, reason)| reason.as_str())
    }

    /// What is known to be missing after a thread's last cycle in the recording.
    pub(super) fn tail(&self, end: &ThreadEnd) -> Option<String> {
        let first = end.seen.map_or(0, |seen| seen.last.saturating_add(1));
        let reason = self.reason(end.life, &end.thread, first)?;
        let mut next = first;
        while let Some((cycles, _)) = self.0.get(&(end.life, end.thread.clone(), next))
            && let Some(after) = next.checked_add(*cycles).filter(|&after| after > next)
        {
            next = after;
        }
        let (life, last) = (after_reset(end.life), next.saturating_sub(1));
        Some(format!(
            "thread {}{life}: cycles {first} to {last}, its last ones, are missing ({reason})",
            end.thread
        ))
    }
}

/// `" (after reset 1)"`; empty for the first life.
pub(super) fn after_reset(life: u32) -> String {
    if life > 0 { format!(" (after reset {life})") } else { String::new() }
}

/// A line for each life.
pub(super) fn lines(ends: &[ThreadEnd]) -> impl Iterator<Item = String> {
    ends.chunk_by(|a, b| a.life == b.life).map(|ends| {
        let all: Vec<_> = ends.iter().map(ThreadEnd::to_string).collect();
        format!("up to{}: {}", after_reset(ends[0].life), all.join("; "))
    })
}

impl fmt::Display for ThreadEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadEnd { thread, seen, behind_ns, .. } = self;
        let Some(seen) = seen else { return write!(f, "{thread} has no cycle") };
        write!(f, "{thread} cycle {}, {}", seen.last, state(seen))?;
        match behind_ns {
            _ if seen.is_of_stop || *behind_ns <= APART_NS_MAX => Ok(()),
            ns => write!(f, ", {:.3} s before the others", *ns as f64 / 1e9),
        }
    }
}

fn state(seen: &Seen) -> &'static str {
    if seen.is_of_stop { "stopped" } else { "still running" }
}

impl ThreadEnd {
    /// As JSON for programs.
    pub(super) fn to_json(&self) -> Value {
        let ThreadEnd { life, thread, seen, behind_ns } = self;
        json!({
            "life": life,
            "thread": thread,
            "first": seen.map(|seen| seen.first),
            "last": seen.map(|seen| seen.last),
            "state": seen.as_ref().map(state),
            "behind_s": *behind_ns as f64 / 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(last: u64, start_ns: u64, is_of_stop: bool) -> Option<Seen> {
        Some(Seen { first: 0, last, start_ns, is_of_stop })
    }

    #[test]
    fn a_thread_that_ends_before_the_others_is_named() {
        let threads = [
            ("control/0", seen(2021, 2_100_000_000, true)),
            ("plant/0", seen(1800, 1_850_000_000, false)),
            ("log/0", seen(2019, 2_099_000_000, false)),
            ("eye/0", None),
        ];
        let ends = of_life(1, threads.into_iter());
        let line = lines(&ends).next().expect("one life");
        assert_eq!(
            line,
            "up to (after reset 1): control/0 cycle 2021, stopped; plant/0 cycle 1800, still \
             running, 0.250 s before the others; log/0 cycle 2019, still running; eye/0 has no \
             cycle"
        );
    }

    #[test]
    fn a_tail_that_is_missing_is_named_with_the_reason() {
        let mut gaps = Gaps::default();
        let mut add = |life, first, cycles, reason: &str| {
            let (domain, reason) = ("plant".into(), reason.into());
            gaps.add(RecordedGap { life, domain, thread: 0, first, cycles, reason });
        };
        add(0, 11, 4, "full");
        add(0, 15, 5, "slow");
        add(1, 0, 7, "away");
        let end = |life, seen| ThreadEnd { life, thread: "plant/0".into(), seen, behind_ns: 0 };
        let tail = |life, seen| gaps.tail(&end(life, seen));
        let first = "thread plant/0: cycles 11 to 19, its last ones, are missing (full)";
        assert_eq!(tail(0, seen(10, 0, false)).as_deref(), Some(first));
        assert_eq!(tail(0, seen(9, 0, false)), None);
        let second =
            "thread plant/0 (after reset 1): cycles 0 to 6, its last ones, are missing (away)";
        assert_eq!(tail(1, None).as_deref(), Some(second));
        assert_eq!(tail(0, seen(u64::MAX, 0, false)), None);
    }
}

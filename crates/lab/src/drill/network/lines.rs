//! Faults of the line to another host.

use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::HostState;

use super::LOOK;
use super::strike::{Strike, unseen};
use crate::drill::line::{Condition, Direction, Line};
use crate::drill::outside::SeenOutside;
use crate::drill::seen::SeenHost;

/// How long a line is cut: for a short while, or for longer than anybody waits for a host.
pub(super) const SHORT: Duration = Duration::from_millis(100);
pub(super) const LONG: Duration = Duration::from_secs(2);
/// How long a slow line is slow.
pub(super) const SLOW: Duration = Duration::from_secs(3);
/// How long a line that is never mended is watched.
const FOR_EVER: Duration = Duration::from_secs(4);
/// What was under way when the line was cut has come within this time.
const UNDER_WAY: Duration = Duration::from_millis(500);

const NOT_SILENT: &str = "the run did not report that the other host is silent";

/// Puts the lines in a condition for this long, or until the run ends.
pub(super) fn spoil(
    it: &Strike,
    condition: Condition,
    time: Option<Duration>,
    (seen, host): (&mut SeenOutside, &mut SeenHost),
) {
    let lines = || it.other().lines.iter().flatten();
    let held = || lines().map(Line::held).sum::<u64>();
    let (before, begun) = (held(), Instant::now());
    lines().for_each(|line| line.set(condition));
    let time_or_ever = time.unwrap_or(FOR_EVER);
    host.silent_ms = it.await_state(HostState::Silent, time_or_ever);
    thread::sleep(time_or_ever.saturating_sub(begun.elapsed()));
    if time.is_some() {
        lines().for_each(|line| line.set(Condition::Open));
    }
    let bytes = held() - before;
    let shown = format!("{bytes} B were held back for {:.1} s", begun.elapsed().as_secs_f64());
    seen.proof = (bytes > 0).then_some(shown);
    let is_long = condition == Condition::Cut && time_or_ever >= LONG;
    if is_long && host.silent_ms.is_none() {
        seen.failures.push(NOT_SILENT.into());
    }
    let is_heard = it.state() == Some(HostState::Heard);
    match time {
        // A host that was never silent does not come back.
        Some(_) if is_heard && host.silent_ms.is_none() => {}
        Some(_) => it.await_heard(seen, host),
        None if is_heard => {
            seen.failures.push("the other host is heard over a line that is cut".into());
        }
        None => {}
    }
}

/// Which direction is cut, between the drilled host and another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    FromIt,
    ToIt,
}

impl Half {
    fn words(self) -> &'static str {
        match self {
            Half::FromIt => "from the other host",
            Half::ToIt => "to the other host",
        }
    }

    /// The same direction of each of the two lines: of that to the other host, and of that to the
    /// drilled one.
    fn of_lines(self) -> [Direction; 2] {
        match self {
            Half::FromIt => [Direction::Back, Direction::There],
            Half::ToIt => [Direction::There, Direction::Back],
        }
    }

    fn lines(self, it: &Strike) -> impl Iterator<Item = (&Line, Direction)> {
        let lines = it.other().lines.iter().zip(self.of_lines());
        lines.filter_map(|(line, direction)| Some((line.as_ref()?, direction)))
    }

    fn held(self, it: &Strike) -> u64 {
        self.lines(it).map(|(line, direction)| line.held_in(direction)).sum()
    }

    fn set(self, it: &Strike, condition: Condition) {
        self.lines(it).for_each(|(line, direction)| line.set_one(direction, condition));
    }
}

/// Cuts first the one direction, then the other.
pub(super) fn half(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let mut shown = vec![];
    for half in [Half::FromIt, Half::ToIt] {
        let before = half.held(it);
        cut_half(it, half, (seen, host));
        let bytes = half.held(it) - before;
        if bytes > 0 {
            shown.push(format!("{bytes} B {} were held back", half.words()));
        }
    }
    seen.proof = (shown.len() == 2).then(|| shown.join(", then "));
}

fn cut_half(it: &Strike, half: Half, (seen, host): (&mut SeenOutside, &mut SeenHost)) {
    // The messages under way, and those made before the last stamp that passed, may be obeyed.
    let ages = it.other().links.iter().filter_map(|link| link.after_ns);
    let obeyed_for = ages.max().map(|ns| Duration::from_nanos(ns) + UNDER_WAY);
    let Some(before) = it.look() else { return seen.not_shown.push(unseen()) };
    let (begun, mut silent_ms, mut last_obeyed, mut after) = (Instant::now(), None, None, None);
    half.set(it, Condition::Cut);
    while begun.elapsed() < LONG {
        let (now, elapsed) = (it.look(), begun.elapsed());
        if now.as_ref().is_some_and(|look| look.status.state == HostState::Silent) {
            silent_ms = silent_ms.or(u64::try_from(elapsed.as_millis()).ok());
        }
        if obeyed_for.is_some_and(|time| elapsed > time) {
            last_obeyed = last_obeyed.or(now.as_ref().and_then(|look| look.obeyed));
        }
        after = now.or(after);
        thread::sleep(LOOK);
    }
    half.set(it, Condition::Open);
    let Some(after) = after else { return seen.not_shown.push(unseen()) };
    // Of both directions the longer time is shown.
    host.silent_ms = host.silent_ms.max(silent_ms);
    let words = half.words();
    let is_late = half == Half::ToIt && after.status.late > before.status.late;
    if silent_ms.is_none() && !is_late {
        seen.failures.push(format!("{NOT_SILENT} while nothing passes {words}"));
    }
    let obeyed = after.obeyed.zip(last_obeyed).map(|(now, last)| now.saturating_sub(last));
    if let Some(n @ 1..) = obeyed {
        seen.failures.push(format!("{n} messages were obeyed while nothing passes {words}"));
    }
    it.await_heard(seen, host);
}

//! Checks the rows against the bars: ratios of measures of the same round, with their interval. If
//! a rival was polled in two ways, the better one counts.

use std::fmt;

use sinew_figures::Interval;
use sinew_lab::bar::Bar;
use sinew_lab::harness::Access::{self, Copied, InPlace};
use sinew_lab::harness::Placement::{self, Processes, Threads};
use sinew_lab::harness::What::{self, PerMessage, RoundTrip};
use sinew_lab::report::{Measure, Row, Verdict};

use crate::table::{OURS, SMALL};

/// The rows of one kind, and the measure taken from them.
#[derive(Clone, Copy)]
struct Field {
    what: What,
    placement: Placement,
    access: Access,
    bytes: usize,
}

/// All verdicts for which there are rows. The best of the rivals is named only if none was left
/// out: `all_asked`.
pub(crate) fn of(rows: &[Row], all_asked: bool) -> Vec<Verdict> {
    let field = |what, placement, access, bytes| Field { what, placement, access, bytes };
    let mut verdicts = Vec::new();
    for what in [RoundTrip, PerMessage] {
        for &bytes in SMALL.iter().filter(|_| all_asked) {
            verdicts.extend(against_best(rows, field(what, Threads, Copied, bytes)));
        }
    }
    let single = field(PerMessage, Threads, Copied, 8);
    verdicts.extend(against(rows, single, "rtrb", Bar::AtLeast(1.5)));
    for bytes in [64, 1024] {
        let field = field(RoundTrip, Processes, Copied, bytes);
        verdicts.extend(against(rows, field, "iceoryx2", Bar::AtLeast(4.0)));
    }
    for what in [RoundTrip, PerMessage] {
        for bytes in [65_536, 1_048_576] {
            let field = field(what, Processes, InPlace, bytes);
            verdicts.extend(against(rows, field, "iceoryx2", Bar::AtMost(0.9)));
        }
    }
    verdicts
}

/// Against the best rival in these rounds.
fn against_best(rows: &[Row], field: Field) -> Option<Verdict> {
    let (best, theirs) = field.fastest(rows, |rival| rival != OURS)?;
    let (_, ours) = field.fastest(rows, |rival| rival == OURS)?;
    let claim = format!("{field}: the best rival's time / ours");
    let best = format!("; the best is {}", named(best));
    Some(verdict(claim, Bar::AtLeast(1.0), theirs.over(ours)?, &best))
}

/// Against one rival. `AtLeast` takes its time over ours, `AtMost` our time over its time.
fn against(rows: &[Row], field: Field, rival: &str, bar: Bar) -> Option<Verdict> {
    let (row, theirs) = field.fastest(rows, |name| name == rival)?;
    let (_, ours) = field.fastest(rows, |name| name == OURS)?;
    let (claim, ratio) = match bar {
        Bar::AtLeast(_) => (format!("{field}: {rival}'s time / ours"), theirs.over(ours)?),
        _ => (format!("{field}: our time / {rival}'s"), ours.over(theirs)?),
    };
    Some(verdict(claim, bar, ratio, &format!("; of {}", named(row))))
}

/// The rival of a row, and how it was polled.
fn named(row: &Row) -> String {
    let axis = |name| row.axis(name).unwrap_or("-");
    format!("{}, poll {}", axis("rival"), axis("poll"))
}

fn verdict(claim: String, bar: Bar, ratio: Interval, more: &str) -> Verdict {
    let (theirs, ours) = (bar.to_string(), format!("{ratio}{more}"));
    Verdict { claim, theirs, ours, holds: bar.holds(ratio) }
}

impl Field {
    /// Among this field's rows of the given rivals, the row with the least median, and its measure.
    fn fastest(self, rows: &[Row], is: impl Fn(&str) -> bool) -> Option<(&Row, &Measure)> {
        let bytes = self.bytes.to_string();
        let is_in = |row: &&Row| {
            row.axis("rival").is_some_and(&is)
                && row.axis("placement") == Some(self.placement.word())
                && row.axis("access") == Some(self.access.word())
                && row.axis("bytes") == Some(&bytes)
        };
        let measured = |row| {
            let measure = Row::measure(row, self.what.word())?;
            Some((measure.spread()?.median, row, measure))
        };
        let rows = rows.iter().filter(is_in).filter_map(measured);
        rows.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row, measure)| (row, measure))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { what, placement, access, bytes } = self;
        let what = match what {
            RoundTrip => "round trip",
            PerMessage => "time per message",
        };
        write!(f, "{what}, {bytes} B, {}, {}", placement.word(), access.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_lab::bar::Holds;

    fn row(rival: &str, poll: &str, bytes: usize, rounds: &[f64]) -> Row {
        let bytes = bytes.to_string();
        let axes = [
            ("rival", rival),
            ("placement", "threads"),
            ("access", "copied"),
            ("poll", poll),
            ("bytes", &bytes),
        ];
        let mut row = Row::of(&axes);
        row.measure_mut("per_message").rounds = rounds.into();
        row
    }

    #[test]
    fn ours_is_held_against_the_better_of_both_polls_in_the_same_rounds() {
        let rows = [
            row(OURS, "gap", 8, &[2.0, 4.0, 2.0]),
            row("rtrb", "pause", 8, &[9.0, 9.0, 9.0]),
            row("rtrb", "gap", 8, &[4.0, 8.0, 4.4]),
            row("gil", "pause", 8, &[2.4, 4.8, 2.2]),
            row("gil", "gap", 8, &[5.0, 6.0, 5.0]),
            row("gil", "gap", 64, &[0.1, 0.1, 0.1]),
        ];
        let [best, rtrb] = &of(&rows, true)[..] else { panic!("8 B alone can be judged") };
        assert_eq!(of(&rows, false).len(), 1, "the best of a few is not a verdict");
        assert_eq!(best.ours, "1.20 (1.10 to 1.20); the best is gil, poll pause");
        assert_eq!((best.holds, rtrb.holds), (Holds::Yes, Holds::Yes));
        assert_eq!(rtrb.ours, "2.00 (2.00 to 2.20); of rtrb, poll gap");
        assert_eq!(rtrb.theirs, ">= 1.50");
    }
}

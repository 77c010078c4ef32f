//! What the rows say of the bars: ratios of measures of the same round, with their interval.

use std::fmt;

use sinew_lab::harness::Access::{self, Copied, InPlace};
use sinew_lab::harness::Placement::{self, Processes, Threads};
use sinew_lab::harness::What::{self, PerMessage, RoundTrip};
use sinew_lab::interval::{Bar, Interval};
use sinew_lab::report::{Row, Verdict};

use crate::table::OURS;

/// Rows of one kind, and what is measured of them.
#[derive(Clone, Copy)]
struct Field {
    what: What,
    placement: Placement,
    access: Access,
    bytes: usize,
}

/// All verdicts for which there are rows. Who is the best of them is said only if nobody was left
/// out: `all_asked`.
pub(crate) fn of(rows: &[Row], all_asked: bool) -> Vec<Verdict> {
    let field = |what, placement, access, bytes| Field { what, placement, access, bytes };
    let mut verdicts = Vec::new();
    for (what, sizes) in [(RoundTrip, &[8, 48, 64, 256][..]), (PerMessage, &[8, 64, 256])] {
        for &bytes in sizes.iter().filter(|_| all_asked) {
            verdicts.extend(against_best(rows, field(what, Threads, Copied, bytes)));
        }
    }
    let single = field(PerMessage, Threads, Copied, 8);
    verdicts.extend(theirs_over_ours(rows, single, "rtrb", Bar::AtLeast(1.5)));
    for bytes in [64, 1024] {
        let field = field(RoundTrip, Processes, Copied, bytes);
        verdicts.extend(theirs_over_ours(rows, field, "iceoryx2", Bar::AtLeast(4.0)));
    }
    for what in [RoundTrip, PerMessage] {
        for bytes in [65_536, 1_048_576] {
            verdicts.extend(ours_over_iceoryx2(rows, field(what, Processes, InPlace, bytes)));
        }
    }
    verdicts
}

/// Against whoever is best in these rounds.
fn against_best(rows: &[Row], field: Field) -> Option<Verdict> {
    let others = field.rows(rows).filter(|(rival, _)| *rival != OURS);
    let ratios = others.filter_map(|(rival, _)| Some((rival, field.ratio(rows, rival, OURS)?)));
    let (rival, ratio) = ratios.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
    let claim = format!("{field}: the best rival's time / ours");
    Some(verdict(claim, Bar::AtLeast(1.0), ratio, &format!("; the best is {rival}")))
}

fn theirs_over_ours(rows: &[Row], field: Field, rival: &str, bar: Bar) -> Option<Verdict> {
    let ratio = field.ratio(rows, rival, OURS)?;
    Some(verdict(format!("{field}: {rival}'s time / ours"), bar, ratio, ""))
}

fn ours_over_iceoryx2(rows: &[Row], field: Field) -> Option<Verdict> {
    let ratio = field.ratio(rows, OURS, "iceoryx2")?;
    Some(verdict(format!("{field}: our time / iceoryx2's"), Bar::AtMost(0.9), ratio, ""))
}

fn verdict(claim: String, bar: Bar, ratio: Interval, more: &str) -> Verdict {
    let (theirs, ours) = (bar.to_string(), format!("{ratio}{more}"));
    Verdict { claim, theirs, ours, holds: bar.holds(ratio) }
}

impl Field {
    /// Its rows and whose they are.
    fn rows(self, rows: &[Row]) -> impl Iterator<Item = (&str, &Row)> {
        let bytes = self.bytes.to_string();
        let is_in = move |row: &&Row| {
            row.axis("placement") == Some(self.placement.word())
                && row.axis("access") == Some(self.access.word())
                && row.axis("bytes") == Some(&bytes)
        };
        rows.iter().filter(is_in).filter_map(|row| Some((row.axis("rival")?, row)))
    }

    /// Round by round, one's time over the other's.
    fn ratio(self, rows: &[Row], of: &str, over: &str) -> Option<Interval> {
        let measure = |name| {
            let (_, row) = self.rows(rows).find(|(rival, _)| *rival == name)?;
            row.measure(self.what.word())
        };
        measure(of)?.over(measure(over)?)
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
    use sinew_lab::report::Holds;

    fn row(rival: &str, bytes: usize, rounds: &[f64]) -> Row {
        let axes = [("rival", rival), ("placement", "threads"), ("access", "copied")];
        let mut axes: Vec<_> = axes.map(|(axis, value)| (axis.into(), value.into())).into();
        axes.push(("bytes".into(), bytes.to_string()));
        let mut row = Row { axes, ..Row::default() };
        row.measure_mut("per_message").rounds = rounds.into();
        row
    }

    #[test]
    fn ours_is_held_against_the_best_of_the_same_rounds() {
        let rows = [
            row(OURS, 8, &[2.0, 4.0, 2.0]),
            row("rtrb", 8, &[4.0, 8.0, 4.4]),
            row("gil", 8, &[2.4, 4.8, 2.2]),
            row("gil", 64, &[0.1, 0.1, 0.1]),
        ];
        let [best, rtrb] = &of(&rows, true)[..] else { panic!("8 B alone can be judged") };
        assert_eq!(of(&rows, false).len(), 1, "the best of a few is no verdict");
        assert_eq!(best.ours, "1.20 (1.10 to 1.20); the best is gil");
        assert_eq!((best.holds, rtrb.holds), (Holds::Yes, Holds::Yes));
        assert_eq!((rtrb.theirs.as_str(), rtrb.ours.as_str()), (">= 1.50", "2.00 (2.00 to 2.20)"));
    }
}

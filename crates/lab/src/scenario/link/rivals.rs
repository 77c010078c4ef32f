//! The rivals' rows beside ours. They were measured by the same harness on the same machine, but in
//! another run. So they are compared by their ratios to the token of each run.

use sinew_figures::Interval;

use super::verdicts::{find, queues};
use crate::bar::Bar;
use crate::report::{Measure, Row, Table};
use crate::rivals::{AXIS, BARE};

/// A row of the table.
type JudgedBar = (String, Bar, Option<Interval>);

/// Our links against the best rival in each size that we measured, and against the rivals that a
/// bar names.
pub(super) fn bars(ours: &[Row], theirs: &[Row]) -> Table {
    let cell = |measure, placement, access, bytes| Cell { measure, placement, access, bytes };
    let mut bars = vec![];
    let sizes = super::case::SIZES.map(|bytes| bytes.to_string());
    for (measure, name) in [("round_trip", "round trip"), ("per_message", "throughput")] {
        for bytes in &sizes {
            for placement in ["threads", "processes"] {
                let cell = cell(measure, placement, "copied", bytes);
                bars.extend(cell.against_the_best(name, ours, theirs));
            }
        }
    }
    let mut named = |cell: Cell<'_>, claim: &str, name, bar| {
        bars.push(cell.named(claim, name, ours, theirs, bar));
    };
    let rtrb = cell("per_message", "threads", "copied", "8");
    named(rtrb, "throughput, 8 B: rtrb / ours", "rtrb", Bar::AtLeast(1.5));
    for bytes in ["64", "1024"] {
        let claim = format!("round trip, {bytes} B: iceoryx2 / ours");
        let cell = cell("round_trip", "processes", "copied", bytes);
        named(cell, &claim, "iceoryx2", Bar::AtLeast(4.0));
    }
    for bytes in ["65536", "1048576"] {
        let claim = format!("round trip in place, {bytes} B: ours / iceoryx2");
        let cell = cell("round_trip", "processes", "in_place", bytes);
        named(cell, &claim, "iceoryx2", Bar::AtMost(0.9));
    }
    Table::of_bars("next to the rivals, each by its ratio to the token of the same run", bars)
}

/// What is compared.
struct Cell<'a> {
    measure: &'a str,
    placement: &'a str,
    access: &'a str,
    bytes: &'a str,
}

impl Cell<'_> {
    /// Our ratio: in process if possible, or else in shared memory. The faster of both is not
    /// taken, because that would count noise in our favour.
    fn ours(&self, rows: &[Row]) -> Option<Interval> {
        let wanted = [("placement", self.placement), ("bytes", self.bytes)];
        let rows: Vec<_> = match self.access {
            "copied" => queues(rows, self.bytes),
            access => find(rows, &[("access", access)]),
        };
        rows.into_iter().filter(|row| row.is(&wanted)).find_map(|row| self.ratio(row))
    }

    /// The ratios of the rivals.
    fn theirs<'r>(&self, rows: &'r [Row]) -> Vec<(&'r str, Interval)> {
        let axes = [("placement", self.placement), ("access", self.access), ("bytes", self.bytes)];
        let named = |row: &'r Row| Some((row.axis(AXIS.name)?, self.ratio(row)?));
        find(rows, &axes).into_iter().filter_map(named).filter(|(name, _)| *name != BARE).collect()
    }

    fn ratio(&self, row: &Row) -> Option<Interval> {
        row.measure(self.measure).and_then(Measure::ratio)
    }

    /// Our ratio against the best rival's. `None` if no rival was measured in this cell, or ours
    /// was not.
    fn against_the_best(&self, name: &str, ours: &[Row], theirs: &[Row]) -> Option<JudgedBar> {
        let found = self.theirs(theirs);
        let (best, rival) = found.iter().min_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
        let Cell { placement, bytes, .. } = self;
        let ratio = over(self.ours(ours)?, *rival);
        let what = format!("{name}, {bytes} B, {placement}: ours / {best}, the best rival");
        Some((what, Bar::AtMost(1.0), Some(ratio)))
    }

    /// For an at-least bar the rival's ratio over ours, for an at-most bar ours over the rival's.
    fn named(&self, claim: &str, name: &str, ours: &[Row], theirs: &[Row], bar: Bar) -> JudgedBar {
        let found = self.theirs(theirs);
        let rival = found.iter().find(|(rival, _)| *rival == name).map(|(_, ratio)| *ratio);
        let both = self.ours(ours).zip(rival);
        let ratio = both.map(|(ours, rival)| match bar {
            Bar::AtLeast(_) => over(rival, ours),
            Bar::AtMost(_) | Bar::Within(_) => over(ours, rival),
        });
        (claim.into(), bar, ratio)
    }
}

/// One ratio over another of a different run; its interval is as wide as both allow.
fn over(this: Interval, other: Interval) -> Interval {
    Interval {
        median: this.median / other.median,
        low: this.low / other.high,
        high: this.high / other.low,
        rounds: this.rounds.min(other.rounds),
    }
}

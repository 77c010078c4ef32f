//! The rivals' rows beside ours: they were measured by the same harness on the same machine, in a
//! run of their own, so they are compared by their ratios to the token of each run.

use super::verdicts::{find, queues, verdict};
use crate::interval::{Bar, Interval};
use crate::report::{Measure, Report, Row, Verdict};

/// What the rivals' program calls its row of our own queue, without the runtime around it.
const OURS: &str = "sinew";
/// What we call it: `sinew` is the link as the runtime has it.
const BARE: &str = "sinew_link";

/// Their rows.
pub(super) fn rows(theirs: &Report) -> Vec<Row> {
    let named = |row: &Row| {
        let mut row = row.clone();
        for (_, value) in row.axes.iter_mut().filter(|(axis, _)| axis == "rival") {
            if value == OURS {
                *value = BARE.into();
            }
        }
        row
    };
    theirs.rows.iter().map(named).collect()
}

/// Ours against the best of them in each size, and against those that a bar names.
pub(super) fn verdicts(ours: &[Row], theirs: &Report) -> Vec<Verdict> {
    let theirs = rows(theirs);
    let mut verdicts = vec![];
    for (measure, name) in [("round_trip", "round trip"), ("per_message", "throughput")] {
        for bytes in super::case::SIZES.map(|bytes| bytes.to_string()) {
            for placement in ["threads", "processes"] {
                let cell = Cell { measure, placement, access: "copied", bytes: &bytes };
                verdicts.extend(cell.against_the_best(name, ours, &theirs));
            }
        }
    }
    let cell = |measure, placement, access, bytes| Cell { measure, placement, access, bytes };
    let rtrb = cell("per_message", "threads", "copied", "8");
    verdicts.push(rtrb.named(
        "throughput, 8 B: rtrb / ours",
        "rtrb",
        ours,
        &theirs,
        Bar::AtLeast(1.5),
    ));
    for bytes in ["64", "1024"] {
        let claim = format!("round trip, {bytes} B: iceoryx2 / ours");
        let cell = cell("round_trip", "processes", "copied", bytes);
        verdicts.push(cell.named(&claim, "iceoryx2", ours, &theirs, Bar::AtLeast(4.0)));
    }
    for bytes in ["65536", "1048576"] {
        let claim = format!("round trip in place, {bytes} B: ours / iceoryx2");
        let cell = cell("round_trip", "processes", "in_place", bytes);
        verdicts.push(cell.named(&claim, "iceoryx2", ours, &theirs, Bar::AtMost(0.9)));
    }
    verdicts
}

/// What is compared.
struct Cell<'a> {
    measure: &'a str,
    placement: &'a str,
    access: &'a str,
    bytes: &'a str,
}

impl Cell<'_> {
    /// Ours: in process if that can be, or else in shared memory. Not the faster of both, for that
    /// would count noise in our favour.
    fn ours(&self, rows: &[Row]) -> Option<Interval> {
        let wanted = [("placement", self.placement), ("bytes", self.bytes)];
        let rows: Vec<_> = match self.access {
            "copied" => queues(rows, self.bytes),
            access => find(rows, &[("access", access)]),
        };
        let rows = rows
            .into_iter()
            .filter(|row| wanted.iter().all(|(axis, value)| row.axis(axis) == Some(value)));
        rows.filter_map(|row| self.ratio(row)).next()
    }

    /// The ratios of the rivals.
    fn theirs<'r>(&self, rows: &'r [Row]) -> Vec<(&'r str, Interval)> {
        let axes = [("placement", self.placement), ("access", self.access), ("bytes", self.bytes)];
        let named = |row: &'r Row| Some((row.axis("rival")?, self.ratio(row)?));
        find(rows, &axes).into_iter().filter_map(named).filter(|(name, _)| *name != BARE).collect()
    }

    fn ratio(&self, row: &Row) -> Option<Interval> {
        row.measure(self.measure).and_then(Measure::ratio)
    }

    /// `None` if no rival was measured so.
    fn against_the_best(&self, name: &str, ours: &[Row], theirs: &[Row]) -> Option<Verdict> {
        let found = self.theirs(theirs);
        let (best, rival) = found.iter().min_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
        let Cell { placement, bytes, .. } = self;
        let ratio = self.ours(ours).map(|ours| over(ours, *rival));
        let claim =
            format!("{name}, {bytes} B, {placement}: ours / the best rival's, which is {best}");
        Some(judged(claim, Bar::AtMost(1.0), ratio))
    }

    /// At least is a rival's over ours, at most ours over the rival's.
    fn named(&self, claim: &str, name: &str, ours: &[Row], theirs: &[Row], bar: Bar) -> Verdict {
        let found = self.theirs(theirs);
        let rival = found.iter().find(|(rival, _)| *rival == name).map(|(_, ratio)| *ratio);
        let both = self.ours(ours).zip(rival);
        let ratio = both.map(|(ours, rival)| match bar {
            Bar::AtLeast(_) => over(rival, ours),
            Bar::AtMost(_) | Bar::Within(_) => over(ours, rival),
        });
        judged(claim.into(), bar, ratio)
    }
}

fn judged(claim: String, bar: Bar, ratio: Option<Interval>) -> Verdict {
    let ours = ratio.map(|ratio| ratio.to_string());
    verdict(claim, bar.to_string(), ours, ratio.map(|ratio| bar.holds(ratio)))
}

/// One ratio over another of a different run: as wide as both allow.
fn over(this: Interval, other: Interval) -> Interval {
    Interval {
        median: this.median / other.median,
        low: this.low / other.high,
        high: this.high / other.low,
        rounds: this.rounds.min(other.rounds),
    }
}

//! The evidence for verdicts: rows with a core, told apart by what runs beside it, compared with
//! the core alone round by round.

use std::collections::BTreeMap;

use sinew_figures::Interval;

use super::RoundTails;
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};

/// A difference up to this share of the median counts as none.
const SAME: f64 = 0.05;

/// The rows, and further figures of each of their rounds.
pub(in crate::scenario) struct BesideEvidence<'a> {
    pub(in crate::scenario) rows: &'a [Row],
    /// The rounds of each row.
    pub(in crate::scenario) rounds: &'a BTreeMap<&'static str, Vec<RoundTails>>,
    /// The word of the row with nothing beside the core.
    pub(in crate::scenario) alone: &'static str,
}

/// Figures in words, and what follows from them; `None` if there are no figures.
pub(in crate::scenario) type Judged = Option<(String, Holds)>;

impl BesideEvidence<'_> {
    /// The row with a core and `beside` next to it.
    pub(in crate::scenario) fn row(&self, beside: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            row.axis("beside") == Some(beside)
                && matches!(row.axis("measured"), None | Some("core"))
        };
        self.rows.iter().find(is)
    }

    /// Median of `measure` over that of the core alone, round by round.
    fn median(&self, beside: &str, measure: &str) -> Option<Interval> {
        let of = |beside: &str| self.row(beside)?.measure(measure);
        of(beside)?.over(of(self.alone)?)
    }

    /// P99 over that of the core alone, round by round.
    fn p99(&self, beside: &str, of: fn(&RoundTails) -> Option<u64>) -> Option<Interval> {
        let ratio =
            |(this, alone): (&RoundTails, &RoundTails)| Some(of(this)? as f64 / of(alone)? as f64);
        let ratios: Vec<f64> = self.pairs(beside)?.filter_map(ratio).collect();
        Interval::of(&ratios)
    }

    /// How many overruns more than the core alone, round by round.
    fn overruns(&self, beside: &str) -> Option<Interval> {
        let more = |(this, alone): (&RoundTails, &RoundTails)| {
            this.overruns as f64 - alone.overruns as f64
        };
        Interval::of(&self.pairs(beside)?.map(more).collect::<Vec<_>>())
    }

    fn pairs(&self, beside: &str) -> Option<impl Iterator<Item = (&RoundTails, &RoundTails)>> {
        let alone = self.rounds.get(self.alone)?;
        Some(self.rounds.get(beside)?.iter().zip(alone))
    }

    /// The ratios of all these rows to the core alone.
    pub(in crate::scenario) fn ratios(&self, besides: &[&str]) -> Table {
        let cell = |of: Option<Interval>| of.map_or("-".into(), |of| of.to_string());
        let row = |beside: &&str| {
            vec![
                (*beside).to_owned(),
                cell(self.median(beside, "cycle_latency")),
                cell(self.p99(beside, |round| round.latency_p99_ns)),
                cell(self.median(beside, "activation_jitter")),
                cell(self.p99(beside, |round| round.jitter_p99_ns)),
                self.overruns(beside).map_or("-".into(), |of| format!("{of:.0}")),
            ]
        };
        let columns = [
            "beside",
            "cycle latency P50",
            "cycle latency P99",
            "activation jitter P50",
            "activation jitter P99",
            "more overruns per round",
        ];
        let title = "over the core alone, round by round: the median and its interval";
        Table::of(title, columns, besides.iter().map(row).collect())
    }

    /// Whether this part leaves the core undisturbed; `they` names it in a sentence.
    pub(in crate::scenario) fn undisturbed(
        &self,
        beside: &str,
        who: &str,
        they: &str,
    ) -> [Verdict; 3] {
        let median = self.median(beside, "cycle_latency");
        [
            Verdict::of(
                format!("{who} do not change the core's cycle latency: P50"),
                "within 5 % of the core alone",
                median.map(|ratio| (ratio.to_string(), Bar::Within(SAME).holds(ratio))),
            ),
            self.indistinct_p99("the same: P99", beside),
            Verdict::of(
                format!("{they} cause no overrun"),
                "0; here: no more than the core alone, whose overruns come from the machine",
                self.none_more(beside),
            ),
        ]
    }

    /// Whether the median of cycle latency is greater than that of the core alone.
    pub(in crate::scenario) fn indistinct_median(&self, claim: &str, beside: &str) -> Verdict {
        Verdict::of(claim, INDISTINCT, not_greater(self.median(beside, "cycle_latency")))
    }

    /// Whether the P99 of cycle latency is greater than that of the core alone.
    pub(in crate::scenario) fn indistinct_p99(&self, claim: &str, beside: &str) -> Verdict {
        Verdict::of(claim, INDISTINCT, not_greater(self.p99(beside, |round| round.latency_p99_ns)))
    }

    /// Whether there are more overruns than with the core alone.
    fn none_more(&self, beside: &str) -> Judged {
        let more = self.overruns(beside)?;
        let all = |beside: &str| {
            let row = self.row(beside)?;
            Some((row.figure("overruns")?, row.measure("cycle_latency")?.distribution.n()))
        };
        let text = |beside| match all(beside) {
            Some((overruns, cycles)) => format!("{overruns} in {cycles} cycles"),
            None => "-".into(),
        };
        let ours =
            format!("{}, alone {}; {more:.0} more in a round", text(beside), text(self.alone));
        let holds = match () {
            () if more.low > 0.0 => Holds::No,
            () if more.high <= 0.0 => Holds::Yes,
            () => Holds::NotDistinguishable,
        };
        Some((ours, holds.if_firm(&[more])))
    }
}

const INDISTINCT: &str = "not distinguishable from the core alone";

/// Whether a ratio is not greater than one.
pub(in crate::scenario) fn not_greater(ratio: Option<Interval>) -> Judged {
    let ratio = ratio?;
    let holds = if ratio.low > 1.0 { Holds::No } else { Holds::Yes };
    Some((ratio.to_string(), holds.if_firm(&[ratio])))
}

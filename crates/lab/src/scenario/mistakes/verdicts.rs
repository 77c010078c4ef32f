//! Whether each mistake matters here.

use sinew_figures::Interval;

use super::case::NOT_ON_X86;
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};

/// How much a mistake must cost to matter: a quarter. Two runs of a link may differ by nearly as
/// much.
const MATTERS: Bar = Bar::AtLeast(1.25);

/// Where it is proved that weaker orders are wrong.
const LOOM: &str = "RUSTFLAGS=\"--cfg loom\" CARGO_TARGET_DIR=target/loom cargo test -p sinew-link \
                    --release --lib proofs";

/// Forms that are compared: mistake, wrong form, right form, CPUs, poll, measure.
type Pair = [&'static str; 6];

const LOST: Pair = ["count", "load_store", "fetch_add", "two", "-", "thousand_operations"];
const TORN: Pair = ["value", "word_by_word", "seqlock", "two", "-", "thousand_operations"];

/// A claim about what a mistake costs.
struct CostClaim {
    text: &'static str,
    theirs: &'static str,
    /// The pairs by which it is judged, with names.
    judged: &'static [(&'static str, Pair)],
    /// Pairs that are shown in addition.
    beside: &'static [(&'static str, Pair)],
}

const COSTS: [CostClaim; 4] = [
    CostClaim {
        text: "indexes on one cache line cost time (false sharing)",
        theirs: "alignas(64) for each index",
        judged: &[
            (
                "one line / 128 B apart, polled at once",
                ["lines", "one_line", "apart", "two", "at_once", "thousand_messages"],
            ),
            ("polled later", ["lines", "one_line", "apart", "two", "later", "thousand_messages"]),
        ],
        beside: &[],
    },
    CostClaim {
        text: "a number of slots that is not a power of two costs time",
        theirs: "2^13 slots, & instead of %",
        judged: &[
            (
                "% / &, polled at once",
                ["capacity", "remainder", "mask", "two", "at_once", "thousand_messages"],
            ),
            (
                "polled later",
                ["capacity", "remainder", "mask", "two", "later", "thousand_messages"],
            ),
            ("one thread", ["capacity", "remainder", "mask", "one", "-", "thousand_messages"]),
        ],
        beside: &[
            (
                "compared / &, polled at once",
                ["capacity", "compare", "mask", "two", "at_once", "thousand_messages"],
            ),
            (
                "compared / &, polled later",
                ["capacity", "compare", "mask", "two", "later", "thousand_messages"],
            ),
            (
                "compared / &, one thread",
                ["capacity", "compare", "mask", "one", "-", "thousand_messages"],
            ),
        ],
    },
    CostClaim {
        text: "an allocation for each message costs time, at the median",
        theirs: "messages of fixed size, no dynamic allocation",
        judged: &[
            (
                "box / slot, median of round trips",
                ["allocation", "boxed", "in_slot", "two", "-", "round_trip"],
            ),
            ("one thread", ["allocation", "boxed", "in_slot", "one", "-", "message"]),
        ],
        beside: &[],
    },
    CostClaim {
        text: "an allocation for each message costs time, in the tail",
        theirs: "messages of fixed size, no dynamic allocation",
        judged: &[
            (
                "box / slot, P99 of round trips",
                ["allocation", "boxed", "in_slot", "two", "-", "round_trip_p99"],
            ),
            ("one thread", ["allocation", "boxed", "in_slot", "one", "-", "message_p99"]),
        ],
        beside: &[],
    },
];

/// All verdicts, in the order of the rows.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = vec![
        counted(
            rows,
            "without atomic additions updates are lost",
            "non-atomic operations: data races",
            ("lost", LOST),
        ),
        counted(
            rows,
            "without a protocol a value of several words is read torn",
            "non-atomic operations: data races",
            ("torn", TORN),
        ),
        relaxed(rows, cfg!(target_arch = "x86_64")),
    ];
    verdicts.extend(COSTS.iter().map(|claim| claim.verdict(rows)));
    verdicts
}

fn row<'a>(rows: &'a [Row], values: [&str; 4]) -> Option<&'a Row> {
    rows.iter().find(|row| row.axes.iter().map(|(_, value)| value.as_str()).eq(values))
}

/// The wrong form over the right form, round by round.
fn factor(rows: &[Row], pair: Pair) -> Option<Interval> {
    let [mistake, wrong, right, cpus, poll, measure] = pair;
    let of = |form| row(rows, [mistake, form, cpus, poll])?.measure(measure);
    of(wrong)?.over(of(right)?)
}

/// How many operations there were, and how many went wrong.
fn count(row: &Row, wrong: &str) -> Option<(f64, f64)> {
    row.figure("done").zip(row.figure(wrong))
}

fn said((done, wrong): (f64, f64), what: &str) -> String {
    let share = if done > 0.0 { 100.0 * wrong / done } else { 0.0 };
    format!("{wrong} of {done} {what} ({share:.3} %)")
}

/// One error is enough: a count has no noise.
fn counted(rows: &[Row], claim: &str, theirs: &str, (what, pair): (&str, Pair)) -> Verdict {
    let [mistake, wrong, right, cpus, poll, _] = pair;
    let of = |form| count(row(rows, [mistake, form, cpus, poll])?, what);
    let found = of(wrong).zip(of(right)).map(|(of_wrong, of_right)| {
        let holds = match (of_wrong, of_right) {
            ((_, wrong), (done, right)) if wrong > 0.0 && right == 0.0 && done > 0.0 => Holds::Yes,
            _ => Holds::No,
        };
        let refused = row(rows, [mistake, right, cpus, poll]).and_then(|row| row.figure("refused"));
        let refused = refused.filter(|refused| *refused > 0.0);
        let refused = refused.map(|n| format!(", {n} refused")).unwrap_or_default();
        let time = factor(rows, pair).map(|ratio| format!("; time of the first: {ratio}"));
        let text = format!(
            "{wrong}: {}; {right}: {}{refused}{} (holds if: the first fails at least once, the \
             second never)",
            said(of_wrong, what),
            said(of_right, what),
            time.unwrap_or_default()
        );
        (text, holds)
    });
    Verdict::of(claim, theirs, found)
}

fn relaxed(rows: &[Row], is_x86: bool) -> Verdict {
    let of = |form| count(row(rows, ["order", form, "two", "-"])?, "stale");
    let flag_first = of("flag_first").map(|of| {
        format!("; with the flag stored first, which relaxed allows: {}", said(of, "stale"))
    });
    let flag_first = flag_first.unwrap_or_default();
    let (ours, holds) = if is_x86 {
        let text = format!("{NOT_ON_X86}; this shows it: {LOOM}{flag_first}");
        (text, Holds::NotMeasured)
    } else if let Some((relaxed, ordered)) = of("relaxed").zip(of("release_acquire")) {
        let holds = if relaxed.1 > 0.0 && ordered.1 == 0.0 { Holds::Yes } else { Holds::No };
        let text = format!(
            "relaxed: {}; release and acquire: {}; under every order: {LOOM}{flag_first} (holds \
             if: the first is stale at least once, the second never)",
            said(relaxed, "stale"),
            said(ordered, "stale")
        );
        (text, holds)
    } else {
        (format!("-; this shows it: {LOOM}"), Holds::NotMeasured)
    };
    Verdict {
        claim: "with relaxed instead of release and acquire, a flag may come before its \
                word"
            .into(),
        theirs: "memory_order_relaxed: no ordering guarantees".into(),
        ours,
        holds,
    }
}

impl CostClaim {
    fn verdict(&self, rows: &[Row]) -> Verdict {
        let known = |&(what, pair): &(&'static str, Pair)| Some((what, factor(rows, pair)?));
        let judged: Vec<_> = self.judged.iter().filter_map(known).collect();
        let holds: Vec<_> = judged.iter().map(|(_, ratio)| MATTERS.holds(*ratio)).collect();
        let shown = |(what, ratio)| format!("{what}: {ratio}");
        let beside = self.beside.iter().filter_map(known);
        let beside: String = beside.map(|of| format!("; {}", shown(of))).collect();
        let found = (!judged.is_empty()).then(|| {
            let judged: Vec<_> = judged.into_iter().map(shown).collect();
            let judged = judged.join(", ");
            let text =
                format!("{judged}{beside} (holds if: each is {MATTERS}; in part if some are)");
            (text, Holds::of_all(&holds))
        });
        Verdict::of(self.text, self.theirs, found)
    }
}

/// What mistakes cost, and whether that matters.
pub(super) fn tables(rows: &[Row]) -> Vec<Table> {
    let pairs = COSTS.iter().flat_map(|claim| claim.judged.iter().chain(claim.beside));
    let bars = pairs.map(|&(_, pair)| {
        let [mistake, wrong, right, cpus, poll, measure] = pair;
        let measure = measure.replace('_', " ");
        let place = match (cpus, poll) {
            ("one", _) => "one CPU".into(),
            (_, "-") => "two CPUs".into(),
            (_, poll) => format!("two CPUs, polled {}", poll.replace('_', " ")),
        };
        let what = format!("{mistake}: {wrong} / {right}, {measure}, {place}");
        (what, MATTERS, factor(rows, pair))
    });
    vec![Table::of_bars("what mistakes cost; from the bar on they matter", bars)]
}

#[cfg(test)]
mod tests;

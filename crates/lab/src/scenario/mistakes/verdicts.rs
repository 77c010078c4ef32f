//! Whether each mistake matters here.

use sinew_figures::Interval;

use super::case::NOT_ON_X86;
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};

/// What a mistake must cost to matter: a quarter, as little as one run of a link may be from the
/// next.
const MATTERS: Bar = Bar::AtLeast(1.25);

/// Where it is shown that weaker orders are wrong.
const LOOM: &str = "RUSTFLAGS=\"--cfg loom\" CARGO_TARGET_DIR=target/loom cargo test -p sinew-link \
                    --release --lib proofs";

/// Forms that are compared: mistake, the wrong one, the right one, CPUs, measure.
type Pair = [&'static str; 5];

const LOST: Pair = ["count", "load_store", "fetch_add", "two", "thousand_operations"];
const TORN: Pair = ["value", "word_by_word", "seqlock", "two", "thousand_operations"];
const LINES: Pair = ["lines", "one_line", "apart", "two", "thousand_messages"];
const DIVIDED: Pair = ["capacity", "remainder", "mask", "two", "thousand_messages"];
const DIVIDED_ALONE: Pair = ["capacity", "remainder", "mask", "one", "thousand_messages"];
const COMPARED: Pair = ["capacity", "compare", "mask", "two", "thousand_messages"];
const COMPARED_ALONE: Pair = ["capacity", "compare", "mask", "one", "thousand_messages"];
const BOXED: Pair = ["allocation", "boxed", "in_slot", "two", "round_trip"];
const BOXED_ALONE: Pair = ["allocation", "boxed", "in_slot", "one", "message"];
const BOXED_P99: Pair = ["allocation", "boxed", "in_slot", "two", "round_trip_p99"];
const BOXED_P99_ALONE: Pair = ["allocation", "boxed", "in_slot", "one", "message_p99"];

/// A claim about what a mistake costs.
struct CostClaim {
    text: &'static str,
    theirs: &'static str,
    /// What is judged: the first that was measured. The others are shown beside it.
    judged: &'static [(&'static str, Pair)],
    beside: &'static [(&'static str, Pair)],
}

const COSTS: [CostClaim; 4] = [
    CostClaim {
        text: "indexes on one cache line cost (false sharing)",
        theirs: "alignas(64) for each index",
        judged: &[("one line / 128 B apart", LINES)],
        beside: &[],
    },
    CostClaim {
        text: "a number of slots that is no power of two costs",
        theirs: "2^13 slots, & instead of %",
        judged: &[("% / &, one CPU to the other", DIVIDED), ("% / &, one thread", DIVIDED_ALONE)],
        beside: &[
            ("compared / &, one CPU to the other", COMPARED),
            ("compared / &, one thread", COMPARED_ALONE),
        ],
    },
    CostClaim {
        text: "memory that is allocated for each message costs, in the middle",
        theirs: "messages of fixed size, no dynamic allocation",
        judged: &[("box / slot, round trip", BOXED), ("box / slot, one thread", BOXED_ALONE)],
        beside: &[],
    },
    CostClaim {
        text: "memory that is allocated for each message costs, in the tail",
        theirs: "messages of fixed size, no dynamic allocation",
        judged: &[
            ("box / slot, P99 of round trips", BOXED_P99),
            ("box / slot, P99 on one thread", BOXED_P99_ALONE),
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

fn row<'a>(rows: &'a [Row], mistake: &str, form: &str, cpus: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.is(&[("mistake", mistake), ("form", form), ("cpus", cpus)]))
}

/// The wrong form over the right one, round by round.
fn factor(rows: &[Row], pair: Pair) -> Option<Interval> {
    let [mistake, wrong, right, cpus, measure] = pair;
    let of = |form| row(rows, mistake, form, cpus)?.measure(measure);
    of(wrong)?.over(of(right)?)
}

/// How often it was done, and how often it went wrong.
fn count(row: &Row, wrong: &str) -> Option<(f64, f64)> {
    row.figure("done").zip(row.figure(wrong))
}

fn said((done, wrong): (f64, f64), what: &str) -> String {
    let share = if done > 0.0 { 100.0 * wrong / done } else { 0.0 };
    format!("{wrong} of {done} {what} ({share:.3} %)")
}

/// One that goes wrong is enough: a count has no noise.
fn counted(rows: &[Row], claim: &str, theirs: &str, (what, pair): (&str, Pair)) -> Verdict {
    let [mistake, wrong, right, cpus, _] = pair;
    let of = |form| count(row(rows, mistake, form, cpus)?, what);
    let found = of(wrong).zip(of(right)).map(|(of_wrong, of_right)| {
        let holds = match (of_wrong, of_right) {
            ((_, wrong), (done, right)) if wrong > 0.0 && right == 0.0 && done > 0.0 => Holds::Yes,
            _ => Holds::No,
        };
        let refused = row(rows, mistake, right, cpus).and_then(|row| row.figure("refused"));
        let refused = refused.filter(|refused| *refused > 0.0);
        let refused = refused.map(|n| format!(", {n} refused")).unwrap_or_default();
        let text = format!(
            "{wrong}: {}; {right}: {}{refused} (holds if: the first goes wrong at least once, the \
             second never)",
            said(of_wrong, what),
            said(of_right, what)
        );
        (text, holds)
    });
    Verdict::of(claim, theirs, found)
}

fn relaxed(rows: &[Row], is_x86: bool) -> Verdict {
    let of = |form| count(row(rows, "order", form, "two")?, "stale");
    let flag_first = of("flag_first").map(|of| {
        format!("; with the flag stored first, which relaxed allows: {}", said(of, "stale"))
    });
    let flag_first = flag_first.unwrap_or_default();
    let (ours, holds) = if is_x86 {
        let text = format!("{NOT_ON_X86}; what shows it: {LOOM}{flag_first}");
        (text, Holds::NotMeasured)
    } else if let Some((relaxed, ordered)) = of("relaxed").zip(of("release_acquire")) {
        let holds = if relaxed.1 > 0.0 && ordered.1 == 0.0 { Holds::Yes } else { Holds::No };
        let text = format!(
            "relaxed: {}; release and acquire: {}; under every order: {LOOM}{flag_first} (holds if: \
             the first is stale at least once, the second never)",
            said(relaxed, "stale"),
            said(ordered, "stale")
        );
        (text, holds)
    } else {
        (format!("-; what shows it: {LOOM}"), Holds::NotMeasured)
    };
    Verdict {
        claim: "relaxed instead of release and acquire hands over what is not there yet".into(),
        theirs: "memory_order_relaxed: no ordering guarantees".into(),
        ours,
        holds,
    }
}

impl CostClaim {
    fn verdict(&self, rows: &[Row]) -> Verdict {
        let known = |&(what, pair): &(&'static str, Pair)| Some((what, factor(rows, pair)?));
        let judged = self.judged.iter().find_map(known);
        let found = judged.map(|(what, ratio)| {
            let others = self.judged[1..].iter().chain(self.beside).filter_map(known);
            let others = others.filter(|(other, _)| *other != what);
            let others: String = others.map(|(what, ratio)| format!("; {what}: {ratio}")).collect();
            let text = format!("{what}: {ratio}{others} (holds if: the first is {MATTERS})");
            (text, MATTERS.holds(ratio))
        });
        Verdict::of(self.text, self.theirs, found)
    }
}

/// Each mistake, what it changes, and whether that matters.
pub(super) fn tables(rows: &[Row]) -> Vec<Table> {
    let pairs = [
        LOST,
        TORN,
        LINES,
        DIVIDED,
        DIVIDED_ALONE,
        COMPARED,
        COMPARED_ALONE,
        BOXED,
        BOXED_ALONE,
        BOXED_P99,
        BOXED_P99_ALONE,
    ];
    let bars = pairs.map(|pair| {
        let [mistake, wrong, right, cpus, measure] = pair;
        let measure = measure.replace('_', " ");
        let cpus = if cpus == "one" { "one CPU" } else { "two CPUs" };
        let what = format!("{mistake}: {wrong} / {right}, {measure}, {cpus}");
        (what, MATTERS, factor(rows, pair))
    });
    vec![Table::of_bars("what each mistake costs; at the bar it matters", bars)]
}

#[cfg(test)]
mod tests;

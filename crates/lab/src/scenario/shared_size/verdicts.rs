//! The paper's table beside ours, and whether its claim holds here: ratios first, round by round.
//! The criteria were set before the first run.

use sinew_figures::Interval;
use sinew_figures::units::{ratio as in_digits, size};

use super::{SizeCase, SizeForm};
use crate::bar::{Bar, Holds};
use crate::harness::Access;
use crate::report::{Measure, Row, Table, Verdict};
use crate::scenario::jung_kim::{SIZES, published};

/// The claim of the paper: at every size its times before are a tenth or more above those after.
const BETTER: Bar = Bar::AtLeast(1.10);

const COPIED_ON_ONE: SizeForm = SizeForm::of(Access::Copied, true, false);
const IN_PLACE_ON_ONE: SizeForm = SizeForm::of(Access::InPlace, true, false);
const COPIED_ON_TWO: SizeForm = SizeForm::of(Access::Copied, true, true);
const IN_PLACE_ON_TWO: SizeForm = SizeForm::of(Access::InPlace, true, true);
const COPIED_DEFAULT: SizeForm = SizeForm::of(Access::Copied, false, true);
const IN_PLACE_DEFAULT: SizeForm = SizeForm::of(Access::InPlace, false, true);

/// A comparison of two forms, and its names in a column and in a verdict.
struct Pair {
    before: SizeForm,
    after: SizeForm,
    column: &'static str,
    claim: &'static str,
}

/// The comparisons: before and after, in the paper's sense.
const PAIRS: [Pair; 5] = [
    Pair {
        before: COPIED_ON_ONE,
        after: IN_PLACE_ON_ONE,
        column: "copied / in place, one CPU",
        claim: "in place is better than copied by 10 % or more, both on one CPU, sleeping",
    },
    Pair {
        before: COPIED_ON_TWO,
        after: IN_PLACE_ON_TWO,
        column: "copied / in place, two CPUs",
        claim: "in place is better than copied by 10 % or more, on two CPUs, sleeping",
    },
    Pair {
        before: COPIED_DEFAULT,
        after: IN_PLACE_DEFAULT,
        column: "copied / in place, two, spin then park",
        claim: "in place is better than copied by 10 % or more, on two CPUs, spin then park",
    },
    Pair {
        before: COPIED_ON_ONE,
        after: COPIED_ON_TWO,
        column: "one CPU / two, sleeping",
        claim: "two CPUs are better than one by 10 % or more, copied, sleeping on both",
    },
    Pair {
        before: COPIED_ON_ONE,
        after: COPIED_DEFAULT,
        column: "one CPU / two, spin then park",
        claim: "two CPUs that spin then park are better than one that sleeps, by 10 % or more",
    },
];

fn trips(rows: &[Row], form: SizeForm, bytes: usize) -> Option<&Measure> {
    let axes = SizeCase { form, bytes }.row().axes;
    let trips = rows.iter().find(|row| row.axes == axes)?.measure("round_trip")?;
    (!trips.rounds.is_empty()).then_some(trips)
}

fn over(rows: &[Row], this: (SizeForm, usize), other: (SizeForm, usize)) -> Option<Interval> {
    trips(rows, this.0, this.1)?.over(trips(rows, other.0, other.1)?)
}

/// All verdicts.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let theirs = theirs();
    PAIRS.iter().map(|pair| Verdict::of(pair.claim, theirs.clone(), judge(rows, pair))).collect()
}

/// What the paper's own times show.
fn theirs() -> String {
    let ratios = SIZES.iter().filter_map(|&bytes| published(bytes));
    let ratios: Vec<_> = ratios.map(|(before, after)| before / after).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    format!("{least:.3} to {most:.3} by its table; {BETTER} at every size; partly: at some")
}

fn judge(rows: &[Row], pair: &Pair) -> Option<(String, Holds)> {
    let at = |bytes| Some((bytes, over(rows, (pair.before, bytes), (pair.after, bytes))?));
    let all: Vec<_> = SIZES.iter().filter_map(|&bytes| at(bytes)).collect();
    if all.is_empty() {
        return None;
    }
    let each: Vec<_> = all.iter().map(|(_, ratio)| BETTER.holds(*ratio)).collect();
    let count = |what| each.iter().filter(|holds| **holds == what).count();
    let (yes, no) = (count(Holds::Yes), count(Holds::No));
    let holds = match (yes, no) {
        // Not all sizes were seen.
        (yes, _) if yes == each.len() && all.len() < SIZES.len() => Holds::Partly,
        (yes, _) if yes == each.len() => Holds::Yes,
        (0, no) if no > 0 => Holds::No,
        (0, _) => Holds::NotDistinguishable,
        _ => Holds::Partly,
    };
    let middles: Vec<_> = all
        .iter()
        .map(|(bytes, ratio)| format!("{} {}", size(*bytes as f64), in_digits(ratio.median)))
        .collect();
    let (count, middles) = (all.len(), middles.join(", "));
    Some((format!("at {yes} of {count} sizes; not at {no}; {middles}"), holds))
}

/// All tables.
pub(super) fn tables(rows: &[Row]) -> Vec<Table> {
    vec![ratios(rows), growth(rows), times(rows)]
}

fn lines(of: impl Fn(usize) -> Vec<String>) -> Vec<Vec<String>> {
    let line = |&bytes: &usize| [vec![size(bytes as f64)], of(bytes)].concat();
    SIZES.iter().map(line).collect()
}

fn ratios(rows: &[Row]) -> Table {
    let line = |bytes| {
        let of = |pair: &Pair| over(rows, (pair.before, bytes), (pair.after, bytes));
        let ours = PAIRS.iter().map(|pair| Table::cell(of(pair)));
        let theirs = published(bytes).map(|(before, after)| format!("{:.2}", before / after));
        ours.chain([theirs.unwrap_or("-".into())]).collect()
    };
    let [a, b, c, d, e] = PAIRS.each_ref().map(|pair| pair.column);
    let columns = ["payload", a, b, c, d, e, "their before / after"];
    Table::of("ratios of round trips: above one, the latter is better", columns, lines(line))
}

fn growth(rows: &[Row]) -> Table {
    let least = SIZES[0];
    let line = |bytes| {
        let forms = [COPIED_ON_ONE, IN_PLACE_ON_ONE, COPIED_ON_TWO, IN_PLACE_ON_TWO];
        let ratio = |form| over(rows, (form, bytes), (form, least));
        let ours = forms.map(|form| ratio(form).map_or("-".into(), |it| in_digits(it.median)));
        let theirs =
            published(bytes).zip(published(least)).map(|(of, to)| [of.0 / to.0, of.1 / to.1]);
        let theirs = [0, 1].map(|at| theirs.map_or("-".into(), |them| in_digits(them[at])));
        ours.into_iter().chain(theirs).collect()
    };
    let columns = [
        "payload",
        "copied, one CPU",
        "in place, one CPU",
        "copied, two CPUs",
        "in place, two CPUs",
        "their before",
        "their after",
    ];
    Table::of("how many times as long as 8 B takes, sleeping", columns, lines(line))
}

fn times(rows: &[Row]) -> Table {
    let us = |value: Option<f64>| value.map_or("-".into(), |us| format!("{us:.1}"));
    let line = |bytes| {
        let forms = [
            COPIED_ON_ONE,
            IN_PLACE_ON_ONE,
            COPIED_ON_TWO,
            IN_PLACE_ON_TWO,
            COPIED_DEFAULT,
            IN_PLACE_DEFAULT,
        ];
        let middle = |form| trips(rows, form, bytes).and_then(Measure::spread);
        let ours = forms.map(|form| us(middle(form).map(|ns| ns.median / 1e3)));
        let theirs = published(bytes);
        let theirs = [us(theirs.map(|them| them.0)), us(theirs.map(|them| them.1))];
        ours.into_iter().chain(theirs).collect()
    };
    let columns = [
        "payload",
        "copied, one CPU",
        "in place, one CPU",
        "copied, two CPUs",
        "in place, two CPUs",
        "copied, two, spin then park",
        "in place, two, spin then park",
        "their before",
        "their after",
    ];
    Table::of("round trips in us, medians over the rounds", columns, lines(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(form: SizeForm, bytes: usize, us: f64) -> Row {
        let mut row = SizeCase { form, bytes }.row();
        row.measure_mut("round_trip").rounds = vec![us * 990.0, us * 1000.0, us * 1010.0];
        row
    }

    /// Rows of the first comparison, with this ratio at each size.
    fn rows(ratio: impl Fn(usize) -> f64) -> Vec<Row> {
        let both = |&bytes: &usize| {
            let after = row(IN_PLACE_ON_ONE, bytes, 10.0);
            [row(COPIED_ON_ONE, bytes, 10.0 * ratio(bytes)), after]
        };
        SIZES.iter().flat_map(both).collect()
    }

    fn first(rows: &[Row]) -> Holds {
        of(rows)[0].holds
    }

    #[test]
    fn a_tenth_at_every_size_is_what_is_claimed() {
        assert_eq!(first(&rows(|_| 1.2)), Holds::Yes);
        assert_eq!(first(&rows(|bytes| if bytes < 1024 { 1.0 } else { 1.5 })), Holds::Partly);
        assert_eq!(first(&rows(|_| 1.05)), Holds::No);
        assert_eq!(first(&rows(|_| 1.2)[..8]), Holds::Partly, "not all sizes");
        assert_eq!(first(&[]), Holds::NotMeasured);
        let two_rounds = |mut row: Row| {
            row.measure_mut("round_trip").rounds.truncate(2);
            row
        };
        let few: Vec<_> = rows(|_| 1.2).into_iter().map(two_rounds).collect();
        assert_eq!(first(&few), Holds::NotDistinguishable);
    }

    #[test]
    fn their_figures_stand_beside_ours() {
        let tables = tables(&rows(|_| 1.2));
        let last = tables[0].rows.last().expect("a line for every size");
        assert_eq!((last[0].as_str(), last[6].as_str()), ("1 MiB", "1.10"));
        assert_eq!(last[1], "1.20 (1.20 to 1.20)");
        assert!(last[2..6].iter().all(|cell| cell == "-"));
        assert_eq!(tables[2].rows[0][7..], ["15.4", "14.0"]);
        let theirs = "1.096 to 1.144 by its table";
        assert!(of(&[])[0].theirs.starts_with(theirs), "{}", of(&[])[0].theirs);
    }
}

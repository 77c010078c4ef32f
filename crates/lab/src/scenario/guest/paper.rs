//! The table of the paper as data, with our figures beside it: ratios first.

use sinew_figures::Interval;
use sinew_figures::units::{ratio, size};

use super::case::{Carriage, GuestCase, Over, Waiting};
use crate::report::{Measure, Row, Table};
use crate::scenario::jung_kim::{SIZES, published};

/// A way without its size.
pub(super) type Form = (Carriage, Over, Waiting, bool);

/// The ways with which others are compared.
pub(super) const DESCRIPTOR: Form = (Carriage::Descriptor, Over::Link, Waiting::Polling, true);
pub(super) const READ: Form = (Carriage::Read, Over::Link, Waiting::Polling, true);
pub(super) const COPIED: Form = (Carriage::Copied, Over::Link, Waiting::Polling, true);
pub(super) const RING: Form = (Carriage::Copied, Over::Ring, Waiting::Polling, true);
pub(super) const BARE: Form = (Carriage::Copied, Over::BareLink, Waiting::Polling, true);
pub(super) const BARE_RING: Form = (Carriage::Copied, Over::BareRing, Waiting::Polling, true);
const DOORBELL: Form = (Carriage::Copied, Over::Link, Waiting::Doorbell, true);
const DEFAULT: Form = (Carriage::Copied, Over::Link, Waiting::SpinThenDoorbell, true);
const ON_ONE_CPU: Form = (Carriage::Copied, Over::Link, Waiting::Doorbell, false);

/// The round trips of a way, if it was measured.
fn trips(rows: &[Row], form: Form, bytes: usize) -> Option<&Measure> {
    let (crossing, over, wait, on_two) = form;
    let case = GuestCase { crossing, over, wait, on_two, bytes }.row();
    rows.iter().find(|row| row.axes == case.axes)?.measure("round_trip")
}

/// Round by round, the ratio of one way to another, each with its size.
pub(super) fn over(rows: &[Row], this: (Form, usize), other: (Form, usize)) -> Option<Interval> {
    trips(rows, this.0, this.1)?.over(trips(rows, other.0, other.1)?)
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".into(), ratio)
}

/// All tables, for these sizes.
pub(super) fn tables(rows: &[Row], sizes: &[usize]) -> Vec<Table> {
    vec![ratios(rows, sizes), growth(rows, sizes), times(rows, sizes)]
}

fn ratios(rows: &[Row], sizes: &[usize]) -> Table {
    const PAIRS: [(Form, Form); 7] = [
        (COPIED, RING),
        (BARE, BARE_RING),
        (DOORBELL, COPIED),
        (DEFAULT, COPIED),
        (ON_ONE_CPU, DOORBELL),
        (COPIED, DESCRIPTOR),
        (READ, DESCRIPTOR),
    ];
    let line = |bytes: usize| {
        let ratios = PAIRS.map(|(this, other)| {
            cell(over(rows, (this, bytes), (other, bytes)).map(|ratio| ratio.median))
        });
        let theirs = published(bytes).map(|(before, after)| before / after);
        let name = [size(bytes as f64)];
        name.into_iter().chain(ratios).chain([cell(theirs)]).collect()
    };
    let columns = [
        "payload",
        "link / raw ring",
        "bare link / bare ring",
        "doorbell / polling",
        "default / polling",
        "one CPU / two, doorbell",
        "copied / descriptor",
        "read / descriptor",
        "their before / after",
    ];
    let title = "ratios of round trips, medians over the rounds";
    Table::of(title, columns, sizes.iter().map(|bytes| line(*bytes)).collect())
}

fn growth(rows: &[Row], sizes: &[usize]) -> Table {
    let least = SIZES[0];
    let line = |bytes: usize| {
        let ours = [DESCRIPTOR, READ, COPIED]
            .map(|form| cell(over(rows, (form, bytes), (form, least)).map(|ratio| ratio.median)));
        let (of, to) = (published(bytes), published(least));
        let theirs = of.zip(to).map(|(of, to)| [of.0 / to.0, of.1 / to.1]);
        let theirs = [0, 1].map(|at| cell(theirs.map(|them| them[at])));
        [size(bytes as f64)].into_iter().chain(ours).chain(theirs).collect()
    };
    let columns = ["payload", "descriptor", "read", "copied", "their before", "their after"];
    let title = "how many times as long as 8 B takes";
    Table::of(title, columns, sizes.iter().map(|bytes| line(*bytes)).collect())
}

fn times(rows: &[Row], sizes: &[usize]) -> Table {
    let us = |value: Option<f64>| value.map_or("-".into(), |us| format!("{us:.1}"));
    let line = |bytes: usize| {
        let ours = [DESCRIPTOR, READ, COPIED, RING, BARE, BARE_RING, DOORBELL, DEFAULT, ON_ONE_CPU]
            .map(|form| {
                let spread = trips(rows, form, bytes).and_then(Measure::spread);
                us(spread.map(|ns| ns.median / 1000.0))
            });
        let theirs = published(bytes);
        let theirs = [us(theirs.map(|them| them.0)), us(theirs.map(|them| them.1))];
        [size(bytes as f64)].into_iter().chain(ours).chain(theirs).collect()
    };
    let columns = [
        "payload",
        "descriptor",
        "read",
        "copied",
        "raw ring",
        "bare link",
        "bare ring",
        "copied, doorbell",
        "copied, default",
        "copied, doorbell, one CPU",
        "their before",
        "their after",
    ];
    let title = "round trips in us, medians over the rounds: of an emulator, theirs of a chip";
    Table::of(title, columns, sizes.iter().map(|bytes| line(*bytes)).collect())
}

//! Whether the bars are reached.

use sinew_figures::Interval;

use super::paper::{BARE, BARE_RING, COPIED, DESCRIPTOR, RING, over};
use crate::bar::{Bar, Holds};
use crate::report::{Row, Verdict};

const SMALL: usize = 64;
const LEAST: usize = 8;
const MOST: usize = 1 << 20;

/// All verdicts.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let judge = |claim: &str, bar: Bar, here: Option<Interval>| {
        let found = here.map(|here| (here.to_string(), bar.holds(here)));
        Verdict::of(claim, bar.to_string(), found)
    };
    let to_ring = |link, ring| over(rows, (link, SMALL), (ring, SMALL));
    vec![
        judge(
            "link through ports / raw ring, 64 B, polling, caches of both kept in step",
            Bar::AtMost(1.10),
            to_ring(COPIED, RING),
        ),
        judge(
            "bare link / bare ring, 64 B, polling, caches of both left to the hardware",
            Bar::AtMost(1.10),
            to_ring(BARE, BARE_RING),
        ),
        judge(
            "descriptor of 1 MiB / of 8 B",
            Bar::AtMost(2.0),
            over(rows, (DESCRIPTOR, MOST), (DESCRIPTOR, LEAST)),
        ),
        judge("from the start of the emulator to the first answer, s", Bar::AtMost(1.0), up(rows)),
        Verdict::of(
            "10 000 messages each way by doorbell under load: none lost, none twice",
            "none",
            Some((
                "figures cannot show it; cargo test -p sinew-agent --test trials does".into(),
                Holds::NotMeasured,
            )),
        ),
    ]
}

/// How soon the guest was up, s, start by start.
fn up(rows: &[Row]) -> Option<Interval> {
    let starts = rows.iter().find_map(|row| row.measure("guest_up"))?;
    let seconds: Vec<_> = starts.rounds.iter().map(|ns| ns / 1e9).collect();
    Interval::of(&seconds)
}

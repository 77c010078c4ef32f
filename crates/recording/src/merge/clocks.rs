//! From the clocks of all hosts to the clock of the first.

use std::collections::VecDeque;

use super::causality::Moment;
use super::line::{Knot, Line};
use super::survey::{Survey, Time};

/// No estimate is further from zero: arithmetic with a larger one could overflow.
const OFFSET_NS_MAX: i64 = i64::MAX / 8;

/// How times of all hosts are converted to one clock.
pub(super) struct Clocks {
    steps: Vec<Step>,
    /// What to add to the monotonic clock of the first host to get its wall clock.
    offset_ns: i64,
}

/// The conversion for one host.
enum Step {
    /// It is the host with the clock.
    Own,
    /// To the clock of another host, which has fewer steps to go.
    Over(usize, Line),
    /// Its wall clock is trusted.
    Trusted,
}

impl Clocks {
    /// Finds for each host the way with the fewest steps.
    pub(super) fn of(surveys: &[Survey<'_>]) -> Clocks {
        let mut steps: Vec<Step> = surveys.iter().map(|_| Step::Trusted).collect();
        steps[0] = Step::Own;
        let mut found = VecDeque::from([0]);
        while let Some(nearer) = found.pop_front() {
            for host in 0..surveys.len() {
                if matches!(steps[host], Step::Trusted)
                    && let Some(line) = Line::of(knots(&surveys[host], &surveys[nearer]))
                {
                    steps[host] = Step::Over(nearer, line);
                    found.push_back(host);
                }
            }
        }
        Clocks { steps, offset_ns: surveys[0].offset_ns() }
    }

    /// A time of a host by the one clock, and its possible error.
    pub(super) fn time(&self, host: usize, time: Time) -> Moment {
        let (mut at, mut monotonic_ns, mut uncertainty_ns) = (host, time.monotonic_ns, 0_i64);
        loop {
            match &self.steps[at] {
                Step::Own => {
                    let ns = monotonic_ns.saturating_add(self.offset_ns);
                    return Moment { ns, uncertainty_ns: Some(uncertainty_ns) };
                }
                Step::Trusted => return Moment { ns: time.unix_ns, uncertainty_ns: None },
                Step::Over(nearer, line) => {
                    let (add_ns, wrong_ns) = line.at(monotonic_ns);
                    monotonic_ns = monotonic_ns.saturating_add(add_ns);
                    uncertainty_ns = uncertainty_ns.saturating_add(wrong_ns);
                    at = *nearer;
                }
            }
        }
    }

    /// Whether a host's wall clock is all that is known.
    pub(super) fn is_trusted(&self, host: usize) -> bool {
        matches!(self.steps[host], Step::Trusted)
    }

    /// The next host on the way to the clock, and the estimates in between.
    pub(super) fn over(&self, host: usize) -> Option<(usize, &Line)> {
        match &self.steps[host] {
            Step::Over(nearer, line) => Some((*nearer, line)),
            _ => None,
        }
    }
}

/// The estimates of both hosts: what to add to the clock of `host` to get that of `nearer`.
fn knots(host: &Survey<'_>, nearer: &Survey<'_>) -> Vec<Knot> {
    let said = |by: &Survey<'_>, of: &Survey<'_>, is_own: bool| {
        let rows = by.clocks.iter().filter(|(name, _)| name == of.name).filter_map(|(_, clock)| {
            let (at_ns, offset_ns) = (i64::try_from(clock.at_ns).ok()?, clock.monotonic_offset_ns);
            let is_sane = offset_ns.saturating_abs() <= OFFSET_NS_MAX && at_ns <= OFFSET_NS_MAX;
            let uncertainty_ns = i64::try_from(clock.uncertainty_ns).ok()?;
            let (at_ns, add_ns) = match is_own {
                true => (at_ns, offset_ns),
                false => (at_ns.saturating_add(offset_ns), -offset_ns),
            };
            is_sane.then_some(Knot { at_ns, add_ns, uncertainty_ns, is_own })
        });
        rows.collect::<Vec<_>>()
    };
    [said(host, nearer, true), said(nearer, host, false)].concat()
}

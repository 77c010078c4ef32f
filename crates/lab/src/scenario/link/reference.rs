//! The token and the pair as rows of their own, and the choice of the CPUs for all measurements.

use std::cell::Cell;
use std::time::Duration;

use sinew_core::clock::Clock;

use crate::harness::reference::{MOVED, Reference, TOKEN};
use crate::harness::token::{self, Lines};
use crate::harness::{Cpus, Gone};
use crate::report::Row;
use crate::rounds::Contender;

/// The most CPUs against which the first one is measured.
const OTHERS_MAX: usize = 31;

/// The CPUs to measure on: the first one with the CPU nearest to it, and with the farthest one if
/// that is another. With two CPUs or fewer there is no choice.
pub(super) fn choose(
    cpus: &[u32],
    clock: Clock,
) -> Result<Vec<(Option<&'static str>, Cpus)>, Gone> {
    let (near, others) = cpus.split_first().ok_or_else(|| Gone("there is no CPU".into()))?;
    let pair = |far: u32| Cpus { near: *near, far };
    if let [] | [_] = others {
        return Ok(vec![(None, pair(*others.first().unwrap_or(near)))]);
    }
    let mut tokens = vec![];
    for &far in others.iter().take(OTHERS_MAX) {
        tokens.extend(Reference::new(pair(far), clock).now()?.map(|token_ns| (token_ns, far)));
    }
    tokens.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (nearest, farthest) = (tokens[0], tokens[tokens.len() - 1]);
    Ok(match farthest.0 / nearest.0 >= MOVED {
        true => vec![(Some("near"), pair(nearest.1)), (Some("far"), pair(farthest.1))],
        false => vec![(None, pair(nearest.1))],
    })
}

/// The row of a reference.
pub(super) fn row(lines: Lines) -> Row {
    let name = match lines {
        Lines::One => "token",
        Lines::Two => "pair",
    };
    Row::of(&[("transport", name), ("wait", "spin"), ("placement", "threads")])
}

/// The token and the pair as rows of their own.
pub(super) struct Lonely<'a> {
    pub(super) reference: &'a Reference,
    pub(super) lines: Lines,
    pub(super) budget: &'a Cell<Duration>,
}

impl Contender for Lonely<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Reference { cpus, clock, .. } = *self.reference;
        let measure = || token::measure(self.lines, cpus, clock, self.budget.get());
        let (found, reference) = self.reference.around(measure).map_err(|Gone(why)| why)?;
        let median = found.median_of_steps(clock.step_ns());
        let median = median.ok_or("fewer than 20 trips; measure when the CPUs are less busy")?;
        row.measure_mut("round_trip").add_round(&found, median, reference);
        Ok(())
    }

    fn takes(&self) -> Duration {
        self.budget.get() + TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_nothing_is_measured() {
        let clock = Clock::from_rate(0.0);
        let one = choose(&[3], clock).expect("one CPU");
        assert_eq!(one, [(None, Cpus { near: 3, far: 3 })]);
        let two = choose(&[3, 5], clock).expect("two CPUs");
        assert_eq!(two, [(None, Cpus { near: 3, far: 5 })]);
        assert!(choose(&[], clock).is_err());
    }
}

//! The token that everything is compared with, measured directly before and after each row: the
//! host of a virtual machine may move its CPUs apart or together at any time.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use sinew_runtime::clock::{Clock, now_ns};

use crate::harness::token::{self, Lines};
use crate::harness::{Cpus, Gone};
use crate::report::Row;
use crate::rounds::Contender;

/// How long a token is measured: some ten thousand trips.
pub(super) const TOKEN: Duration = Duration::from_millis(3);

/// A token that was measured so long ago is that directly before what comes next.
const RECENT_NS: u64 = 2_000_000;

/// Tokens of a run may differ by this factor; past it the distance of the CPUs has changed.
const MOVED: f64 = 1.5;

/// Most CPUs that the first one is measured against.
const OTHERS_MAX: usize = 31;

/// Two CPUs, the token between them, and how it changed.
pub(super) struct Reference {
    pub(super) cpus: Cpus,
    pub(super) clock: Clock,
    /// When the last token was measured, and its median.
    last: Cell<Option<(u64, f64)>>,
    seen: RefCell<Vec<f64>>,
}

impl Reference {
    pub(super) fn new(cpus: Cpus, clock: Clock) -> Reference {
        Reference { cpus, clock, last: Cell::new(None), seen: RefCell::default() }
    }

    /// The median of a token measured now, ns. `None` with one CPU only.
    pub(super) fn now(&self) -> Result<Option<f64>, String> {
        if !self.cpus.are_two() {
            return Ok(None);
        }
        let median = token_ns(Lines::One, self.cpus, self.clock, TOKEN).map_err(|Gone(why)| why)?;
        self.last.set(Some((now_ns(), median)));
        self.seen.borrow_mut().push(median);
        Ok(Some(median))
    }

    /// The same, unless one was measured directly before.
    pub(super) fn before(&self) -> Result<Option<f64>, String> {
        match self.last.get() {
            Some((at_ns, median)) if now_ns() - at_ns < RECENT_NS => Ok(Some(median)),
            _ => self.now(),
        }
    }

    /// Measures something, and the mean of the tokens before and after it.
    pub(super) fn around<T>(
        &self,
        measure: impl FnOnce() -> Result<T, Gone>,
    ) -> Result<(T, Option<f64>), String> {
        let before = self.before()?;
        let found = measure().map_err(|Gone(why)| why)?;
        let after = self.now()?;
        Ok((found, before.zip(after).map(|(before, after)| f64::midpoint(before, after))))
    }

    /// What to say if the distance between the CPUs changed.
    pub(super) fn moved(&self) -> Option<String> {
        moved(self.cpus, &self.seen.borrow())
    }
}

fn moved(cpus: Cpus, seen: &[f64]) -> Option<String> {
    let least = seen.iter().copied().min_by(f64::total_cmp)?;
    let most = seen.iter().copied().max_by(f64::total_cmp)?;
    if most / least < MOVED {
        return None;
    }
    let middle = (least * most).sqrt();
    let near = seen.iter().filter(|&&token| token < middle).count();
    let Cpus { near: one, far: other } = cpus;
    Some(format!(
        "the distance between CPUs {one} and {other} changed while this ran: tokens from \
         {least:.0} to {most:.0} ns, {near} of {} below {middle:.0} ns; ratios are to the token \
         directly before and after each row, times are a mixture",
        seen.len()
    ))
}

/// The median of a token or a pair, ns.
fn token_ns(lines: Lines, cpus: Cpus, clock: Clock, budget: Duration) -> Result<f64, Gone> {
    let found = token::measure(lines, cpus, clock, budget)?;
    let median = found.quantile(0.5).map(|ns| ns as f64);
    median.ok_or_else(|| Gone("the token made fewer than 20 trips; give the CPUs more time".into()))
}

/// The CPUs to measure on: the first one and that which is nearest to it, and that which is
/// farthest if it is another. With two or fewer there is no choice.
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
        tokens.push((token_ns(Lines::One, pair(far), clock, TOKEN)?, far));
    }
    tokens.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (nearest, farthest) = (tokens[0], tokens[tokens.len() - 1]);
    Ok(match farthest.0 / nearest.0 >= MOVED {
        true => vec![(Some("near"), pair(nearest.1)), (Some("far"), pair(farthest.1))],
        false => vec![(None, pair(nearest.1))],
    })
}

/// What the row of a reference is.
pub(super) fn axes(lines: Lines) -> Vec<(String, String)> {
    let name = match lines {
        Lines::One => "token",
        Lines::Two => "pair",
    };
    let axes = [("transport", name), ("wait", "spin"), ("placement", "threads")];
    axes.map(|(axis, value)| (axis.into(), value.into())).into()
}

/// The token and the pair as rows of their own.
pub(super) struct Lonely<'a> {
    pub(super) reference: &'a Reference,
    pub(super) lines: Lines,
    pub(super) budget: Duration,
}

impl Contender for Lonely<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Reference { cpus, clock, .. } = *self.reference;
        let measure = || token::measure(self.lines, cpus, clock, self.budget);
        let (found, reference) = self.reference.around(measure)?;
        let median = found.quantile(0.5).ok_or("fewer than 20 trips; give it more time")?;
        row.measure_mut("round_trip").add_round(&found, median as f64, reference);
        Ok(())
    }

    fn takes(&self) -> Duration {
        self.budget + TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_moved_apart_are_told_with_the_split() {
        let cpus = Cpus { near: 0, far: 1 };
        assert_eq!(moved(cpus, &[130.0, 140.0, 190.0]), None);
        let text = moved(cpus, &[130.0, 300.0, 131.0, 310.0, 129.0]).expect("they moved");
        assert!(text.contains("tokens from 129 to 310 ns, 3 of 5 below 200 ns"), "{text}");
        assert_eq!(moved(cpus, &[]), None);
    }

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

//! Rounds: every row is measured once in each round, one after the other, in turn forwards and
//! backwards. Whatever the machine does meanwhile affects all rows, and no row always follows the
//! same one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Machine;

use crate::report::{FORMAT, Row, ScenarioReport, Timer};

/// What can be measured, once a round.
pub trait Contender {
    /// Measures one round and adds it to the row.
    ///
    /// # Errors
    /// Why it cannot be measured (any more): the row is left out from then on and says why.
    fn round(&mut self, row: &mut Row) -> Result<(), String>;

    /// About how long a round takes, to show the time left.
    fn takes(&self) -> Duration;
}

/// Rows, and what measures each of them.
pub type Contenders<'a> = Vec<(Row, Box<dyn Contender + 'a>)>;

/// Is told what is being measured.
pub trait Progress {
    /// The row that is measured next, how much is done, and how much there is in all.
    fn at(&self, row: &str, done: Duration, all: Duration);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn at(&self, _: &str, _: Duration, _: Duration) {}
}

/// The receiver of progress, and the flag by which the user interrupts.
pub struct Session<'a> {
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// Told before every row.
    pub progress: &'a dyn Progress,
}

impl Session<'_> {
    /// Whether to end early.
    pub fn is_stopped(&self) -> bool {
        // Relaxed: the flag carries no other data with it.
        self.stop.load(Ordering::Relaxed)
    }
}

/// Measures all rows, `rounds` times, for a report of this scenario. The caller makes its tables,
/// verdicts and notes, which follow from the rows.
pub fn measure(
    scenario: &str,
    quick: bool,
    rounds: u32,
    mut contenders: Contenders<'_>,
    session: &Session<'_>,
) -> ScenarioReport {
    let (machine, timer) = (Machine::read(), Timer::measure(Clock::calibrate()));
    let partial = interleave(&mut contenders, rounds, session);
    let rows = contenders.into_iter().map(|(row, _)| row).collect();
    let scenario = scenario.into();
    ScenarioReport {
        scenario,
        format: FORMAT,
        machine,
        timer,
        quick,
        partial,
        rounds,
        rows,
        ..ScenarioReport::default()
    }
}

/// Measures all rows, `rounds` times; returns whether it was interrupted. A row that is already
/// skipped, or that fails, is left out.
fn interleave(
    contenders: &mut [(Row, Box<dyn Contender + '_>)],
    rounds: u32,
    session: &Session<'_>,
) -> bool {
    let round: Duration = contenders.iter().map(|(_, contender)| contender.takes()).sum();
    let (all, mut done) = (round * rounds, Duration::ZERO);
    for number in 0..rounds {
        let count = contenders.len();
        for at in 0..count {
            let at = if number % 2 == 0 { at } else { count - 1 - at };
            let (row, contender) = &mut contenders[at];
            if session.is_stopped() {
                return true;
            }
            if row.skipped.is_none() {
                session.progress.at(&row.id(), done, all);
                row.skipped = contender.round(row).err();
            }
            done += contender.takes();
        }
    }
    session.is_stopped()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Named<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

    impl Contender for Named<'_> {
        fn round(&mut self, _: &mut Row) -> Result<(), String> {
            self.1.borrow_mut().push(self.0);
            if self.0 == "bad" { Err("it broke".into()) } else { Ok(()) }
        }

        fn takes(&self) -> Duration {
            Duration::from_millis(1)
        }
    }

    fn three<'a>(seen: &'a RefCell<Vec<&'static str>>) -> Contenders<'a> {
        let names = ["a", "bad", "c"];
        names.map(|name| (Row::default(), Box::new(Named(name, seen)) as Box<_>)).into()
    }

    #[test]
    fn every_other_round_runs_backwards_and_a_failed_row_stays_out() {
        let (seen, stop) = (RefCell::new(Vec::new()), AtomicBool::new(false));
        let session = Session { stop: &stop, progress: &Silent };
        let mut rows = three(&seen);
        assert!(!interleave(&mut rows, 3, &session));
        assert_eq!(*seen.borrow(), ["a", "bad", "c", "c", "a", "a", "c"]);
        assert_eq!(rows[1].0.skipped.as_deref(), Some("it broke"));
    }

    #[test]
    fn an_interruption_leaves_what_was_measured() {
        let (seen, stop) = (RefCell::new(Vec::new()), AtomicBool::new(true));
        let session = Session { stop: &stop, progress: &Silent };
        assert!(interleave(&mut three(&seen), 3, &session));
        assert!(seen.borrow().is_empty());
    }
}

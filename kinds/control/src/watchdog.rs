//! Kind `watchdog`: detects that a number no longer comes, or no longer changes.

use sinew_core::catalogue::{Bool, Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Level, Message, Node, NodeEntry, Parameters, Real, fault,
};

const IN: usize = 0;
const ALIVE: usize = 1;

const SILENT: usize = 0;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "watchdog",
    runs_in: RunsIn::Realtime,
    doc: "Reports whether a number still comes: 'alive' is false from when 'in' was silent for \
          more than 'after'. With 'must: change' a number that is the same as before counts as \
          silence: a sensor that hangs, a counter that stands. Before the first value time counts \
          from the first cycle. Lost periods count as time. That it falls silent, and that it \
          comes again, is logged. With 'on_silence: fault' the core stops instead, with a text \
          that says how long it was silent; not while it stops anyway, as then others may be \
          silent for good.",
    ports: &[
        Port::input("in", "What must come.", Real::TYPE),
        Port::output("alive", "Whether it came in time.", Flag::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new(
            "after",
            ParameterType::Duration { min_ns: 1_000, max_ns: 3_600_000_000_000 },
        )
        .such_as("100ms")
        .doc("How long it may be silent."),
        Parameter::new("must", ParameterType::Choice(&["arrive", "change"]))
            .or("arrive")
            .doc("What is not silence: any message, or only another number."),
        Parameter::new("on_silence", ParameterType::Choice(&["flag", "fault"]))
            .or("flag")
            .doc("What silence does: 'alive' becomes false, or a fault stops the core."),
    ],
    signals: &[Signal::new("silent_s", "How long it has been silent.", "s", 1)],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Watchdog {
        after_ns: parameters.duration("after").as_nanos() as u64,
        must_change: parameters.text("must") == "change",
        faults: parameters.text("on_silence") == "fault",
        silent_ns: None,
        before: None,
    }))
}

struct Watchdog {
    after_ns: u64,
    must_change: bool,
    faults: bool,
    /// `None` before the first cycle.
    silent_ns: Option<u64>,
    /// The newest number.
    before: Option<f64>,
}

impl Node for Watchdog {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let was_alive = self.silent_ns.is_none_or(|ns| ns <= self.after_ns);
        let mut silent_ns = self.silent_ns.map_or(0, |ns| ns.saturating_add(cycle.passed_ns()));
        let silent_s = silent_ns as f64 * 1e-9;
        if io.fresh(IN) == Fresh::New {
            let value = io.read::<Real>(IN).value;
            let before = self.before.replace(value);
            if !self.must_change || before != Some(value) {
                silent_ns = 0;
            }
        }
        self.silent_ns = Some(silent_ns);
        let is_alive = silent_ns <= self.after_ns;
        io.write::<Flag>(ALIVE).value = Bool::from(is_alive);
        io.signal(SILENT)[0] = silent_ns as f64 * 1e-9;
        if is_alive != was_alive && !cycle.stopping {
            self.say(is_alive, silent_s, cycle);
        }
        if is_alive || !self.faults || cycle.stopping {
            return Ok(());
        }
        Err(self.fault(silent_ns as f64 * 1e-6, self.after_ns as f64 * 1e-6))
    }
}

impl Watchdog {
    #[cold]
    fn say(&self, is_alive: bool, silent_s: f64, cycle: &Cycle) {
        let after_s = self.after_ns as f64 * 1e-9;
        match is_alive {
            true => cycle.log(Level::Info, "'in' comes again, after {:.3} s", &[silent_s]),
            false => {
                let text = "'in' is silent for {:.3} s, 'after' is {} s; see what writes it";
                cycle.log(Level::Warning, text, &[silent_s, after_s]);
            }
        }
    }

    #[cold]
    fn fault(&self, silent_ms: f64, after_ms: f64) -> Fault {
        match self.before {
            None => fault!(
                "port 'in' had no value for {silent_ms:.3} ms since the start, 'after' is \
                 {after_ms:.3} ms; see whether its writer runs, or raise 'after'"
            ),
            Some(value) if self.must_change => fault!(
                "port 'in' has been {value:?} for {silent_ms:.3} ms, and must change within \
                 'after', {after_ms:.3} ms; see whether its writer hangs, or raise 'after'"
            ),
            Some(_) => fault!(
                "port 'in' had no new value for {silent_ms:.3} ms, 'after' is {after_ms:.3} ms; \
                 see whether its writer runs, or raise 'after'"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_core::NodeFixture;

    use super::*;
    use crate::filter_testing::allocations;
    use crate::testing::fixture;

    fn watchdog(given: &[(&str, &str)]) -> NodeFixture {
        fixture(&NODE, given).expect("makes")
    }

    /// Whether the input is alive in each cycle with these values, one a cycle; `None` is no value.
    fn lives(node: &mut NodeFixture, values: &[Option<f64>]) -> Vec<bool> {
        let live = |value: &Option<f64>| {
            if let Some(value) = *value {
                node.put(IN, &Real { value });
            }
            node.update().expect("goes on");
            node.get::<Flag>(ALIVE).expect("says").value.get()
        };
        values.iter().map(live).collect()
    }

    #[test]
    fn it_is_alive_until_it_was_silent_for_longer() {
        let mut node = watchdog(&[("after", "2ms")]);
        let values = [Some(1.0), None, None, None, None, Some(1.0), Some(1.0), None];
        let alive = [true, true, true, false, false, true, true, true];
        assert_eq!(lives(&mut node, &values), alive);
        let said = [
            (Level::Warning, "'in' is silent for 0.003 s, 'after' is 0.002 s; see what writes it"),
            (Level::Info, "'in' comes again, after 0.005 s"),
        ];
        assert_eq!(node.lines(), said.map(|(level, text)| (level, text.to_owned())));
        assert!((node.signal(SILENT)[0] - 0.001).abs() < 1e-12);
    }

    #[test]
    fn before_the_first_value_it_counts_from_the_start() {
        let mut node = watchdog(&[("after", "2ms"), ("must", "change")]);
        let values = [None, None, None, None, Some(0.0)];
        assert_eq!(lives(&mut node, &values), [true, true, true, false, true]);
    }

    #[test]
    fn what_must_change_is_silent_while_it_is_the_same() {
        let mut node = watchdog(&[("after", "1ms"), ("must", "change")]);
        let values = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0].map(Some);
        assert_eq!(lives(&mut node, &values), [true, true, false, true, true, false, true]);
    }

    #[test]
    fn lost_periods_count_as_time() {
        let mut node = watchdog(&[("after", "3ms")]);
        node.cycle.skipped = 9;
        assert_eq!(lives(&mut node, &[Some(1.0)]), [true]);
        node.cycle.skipped = 2;
        assert_eq!(lives(&mut node, &[None]), [true]);
        node.cycle.skipped = 0;
        assert_eq!(lives(&mut node, &[None]), [false]);
    }

    #[test]
    fn a_fault_says_for_how_long_it_was_silent() {
        let fault = |must: &str, values: &[Option<f64>]| {
            let given = [("after", "1500us"), ("on_silence", "fault"), ("must", must)];
            let mut node = watchdog(&given);
            lives(&mut node, values);
            node.update().expect_err("silent for too long").text().to_owned()
        };
        assert_eq!(
            fault("arrive", &[None, None]),
            "port 'in' had no value for 2.000 ms since the start, 'after' is 1.500 ms; see \
             whether its writer runs, or raise 'after'"
        );
        assert_eq!(
            fault("arrive", &[Some(1.0), None]),
            "port 'in' had no new value for 2.000 ms, 'after' is 1.500 ms; see whether its \
             writer runs, or raise 'after'"
        );
        assert_eq!(
            fault("change", &[Some(4.5), Some(4.5)]),
            "port 'in' has been 4.5 for 2.000 ms, and must change within 'after', 1.500 ms; see \
             whether its writer hangs, or raise 'after'"
        );
    }

    #[test]
    fn a_stop_is_not_disturbed() {
        let mut node = watchdog(&[("after", "1ms"), ("on_silence", "fault")]);
        node.cycle.stopping = true;
        assert_eq!(lives(&mut node, &[None; 3]), [true, true, false]);
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut watchdog(&[("after", "1ms")])), 0);
        let mut node = watchdog(&[("after", "1ms"), ("on_silence", "fault")]);
        lives(&mut node, &[None, None]);
        let counted = allocation_counter::measure(|| assert!(node.update().is_err()));
        assert_eq!(counted.count_total, 0);
    }
}

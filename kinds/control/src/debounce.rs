//! Kind `debounce`: follows a flag once it has settled.

use sinew_core::catalogue::{Bool, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters};

const IN: usize = 0;
const OUT: usize = 1;

const TIME: ParameterType = ParameterType::Duration { min_ns: 0, max_ns: 3_600_000_000_000 };

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "debounce",
    runs_in: RunsIn::Realtime,
    doc: "Becomes true when 'in' has been true for 'rises_after' without a break, and false when \
          it has been false for 'falls_after': the timers TON and TOF of IEC 61131-3, one behind \
          the other. Time counts from the cycle in which 'in' turned; with 0s it turns \
          in that cycle. Lost periods count as time. It begins, and stays before the first \
          message, with 'initial'.",
    ports: &[
        Port::input("in", "Such as a switch whose contacts bounce.", Flag::TYPE),
        Port::output("out", "The value without the bounces.", Flag::TYPE),
    ],
    parameters: &[
        Parameter::new("rises_after", TIME).or("10ms").doc("How long 'in' must be true."),
        Parameter::new("falls_after", TIME).or("10ms").doc("How long 'in' must be false."),
        Parameter::new("initial", ParameterType::Bool).or("false").doc("What it writes at first."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let ns = |name: &str| parameters.duration(name).as_nanos() as u64;
    Ok(Box::new(Debounce {
        rises_after_ns: ns("rises_after"),
        falls_after_ns: ns("falls_after"),
        is_high: parameters.bool("initial"),
        differs_ns: None,
    }))
}

struct Debounce {
    rises_after_ns: u64,
    falls_after_ns: u64,
    is_high: bool,
    /// How long `in` has differed from `out`.
    differs_ns: Option<u64>,
}

impl Node for Debounce {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) != Fresh::None {
            self.hear(io.read::<Flag>(IN).value.get(), cycle.passed_ns());
        }
        io.write::<Flag>(OUT).value = Bool::from(self.is_high);
        Ok(())
    }
}

impl Debounce {
    fn hear(&mut self, value: bool, passed_ns: u64) {
        if value == self.is_high {
            self.differs_ns = None;
            return;
        }
        let differs_ns = self.differs_ns.map_or(0, |ns| ns.saturating_add(passed_ns));
        self.differs_ns = Some(differs_ns);
        if differs_ns >= if value { self.rises_after_ns } else { self.falls_after_ns } {
            (self.is_high, self.differs_ns) = (value, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_core::NodeFixture;

    use super::*;
    use crate::testing::fixture;

    fn debounce(rises_after: &str, falls_after: &str, initial: &str) -> NodeFixture {
        let given =
            [("rises_after", rises_after), ("falls_after", falls_after), ("initial", initial)];
        fixture(&NODE, &given).expect("makes")
    }

    /// The outputs for these inputs: `#` is true.
    fn says(node: &mut NodeFixture, flags: &str) -> String {
        let mut say = |flag: char| {
            node.put(IN, &Flag { value: Bool::from(flag == '#') });
            node.update().expect("goes on");
            let out = node.get::<Flag>(OUT).expect("says").value.get();
            if out { '#' } else { '_' }
        };
        flags.chars().map(&mut say).collect()
    }

    #[test]
    fn it_turns_when_the_flag_has_settled() {
        let mut node = debounce("3ms", "2ms", "false");
        assert_eq!(says(&mut node, "_#_##_###_####_#_##__#____"), "_____________###########__");
    }

    #[test]
    fn with_no_time_it_turns_at_once() {
        assert_eq!(says(&mut debounce("0s", "0s", "false"), "#_##__#"), "#_##__#");
        assert_eq!(says(&mut debounce("0s", "2ms", "false"), "#_##___"), "######_");
    }

    #[test]
    fn a_part_of_a_period_counts_as_a_whole_one() {
        assert_eq!(says(&mut debounce("1500us", "0s", "false"), "####"), "__##");
    }

    #[test]
    fn lost_periods_count_as_time() {
        let mut node = debounce("5ms", "0s", "false");
        assert_eq!(says(&mut node, "##"), "__");
        node.cycle.skipped = 3;
        assert_eq!(says(&mut node, "#"), "#");
        let mut turned = debounce("5ms", "0s", "false");
        turned.cycle.skipped = 9;
        assert_eq!(says(&mut turned, "#"), "_", "what was before it turned does not count");
    }

    #[test]
    fn it_begins_as_it_is_told() {
        let mut node = debounce("0s", "2ms", "true");
        node.update().expect("goes on");
        assert_eq!(node.get::<Flag>(OUT), Some(Flag { value: Bool::from(true) }));
        assert_eq!(says(&mut node, "___#"), "##_#");
    }

    #[test]
    fn no_cycle_allocates() {
        let mut node = debounce("3ms", "3ms", "false");
        let count = || {
            for at in 0..100 {
                node.put(IN, &Flag { value: Bool::from(at / 5 % 2 == 0) });
                node.update().expect("goes on");
            }
        };
        assert_eq!(allocation_counter::measure(count).count_total, 0);
    }
}

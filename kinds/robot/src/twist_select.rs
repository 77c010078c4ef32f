//! Kind `twist_select`: selects who drives, people or the program: people, as long as they send.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Bool, Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters};

use super::messages::TwistTarget;

const IN: usize = 0;
const MANUAL: usize = 1;
const OUT: usize = 2;
const IS_MANUAL: usize = 3;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "twist_select",
    runs_in: RunsIn::Realtime,
    doc: "Passes on targets of speed: those at 'manual' and, after none has come there for \
          'manual_for', those at 'in'. It sends only what comes, and nothing twice: when manual \
          targets stop, it is silent until 'manual_for' is over, and a 'twist_limiter' behind it \
          brakes. It does not check the numbers: the limiter does.",
    ports: &[
        Port::input("in", "Targets of the program.", TwistTarget::TYPE),
        Port::input("manual", "Targets of people.", TwistTarget::TYPE).optional(),
        Port::output(
            "out",
            "The target that is passed on, in the cycle in which it came.",
            TwistTarget::TYPE,
        ),
        Port::output("is_manual", "Whether people drive, in every cycle.", Flag::TYPE).optional(),
    ],
    parameters: &[Parameter::new(
        "manual_for",
        ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 },
    )
    .or("5s")
    .doc("How long people drive after their last target. At the start the program drives.")],
    signals: &[Signal {
        labels: &["program", "people"],
        ..Signal::new("driver", "Who drives.", "", 1)
    }],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let manual_ns = parameters.duration("manual_for").as_nanos() as u64;
    Ok(Box::new(TwistSelect { manual_ns, left_ns: 0 }))
}

struct TwistSelect {
    manual_ns: u64,
    /// For this time people still drive; 0: the program drives.
    left_ns: u64,
}

impl Node for TwistSelect {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.left_ns = self.left_ns.saturating_sub(cycle.passed_ns());
        let is_told = io.fresh(MANUAL) == Fresh::New;
        if is_told {
            self.left_ns = self.manual_ns;
        }
        let is_manual = self.left_ns > 0;
        let from = if is_manual { MANUAL } else { IN };
        if io.fresh(from) == Fresh::New {
            *io.write::<TwistTarget>(OUT) = *io.read::<TwistTarget>(from);
        }
        *io.write::<Flag>(IS_MANUAL) = Flag { value: Bool::from(is_manual) };
        io.signal(0)[0] = f64::from(u8::from(is_manual));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::fixture;
    use sinew_core::NodeFixture;

    fn select(manual_for: &str) -> NodeFixture {
        fixture(&NODE, Path::new("."), &[("manual_for", manual_for)]).expect("makes")
    }

    fn speed(speed_m_per_s: f64) -> TwistTarget {
        TwistTarget { linear_m_per_s: [speed_m_per_s, 0.0, 0.0], angular_rad_per_s: [0.0; 3] }
    }

    /// The outputs when the program asks for 1 and people may ask for another speed.
    fn say(select: &mut NodeFixture, manual: Option<f64>) -> (Option<f64>, bool) {
        select.put(IN, &speed(1.0));
        if let Some(manual) = manual {
            select.put(MANUAL, &speed(manual));
        }
        select.update().expect("a cycle");
        let out = select.get::<TwistTarget>(OUT).map(|it| it.linear_m_per_s[0]);
        (out, select.get::<Flag>(IS_MANUAL).expect("every cycle").value.get())
    }

    #[test]
    fn people_drive_until_they_were_silent_for_a_while() {
        let mut select = select("3ms");
        assert_eq!(say(&mut select, None), (Some(1.0), false));
        for _ in 0..2 {
            assert_eq!(say(&mut select, Some(-0.5)), (Some(-0.5), true));
            assert_eq!(say(&mut select, None), (None, true), "nobody speaks for them");
            assert_eq!(say(&mut select, None), (None, true));
        }
        assert_eq!(say(&mut select, None), (Some(1.0), false));
    }

    #[test]
    fn lost_periods_are_time_too() {
        let mut select = select("1s");
        assert_eq!(say(&mut select, Some(0.0)), (Some(0.0), true));
        select.cycle.skipped = 998;
        assert_eq!(say(&mut select, None), (None, true));
        select.cycle.skipped = 0;
        assert_eq!(say(&mut select, None), (Some(1.0), false));
    }

    #[test]
    fn a_program_that_is_silent_is_not_spoken_for() {
        let mut select = select("1s");
        select.update().expect("a cycle");
        assert_eq!(select.get::<TwistTarget>(OUT), None);
    }
}

//! Kind `naive_targets`: what is often built in front of a fieldbus master, only for the drill. It
//! never checks for safety how old its input is. Without a new target it makes one up from the last
//! commanded speed, so that the drives always get a target.

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry};
use sinew_robot::messages::JointTargets;

const IN: usize = 0;
const OUT: usize = 1;

/// What the compiler knows of the kind.
static KIND: Kind = Kind::new(
    "naive_targets",
    RunsIn::Realtime,
    &[
        Port::input("in", "Joint targets.", JointTargets::TYPE),
        Port::output("out", "The same, or made up.", JointTargets::TYPE),
    ],
);

/// The kind's row in the table; users do not see it.
pub(super) const NODE: NodeEntry =
    NodeEntry { kind: &KIND, make: |_| Ok(Box::new(NaiveTargets { last: None })), safe: None };

struct NaiveTargets {
    last: Option<JointTargets>,
}

impl Node for NaiveTargets {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) == Fresh::New {
            self.last = Some(*io.read(IN));
        } else if let Some(last) = &mut self.last {
            for (position, speed) in last.position_rad.iter_mut().zip(last.velocity_rad_per_s) {
                *position += speed * cycle.period_s();
            }
            // A made-up target is marked as new.
            last.sequence += 1;
        }
        if let Some(last) = self.last {
            *io.write(OUT) = last;
        }
        Ok(())
    }
}

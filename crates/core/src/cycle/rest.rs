//! What the machine does as far as its thread knows: the commands that its actuator ports hold, and
//! whether its nodes say that the machine stands still.

use super::executor::Executor;
use crate::sys::allocations;
use crate::trace::ActuatorHolds;

impl Executor {
    /// What the actuator ports of this thread hold; of several ports, the least safe. `None` if
    /// there is no such port.
    pub(crate) fn holds(&self) -> Option<ActuatorHolds> {
        let guards = self.steps.iter().flat_map(|step| &step.guards);
        guards.map(|guard| guard.holds).max()
    }

    /// Looks for a node whose machine still moves. A node may panic here as in its update.
    pub(crate) fn look_for_rest(&mut self) {
        self.updating = true;
        self.restless = None;
        for (at, step) in self.steps.iter().enumerate() {
            self.at = Some(at);
            let before = allocations();
            let at_rest = step.node.at_rest();
            self.record.allocated(step.place, allocations() - before);
            if !at_rest {
                self.restless = Some(at);
                break;
            }
        }
        self.updating = false;
        self.at = None;
    }

    /// The node whose machine still moved at the last look, if there was one.
    pub(crate) fn restless_node(&self) -> Option<&str> {
        self.steps.get(self.restless?).map(|step| step.name.as_str())
    }
}

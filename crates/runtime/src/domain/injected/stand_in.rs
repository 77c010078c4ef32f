//! What runs in the place of a node where only its time and its messages count.

use sinew_core::fault::Fault;
use sinew_core::node::{Cycle, Io, Node};
use sinew_spec::catalogue::{Direction, Kind};

use super::node::be_busy;

/// Computes for `busy_ns`, then sends a message of zeros from every output. It touches no machine:
/// the node that it stands for was made, but never starts.
pub(super) struct StandIn {
    busy_ns: u64,
    outputs: Vec<usize>,
}

impl StandIn {
    pub(super) fn new(kind: &Kind, busy_ns: u64) -> StandIn {
        let ports = kind.ports.iter().enumerate();
        let outputs = ports.filter(|(_, port)| port.direction == Direction::Out);
        StandIn { busy_ns, outputs: outputs.map(|(at, _)| at).collect() }
    }
}

impl Node for StandIn {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        be_busy(self.busy_ns);
        for &port in &self.outputs {
            io.write_bytes(port);
        }
        Ok(())
    }
}

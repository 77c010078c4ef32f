//! A node to which something happens.

use sinew_core::clock::now_ns;
use sinew_core::fault::Fault;
use sinew_core::node::{Cycle, Io, Node, Parameters};
use sinew_spec::catalogue::{Direction, Kind, MessageType};

use crate::inject::{InjectedFault, Injection, error, strike, write_nan};

pub(super) struct InjectedNode {
    node: Box<dyn Node>,
    injections: Vec<Injection>,
    /// Output ports, and what they carry.
    outputs: Vec<(usize, &'static MessageType)>,
}

impl InjectedNode {
    pub(super) fn new(
        node: Box<dyn Node>,
        kind: &Kind,
        injections: Vec<Injection>,
    ) -> InjectedNode {
        let ports = kind.ports.iter().enumerate();
        let outputs = ports.filter(|(_, port)| port.direction == Direction::Out);
        let outputs = outputs.map(|(at, port)| (at, port.message)).collect();
        InjectedNode { node, injections, outputs }
    }
}

impl Node for InjectedNode {
    fn start(&mut self) -> Result<(), Fault> {
        Injection::start(&self.injections, "the node does not start")?;
        self.node.start()
    }

    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        match Injection::due(&self.injections, cycle.number) {
            Some(InjectedFault::Error) => return Err(error("the node fails")),
            Some(InjectedFault::Late { cycles }) => be_busy(u64::from(cycles) * cycle.period_ns),
            Some(InjectedFault::NotFinite) => {
                self.node.update(io, cycle)?;
                for &(port, message) in &self.outputs {
                    write_nan(io.write_bytes(port), message);
                }
                return Ok(());
            }
            what => what.into_iter().for_each(strike),
        }
        self.node.update(io, cycle)
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.node.tune(parameters)
    }

    fn stop(&mut self) {
        self.node.stop();
    }

    fn at_rest(&self) -> bool {
        self.node.at_rest()
    }
}

pub(super) fn be_busy(for_ns: u64) {
    let until_ns = now_ns() + for_ns;
    while now_ns() < until_ns {
        std::hint::spin_loop();
    }
}

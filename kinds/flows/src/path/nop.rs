//! `nop`: passes every packet on.

use sinew_core::catalogue::Kind;
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, input, output};

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| Ok(Box::new(Nop))) };

static INFO: Kind = Kind {
    name: "nop",
    doc: "Passes every packet on. If its output is not linked, the packet itself is the reply.",
    ports: &[input("in", "The packet."), output("out", "The same packet.")],
    ..FLOW
};

const OUT: usize = 1;

struct Nop;

impl FlowNode for Nop {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::Pass(OUT, packet)
    }
}

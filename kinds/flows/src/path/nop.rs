//! `nop`: passes every packet on.

use sinew_core::catalogue::{Kind, RunsIn};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, FlowEntry, FlowNode, Make, Step, Value, input, output};

/// The row of the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "nop",
    runs_in: RunsIn::Flow,
    doc: "Passes every packet on. Where its output leads nowhere, the packet itself is the reply.",
    ports: &[input("in", "The packet."), output("out", "The same packet.")],
    parameters: &[],
    signals: &[],
};

const OUT: usize = 1;

struct Nop;

fn make(_parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Nop))
}

impl FlowNode for Nop {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::Pass(OUT, packet)
    }
}

//! `try`: turns an error that comes back into a packet.

use sinew_core::catalogue::Kind;
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, input, output};

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| Ok(Box::new(Try))) };

static INFO: Kind = Kind {
    name: "try",
    doc: "Passes a packet on and answers with the reply; if that is an error, of any node behind \
          it, {error, status, node} goes to 'error', and the reply of that is the answer.",
    ports: &[
        input("in", "The packet."),
        output("out", "The same packet."),
        output("error", "What went wrong, as {error, status, node}; its reply is the answer."),
    ],
    ..FLOW
};

const OUT: usize = 1;

struct Try;

impl FlowNode for Try {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        // An error that comes back counts as this node's own, so it goes to the 'error' port.
        Step::wait(async move { Step::answer(at.call(OUT, packet).await) })
    }
}

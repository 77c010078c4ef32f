//! `pipe`: does one step after the other; each step gets the reply of the step before.

use sinew_core::catalogue::Kind;
use sinew_flow::{
    At, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::ports::linked_outputs;

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| Ok(Box::<Pipe>::default())) };

static INFO: Kind = Kind {
    name: "pipe",
    doc: "Takes a packet through steps: what out[0] replies is the packet for out[1], and so on; \
          the last reply is the answer. A step that replies nothing ends it with nothing, one \
          that replies an error with that error.",
    ports: &[
        input("in", "The packet for the first step."),
        error(),
        output("out[]", "The steps, in the order of their numbers."),
    ],
    ..FLOW
};

const OUT: usize = 2;

#[derive(Default)]
struct Pipe {
    /// The outputs that lead somewhere.
    steps: Vec<usize>,
}

impl FlowNode for Pipe {
    fn attach(&mut self, site: &NodeContext) {
        self.steps = linked_outputs(site, OUT);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            let mut reply = Ok(Some(packet));
            for &step in &self.steps {
                let Ok(Some(packet)) = reply else { break };
                reply = at.call(step, packet).await;
            }
            Step::answer(reply)
        })
    }
}

//! `fork`: begins a child flow, and does not wait for it.

use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::LIMIT_NS_MAX;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "fork",
    doc: "Begins a child of the flow with a packet, and answers at once with nothing. The child \
          sees the values of its parent, not the other way round; its replies go nowhere, its \
          errors go to the log. It goes on when its parent has ended or was cancelled.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet, in the child.")],
    parameters: &[Parameter::new(
        "deadline",
        ParameterType::Duration { min_ns: 1_000_000, max_ns: LIMIT_NS_MAX },
    )
    .or("30s")
    .doc("Longest that a child may take.")],
    ..FLOW
};

const OUT: usize = 2;

struct Fork {
    limit: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Fork { limit: parameters.duration("deadline") }))
}

impl FlowNode for Fork {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match at.fork(OUT, packet.compact(), self.limit) {
            Ok(()) => Step::Reply(None),
            Err(error) => Step::Fail(error),
        }
    }
}

//! `split`: sends the elements of a list on, each through an output of its own.

use futures_util::future::join_all;
use sinew_core::catalogue::Kind;
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input,
    join_replies, output,
};

use super::ports::linked_outputs;

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| Ok(Box::<Split>::default())) };

static INFO: Kind = Kind {
    name: "split",
    doc: "Sends the first element of a list to out[0], the second to out[1] and so on, all at \
          once, and joins the replies. A list with more elements than there are linked outputs is \
          an error, and so is whatever is not a list.",
    ports: &[
        input("in", "The list."),
        error(),
        output("out[]", "The element with this number, from 0."),
    ],
    ..FLOW
};

const OUT: usize = 2;

#[derive(Default)]
struct Split {
    /// The number of outputs up to the last one that leads somewhere.
    outputs: usize,
}

impl FlowNode for Split {
    fn attach(&mut self, site: &NodeContext) {
        self.outputs = linked_outputs(site, OUT).last().map_or(0, |last| last + 1 - OUT);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let Value::List(items) = packet else {
            return Step::Fail(Error::new(format_args!("expected a list, got {}", packet.sort())));
        };
        if items.len() > self.outputs {
            return Step::Fail(too_long(items.len(), self.outputs));
        }
        Step::wait(async move {
            let call = |(at_item, item): (usize, &Value)| at.call(OUT + at_item, item.clone());
            Step::answer(join_replies(join_all(items.iter().enumerate().map(call)).await))
        })
    }
}

#[cold]
fn too_long(items: usize, outputs: usize) -> Error {
    Error::new(format_args!(
        "a list of {items} elements, room for {outputs}; link out[{}], or use 'for'",
        items - 1
    ))
}

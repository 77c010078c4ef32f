//! `serial`: sends packets with the same key on one after the other.

use std::sync::Arc;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::lines::Lines;
use crate::script::key::Key;
use crate::script::refused_for_now;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "serial",
    doc: "Passes packets with the same key on one after the other, in the order in which they \
          came to any worker: the next one goes when the one before is answered. Packets with \
          other keys go on meanwhile.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet, in its turn.")],
    parameters: &[
        Parameter::new("key", ParameterType::Yaml).doc(
            "What packets are told apart by, as an expression (CEL): a text or a whole number.",
        ),
        Parameter::new("waiting_max", ParameterType::Integer { min: 0, max: 1_000_000 })
            .or("1000")
            .doc("Most packets of all keys that wait; one more fails with status 503."),
    ],
    ..FLOW
};

const OUT: usize = 2;

struct Serial {
    key: Key,
    waiting_max: usize,
    lines: Arc<Lines>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let key = Key::of(parameters.yaml("key"))?;
    let waiting_max = parameters.integer("waiting_max") as usize;
    Ok(Box::new(Serial { key, waiting_max, lines: Arc::default() }))
}

impl FlowNode for Serial {
    fn attach(&mut self, site: &NodeContext) {
        self.lines = site.share(Lines::default);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let key = match self.key.find(at.flow(), &packet) {
            Ok(key) => key,
            Err(error) => return Step::Fail(error),
        };
        // Enters the line here, before any wait, so that packets keep the order in which they came.
        let Some(mut place) = self.lines.enter(&key, 1, self.waiting_max) else {
            let max = self.waiting_max;
            let what = format!("{max} packets wait for their turn already; raise 'waiting_max'");
            return Step::Fail(refused_for_now(503, what, 1));
        };
        Step::wait(async move {
            place.wait().await;
            Step::answer(at.call(OUT, packet).await)
        })
    }
}

#[cfg(test)]
mod tests;

//! A stage that only does its part of a pipeline: it reads every byte of the message that it gets,
//! and writes every byte of the message that it sends. The rest of a cycle is the cost of the
//! links.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, message};

message! {
    /// 256 bytes, in integers, so that no check for finite numbers is made.
    pub struct Words {
        /// All words count the stages that the message has passed.
        pub words: [u64; 32],
    }
}

const IN: usize = 0;
const OUT: usize = 1;
const PASSED: usize = 0;

/// What the compiler knows of the kind.
static KIND: Kind = Kind {
    name: "lab_stage",
    runs_in: RunsIn::Realtime,
    doc: "Adds one to every word of a message.",
    ports: &[
        Port::input("in", "The message: 32 words.", Words::TYPE),
        Port::output("out", "The message: 32 words.", Words::TYPE),
    ],
    parameters: &[Parameter::new("leads", ParameterType::Bool)
        .or("false")
        .doc("Whether it gives a message in every cycle, not only when it gets one.")],
    signals: &[Signal::new("passed", "Stages that the message has passed.", "stages", 1)],
};

/// The kind's row in the table; users do not see it.
pub(in crate::scenario) const NODE: NodeEntry = NodeEntry {
    kind: &KIND,
    make: |parameters| Ok(Box::new(Stage { leads: parameters.bool("leads") })),
    safe: None,
};

struct Stage {
    leads: bool,
}

impl Node for Stage {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if !self.leads && io.fresh(IN) != Fresh::New {
            return Ok(());
        }
        let input = io.read::<Words>(IN).words;
        let output = io.write::<Words>(OUT);
        for (output, input) in output.words.iter_mut().zip(input) {
            *output = input + 1;
        }
        io.signal(PASSED)[0] = (input[0] + 1) as f64;
        Ok(())
    }
}

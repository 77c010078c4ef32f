//! Kind `mux`: puts numbers and flags into one message.

use sinew_core::catalogue::{
    Form, Kind, MessageType, NAMED_MESSAGE, Parameter, ParameterType, Port, RunsIn, Scalar,
};
use sinew_core::{Cycle, Fault, Flag, Fresh, Io, Node, NodeEntry, Parameters, Real};

const ANY: &str = "any";
const ALL: &str = "all";

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "mux",
    runs_in: RunsIn::Realtime,
    doc: "Puts numbers and flags into one message that the graph declares: an input for each \
          number of it (name[i] of an array), all of which must be linked; a 'constant' serves \
          what does not change. It writes the message in each cycle in which an input is new \
          ('waits_for: any'), or all are ('all'). Before an actuator write 'all': then the guard \
          there sees the silence of each of them, where with 'any' one that goes on hides the \
          others, and their last values stand. 'any' is for a message to look at, or whose numbers \
          come at different times. What was never written is 0. A number that is not a whole one, \
          or past the limits of its type, becomes the nearest that the type holds; whole numbers \
          are exact to 2^53; one past the limits of an f32 is a fault.",
    ports: &[
        Port::input("field", "A number or flag of the message.", &NAMED_MESSAGE)
            .form(Form::Fields("message")),
        Port::output("out", "The message.", &NAMED_MESSAGE).form(Form::Message("message")),
    ],
    parameters: &[
        Parameter::new("message", ParameterType::Text)
            .such_as("axis")
            .doc("The message, by its name under 'messages' of the graph."),
        Parameter::new("waits_for", ParameterType::Choice(&[ANY, ALL]))
            .or(ANY)
            .doc("Whether it writes when any input is new, or only when all are."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let out = parameters.kind.ports.len() - 1;
    let message = parameters.kind.ports[out].message;
    Ok(Box::new(Mux {
        fields: places(message),
        message: vec![0; message.size as usize].into(),
        waits_for_all: parameters.text("waits_for") == ALL,
    }))
}

/// A number of a message. The fields have the order of the inputs.
struct MuxField {
    offset: usize,
    scalar: Scalar,
}

fn places(message: &MessageType) -> Box<[MuxField]> {
    let places = message.fields.iter().flat_map(|field| {
        let place = |at: u32| MuxField {
            offset: (field.offset + at * field.scalar.bytes()) as usize,
            scalar: field.scalar,
        };
        (0..field.count).map(place)
    });
    places.collect()
}

struct Mux {
    fields: Box<[MuxField]>,
    message: Box<[u8]>,
    waits_for_all: bool,
}

impl Node for Mux {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let mut inputs_new = 0;
        for (at, field) in self.fields.iter().enumerate() {
            inputs_new += usize::from(io.fresh(at) == Fresh::New);
            let number = match field.scalar {
                Scalar::Bool => f64::from(u8::from(io.read::<Flag>(at).value.get())),
                _ => io.read::<Real>(at).value,
            };
            field.scalar.put(number, &mut self.message[field.offset..]);
        }
        let needed = if self.waits_for_all { self.fields.len() } else { 1 };
        if inputs_new >= needed {
            io.write_bytes(self.fields.len()).copy_from_slice(&self.message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sinew_core::{NodeFixture, message};

    use super::*;
    use crate::testing::fixture_in;

    message! {
        /// Laid out as the graph's.
        pub struct MuxedAxis {
            /// A double.
            pub position_rad: f64,
            /// An array.
            pub force_n: [f32; 2],
            /// A whole number.
            pub word: u16,
            /// A small one.
            pub mode: i8,
            /// A flag.
            pub enabled: bool,
            /// Up to a multiple of 8.
            pub rest: [u8; 4],
        }
        /// Two numbers.
        pub struct MuxedPair {
            /// One.
            pub a: f64,
            /// The other.
            pub b: f64,
        }
    }

    const MESSAGES: &str = "messages: {axis: {position_rad: f64, force_n: 'f32[2]', word: u16, \
                            mode: i8, enabled: bool, rest: 'u8[4]'}}";
    const ENABLED: usize = 5;
    const OUT: usize = 10;

    fn put(node: &mut NodeFixture, numbers: [f64; 5], enabled: bool) {
        for (at, value) in numbers.into_iter().enumerate() {
            node.put(at, &Real { value });
        }
        node.put(ENABLED, &Flag { value: enabled.into() });
    }

    #[test]
    fn each_number_has_its_place_in_the_message() {
        let mut node = fixture_in(&NODE, &[("message", "axis")], MESSAGES).expect("makes");
        node.update().expect("waits");
        assert_eq!(node.get::<MuxedAxis>(OUT), None);
        let rows = [
            ([0.5, 1.5, -2.5, 7.0, -8.0], true, (7, -8)),
            ([-0.5, 1.5, -2.5, 7.5, -8.4], false, (8, -8)),
            ([0.0, 1.5, -2.5, 1e9, -1e9], true, (u16::MAX, i8::MIN)),
            ([0.0, 1.5, -2.5, -1.0, 127.6], true, (0, i8::MAX)),
        ];
        for (numbers, enabled, (word, mode)) in rows {
            let counted = allocation_counter::measure(|| {
                put(&mut node, numbers, enabled);
                node.update().expect("goes on");
            });
            assert_eq!(counted.count_total, 0);
            let (enabled, position_rad) = (enabled.into(), numbers[0]);
            let force_n = [1.5, -2.5];
            let sent = MuxedAxis { position_rad, force_n, word, mode, enabled, rest: [0; 4] };
            assert_eq!(node.get::<MuxedAxis>(OUT), Some(sent));
        }
    }

    #[test]
    fn any_input_sends_it_or_only_all() {
        let graph = "messages: {pair: {a: f64, b: f64}}";
        let sent = |waits_for: &str| {
            let given = [("message", "pair"), ("waits_for", waits_for)];
            let mut node = fixture_in(&NODE, &given, graph).expect("makes");
            [[0, 0], [1, 0], [0, 1], [1, 1], [1, 0], [0, 0]].map(|inputs| {
                for at in [0, 1].into_iter().filter(|&at| inputs[at] == 1) {
                    node.put(at, &Real { value: 1.0 });
                }
                node.update().expect("goes on");
                node.get::<MuxedPair>(2).is_some()
            })
        };
        assert_eq!(sent("any"), [false, true, true, true, true, false]);
        assert_eq!(sent("all"), [false, false, false, true, false, false]);
    }
}

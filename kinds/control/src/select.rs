//! Kind `select`: passes on one of several inputs, chosen by a number.

use sinew_core::catalogue::{Form, Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

const INDEX: usize = 0;
const OUT: usize = 1;
/// The first of the inputs.
const INPUTS: usize = 2;

const OUT_OF_RANGE: usize = 0;

/// Most inputs.
const INPUTS_MAX: usize = 32;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "select",
    runs_in: RunsIn::Realtime,
    doc: "Passes on the input that 'index' names, in every cycle: 0 is the first of the list. The \
          index is rounded, a half away from zero; one past an end takes the input at that end, \
          and is counted. A Flag chooses the first (false) or the second (true). An index that was \
          never written is 0, and so is such an input. It does not smooth the step from one input \
          to another; put a limiter behind it where a machine would feel that. As the function MUX \
          of IEC 61131-3, but that an index past the ends is not an error.",
    ports: &[
        Port::input("index", "The number of the input, from 0; or a Flag.", Real::TYPE),
        Port::output("out", "The input that was chosen.", Real::TYPE),
        Port::input("input", "One of those to choose from.", Real::TYPE).form(Form::Each("inputs")),
    ],
    parameters: &[Parameter::new("inputs", ParameterType::Texts { max: INPUTS_MAX })
        .such_as("[slow, fast]")
        .doc("Names of the inputs, 1 at least, in the order of their numbers.")],
    signals: &[Signal::new("out_of_range", "Cycles with an index past the ends.", "", 1)],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let inputs = parameters.texts("inputs").len();
    if inputs == 0 {
        let fault = fault!("no input to choose from; write 'inputs: [a, b]'");
        return Err(fault.at(parameters.span("inputs")));
    }
    Ok(Box::new(Select { last: inputs - 1, out_of_range: 0 }))
}

struct Select {
    last: usize,
    out_of_range: u64,
}

impl Node for Select {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let index = io.read::<Real>(INDEX).value.round();
        let held = index.clamp(0.0, self.last as f64);
        self.out_of_range += u64::from(index != held);
        // The cast turns NaN into 0.
        let value = io.read::<Real>(INPUTS + held as usize).value;
        io.write::<Real>(OUT).value = value;
        io.signal(OUT_OF_RANGE)[0] = self.out_of_range as f64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixture;

    #[test]
    fn the_index_is_rounded_and_held_at_the_ends() {
        let mut node = fixture(&NODE, &[("inputs", "[a, b, c]")]).expect("makes");
        for (at, value) in [10.0, 20.0, 30.0].into_iter().enumerate() {
            node.put(INPUTS + at, &Real { value });
        }
        node.update().expect("an index that was never written is 0");
        assert_eq!(node.get::<Real>(OUT), Some(Real { value: 10.0 }));
        let rows = [
            (0.0, 10.0, 0.0),
            (0.49, 10.0, 0.0),
            (0.5, 20.0, 0.0),
            (2.4, 30.0, 0.0),
            (2.5, 30.0, 1.0),
            (-0.4, 10.0, 1.0),
            (-0.5, 10.0, 2.0),
            (1e300, 30.0, 3.0),
            (-1e300, 10.0, 4.0),
            (1.0, 20.0, 4.0),
        ];
        for (index, out, out_of_range) in rows {
            let counted = allocation_counter::measure(|| {
                node.put(INDEX, &Real { value: index });
                node.update().expect("goes on");
            });
            assert_eq!(counted.count_total, 0);
            assert_eq!(node.get::<Real>(OUT), Some(Real { value: out }), "{index}");
            assert_eq!(node.signal(OUT_OF_RANGE), [out_of_range], "{index}");
        }
    }

    #[test]
    fn there_is_something_to_choose_from() {
        let fault = fixture(&NODE, &[("inputs", "[]")]).err().expect("refuses");
        assert_eq!(fault.text(), "no input to choose from; write 'inputs: [a, b]'");
    }
}

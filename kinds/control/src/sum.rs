//! Kind `sum`: adds its inputs, each times a factor.

use sinew_core::catalogue::{Form, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

/// Most inputs.
const INPUTS_MAX: usize = 32;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "sum",
    runs_in: RunsIn::Realtime,
    doc: "Adds its inputs, each times its factor, to the offset, in every cycle: gains [1, -1] \
          make the difference of two. It adds in the order of the inputs. An input that was never \
          written is 0. Without gains all inputs and the sum have one unit. A sum that no double \
          holds is a fault. The summing point of a block diagram: Franklin, Powell, Emami-Naeini, \
          Feedback Control of Dynamic Systems, chapter 3.2.",
    ports: &[
        Port::input("input", "What is added; a Flag is 1 or 0.", Real::TYPE)
            .form(Form::Each("inputs")),
        Port::output("out", "The sum.", Real::TYPE),
    ],
    parameters: &[
        Parameter::new("inputs", ParameterType::Texts { max: INPUTS_MAX })
            .such_as("[a, b]")
            .doc("Names of the inputs, 1 at least."),
        Parameter::new(
            "gains",
            ParameterType::Numbers { count_min: 0, count_max: INPUTS_MAX, min: -1e12, max: 1e12 },
        )
        .or("[]")
        .doc("A factor for each input, in the same order; without them all are 1."),
        Parameter::new("offset", ParameterType::Number { min: -1e12, max: 1e12 })
            .or("0")
            .doc("What is added to them, in the unit of the sum; set while it runs, at once.")
            .tunable(),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (inputs, gains) = (parameters.texts("inputs").len(), parameters.numbers("gains"));
    if inputs == 0 {
        return Err(fault!("no input to add; write 'inputs: [a, b]'").at(parameters.span("inputs")));
    }
    let gains = match gains.len() {
        0 => vec![1.0; inputs],
        count if count == inputs => gains.to_vec(),
        count => {
            let text = fault!("{count} gains for {inputs} inputs; write one for each, or none");
            return Err(text.at(parameters.span("gains")));
        }
    };
    Ok(Box::new(Sum { gains: gains.into(), offset: parameters.number("offset") }))
}

struct Sum {
    gains: Box<[f64]>,
    offset: f64,
}

impl Node for Sum {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let part = |(at, gain): (usize, &f64)| gain * io.read::<Real>(at).value;
        let sum = self.gains.iter().enumerate().map(part).fold(self.offset, |sum, part| sum + part);
        if !sum.is_finite() {
            return Err(fault!("the sum is {sum:?}: an input is too great; limit it before"));
        }
        io.write::<Real>(self.gains.len()).value = sum;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.offset = parameters.number("offset");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixture;

    fn sum(given: &[(&str, &str)], inputs: &[f64]) -> Option<f64> {
        let mut node = fixture(&NODE, given).expect("makes");
        let counted = allocation_counter::measure(|| {
            for (at, &value) in inputs.iter().enumerate() {
                node.put(at, &Real { value });
            }
            node.update().expect("goes on");
        });
        assert_eq!(counted.count_total, 0);
        node.get::<Real>(2).map(|out| out.value)
    }

    #[test]
    fn it_adds_what_it_is_given() {
        let two = ("inputs", "[a, b]");
        assert_eq!(sum(&[two], &[1.5, 2.0]), Some(3.5));
        assert_eq!(sum(&[two, ("gains", "[1, -1]")], &[1.5, 2.0]), Some(-0.5));
        assert_eq!(sum(&[two, ("gains", "[2, 3]"), ("offset", "-1")], &[1.5, 2.0]), Some(8.0));
        assert_eq!(sum(&[two, ("offset", "4")], &[]), Some(4.0), "never written is 0");
    }

    #[test]
    fn a_sum_past_all_doubles_is_a_fault() {
        let mut node = fixture(&NODE, &[("inputs", "[a, b]")]).expect("makes");
        node.put(0, &Real { value: f64::MAX });
        node.put(1, &Real { value: f64::MAX });
        let fault = node.update().expect_err("too great");
        assert_eq!(fault.text(), "the sum is inf: an input is too great; limit it before");
    }

    #[test]
    fn gains_are_as_many_as_inputs_and_there_is_one() {
        let refused = |given: &[(&str, &str)]| fixture(&NODE, given).err().expect("refuses");
        let fault = refused(&[("inputs", "[a, b]"), ("gains", "[1]")]);
        assert_eq!(fault.text(), "1 gains for 2 inputs; write one for each, or none");
        let fault = refused(&[("inputs", "[]")]);
        assert_eq!(fault.text(), "no input to add; write 'inputs: [a, b]'");
    }
}

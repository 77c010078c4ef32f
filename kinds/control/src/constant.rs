//! Kind `constant`: a number that does not change.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real};

const OUT: usize = 0;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "constant",
    runs_in: RunsIn::Realtime,
    doc: "Writes the same number in every cycle.",
    ports: &[Port::output("out", "The number.", Real::TYPE).unit(Unit::Parameter("unit"))],
    parameters: &[
        Parameter::new("value", ParameterType::Number { min: -1e12, max: 1e12 })
            .such_as("2.5")
            .doc("The number.")
            .tunable(),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of the number."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Constant { value: parameters.number("value") }))
}

struct Constant {
    value: f64,
}

impl Node for Constant {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        io.write::<Real>(OUT).value = self.value;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.value = parameters.number("value");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixture;

    #[test]
    fn it_says_its_number_in_every_cycle() {
        let mut node = fixture(&NODE, &[("value", "2.5")]).expect("makes");
        for _ in 0..3 {
            node.update().expect("goes on");
            assert_eq!(node.get::<Real>(OUT), Some(Real { value: 2.5 }));
        }
    }
}

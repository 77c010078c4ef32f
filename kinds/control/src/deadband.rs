//! Kind `deadband`: turns small numbers into zero.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, Real};

const IN: usize = 0;
const OUT: usize = 1;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "deadband",
    runs_in: RunsIn::Realtime,
    doc: "Zero while 'in' lies in a band of 'width' around 'center', its ends included; outside, \
          with 'subtract', how far it is past the nearer end, so that 'out' has no step, and with \
          'zero' the number as it is, so that it jumps at the ends. 'subtract' is the dead zone of \
          H. K. Khalil, Nonlinear Systems, 2002, 1.2. Before the first value it writes nothing. \
          'width' and 'center' have the unit of 'in'; set while it runs, they act at once.",
    ports: &[
        Port::input("in", "Such as an error, or where a stick stands.", Real::TYPE),
        Port::output("out", "The same, or zero.", Real::TYPE).unit(Unit::As("in")),
    ],
    parameters: &[
        Parameter::new("width", ParameterType::Number { min: 0.0, max: 1e12 })
            .such_as("0.1")
            .doc("From one end of the band to the other.")
            .tunable(),
        Parameter::new("center", ParameterType::Number { min: -1e12, max: 1e12 })
            .or("0")
            .doc("The middle of the band.")
            .tunable(),
        Parameter::new("mode", ParameterType::Choice(&["subtract", "zero"]))
            .or("subtract")
            .doc("What it writes outside the band."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (low, high) = band(parameters);
    Ok(Box::new(Deadband { low, high, subtracts: parameters.text("mode") == "subtract" }))
}

/// Both ends of the band.
fn band(parameters: &Parameters<'_>) -> (f64, f64) {
    let (center, half) = (parameters.number("center"), parameters.number("width") / 2.0);
    (center - half, center + half)
}

struct Deadband {
    low: f64,
    high: f64,
    subtracts: bool,
}

impl Node for Deadband {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) == Fresh::None {
            return Ok(());
        }
        let value = io.read::<Real>(IN).value;
        let past = if value > self.high {
            value - self.high
        } else if value < self.low {
            value - self.low
        } else {
            0.0
        };
        let out = if self.subtracts || past == 0.0 { past } else { value };
        io.write::<Real>(OUT).value = out;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        (self.low, self.high) = band(parameters);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_core::NodeFixture;

    use super::*;
    use crate::filter_testing::{allocations, answers, hold_all, walk};
    use crate::testing::fixture;

    fn deadband(given: &[(&str, &str)]) -> NodeFixture {
        fixture(&NODE, given).expect("makes")
    }

    #[test]
    fn it_answers_as_numpy_does() {
        let values = walk(1000);
        let mut cases = vec![];
        for mode in ["subtract", "zero"] {
            let given = [("width", "4"), ("center", "2.5"), ("mode", mode)];
            let ours = answers(&mut deadband(&given), &values);
            let with = json!({"low": 0.5, "high": 4.5, "mode": mode, "values": values});
            cases.push((with, ours));
        }
        hold_all("dead_zone", &cases);
    }

    #[test]
    fn the_ends_of_the_band_belong_to_it() {
        let values = [-1.5, -1.0, 0.0, 1.0, 1.5];
        let subtract = answers(&mut deadband(&[("width", "2")]), &values);
        assert_eq!(subtract, [-0.5, 0.0, 0.0, 0.0, 0.5]);
        let zero = answers(&mut deadband(&[("width", "2"), ("mode", "zero")]), &values);
        assert_eq!(zero, [-1.5, 0.0, 0.0, 0.0, 1.5]);
    }

    #[test]
    fn without_width_all_passes() {
        for mode in ["subtract", "zero"] {
            let values = [-1e-300, 0.0, 1e-300, 1e300];
            let out = answers(&mut deadband(&[("width", "0"), ("mode", mode)]), &values);
            assert_eq!(out, values);
        }
    }

    #[test]
    fn before_the_first_value_it_says_nothing() {
        let mut node = deadband(&[("width", "2"), ("center", "10")]);
        node.update().expect("goes on");
        assert_eq!(node.get::<Real>(OUT), None);
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut deadband(&[("width", "2")])), 0);
    }
}

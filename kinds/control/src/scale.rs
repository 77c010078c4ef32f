//! Kind `scale`: converts a number to another unit, by gain and offset or by two points of a
//! straight line.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

const IN: usize = 0;
const OUT: usize = 1;

const ANY: ParameterType = ParameterType::Number { min: -1e12, max: 1e12 };
const TWO: ParameterType =
    ParameterType::Numbers { count_min: 0, count_max: 2, min: -1e12, max: 1e12 };

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "scale",
    runs_in: RunsIn::Realtime,
    doc: "Puts a number into another unit: out = gain in + offset; or along the straight line on \
          which from[0] becomes to[0], and from[1] becomes to[1], such as 4 to 20 mA into 0 to \
          10 bar. With clamp it does not leave the range of 'to'. An input that was never written \
          counts as 0. It has no state; a graph that stops changes nothing. What is set while it \
          runs acts at once.",
    ports: &[
        Port::input("in", "The number.", Real::TYPE),
        Port::output("out", "The same in the other unit.", Real::TYPE)
            .unit(Unit::Parameter("unit")),
    ],
    parameters: &[
        Parameter::new("gain", ANY).or("1").doc("Unit of out per unit of in.").tunable(),
        Parameter::new("offset", ANY).or("0").doc("In the unit of out.").tunable(),
        Parameter::new("from", TWO).or("[]").doc("Two different numbers in; none: gain, offset."),
        Parameter::new("to", TWO).or("[]").doc("What they become, in the unit of out."),
        Parameter::new("clamp", ParameterType::Bool)
            .or("false")
            .doc("Whether out stays in the range of 'to'.")
            .tunable(),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of out."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Scale::of(parameters)?))
}

impl Scale {
    fn of(parameters: &Parameters<'_>) -> Result<Scale, Fault> {
        let [gain, offset] = ["gain", "offset"].map(|name| parameters.number(name));
        let clamps = parameters.bool("clamp");
        let (from, to) = match (parameters.numbers("from"), parameters.numbers("to")) {
            ([], []) if clamps => {
                return Err(fault!("clamp is true, and there is no range; give 'from' and 'to'"));
            }
            ([], []) => {
                let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
                return Ok(Scale { zero: 0.0, gain, offset, least, most });
            }
            (&[one, other], &[to, to_other]) => ([one, other], [to, to_other]),
            (from, to) => {
                return Err(fault!(
                    "'from' has {} numbers and 'to' {}; give both two, or none",
                    from.len(),
                    to.len()
                ));
            }
        };
        if (gain, offset) != (1.0, 0.0) {
            return Err(fault!(
                "gain {gain} and offset {offset} are given together with 'from' and 'to'; leave \
                 one pair out"
            ));
        }
        let gain = (to[1] - to[0]) / (from[1] - from[0]);
        if !gain.is_finite() {
            let [one, other] = from;
            return Err(fault!("'from' is {one} and {other}, too near for a line; move one"));
        }
        let (least, most) = if clamps {
            (to[0].min(to[1]), to[0].max(to[1]))
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        Ok(Scale { zero: from[0], gain, offset: to[0], least, most })
    }
}

struct Scale {
    /// The input at which the output is the offset.
    zero: f64,
    gain: f64,
    offset: f64,
    least: f64,
    most: f64,
}

impl Node for Scale {
    #[inline]
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let value = self.gain * (io.read::<Real>(IN).value - self.zero) + self.offset;
        io.write::<Real>(OUT).value = value.max(self.least).min(self.most);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        *self = Scale::of(parameters)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sinew_core::NodeFixture;

    use super::*;
    use crate::testing::{fixture, hold, reference};

    fn scale(node: &mut NodeFixture, value: f64) -> f64 {
        node.put(IN, &Real { value });
        node.update().expect("a cycle");
        node.get::<Real>(OUT).expect("it says so every cycle").value
    }

    #[test]
    fn gain_and_offset() {
        let mut node = fixture(&NODE, &[("gain", "-2"), ("offset", "0.5")]).expect("makes");
        node.update().expect("a cycle");
        assert_eq!(node.get::<Real>(OUT), Some(Real { value: 0.5 }), "nothing counts as 0");
        assert_eq!([1.0, -3.0].map(|value| scale(&mut node, value)), [-1.5, 6.5]);
    }

    #[test]
    fn two_points_are_a_line_as_in_numpy() {
        let inputs: Vec<f64> = (-50..150).map(|at| 0.31 * f64::from(at)).collect();
        for (clamp, from, to) in [
            ("true", "[4, 20]", "[0, 10]"),
            ("true", "[20, 4]", "[-3, 7]"),
            ("false", "[0, 3]", "[9, -2]"),
        ] {
            let given = [("clamp", clamp), ("from", from), ("to", to)];
            let mut node = fixture(&NODE, &given).expect("makes");
            let ours: Vec<f64> = inputs.iter().map(|value| scale(&mut node, *value)).collect();
            let [from, to] = [from, to].map(|text| {
                serde_json::from_str::<serde_json::Value>(text).expect("a list of numbers")
            });
            let with = serde_json::json!({
                "values": inputs, "old": from, "new": to, "clamp": clamp == "true",
            });
            if let Some(theirs) = reference("controllers.line", &with) {
                hold(clamp, &ours, &theirs);
            }
        }
    }

    #[test]
    fn it_refuses_what_is_no_line() {
        let refused = |given: &[(&str, &str)]| {
            fixture(&NODE, given).err().expect("refuses").text().to_owned()
        };
        assert_eq!(
            refused(&[("from", "[1, 2]"), ("to", "[1]")]),
            "'from' has 2 numbers and 'to' 1; give both two, or none"
        );
        assert_eq!(
            refused(&[("from", "[1, 1]"), ("to", "[1, 2]")]),
            "'from' is 1 and 1, too near for a line; move one"
        );
        assert_eq!(
            refused(&[("from", "[1, 2]"), ("to", "[1, 2]"), ("gain", "3")]),
            "gain 3 and offset 0 are given together with 'from' and 'to'; leave one pair out"
        );
        assert_eq!(
            refused(&[("clamp", "true")]),
            "clamp is true, and there is no range; give 'from' and 'to'"
        );
    }

    #[test]
    fn a_cycle_does_not_allocate() {
        let mut node = fixture(&NODE, &[("gain", "2")]).expect("makes");
        let counted = allocation_counter::measure(|| {
            scale(&mut node, 1.0);
        });
        assert_eq!(counted.count_total, 0);
    }
}

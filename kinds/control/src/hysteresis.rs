//! Kind `hysteresis`: turns a number into a flag that does not flutter between its two limits.

use sinew_core::catalogue::{Bool, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault,
};

const IN: usize = 0;
const OUT: usize = 1;

const ANY: ParameterType = ParameterType::Number { min: -1e12, max: 1e12 };

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "hysteresis",
    runs_in: RunsIn::Realtime,
    doc: "True from when 'in' is above 'rises_above' until it is below 'falls_below', and then \
          false until it is above 'rises_above' again: the thermionic trigger of O. H. Schmitt, \
          1938. In between, limits included, it stays what it is. Until 'in' has left that band \
          once, and before the first value, it writes 'initial'. Both limits have the unit of \
          'in'. Set while it runs, they are those of the next cycle; in the band it stays what it \
          is.",
    ports: &[
        Port::input("in", "What is compared.", Real::TYPE),
        Port::output("out", "Whether it is high.", Flag::TYPE),
    ],
    parameters: &[
        Parameter::new("rises_above", ANY)
            .such_as("80")
            .doc("Above this it becomes true.")
            .tunable(),
        Parameter::new("falls_below", ANY)
            .such_as("75")
            .doc("Below this it becomes false; not above 'rises_above'.")
            .tunable(),
        Parameter::new("initial", ParameterType::Bool).or("false").doc("What it writes at first."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (rises_above, falls_below) = limits(parameters)?;
    Ok(Box::new(Hysteresis { rises_above, falls_below, is_high: parameters.bool("initial") }))
}

/// The parameters 'rises_above' and 'falls_below'.
fn limits(parameters: &Parameters<'_>) -> Result<(f64, f64), Fault> {
    let [rises_above, falls_below] =
        ["rises_above", "falls_below"].map(|name| parameters.number(name));
    if falls_below > rises_above {
        return Err(fault!(
            "falls_below is {falls_below} and must not be above rises_above, {rises_above}; \
             change one of them"
        ));
    }
    Ok((rises_above, falls_below))
}

struct Hysteresis {
    rises_above: f64,
    falls_below: f64,
    is_high: bool,
}

impl Node for Hysteresis {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let value = io.read::<Real>(IN).value;
        if io.fresh(IN) == Fresh::None {
            // No input yet: the flag stays as it is.
        } else if value > self.rises_above {
            self.is_high = true;
        } else if value < self.falls_below {
            self.is_high = false;
        }
        io.write::<Flag>(OUT).value = Bool::from(self.is_high);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        (self.rises_above, self.falls_below) = limits(parameters)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_core::NodeFixture;

    use super::*;
    use crate::filter_testing::{allocations, hold_all, walk};
    use crate::testing::fixture;

    fn hysteresis(rises_above: &str, falls_below: &str, initial: &str) -> NodeFixture {
        let given =
            [("rises_above", rises_above), ("falls_below", falls_below), ("initial", initial)];
        fixture(&NODE, &given).expect("makes")
    }

    fn says(node: &mut NodeFixture, value: f64) -> bool {
        node.put(IN, &Real { value });
        node.update().expect("goes on");
        node.get::<Flag>(OUT).expect("says").value.get()
    }

    #[test]
    fn between_the_limits_it_stays_what_it_is() {
        let mut node = hysteresis("2", "1", "false");
        let out = [1.5, 2.0, 2.1, 1.5, 1.0, 0.9, 1.0, 2.0, 2.1].map(|it| says(&mut node, it));
        assert_eq!(out, [false, false, true, true, true, false, false, false, true]);
    }

    #[test]
    fn it_turns_where_numpy_says() {
        let values: Vec<_> = walk(3000).iter().map(|at| 5.0 + 4.0 * at.sin()).collect();
        let mut cases = vec![];
        for initial in [false, true] {
            let mut node = hysteresis("6.5", "3.25", &initial.to_string());
            let ours: Vec<_> =
                values.iter().map(|&it| f64::from(u8::from(says(&mut node, it)))).collect();
            let turns = ours.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(turns > 5, "the walk crosses the band: {turns}");
            let with = json!({"rises_above": 6.5, "falls_below": 3.25, "initial": initial,
                              "values": values});
            cases.push((with, ours));
        }
        hold_all("schmitt", &cases);
    }

    #[test]
    fn before_the_first_value_it_says_what_it_begins_with() {
        let mut node = hysteresis("-1", "-2", "false");
        node.update().expect("goes on");
        assert_eq!(node.get::<Flag>(OUT), Some(Flag { value: Bool::from(false) }));
        assert!(says(&mut node, 0.0));
        assert!(says(&mut hysteresis("1", "-1", "true"), 0.0));
    }

    #[test]
    fn limits_that_cross_are_refused_and_equal_ones_are_not() {
        let refused = fixture(&NODE, &[("rises_above", "1"), ("falls_below", "2")]);
        assert_eq!(
            refused.err().expect("refused").text(),
            "falls_below is 2 and must not be above rises_above, 1; change one of them"
        );
        let mut node = hysteresis("1", "1", "false");
        assert_eq!([1.0, 1.1, 1.0, 0.9].map(|it| says(&mut node, it)), [false, true, true, false]);
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut hysteresis("1", "1", "false")), 0);
    }
}

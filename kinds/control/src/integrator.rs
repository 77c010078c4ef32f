//! Kind `integrator`: the sum of a number over time.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault,
};

const IN: usize = 0;
const OUT: usize = 1;
const RESET: usize = 2;
const HOLD: usize = 3;

const ANY: ParameterType = ParameterType::Number { min: -1e12, max: 1e12 };

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "integrator",
    runs_in: RunsIn::Realtime,
    doc: "Adds up 'in' times 'gain' over time, between 'min' and 'max'. At a limit it stays and \
          comes back at once when 'in' turns: it does not wind up. The area of a cycle is what \
          'method' takes for it: 'forward' the value of the cycle before (Euler), 'backward' that \
          of this cycle, 'trapezoid' the mean of both (Tustin; as \
          scipy.integrate.cumulative_trapezoid). 'forward' and 'trapezoid' begin at 'initial' with \
          the first value, 'backward' with its first area. Lost periods count: the area is over \
          all the time since the cycle before. Before the first value it writes 'initial'. Set \
          while it runs, 'gain' is that of the areas to come, new limits cut the sum at once, and \
          'initial' waits for the next reset.",
    ports: &[
        Port::input("in", "What to add up.", Real::TYPE),
        Port::output("out", "The sum, in the unit of 'gain' times 'in' times s.", Real::TYPE),
        Port::input("reset", "While it is true the sum is 'initial'.", Flag::TYPE).optional(),
        Port::input("hold", "While it is true the sum stays.", Flag::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("method", ParameterType::Choice(&["forward", "backward", "trapezoid"]))
            .or("trapezoid")
            .doc("What it takes for the area of a cycle."),
        Parameter::new("gain", ParameterType::Number { min: -1e9, max: 1e9 })
            .or("1")
            .doc("What 'in' is multiplied by first.")
            .tunable(),
        Parameter::new("initial", ANY)
            .or("0")
            .doc("Value at the start, in the unit of 'out'.")
            .tunable(),
        Parameter::new("min", ANY).or("-1e12").doc("Least value, in the unit of 'out'.").tunable(),
        Parameter::new("max", ANY)
            .or("1e12")
            .doc("Greatest value, in the unit of 'out'.")
            .tunable(),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let bounds = Bounds::of(parameters)?;
    let (old, new) = match parameters.text("method") {
        "forward" => (1.0, 0.0),
        "backward" => (0.0, 1.0),
        _ => (0.5, 0.5),
    };
    let (gain, sum) = (parameters.number("gain"), bounds.initial);
    Ok(Box::new(Integrator { gain, old, new, bounds, before: None, sum }))
}

/// The limits of the sum, and its initial value.
struct Bounds {
    initial: f64,
    min: f64,
    max: f64,
}

impl Bounds {
    fn of(parameters: &Parameters<'_>) -> Result<Bounds, Fault> {
        let [min, max, initial] = ["min", "max", "initial"].map(|name| parameters.number(name));
        if min >= max {
            return Err(fault!("min is {min} and must be below max, {max}; change one of them"));
        }
        if !(min..=max).contains(&initial) {
            return Err(fault!(
                "initial is {initial} and must be from min, {min}, to max, {max}; change one of \
                 them"
            ));
        }
        Ok(Bounds { initial, min, max })
    }
}

struct Integrator {
    gain: f64,
    /// Weight of the value of the cycle before in an area.
    old: f64,
    /// Weight of the newest value.
    new: f64,
    bounds: Bounds,
    before: Option<f64>,
    sum: f64,
}

impl Node for Integrator {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if self.before.is_some() || io.fresh(IN) != Fresh::None {
            self.pass(io.read::<Real>(IN).value, io.read::<Flag>(HOLD).value.get(), cycle);
        }
        if io.read::<Flag>(RESET).value.get() {
            self.sum = self.bounds.initial;
        }
        io.write::<Real>(OUT).value = self.sum;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        (self.bounds, self.gain) = (Bounds::of(parameters)?, parameters.number("gain"));
        self.sum = match self.before {
            Some(_) => self.sum.clamp(self.bounds.min, self.bounds.max),
            // Nothing was summed yet: after a restart of the core the sum begins with the value
            // that was set before.
            None => self.bounds.initial,
        };
        Ok(())
    }
}

impl Integrator {
    fn pass(&mut self, value: f64, is_held: bool, cycle: &Cycle) {
        // There is no value before: only the newest one is known.
        let mean = match self.before.replace(value) {
            Some(before) => self.old * before + self.new * value,
            None if self.old == 0.0 => value,
            None => 0.0,
        };
        if !is_held {
            let area = self.gain * mean * cycle.passed_s();
            self.sum = (self.sum + area).clamp(self.bounds.min, self.bounds.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_core::NodeFixture;
    use sinew_core::catalogue::Bool;

    use super::*;
    use crate::filter_testing::{allocations, answers, hold_all, walk};
    use crate::testing::fixture;

    fn integrator(given: &[(&str, &str)]) -> NodeFixture {
        fixture(&NODE, given).expect("makes")
    }

    fn say(node: &mut NodeFixture, port: usize, value: bool) {
        node.put(port, &Flag { value: Bool::from(value) });
    }

    #[test]
    fn each_method_adds_up_as_scipy_does() {
        let values = walk(2000);
        let mut cases = vec![];
        for method in ["forward", "backward", "trapezoid"] {
            let given = [("method", method), ("gain", "-2.5"), ("initial", "4")];
            let ours = answers(&mut integrator(&given), &values);
            let with = json!({"method": method, "gain": -2.5, "initial": 4.0, "values": values});
            cases.push((with, ours));
        }
        hold_all("integral", &cases);
    }

    #[test]
    fn a_lost_period_counts_as_time() {
        for (method, sum) in [("forward", 0.004), ("backward", 0.007), ("trapezoid", 0.0055)] {
            let mut node = integrator(&[("method", method)]);
            node.put(IN, &Real { value: 1.0 });
            node.update().expect("goes on");
            let begun = node.get::<Real>(OUT).expect("says").value;
            assert_eq!(begun, if method == "backward" { 0.001 } else { 0.0 });
            node.update().expect("goes on with the old value");
            node.cycle.skipped = 2;
            let out = answers(&mut node, &[2.0])[0] - begun;
            assert!((out - sum).abs() < 1e-15, "{method}: {out}");
        }
    }

    #[test]
    fn at_a_limit_it_does_not_wind_up() {
        let mut node = integrator(&[("method", "backward"), ("max", "0.0045"), ("min", "-1")]);
        assert_eq!(answers(&mut node, &[1.0; 100])[99], 0.0045);
        let back = answers(&mut node, &[-1.0])[0];
        assert!((back - 0.0035).abs() < 1e-15, "{back}");
        assert_eq!(answers(&mut node, &[-1e308, 1e308, 1e308]), [-1.0, 0.0045, 0.0045]);
    }

    #[test]
    fn it_holds_and_begins_anew_as_it_is_told() {
        let mut node = integrator(&[("method", "backward"), ("initial", "5")]);
        node.update().expect("goes on");
        assert_eq!(node.get::<Real>(OUT), Some(Real { value: 5.0 }), "before the first value");
        assert_eq!(answers(&mut node, &[1000.0, 1000.0]), [6.0, 7.0]);
        say(&mut node, HOLD, true);
        assert_eq!(answers(&mut node, &[1000.0, 1000.0]), [7.0, 7.0]);
        say(&mut node, RESET, true);
        assert_eq!(answers(&mut node, &[1000.0]), [5.0]);
        say(&mut node, RESET, false);
        assert_eq!(answers(&mut node, &[1000.0]), [5.0]);
        say(&mut node, HOLD, false);
        assert_eq!(answers(&mut node, &[1000.0]), [6.0]);
    }

    #[test]
    fn limits_that_leave_no_room_are_refused() {
        let refusal = |given: &[(&str, &str)]| {
            fixture(&NODE, given).err().expect("refused").text().to_owned()
        };
        assert_eq!(
            refusal(&[("min", "2"), ("max", "2")]),
            "min is 2 and must be below max, 2; change one of them"
        );
        assert_eq!(
            refusal(&[("min", "2"), ("max", "3")]),
            "initial is 0 and must be from min, 2, to max, 3; change one of them"
        );
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut integrator(&[])), 0);
    }
}

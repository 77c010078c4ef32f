//! Kind `derivative`: the rate of change of a number.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, Real};

const IN: usize = 0;
const OUT: usize = 1;

/// A smaller rate of change is set to zero, so that it does not reach the subnormal numbers as it
/// dies away.
const NOTHING: f64 = 1e-290;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "derivative",
    runs_in: RunsIn::Realtime,
    doc: "How much 'in' changes in a second, smoothed by a low-pass of the first order: s / (1 + \
          time_constant_s s), made discrete by the backward difference, as the derivative of a PID \
          controller in K. J. Åström and B. Wittenmark, Computer-Controlled Systems, 1997, 8.5. It \
          cannot become unstable, whatever the period. At the first value it is zero, before that \
          it writes nothing. Lost periods count: a change is spread over all the time since the \
          cycle before. A number that is not new in every cycle changes in steps; the time \
          constant must then be greater than the time between them.",
    ports: &[
        Port::input("in", "What changes.", Real::TYPE),
        Port::output("out", "How fast, in the unit of 'in' per s.", Real::TYPE),
    ],
    parameters: &[Parameter::new("time_constant_s", ParameterType::Number { min: 0.0, max: 1e6 })
        .such_as("0.01")
        .unit("s")
        .doc("After this time it shows 63 % of a new rate of change; 0: no smoothing.")
        .tunable()],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (time_constant_s, of_period) = smoothing(parameters);
    Ok(Box::new(Derivative { time_constant_s, of_period, before: None, rate: 0.0 }))
}

/// The time constant, and the coefficients for a period.
fn smoothing(parameters: &Parameters<'_>) -> (f64, Smoothing) {
    let time_constant_s = parameters.number("time_constant_s");
    (time_constant_s, Smoothing::over(time_constant_s, parameters.period_ns as f64 * 1e-9))
}

/// The coefficients of a step.
#[derive(Clone, Copy)]
struct Smoothing {
    /// Coefficient of the rate before.
    old: f64,
    /// Coefficient of the change of the number.
    new: f64,
}

impl Smoothing {
    fn over(time_constant_s: f64, passed_s: f64) -> Smoothing {
        let sum = time_constant_s + passed_s;
        Smoothing { old: time_constant_s / sum, new: 1.0 / sum }
    }
}

struct Derivative {
    time_constant_s: f64,
    /// For a cycle with no period lost before it.
    of_period: Smoothing,
    before: Option<f64>,
    rate: f64,
}

impl Node for Derivative {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if self.before.is_none() && io.fresh(IN) == Fresh::None {
            return Ok(());
        }
        let value = io.read::<Real>(IN).value;
        let change = value - self.before.replace(value).unwrap_or(value);
        let step = match cycle.skipped {
            0 => self.of_period,
            _ => Smoothing::over(self.time_constant_s, cycle.passed_s()),
        };
        let rate = step.old * self.rate + step.new * change;
        self.rate = if rate.abs() < NOTHING { 0.0 } else { rate };
        io.write::<Real>(OUT).value = self.rate;
        Ok(())
    }

    /// The rate of change continues from its present value.
    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        (self.time_constant_s, self.of_period) = smoothing(parameters);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::filter_testing::{allocations, answers, hold_all, walk};
    use crate::testing::fixture;

    fn derivative(time_constant_s: &str) -> sinew_core::NodeFixture {
        fixture(&NODE, &[("time_constant_s", time_constant_s)]).expect("makes")
    }

    #[test]
    fn it_answers_as_scipy_does() {
        let values = walk(1000);
        let mut cases = vec![];
        for time_constant_s in [0.0, 0.0005, 0.02, 3.0] {
            let ours = answers(&mut derivative(&time_constant_s.to_string()), &values);
            let with = json!({"time_constant_s": time_constant_s, "values": values});
            cases.push((with, ours));
        }
        hold_all("derivative", &cases);
    }

    #[test]
    fn it_begins_without_a_kick_and_not_before_the_first_value() {
        let mut node = derivative("0.01");
        node.update().expect("goes on");
        assert_eq!(node.get::<Real>(OUT), None);
        assert_eq!(answers(&mut node, &[1e6, 1e6]), [0.0, 0.0]);
    }

    #[test]
    fn of_a_ramp_it_is_the_slope_though_periods_are_lost() {
        for time_constant_s in ["0", "0.01"] {
            let mut node = derivative(time_constant_s);
            let (mut at, mut rate) = (0.0, 0.0);
            for cycle in 0..500 {
                node.cycle.skipped = if cycle % 7 == 3 { 4 } else { 0 };
                at += 2.5e-3 * (1 + node.cycle.skipped) as f64;
                rate = answers(&mut node, &[at])[0];
                assert!(rate <= 2.5 + 1e-9, "never faster than the ramp: {rate}");
            }
            assert!((rate - 2.5).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut derivative("0.1")), 0);
    }
}

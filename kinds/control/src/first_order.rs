//! Kind `first_order`: a plant that follows its input with a time constant, after a dead time.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault};

use super::plant::passed_periods;

const IN: usize = 0;
const OUT: usize = 1;

/// Longest dead time: its inputs take 512 KiB.
const DEAD_PERIODS_MAX: u64 = 65_536;
/// Longest dead time that can be written: 65536 periods of 1 s.
const DEAD_TIME_NS_MAX: u64 = DEAD_PERIODS_MAX * 1_000_000_000;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "first_order",
    runs_in: RunsIn::Realtime,
    doc: "A plant of first order: time_constant_s dy/dt + y = gain u, where u is the input of \
          'dead_time' ago: an oven, a tank, a valve; with dead time the model that rules for \
          controllers are made for (Astrom, Hagglund, Advanced PID Control, 2006, 2.6). In each \
          cycle it goes on by a period in which its input is held, exactly, and by lost periods \
          too, 999 of them at most; so 'out' is what the input of this cycle, or that of the dead \
          time before, has made of it by the end of the period. An input that was never written \
          counts as the one at which it rests at 'initial'. 'out' is in the unit of 'gain' times \
          'in'; 'initial' is in that of 'out'. Set while it runs, 'gain' and 'time_constant_s' \
          change where 'out' goes and how fast, not where it is.",
    ports: &[
        Port::input("in", "What drives it.", Real::TYPE),
        Port::output("out", "The output of the plant.", Real::TYPE).unit(Unit::Parameter("unit")),
    ],
    parameters: &[
        Parameter::new("gain", ParameterType::Number { min: -1e9, max: 1e9 })
            .or("1")
            .doc("Change of 'out' for each unit of 'in', at rest; not 0.")
            .tunable(),
        Parameter::new("time_constant_s", ParameterType::Number { min: 1e-9, max: 1e9 })
            .or("1")
            .unit("s")
            .doc("After this time 63 % of a step is done.")
            .tunable(),
        Parameter::new(
            "dead_time",
            ParameterType::Duration { min_ns: 0, max_ns: DEAD_TIME_NS_MAX },
        )
        .or("0ns")
        .doc("Delay of the input: whole periods, 65536 at most."),
        Parameter::new("initial", ParameterType::Number { min: -1e12, max: 1e12 })
            .or("0")
            .doc("Where it rests before the first input."),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of 'out'."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (gain, follows) = gain_and_pace(parameters)?;
    let dead_ns = parameters.duration("dead_time").as_nanos() as u64;
    let (period_ns, initial) = (parameters.period_ns, parameters.number("initial"));
    let periods = dead_ns / period_ns;
    if !dead_ns.is_multiple_of(period_ns) {
        let [less, more] = [periods, periods + 1].map(|periods| periods * period_ns);
        return Err(fault!(
            "dead_time is {dead_ns} ns, no whole number of periods of {period_ns} ns; make it \
             {less}ns or {more}ns"
        ));
    }
    if periods > DEAD_PERIODS_MAX {
        return Err(fault!(
            "dead_time is {periods} periods, at most {DEAD_PERIODS_MAX}; shorten it, or lengthen \
             the period"
        ));
    }
    let rest = initial / gain;
    Ok(Box::new(FirstOrder {
        follows,
        gain,
        held: rest,
        dead: vec![rest; periods as usize].into(),
        oldest: 0,
        out: initial,
    }))
}

/// The gain, and the part of the way to the goal that is covered in a period.
fn gain_and_pace(parameters: &Parameters<'_>) -> Result<(f64, f64), Fault> {
    let gain = parameters.number("gain");
    if gain == 0.0 {
        return Err(fault!("gain is 0, so nothing drives it; give another number"));
    }
    let passed = parameters.period_ns as f64 * 1e-9 / parameters.number("time_constant_s");
    // With a short period, 1 minus a number near 1 would lose digits.
    Ok((gain, -(-passed).exp_m1()))
}

struct FirstOrder {
    /// The part of the way to the goal that is covered in a period.
    follows: f64,
    gain: f64,
    /// The newest input.
    held: f64,
    /// The inputs of the dead time, as a ring buffer.
    dead: Box<[f64]>,
    oldest: usize,
    out: f64,
}

impl Node for FirstOrder {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) != Fresh::None {
            self.held = io.read::<Real>(IN).value;
        }
        for _ in 0..passed_periods(cycle) {
            let input = self.delayed();
            self.out += (self.gain * input - self.out) * self.follows;
        }
        io.write::<Real>(OUT).value = self.out;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        (self.gain, self.follows) = gain_and_pace(parameters)?;
        Ok(())
    }
}

impl FirstOrder {
    /// The input of one dead time ago. The newest input takes its place.
    fn delayed(&mut self) -> f64 {
        let Some(oldest) = self.dead.get_mut(self.oldest) else { return self.held };
        let input = std::mem::replace(oldest, self.held);
        self.oldest = (self.oldest + 1) % self.dead.len();
        input
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{fixture, hold, reference};
    use sinew_core::NodeFixture;

    fn out(node: &NodeFixture) -> f64 {
        node.get::<Real>(OUT).expect("it says so every cycle").value
    }

    #[test]
    fn it_follows_as_scipy_says() {
        let mut rng = fastrand::Rng::with_seed(5);
        let inputs: Vec<f64> = (0..3000).map(|at| if at < 9 { 3.0 } else { rng.f64() }).collect();
        for (gain, time_constant, dead) in [(2.0, 0.02, 0_u32), (-0.5, 0.3, 7), (1.0, 1e-4, 2500)] {
            let given = [
                ("gain", format!("{gain}")),
                ("time_constant_s", format!("{time_constant}")),
                ("dead_time", format!("{dead}ms")),
                ("initial", "1.5".to_owned()),
            ];
            let given: Vec<_> = given.iter().map(|(name, text)| (*name, text.as_str())).collect();
            let mut node = fixture(&NODE, &given).expect("makes");
            let mut ours = vec![];
            for input in &inputs {
                node.put(IN, &Real { value: *input });
                node.update().expect("goes on");
                ours.push(out(&node));
            }
            let question = json!({
                "gain": gain, "time_constant": time_constant, "dead": dead, "initial": 1.5,
                "period": 1e-3, "inputs": inputs,
            });
            let Some(theirs) = reference("plants.first_order", &question) else { return };
            hold(&format!("dead {dead}"), &ours, &theirs);
        }
    }

    #[test]
    fn it_rests_until_the_first_input_and_its_dead_time() {
        let given = [("gain", "4"), ("initial", "20"), ("dead_time", "3ms")];
        let mut node = fixture(&NODE, &given).expect("makes");
        for cycle in 0..10 {
            if cycle == 4 {
                node.put(IN, &Real { value: 0.0 });
            }
            node.update().expect("goes on");
            assert_eq!(out(&node) == 20.0, cycle < 7, "cycle {cycle}: {}", out(&node));
        }
    }

    #[test]
    fn lost_periods_pass_in_the_dead_time_too() {
        let given = [("dead_time", "5ms"), ("time_constant_s", "0.01")];
        let [mut lost, mut all] = [(); 2].map(|()| fixture(&NODE, &given).expect("makes"));
        for node in [&mut lost, &mut all] {
            node.put(IN, &Real { value: 1.0 });
            node.update().expect("goes on");
        }
        lost.cycle.skipped = 6;
        lost.update().expect("goes on");
        (0..7).for_each(|_| all.update().expect("goes on"));
        assert_eq!(out(&lost), out(&all));
        assert!(out(&all) > 0.2, "it has begun: {}", out(&all));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let refused = |given| fixture(&NODE, &[given]).err().expect("is refused");
        assert_eq!(
            refused(("gain", "0")).text(),
            "gain is 0, so nothing drives it; give another number"
        );
        assert_eq!(
            refused(("dead_time", "2500us")).text(),
            "dead_time is 2500000 ns, no whole number of periods of 1000000 ns; make it 2000000ns \
             or 3000000ns"
        );
        assert_eq!(
            refused(("dead_time", "65537ms")).text(),
            "dead_time is 65537 periods, at most 65536; shorten it, or lengthen the period"
        );
        fixture(&NODE, &[("dead_time", "65536ms")]).expect("the longest");
    }

    #[test]
    fn a_cycle_does_not_allocate() {
        let mut node = fixture(&NODE, &[("dead_time", "5ms")]).expect("makes");
        node.put(IN, &Real { value: 7.0 });
        let counted = allocation_counter::measure(|| {
            (0..100).for_each(|_| node.update().expect("goes on"));
        });
        assert_eq!(counted.count_total, 0);
    }
}

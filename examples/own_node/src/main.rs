//! `sinew` with one more kind of node: a low-pass filter on the joint targets.

use std::array;
use std::f64::consts::TAU;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};
use sinew_robot::messages::JointTargets;

const IN: Port = Port::input("in", "Joint targets as they come.", JointTargets::TYPE);
const OUT: Port = Port::output("out", "The same, smooth.", JointTargets::TYPE);

const INFO: Kind = Kind {
    name: "joint_filter",
    runs_in: RunsIn::Realtime,
    doc: "First-order low-pass filter on the joint targets; delays them by 1 / (2 pi cutoff).",
    ports: &[IN, OUT],
    parameters: &[Parameter::new("cutoff_hz", ParameterType::Number { min: 1.0, max: 500.0 })
        .or("100")
        .unit("Hz")
        .doc("Frequency of which a factor of 0.7 is left.")],
    signals: &[],
};

const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let cutoff_rad_per_s = parameters.number("cutoff_hz") * TAU;
    let gain = 1.0 - (-cutoff_rad_per_s * parameters.period_ns as f64 * 1e-9).exp();
    Ok(Box::new(JointFilter { gain, previous: None }))
}

struct JointFilter {
    gain: f64,
    previous: Option<JointTargets>,
}

impl Node for JointFilter {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if io.fresh(0) == Fresh::New {
            let target = *io.read::<JointTargets>(0);
            let previous = self.previous.unwrap_or(target);
            let filter = |from: [f64; 6], to: [f64; 6]| {
                array::from_fn(|i| from[i] + self.gain * (to[i] - from[i]))
            };
            let smooth = JointTargets {
                position_rad: filter(previous.position_rad, target.position_rad),
                velocity_rad_per_s: filter(previous.velocity_rad_per_s, target.velocity_rad_per_s),
                ..target
            };
            *io.write(1) = smooth;
            self.previous = Some(smooth);
        }
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    let mut kinds = sinew::kinds();
    kinds.nodes.push(NODE);
    sinew::main(&kinds)
}

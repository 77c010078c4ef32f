//! Kind `limiter`: follows a number within limits of value, rate and acceleration.
//!
//! The follower takes the greatest speed from which it can still brake before its goal, as a
//! time-optimal servo does (Franklin, Powell and Workman, *Digital Control of Dynamic Systems*
//! (1998), on the control of disk drives). But it works in whole periods, so its speed changes in
//! steps.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault,
};

const IN: usize = 0;
const OUT: usize = 1;
const LIMITED: usize = 2;

/// The greatest rate or acceleration that a graph can write. It means: no limit.
const NO_LIMIT: f64 = 1e12;

const fn number(name: &'static str, least: f64, default: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Number { min: least, max: NO_LIMIT }).or(default)
}

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "limiter",
    runs_in: RunsIn::Realtime,
    doc: "Follows its input between min and max: 'out' changes no faster than rate_max, and its \
          rate changes no faster than acceleration_max. It brakes in time: it stops at an input \
          that rests and does not go past it, but with acceleration_max it goes past one that \
          comes towards it, and returns. It begins at 'initial', at rest, and stays there until \
          its input was written. A lost period is not made up for, and a graph that stops changes \
          nothing. Limits set while it runs cause no jump: an output past new ones comes back no \
          faster than rate_max and acceleration_max, and with a lower acceleration_max it may go \
          past its input once.",
    ports: &[
        Port::input("in", "What it follows.", Real::TYPE),
        Port::output("out", "The same within the limits.", Real::TYPE).unit(Unit::As("in")),
        Port::output("limited", "Whether 'out' is not 'in'.", Flag::TYPE).optional(),
    ],
    parameters: &[
        number("min", -1e12, "-1e12").doc("Least output, in the unit of in.").tunable(),
        number("max", -1e12, "1e12").doc("Greatest output, in the unit of in.").tunable(),
        number("rate_max", 1e-9, "1e12").doc("Greatest change per s; 1e12: no limit.").tunable(),
        number("acceleration_max", 1e-9, "1e12")
            .doc("Greatest change of the rate, per s2; 1e12: no limit.")
            .tunable(),
        number("initial", -1e12, "0").doc("First output, from min to max, in the unit of in."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Limit::of(parameters)?))
}

impl Limit {
    /// A limiter at rest.
    fn of(parameters: &Parameters<'_>) -> Result<Limit, Fault> {
        let [least, most] = ["min", "max"].map(|name| parameters.number(name));
        let initial = parameters.number("initial");
        if least >= most {
            return Err(fault!("min {least} is not below max {most}; lower min"));
        }
        if !(least..=most).contains(&initial) {
            return Err(fault!(
                "initial {initial} is outside of min {least} to max {most}; give one between them"
            ));
        }
        let limit = |name| {
            let most = parameters.number(name);
            if most < NO_LIMIT { most } else { f64::INFINITY }
        };
        let period_s = parameters.period_ns as f64 * 1e-9;
        Ok(Limit {
            least,
            most,
            low: least,
            high: most,
            is_wide: false,
            step_max: limit("rate_max") * period_s,
            change_max: limit("acceleration_max") * period_s * period_s,
            out: initial,
            step: 0.0,
        })
    }
}

struct Limit {
    /// Where the output shall be: the limits of the parameters.
    least: f64,
    most: f64,
    /// Where the output may be. Differs from the limits above only while the output is on its way
    /// back into new limits.
    low: f64,
    high: f64,
    /// Whether the two differ.
    is_wide: bool,
    /// The most that the output changes in a period.
    step_max: f64,
    /// The most that the step changes from one period to the next.
    change_max: f64,
    out: f64,
    /// By how much the output changed in the last period.
    step: f64,
}

impl Node for Limit {
    #[inline]
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let wanted = if io.fresh(IN) == Fresh::None { self.out } else { io.read::<Real>(IN).value };
        self.follow(wanted.clamp(self.least, self.most));
        if self.is_wide {
            self.narrow();
        }
        io.write::<Real>(OUT).value = self.out;
        io.write::<Flag>(LIMITED).value = (self.out != wanted).into();
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let tuned = Limit::of(parameters)?;
        let (low, high) = (self.low.min(tuned.low), self.high.max(tuned.high));
        let (out, step) = (self.out, self.step);
        *self = Limit { low, high, is_wide: true, out, step, ..tuned };
        self.narrow();
        Ok(())
    }
}

impl Limit {
    #[inline]
    fn follow(&mut self, goal: f64) {
        let way = goal - self.out;
        let step = self.step_max.min(self.braking(way.abs())).copysign(way);
        let step = step.max(self.step - self.change_max).min(self.step + self.change_max);
        // The whole way is not added but set to the goal: a sum would round it.
        self.out = if step == way { goal } else { self.out + step };
        // Where the output brakes before a limit, rounding could take it past the limit.
        self.out = self.out.clamp(self.low, self.high);
        self.step = step;
    }

    /// Narrows the limits where the output may be to those where it shall be, once the output is
    /// within them and can brake before them.
    #[cold]
    #[inline(never)]
    fn narrow(&mut self) {
        let ahead = if self.step < 0.0 { self.out - self.least } else { self.most - self.out };
        let is_in = (self.least..=self.most).contains(&self.out);
        if is_in && self.step.abs() - self.change_max <= self.braking(ahead) {
            (self.low, self.high, self.is_wide) = (self.least, self.most, false);
        }
    }

    /// The greatest step from which it can still brake without going past a goal at distance `far`.
    /// The n + 1 steps s, s - change_max and so on go (n + 1) (s - change_max n / 2) in all, where
    /// n is the whole part of s / change_max.
    #[inline]
    fn braking(&self, far: f64) -> f64 {
        let change = self.change_max;
        if change.is_infinite() {
            return far;
        }
        let n = ((0.25 + 2.0 * far / change).sqrt() - 0.5).floor();
        far / (n + 1.0) + change * n / 2.0
    }
}

#[cfg(test)]
mod tests;

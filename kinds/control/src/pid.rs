//! Kind `pid`: a controller with proportional, integral and derivative action.
//!
//! Terms, set-point weight, anti-windup and discretisation are those of Åström and Hägglund,
//! *Advanced PID Control* (2006), chapters 3 and 13, and of Åström and Wittenmark,
//! *Computer-Controlled Systems* (1997), section 8.6: the integral by forward differences, the
//! derivative with its filter by backward differences, which are stable for every time constant.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, Unit};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault,
};

const SETPOINT: usize = 0;
const MEASURED: usize = 1;
const FEED_FORWARD: usize = 2;
const ENABLED: usize = 3;
const MANUAL: usize = 4;
const APPLIED: usize = 5;
const OUT: usize = 6;

const ERROR: usize = 0;
const P: usize = 1;
const I: usize = 2;
const D: usize = 3;
const SATURATED: usize = 4;

/// The greatest rate that a graph can write. It means: no limit.
const NO_RATE: f64 = 1e12;

const fn number(name: &'static str, least: f64, most: f64, doc: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Number { min: least, max: most }).doc(doc).tunable()
}

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "pid",
    runs_in: RunsIn::Realtime,
    doc: "Controls what it measures: out = kp (setpoint_weight setpoint - measured) + ki times the \
          integral of the error + kd times the filtered derivative + feed_forward, where the error \
          is setpoint - measured; out is limited to out_min..out_max, and in its rate while it is \
          enabled. Past a limit the integral is led back (anti-windup by back-calculation). While \
          'enabled' is false it writes 'manual', within out_min..out_max and at once, and its \
          signals are 0. When it is enabled again it goes on from there without a bump, at \
          whatever error: the integral is set to what is missing. (With ki = 0 there is no \
          integral, and so a bump that only rate_max limits.) Enabled from the first cycle on, it \
          begins with an integral of zero. While it is enabled and not both of 'setpoint' and \
          'measured' were ever written, it writes disabled_output. While the graph stops it writes \
          disabled_output. A lost period is not made up for. Åström and Hägglund, Advanced PID \
          Control (2006), chapters 3 and 13.",
    ports: &[
        Port::input("setpoint", "The wanted value of 'measured'.", Real::TYPE)
            .unit(Unit::As("measured")),
        Port::input("measured", "What is controlled.", Real::TYPE),
        Port::input("feed_forward", "Is added to the output.", Real::TYPE)
            .optional()
            .unit(Unit::As("out")),
        Port::input("enabled", "Whether it controls; unlinked: always.", Flag::TYPE).optional(),
        Port::input("manual", "Output while not enabled; else disabled_output.", Real::TYPE)
            .optional()
            .unit(Unit::As("out")),
        Port::input(
            "applied",
            "What the actuator got for the output of the cycle before, if something behind it \
             limits too; the integral is led back by it. Unlinked, or not yet written: the output.",
            Real::TYPE,
        )
        .optional()
        .unit(Unit::As("out")),
        Port::output("out", "To the actuator.", Real::TYPE).unit(Unit::Parameter("unit")),
    ],
    parameters: &[
        number("kp", -1e9, 1e9, "Proportional gain, out per measured; negative: acts in reverse.")
            .such_as("2"),
        number("ki", -1e9, 1e9, "Integral gain: kp / Ti. 0: no integral.").or("0").unit("1/s"),
        number("kd", -1e9, 1e9, "Derivative gain: kp Td.").or("0").unit("s"),
        number(
            "derivative_filter_s",
            0.0,
            1e6,
            "Time constant of the derivative's filter, often Td / 10; 0: no filter.",
        )
        .or("0")
        .unit("s"),
        number(
            "setpoint_weight",
            0.0,
            1.0,
            "Part of the setpoint that kp uses; less of it overshoots less.",
        )
        .or("1"),
        Parameter::new("derivative_of", ParameterType::Choice(&["measured", "error"]))
            .or("measured")
            .doc("'measured': a step of the setpoint gives no impulse."),
        number("out_min", -1e12, 1e12, "Least output, in the unit of out.").or("-1e12"),
        number("out_max", -1e12, 1e12, "Greatest output, in the unit of out.").or("1e12"),
        number("rate_max", 1e-9, NO_RATE, "Greatest change of out per s; 1e12: no limit.")
            .or("1e12"),
        number(
            "tracking_time_s",
            0.0,
            1e9,
            "How fast the integral is led back, a period or more. 0: sqrt(Ti Td), or Ti = kp / ki \
             without kd, or a period if that is longer.",
        )
        .or("0")
        .unit("s"),
        number("disabled_output", -1e12, 1e12, "In the unit of out, from out_min to out_max.")
            .or("0"),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of out."),
    ],
    signals: &[
        Signal::new("error", "Setpoint less measured.", "", 1).unit_as("measured"),
        Signal::new("p", "Proportional part of the output.", "", 1).unit_as("out"),
        Signal::new("i", "Integral part.", "", 1).unit_as("out"),
        Signal::new("d", "Derivative part.", "", 1).unit_as("out"),
        Signal {
            labels: &["no", "yes"],
            ..Signal::new("saturated", "Whether its own limits cut the output.", "", 1)
        },
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let gains = Gains::of(parameters)?;
    let disabled_output = disabled_output(parameters, &gains)?;
    Ok(Box::new(Pid {
        gains,
        disabled_output,
        is_switched: parameters.messages.iter().any(|(port, _)| *port == ENABLED),
        before: Before::Nothing,
        integral: 0.0,
        derivative: 0.0,
        slid: 0.0,
        demand: 0.0,
        out: disabled_output,
    }))
}

fn disabled_output(parameters: &Parameters<'_>, gains: &Gains) -> Result<f64, Fault> {
    let disabled_output = parameters.number("disabled_output");
    if !(gains.out_min..=gains.out_max).contains(&disabled_output) {
        let (least, most) = (gains.out_min, gains.out_max);
        let text = fault!(
            "disabled_output {disabled_output} is outside of out_min {least} to out_max {most}; \
             give one between them"
        );
        return Err(text.at(parameters.span("disabled_output")));
    }
    Ok(disabled_output)
}

/// The parameters, converted for one period.
struct Gains {
    proportional: f64,
    setpoint_weight: f64,
    /// What an error of 1 adds to the integral part in a period. The gain is inside the integral,
    /// so that a change of gain does not bump the output.
    integral: f64,
    /// The part of the derivative part that is left after a period.
    derivative_keeps: f64,
    /// What a change of 1 adds to the derivative part.
    derivative_adds: f64,
    derivative_of_error: bool,
    out_min: f64,
    out_max: f64,
    /// The most that the output changes in a period.
    step_max: f64,
    /// The part of what the limits took away by which the integral is led back in a period.
    tracking: f64,
}

impl Gains {
    fn of(parameters: &Parameters<'_>) -> Result<Gains, Fault> {
        let [kp, ki, kd] = ["kp", "ki", "kd"].map(|name| parameters.number(name));
        let period_s = parameters.period_ns as f64 * 1e-9;
        let filter_s = parameters.number("derivative_filter_s");
        let [out_min, out_max] = ["out_min", "out_max"].map(|name| parameters.number(name));
        if out_min >= out_max {
            return Err(fault!("out_min {out_min} is not below out_max {out_max}; lower out_min"));
        }
        let rate_max = parameters.number("rate_max");
        Ok(Gains {
            proportional: kp,
            setpoint_weight: parameters.number("setpoint_weight"),
            integral: ki * period_s,
            derivative_keeps: filter_s / (filter_s + period_s),
            derivative_adds: kd / (filter_s + period_s),
            derivative_of_error: parameters.text("derivative_of") == "error",
            out_min,
            out_max,
            step_max: if rate_max < NO_RATE { rate_max * period_s } else { f64::INFINITY },
            tracking: if ki == 0.0 { 0.0 } else { period_s / tracking_s(parameters, period_s)? },
        })
    }
}

/// The time constant by which the integral is led back; `ki` is not zero.
fn tracking_s(parameters: &Parameters<'_>, period_s: f64) -> Result<f64, Fault> {
    let [kp, ki, kd] = ["kp", "ki", "kd"].map(|name| parameters.number(name).abs());
    let given_s = parameters.number("tracking_time_s");
    if given_s == 0.0 {
        let by_rule_s = if kd > 0.0 { (kd / ki).sqrt() } else { kp / ki };
        return Ok(by_rule_s.max(period_s));
    }
    if given_s < period_s {
        return Err(fault!(
            "tracking_time_s {given_s} is shorter than the period, {period_s} s; give a period or \
             more, or 0 for the rule"
        ));
    }
    Ok(given_s)
}

/// What the node did in the cycle before.
#[derive(PartialEq)]
enum Before {
    /// It had nothing to control yet.
    Nothing,
    /// The output was given by hand.
    Manual,
    /// It controlled.
    Control,
}

struct Pid {
    gains: Gains,
    disabled_output: f64,
    /// Whether `enabled` is linked. If so, it is false until it is written.
    is_switched: bool,
    before: Before,
    /// Integral part of the output.
    integral: f64,
    /// Derivative part of the output.
    derivative: f64,
    /// The number of the cycle before of which the derivative is taken.
    slid: f64,
    /// The output of the cycle before, without limits.
    demand: f64,
    /// Output of the cycle before.
    out: f64,
}

impl Node for Pid {
    #[inline]
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let is_enabled = match io.fresh(ENABLED) {
            Fresh::None => !self.is_switched,
            _ => io.read::<Flag>(ENABLED).value.get(),
        };
        let is_blind = io.fresh(SETPOINT) == Fresh::None || io.fresh(MEASURED) == Fresh::None;
        if cycle.stopping {
            (self.before, self.out) = (Before::Manual, self.disabled_output);
        } else if !is_enabled {
            self.before = Before::Manual;
            let manual = written(io, MANUAL).unwrap_or(self.disabled_output);
            self.out = manual.max(self.gains.out_min).min(self.gains.out_max);
        } else if is_blind {
            self.out = self.disabled_output;
        } else {
            self.control(io);
        }
        if self.before != Before::Control {
            (ERROR..=SATURATED).for_each(|signal| io.signal(signal)[0] = 0.0);
        }
        io.write::<Real>(OUT).value = self.out;
        Ok(())
    }

    /// A change of the integral or derivative gain does not bump the output. `kp` and the limits
    /// act at once.
    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.gains = Gains::of(parameters)?;
        self.disabled_output = disabled_output(parameters, &self.gains)?;
        Ok(())
    }
}

/// What was written to a port, if anything was.
#[inline]
fn written(io: &Io<'_>, port: usize) -> Option<f64> {
    (io.fresh(port) != Fresh::None).then(|| io.read::<Real>(port).value)
}

impl Pid {
    #[inline]
    fn control(&mut self, io: &mut Io<'_>) {
        let gains = &self.gains;
        let setpoint = io.read::<Real>(SETPOINT).value;
        let measured = io.read::<Real>(MEASURED).value;
        let feed_forward = io.read::<Real>(FEED_FORWARD).value;
        let error = setpoint - measured;
        let proportional = gains.proportional * (gains.setpoint_weight * setpoint - measured);
        let slides = if gains.derivative_of_error { error } else { -measured };
        match self.before {
            Before::Control => {
                let got = written(io, APPLIED).unwrap_or(self.out);
                self.integral += gains.tracking * (got - self.demand);
                self.derivative = gains.derivative_keeps * self.derivative
                    + gains.derivative_adds * (slides - self.slid);
            }
            Before::Manual if gains.integral != 0.0 => {
                self.integral = self.out - proportional - feed_forward;
                self.derivative = 0.0;
            }
            _ => (self.integral, self.derivative) = (0.0, 0.0),
        }
        self.slid = slides;
        self.before = Before::Control;
        self.demand = proportional + self.integral + self.derivative + feed_forward;
        let least = gains.out_min.max(self.out - gains.step_max);
        let most = gains.out_max.min(self.out + gains.step_max);
        self.out = self.demand.max(least).min(most);
        io.signal(ERROR)[0] = error;
        io.signal(P)[0] = proportional;
        io.signal(I)[0] = self.integral;
        io.signal(D)[0] = self.derivative;
        io.signal(SATURATED)[0] = f64::from(u8::from(self.out != self.demand));
        // The integral that the next cycle uses.
        self.integral += gains.integral * error;
    }
}

#[cfg(test)]
mod tests;

//! Kind `signal`: a source of test signals, for tests and identification of a machine.
//!
//! The shapes are those of `scipy.signal`. Noise is computed from the number of the period, by
//! SplitMix64 (Steele, Lea and Flood 2014) and the transformation of Box and Muller (1958). This
//! takes bounded time, unlike the polar method, which rejects pairs until one fits.

use std::f64::consts::TAU;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

const OUT: usize = 0;

/// If less than this part of a turn is left, the next turn counts as begun. Otherwise rounding
/// would now and then move the step of a square by a cycle. Rounding is less than this for the
/// first 1e7 turns.
const ROUNDING: f64 = 1e-9;

const NUMBER: ParameterType = ParameterType::Number { min: -1e12, max: 1e12 };
const FREQUENCY: ParameterType = ParameterType::Number { min: 1e-6, max: 1e6 };
const DAY_NS: u64 = 86_400_000_000_000;

const SHAPES: &[&str] = &["step", "sine", "square", "triangle", "sawtooth", "chirp", "noise"];

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "signal",
    runs_in: RunsIn::Realtime,
    doc: "Writes offset + amplitude times a shape, and before 'starts_after' the offset alone. \
          'step': 1. 'sine': begins at 0 and rises. 'square': 1 for duty_percent of a turn, then \
          -1. 'triangle': from -1 to 1 in half a turn and back. 'sawtooth': from -1 to 1 in a \
          turn. 'chirp': a sine that goes from frequency_hz to frequency_end_hz in 'sweep_time', \
          as scipy.signal.chirp; then the offset again. 'noise': normally distributed with a \
          deviation of 1, white, another number in every period and the same in every run with \
          this seed. phase_deg is how far into its turn it begins. Time counts in whole ns from \
          the first cycle, lost periods included. A graph that stops changes nothing: what must \
          not move on then needs a limiter. Set while it runs, numbers act at once; with other \
          frequencies it goes on from where it is in its turn, and a chirp sweeps on with the time \
          that it has left.",
    ports: &[Port::output("out", "The signal.", Real::TYPE).unit(Unit::Parameter("unit"))],
    parameters: &[
        Parameter::new("shape", ParameterType::Choice(SHAPES))
            .such_as("sine")
            .doc("The shape, as described for the kind."),
        Parameter::new("amplitude", NUMBER).or("1").doc("In the unit of out.").tunable(),
        Parameter::new("offset", NUMBER).or("0").doc("In the unit of out.").tunable(),
        Parameter::new("frequency_hz", FREQUENCY)
            .or("1")
            .unit("Hz")
            .doc("Turns per s; of a chirp those at its start; below half of 1 / period.")
            .tunable(),
        Parameter::new("frequency_end_hz", FREQUENCY)
            .or("10")
            .unit("Hz")
            .doc("Turns per s at the end of a chirp.")
            .tunable(),
        Parameter::new("sweep", ParameterType::Choice(&["linear", "logarithmic"]))
            .or("linear")
            .doc("How the frequency of a chirp changes: by the same difference, or factor, per s."),
        Parameter::new("sweep_time", ParameterType::Duration { min_ns: 1_000, max_ns: DAY_NS })
            .or("10s")
            .doc("How long a chirp is."),
        Parameter::new("phase_deg", ParameterType::Number { min: -360.0, max: 360.0 })
            .or("0")
            .unit("deg")
            .doc("Where in its turn it begins; for sine, square, triangle, sawtooth, chirp.")
            .tunable(),
        Parameter::new("duty_percent", ParameterType::Number { min: 0.0, max: 100.0 })
            .or("50")
            .unit("percent")
            .doc("Part of a turn in which a square is 1.")
            .tunable(),
        Parameter::new("starts_after", ParameterType::Duration { min_ns: 0, max_ns: DAY_NS })
            .or("0s")
            .doc("Time from the first cycle to the start of the shape."),
        Parameter::new("seed", ParameterType::Integer { min: 0, max: i64::MAX })
            .or("1")
            .doc("Seed of the noise."),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of out."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Signal::of(parameters)?))
}

impl Wave {
    fn of(parameters: &Parameters<'_>) -> Result<Wave, Fault> {
        let shape = parameters.text("shape");
        let frequencies: &[&str] = match shape {
            "step" | "noise" => &[],
            "chirp" => &["frequency_hz", "frequency_end_hz"],
            _ => &["frequency_hz"],
        };
        let most_hz = 0.5e9 / parameters.period_ns as f64;
        for name in frequencies {
            let is_hz = parameters.number(name);
            if is_hz >= most_hz {
                return Err(fault!(
                    "{name} {is_hz} is not below {most_hz}, half of 1 / period; lower it or the \
                     period"
                ));
            }
        }
        let turns_per_s = parameters.number("frequency_hz");
        Ok(match shape {
            "step" => Wave::Step,
            "sine" => Wave::Sine(turns_per_s),
            "square" => Wave::Square(turns_per_s, parameters.number("duty_percent") / 100.0),
            "triangle" => Wave::Triangle(turns_per_s),
            "sawtooth" => Wave::Sawtooth(turns_per_s),
            "chirp" => Wave::Chirp(Chirp::of(parameters)),
            _ => Wave::Noise(parameters.integer("seed") as u64),
        })
    }

    /// Turns since the begin of the signal; 0 for a shape that does not turn.
    fn turns(&self, since_s: f64) -> f64 {
        match self {
            Wave::Sine(per_s) | Wave::Square(per_s, _) => per_s * since_s,
            Wave::Triangle(per_s) | Wave::Sawtooth(per_s) => per_s * since_s,
            Wave::Chirp(chirp) => chirp.turns(since_s).unwrap_or(0.0),
            Wave::Step | Wave::Noise(_) => 0.0,
        }
    }
}

struct Signal {
    wave: Wave,
    amplitude: f64,
    offset: f64,
    /// In turns.
    phase: f64,
    /// The part of `phase` that was added by tuning, so that a change of frequency makes no step.
    shift: f64,
    starts_after_ns: u64,
    /// Time since the first cycle, if there was one.
    passed_ns: Option<u64>,
}

/// A shape, with its turns per s.
enum Wave {
    Step,
    Sine(f64),
    /// Turns per s, and the part of a turn in which the output is 1.
    Square(f64, f64),
    Triangle(f64),
    Sawtooth(f64),
    Chirp(Chirp),
    /// The seed.
    Noise(u64),
}

impl Node for Signal {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let passed_ns = self.passed_ns.map_or(0, |ns| ns.saturating_add(cycle.passed_ns()));
        self.passed_ns = Some(passed_ns);
        let shape = match passed_ns.checked_sub(self.starts_after_ns) {
            Some(since_ns) => self.shape(since_ns, cycle.period_ns),
            None => 0.0,
        };
        io.write::<Real>(OUT).value = self.offset + self.amplitude * shape;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let tuned = Signal::of(parameters)?;
        // The time of the cycle before.
        let since_ns = self.passed_ns.unwrap_or(0).saturating_sub(self.starts_after_ns);
        let since_s = since_ns as f64 / 1e9;
        let shift = self.shift + self.wave.turns(since_s) - tuned.wave.turns(since_s);
        let shift = shift.fract();
        *self = Signal { phase: tuned.phase + shift, shift, passed_ns: self.passed_ns, ..tuned };
        Ok(())
    }
}

impl Signal {
    fn of(parameters: &Parameters<'_>) -> Result<Signal, Fault> {
        Ok(Signal {
            wave: Wave::of(parameters)?,
            amplitude: parameters.number("amplitude"),
            offset: parameters.number("offset"),
            phase: parameters.number("phase_deg") / 360.0,
            shift: 0.0,
            starts_after_ns: parameters.duration("starts_after").as_nanos() as u64,
            passed_ns: None,
        })
    }

    fn shape(&self, since_ns: u64, period_ns: u64) -> f64 {
        let since_s = since_ns as f64 / 1e9;
        let turn = |turns_per_s: f64| part_of_turn(turns_per_s * since_s + self.phase);
        match &self.wave {
            Wave::Step => 1.0,
            Wave::Sine(turns_per_s) => (TAU * turn(*turns_per_s)).sin(),
            Wave::Square(turns_per_s, duty) => {
                if turn(*turns_per_s) + ROUNDING < *duty {
                    1.0
                } else {
                    -1.0
                }
            }
            Wave::Triangle(turns_per_s) => 1.0 - 4.0 * (turn(*turns_per_s) - 0.5).abs(),
            Wave::Sawtooth(turns_per_s) => 2.0 * turn(*turns_per_s) - 1.0,
            Wave::Chirp(chirp) => match chirp.turns(since_s) {
                Some(turns) => (TAU * part_of_turn(turns + self.phase)).sin(),
                None => 0.0,
            },
            Wave::Noise(seed) => normal(*seed, since_ns / period_ns),
        }
    }
}

/// The part of the present turn that is done, from 0 to 1.
fn part_of_turn(turns: f64) -> f64 {
    (turns - (turns + ROUNDING).floor()).max(0.0)
}

/// A sine that changes its frequency.
struct Chirp {
    begin_hz: f64,
    time_s: f64,
    /// Logarithm of the end frequency divided by the begin frequency; 0: the frequency changes
    /// linearly.
    growth: f64,
    /// By how much the frequency rises per s, if it changes linearly.
    rise_hz_per_s: f64,
}

impl Chirp {
    fn of(parameters: &Parameters<'_>) -> Chirp {
        let [begin_hz, end_hz] =
            ["frequency_hz", "frequency_end_hz"].map(|name| parameters.number(name));
        let time_s = parameters.duration("sweep_time").as_secs_f64();
        let is_linear = parameters.text("sweep") == "linear";
        let growth = if is_linear { 0.0 } else { (end_hz / begin_hz).ln() };
        Chirp { begin_hz, time_s, growth, rise_hz_per_s: (end_hz - begin_hz) / time_s }
    }

    /// Turns since the begin; `None`: the sweep is over.
    fn turns(&self, since_s: f64) -> Option<f64> {
        let at = since_s / self.time_s;
        let turns = if self.growth == 0.0 {
            since_s * (self.begin_hz + self.rise_hz_per_s * since_s / 2.0)
        } else {
            self.begin_hz * self.time_s * (self.growth * at).exp_m1() / self.growth
        };
        (at < 1.0).then_some(turns)
    }
}

/// Number `number` of the normally distributed numbers of this seed.
fn normal(seed: u64, number: u64) -> f64 {
    let first = number.wrapping_mul(2);
    let [one, other] = [first, first.wrapping_add(1)].map(|at| split_mix(seed, at) >> 11);
    // `one` is above 0, so that it has a logarithm.
    let [one, other] = [one + 1, other].map(|it| it as f64 / (1u64 << 53) as f64);
    (-2.0 * one.ln()).sqrt() * (TAU * other).cos()
}

/// Number `number` of the numbers that SplitMix64 makes from a seed.
fn split_mix(seed: u64, number: u64) -> u64 {
    let state = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;

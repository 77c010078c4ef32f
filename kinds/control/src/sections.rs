//! Second-order sections, the parts of the digital filters here: direct form II transposed, as in
//! Oppenheim and Schafer, Discrete-Time Signal Processing, 6.3 and 6.4.

use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Fault, Fresh, Io, Parameters, Real, fault};

/// Most cycles that a turn may take at the frequency of a section of the second order. With numbers
/// of 53 bits, the errors of its corner and of a constant that it passes are some 1e-17 times the
/// square of this: 1e-7 here. A corner as near to half of the cycles per second is no more exact.
pub(crate) const TURN_MAX: f64 = 1e5;
/// The same limit for the first order, whose error is some 1e-16 times the number of cycles.
pub(crate) const TURN_MAX_OF_FIRST_ORDER: f64 = 1e9;
/// A smaller answer is set to zero. Otherwise an answer that dies away reaches the subnormal
/// numbers, with which a CPU computes many times more slowly.
const NOTHING: f64 = 1e-290;

/// The state in which a filter begins.
pub(crate) const INITIAL: Parameter =
    Parameter::new("initial", ParameterType::Choice(&["first", "zero"])).or("first").doc(
        "State at the first value: as if that value had been there for ever, so that the answer \
         begins without a step, or as if there had been zeros.",
    );

/// The angle by which a frequency turns in a period, rad.
pub(crate) fn angle_of(
    parameters: &Parameters<'_>,
    name: &str,
    turn_max: f64,
) -> Result<f64, Fault> {
    let frequency_hz = parameters.number(name);
    let rate_hz = 1e9 / parameters.period_ns as f64;
    let (least, most) = (rate_hz / turn_max, rate_hz / 2.0 - rate_hz / TURN_MAX);
    if frequency_hz > most {
        return Err(fault!(
            "{name} is {frequency_hz} and must be below half of the {rate_hz} cycles per second; \
             lower it to {most} or shorten the period"
        ));
    }
    if frequency_hz < least {
        return Err(fault!(
            "{name} is {frequency_hz}, too low for {rate_hz} cycles per second to be exact; raise \
             it to {least} or lengthen the period"
        ));
    }
    Ok(std::f64::consts::TAU * frequency_hz / rate_hz)
}

/// One section and its state.
#[derive(Clone, Copy, Default)]
pub(crate) struct BiquadSection {
    /// Coefficients of the value of this cycle, of the cycle before, and of the one before that.
    b: [f64; 3],
    /// Coefficients of the answers of the cycle before and of the one before that. That of this
    /// cycle is 1.
    a: [f64; 2],
    state: [f64; 2],
}

impl BiquadSection {
    /// A section with all coefficients divided by the first of `a`.
    pub(crate) fn new(b: [f64; 3], a: [f64; 3]) -> BiquadSection {
        let of = |number: f64| number / a[0];
        BiquadSection { b: b.map(of), a: [of(a[1]), of(a[2])], state: [0.0; 2] }
    }

    /// A low-pass of the second order.
    pub(crate) fn lowpass(angle: f64, q: f64) -> BiquadSection {
        let k = (angle / 2.0).tan();
        let a = [1.0 + k / q + k * k, 2.0 * (k * k - 1.0), 1.0 - k / q + k * k];
        let mut section = BiquadSection::new([0.0; 3], a);
        // From the rounded coefficients, so that a constant passes unchanged but for the rounding
        // of the steps.
        let quarter = (1.0 + section.a[0] + section.a[1]) / 4.0;
        section.b = [quarter, 2.0 * quarter, quarter];
        section
    }

    /// A low-pass of the first order.
    pub(crate) fn lowpass_of_first_order(angle: f64) -> BiquadSection {
        let k = (angle / 2.0).tan();
        let a = (k - 1.0) / (k + 1.0);
        let half = (1.0 + a) / 2.0;
        BiquadSection { b: [half, half, 0.0], a: [a, 0.0], state: [0.0; 2] }
    }

    /// Whether its answer dies away, by the triangle of Jury's conditions.
    pub(crate) fn is_stable(&self) -> bool {
        self.a[1].abs() < 1.0 && self.a[0].abs() < 1.0 + self.a[1]
    }

    /// Goes on with the coefficients of `tuned`. Returns the answer to `value`, the next value.
    ///
    /// The distance of the answer from where it would settle stays the same. The speed of that
    /// distance shrinks with the corner. Otherwise a slow filter would swing far out by the speed
    /// of a fast one.
    fn turn_into(&mut self, tuned: &BiquadSection, value: f64) -> f64 {
        if (self.b, self.a) != (tuned.b, tuned.a) {
            let (mut old, mut new) = (*self, *tuned);
            old.settle(value);
            new.settle(value);
            let away = self.state[0] - old.state[0];
            // Zero if the answer of the cycle before was as far away.
            let moves = self.state[1] - old.state[1] + self.a[1] * away;
            let slower = (new.corner_squared() / self.corner_squared()).sqrt().min(1.0);
            new.state[0] += away;
            new.state[1] += moves * slower - new.a[1] * away;
            *self = new;
        }
        self.b[0] * value + self.state[0]
    }

    /// Square of the corner frequency, as the bilinear transform warps it.
    fn corner_squared(&self) -> f64 {
        (1.0 + self.a[0] + self.a[1]) / (1.0 - self.a[0] + self.a[1])
    }

    /// The answer to the value of this cycle.
    #[inline]
    pub(crate) fn step(&mut self, value: f64) -> f64 {
        let answer = self.b[0] * value + self.state[0];
        let answer = if answer.abs() < NOTHING { 0.0 } else { answer };
        self.state[0] = self.b[1] * value - self.a[0] * answer + self.state[1];
        self.state[1] = self.b[2] * value - self.a[1] * answer;
        answer
    }

    /// Takes the state after an endless time of this value. Returns the answer to it.
    pub(crate) fn settle(&mut self, value: f64) -> f64 {
        let gain = (self.b[0] + self.b[2] + self.b[1]) / (1.0 + self.a[0] + self.a[1]);
        let answer = gain * value;
        self.state[1] = self.b[2] * value - self.a[1] * answer;
        self.state[0] = self.b[1] * value - self.a[0] * answer + self.state[1];
        answer
    }
}

/// The sections of a chain. The second may be missing.
pub(crate) type Sections = (BiquadSection, Option<BiquadSection>);

/// Sections in series.
pub(crate) struct SectionChain {
    sections: [BiquadSection; 2],
    used: usize,
    settles: bool,
    /// Whether the sections continue from the cycle before.
    goes_on: bool,
    /// The sections that take over with the next value.
    tuned: Option<[BiquadSection; 2]>,
}

impl SectionChain {
    /// A chain of those `sections` that exist. They begin as parameter [`INITIAL`] says.
    pub(crate) fn new(parameters: &Parameters<'_>, (first, second): Sections) -> SectionChain {
        SectionChain {
            sections: [first, second.unwrap_or_default()],
            used: 1 + usize::from(second.is_some()),
            settles: parameters.text(INITIAL.name) == "first",
            goes_on: false,
            tuned: None,
        }
    }

    /// Takes as many sections with other coefficients, from the next value on. A steady answer
    /// stays steady.
    pub(crate) fn tune(&mut self, (first, second): Sections) {
        let sections = [first, second.unwrap_or_default()];
        if self.goes_on || self.tuned.is_some() {
            (self.goes_on, self.tuned) = (false, Some(sections));
        } else {
            self.sections = sections;
        }
    }

    /// The newest value at port `port`, and the answer to it. `None` before the first value.
    #[inline]
    pub(crate) fn answer(&mut self, io: &Io<'_>, port: usize) -> Option<(f64, f64)> {
        let value = io.read::<Real>(port).value;
        if !self.goes_on {
            if io.fresh(port) == Fresh::None {
                return None;
            }
            self.begin(value);
        }
        let sections = self.sections[..self.used].iter_mut();
        Some((value, sections.fold(value, |value, section| section.step(value))))
    }

    #[cold]
    fn begin(&mut self, value: f64) {
        self.goes_on = true;
        let sections = self.sections[..self.used].iter_mut();
        if let Some(tuned) = self.tuned.take() {
            let turn = |value, (section, tuned): (&mut BiquadSection, &BiquadSection)| {
                section.turn_into(tuned, value)
            };
            sections.zip(&tuned).fold(value, turn);
        } else if self.settles {
            sections.fold(value, |value, section| section.settle(value));
        }
    }
}

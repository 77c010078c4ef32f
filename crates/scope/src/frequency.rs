//! Frequencies: the spectrum of a trace, and the response of one trace to another.
//!
//! The window is the periodic one of Hann. The response is the estimate H1: the cross spectrum
//! divided by the input's spectrum, averaged over segments that overlap by half (Welch 1967), each
//! minus its mean.

use std::f64::consts::TAU;
use std::sync::Arc;

use realfft::RealFftPlanner;
use realfft::num_complex::Complex64;
use serde::Serialize;

use crate::series::{Captured, NotShown};

/// Fewest cycles of a spectrum or of a segment.
const CYCLES_MIN: usize = 16;

/// Default number of segments of a capture. With half of overlap, 15 of them are averaged.
const SEGMENTS: usize = 8;

/// A frequency with less than this part of the input's greatest power counts as not excited.
const EXCITED_MIN: f64 = 1e-8;

/// The spectrum of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// Frequencies, Hz, from 0 on, evenly.
    pub frequencies_hz: Vec<f64>,
    /// The amplitude of a sine at each of them, in the trace's unit; at 0 the mean.
    pub amplitudes: Vec<f64>,
    /// Distance between two frequencies, Hz. Two tones closer than twice this distance look like
    /// one.
    pub resolution_hz: f64,
    /// Periods that the thread skipped; its last value fills them.
    pub skipped: usize,
}

impl Spectrum {
    /// The greatest peaks except the mean: frequency, Hz, and amplitude.
    pub fn peaks(&self, most: usize) -> Vec<(f64, f64)> {
        let it = &self.amplitudes;
        let is_peak = |&at: &usize| {
            let above = |other: Option<&f64>| other.is_none_or(|other| it[at] > *other);
            it[at] > 0.0 && above(it.get(at + 1)) && (at == 1 || above(it.get(at - 1)))
        };
        let mut peaks: Vec<_> = (1..it.len()).filter(is_peak).collect();
        peaks.sort_by(|a, b| it[*b].total_cmp(&it[*a]));
        peaks.truncate(most);
        peaks.into_iter().map(|at| (self.frequencies_hz[at], it[at])).collect()
    }
}

/// The spectrum of a trace.
///
/// # Errors
/// As for [`Captured::even`]; or there are too few cycles.
pub fn spectrum(captured: &Captured) -> Result<Spectrum, NotShown> {
    let (values, skipped) = captured.even()?;
    enough(&captured.trace.name, values.len(), CYCLES_MIN)?;
    let transform = Transform::new(values.len());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let parts = transform.of(&values);
    let count = parts.len();
    let is_even = values.len().is_multiple_of(2);
    let weight: f64 = transform.window.iter().sum();
    let amplitude = |(at, part): (usize, &Complex64)| match at {
        0 => mean,
        // A sine of half the rate has one part in the transform, any other has two.
        _ if is_even && at == count - 1 => part.norm() / weight,
        _ => 2.0 * part.norm() / weight,
    };
    Ok(Spectrum {
        frequencies_hz: frequencies(values.len(), captured.times.period_s),
        amplitudes: parts.iter().enumerate().map(amplitude).collect(),
        resolution_hz: 1.0 / (values.len() as f64 * captured.times.period_s),
        skipped,
    })
}

/// How a frequency response is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrequencySettings {
    /// Cycles of a segment; `None`: an eighth of the capture.
    pub segment: Option<usize>,
    /// Frequencies with less coherence are not shown. 0 to 1.
    pub coherence_min: f64,
}

impl Default for FrequencySettings {
    fn default() -> FrequencySettings {
        FrequencySettings { segment: None, coherence_min: 0.9 }
    }
}

/// The response of an output to an input at one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrequencyPoint {
    /// Hz.
    pub frequency_hz: f64,
    /// Amplitude of the output divided by that of the input, dB.
    pub gain_db: f64,
    /// Phase by which the output is ahead, in degrees, above -180 to 180.
    pub phase_deg: f64,
    /// Part of the output's power that the input explains, 0 to 1.
    pub coherence: f64,
    /// Whether it is meaningful: the input was excited here, and the coherence is high enough.
    pub shown: bool,
}

/// The response of an output to an input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrequencyResponse {
    /// From the lowest frequency above 0 to half the rate.
    pub points: Vec<FrequencyPoint>,
    /// Segments that were averaged.
    pub segments: usize,
    /// Cycles of each segment.
    pub segment: usize,
    /// Periods that the threads skipped; the last values fill them.
    pub skipped: usize,
}

/// The response of `output` to `input` while something excites `input`. If they are of two threads,
/// the output's values are taken at the starts of the input thread's cycles. So the phase may
/// contain up to one period of that thread.
///
/// # Errors
/// As for [`Captured::even`]; too few cycles for two segments; or no frequency was excited.
pub fn frequency_response(
    input: &Captured,
    output: &Captured,
    settings: &FrequencySettings,
) -> Result<FrequencyResponse, NotShown> {
    if !(0.0..=1.0).contains(&settings.coherence_min) {
        let coherence = settings.coherence_min;
        return NotShown::because(format!(
            "the limit of the coherence is {coherence}; expected 0 to 1"
        ));
    }
    let (x, skipped) = input.even()?;
    let (y, skipped_too) = beside(input, output)?.even()?;
    let segment = settings.segment.unwrap_or(x.len() / SEGMENTS).max(2);
    enough("a segment", segment, CYCLES_MIN)?;
    let step = segment - segment / 2;
    enough(&input.trace.name, x.len(), segment.saturating_add(step))?;
    let transform = Transform::new(segment);
    let mut powers = Powers::of(segment / 2 + 1);
    let mut from = 0;
    while from + segment <= x.len() {
        powers.add(&transform.of(&x[from..][..segment]), &transform.of(&y[from..][..segment]));
        from += step;
    }
    let points = powers.points(segment, input.times.period_s, settings.coherence_min);
    if !points.iter().any(|point| point.shown) {
        return NotShown::because(format!(
            "at no frequency is the coherence from '{}' to '{2}' {1} or more; excite the input \
             with a chirp (kind 'signal')",
            input.trace.name, settings.coherence_min, output.trace.name
        ));
    }
    let segments = powers.segments;
    Ok(FrequencyResponse { points, segments, segment, skipped: skipped.max(skipped_too) })
}

/// The output at the input's times.
fn beside(input: &Captured, output: &Captured) -> Result<Captured, NotShown> {
    if Arc::ptr_eq(&input.times, &output.times) {
        return Ok(output.clone());
    }
    output.even()?;
    // Before the output's first cycle in the capture its first value is used. After its last cycle
    // the value is unknown.
    let first_s = output.times.at_s.first().copied().unwrap_or(f64::INFINITY);
    let at = |at_s: &f64| output.value_at(at_s.max(first_s)).unwrap_or(f64::NAN);
    let values = input.times.at_s.iter().map(at).collect();
    Ok(Captured { trace: output.trace.clone(), times: Arc::clone(&input.times), values })
}

fn enough(what: &str, cycles: usize, expected: usize) -> Result<(), NotShown> {
    if cycles >= expected {
        return Ok(());
    }
    NotShown::because(format!("{cycles} cycles of {what}, expected {expected}; widen the window"))
}

fn frequencies(len: usize, period_s: f64) -> Vec<f64> {
    (0..len / 2 + 1).map(|at| at as f64 / (len as f64 * period_s)).collect()
}

/// A windowed transform of this many values, minus their mean.
struct Transform {
    window: Vec<f64>,
    plan: Arc<dyn realfft::RealToComplex<f64>>,
}

impl Transform {
    fn new(len: usize) -> Transform {
        let window = (0..len).map(|at| 0.5 - 0.5 * (TAU * at as f64 / len as f64).cos());
        Transform {
            window: window.collect(),
            plan: RealFftPlanner::<f64>::new().plan_fft_forward(len),
        }
    }

    fn of(&self, values: &[f64]) -> Vec<Complex64> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let weighted = values.iter().zip(&self.window);
        let mut weighted: Vec<f64> =
            weighted.map(|(value, weight)| (value - mean) * weight).collect();
        let mut parts = self.plan.make_output_vec();
        self.plan.process(&mut weighted, &mut parts).expect("a bug: vectors of another length");
        parts
    }
}

/// Sums of the powers of input and output, and of what both share.
struct Powers {
    input: Vec<f64>,
    output: Vec<f64>,
    cross: Vec<Complex64>,
    segments: usize,
}

impl Powers {
    fn of(count: usize) -> Powers {
        let none = vec![0.0; count];
        let cross = vec![Complex64::default(); count];
        Powers { input: none.clone(), output: none, cross, segments: 0 }
    }

    fn add(&mut self, x: &[Complex64], y: &[Complex64]) {
        for (at, (x, y)) in x.iter().zip(y).enumerate() {
            self.input[at] += x.norm_sqr();
            self.output[at] += y.norm_sqr();
            self.cross[at] += x.conj() * y;
        }
        self.segments += 1;
    }

    fn points(&self, len: usize, period_s: f64, coherence_min: f64) -> Vec<FrequencyPoint> {
        let most = self.input.iter().skip(1).copied().fold(0.0, f64::max);
        let point = |(at, frequency_hz): (usize, f64)| {
            let (input, output, cross) = (self.input[at], self.output[at], self.cross[at]);
            let response = cross / input;
            let coherence = cross.norm_sqr() / (input * output);
            let excited = input > most * EXCITED_MIN && coherence >= coherence_min;
            let gain_db = 20.0 * response.norm().log10();
            FrequencyPoint {
                frequency_hz,
                gain_db,
                phase_deg: response.arg().to_degrees(),
                coherence,
                shown: excited && gain_db.is_finite(),
            }
        };
        frequencies(len, period_s).into_iter().enumerate().skip(1).map(point).collect()
    }
}

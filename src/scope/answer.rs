//! One capture as text, and as one JSON object.

use serde_json::{Value, json};
use sinew_control::traces::RunLayout;
use sinew_scope::{
    Capture, Captured, FrequencyResponse, FrequencySettings, NotShown, Spectrum, StepResponse,
    Trace, figures, frequency_response, spectrum, step_of, step_response,
};
use sinew_view::printable;

use super::{Chosen, ScopeArgs};

/// Most peaks of a spectrum that are listed.
const PEAKS: usize = 5;

/// Most frequencies of a response that the text shows.
const ROWS_MAX: usize = 20;

/// What was asked for, and the capture that answers it.
pub(super) struct Reading<'a> {
    pub(super) args: &'a ScopeArgs,
    pub(super) graph: &'a str,
    pub(super) capture: &'a Capture,
    pub(super) chosen: &'a Chosen,
}

/// What the scope can show.
pub(super) fn list(layout: &RunLayout, traces: &[Trace]) -> Value {
    let traces = traces.iter().map(|trace| {
        json!({"name": trace.name, "unit": trace.unit, "doc": trace.doc, "labels": trace.labels})
    });
    let traces: Vec<Value> = traces.collect();
    json!({"graph": layout.graph, "messages": layout.observed, "traces": traces})
}

impl Reading<'_> {
    /// The JSON object. `ended` says why the core stopped meanwhile.
    pub(super) fn to_json(&self, ended: Option<&str>) -> Value {
        let Capture { triggered, from_s, until_s, traces, .. } = self.capture;
        let mut object = json!({
            "graph": self.graph,
            "triggered": triggered,
            "from_s": from_s,
            "until_s": until_s,
            "resets": self.capture.resets(),
            "traces": traces.iter().map(|it| json!({
                "name": it.trace.name,
                "unit": it.trace.unit,
                "missing_cycles": it.times.lost(),
                "figures": figures(it),
            })).collect::<Vec<_>>(),
        });
        if self.args.step {
            let steps = self.steps().map(|(it, step)| named(it, shown(step.map(|it| json!(it)))));
            object["step"] = steps.collect();
        }
        if self.args.spectrum {
            let spectra = traces.iter().map(|it| {
                let spectrum = spectrum(it);
                let peaks = spectrum.as_ref().map(|it| it.peaks(PEAKS)).unwrap_or_default();
                let mut value = named(it, shown(spectrum.map(|it| json!(it))));
                value["peaks"] = peaks
                    .iter()
                    .map(|(hz, amplitude)| json!({"frequency_hz": hz, "amplitude": amplitude}))
                    .collect();
                value
            });
            object["spectrum"] = spectra.collect();
        }
        if let Some((input, output, response)) = self.response() {
            let mut value = shown(response.map(|it| json!(it)));
            value["input"] = json!(input.trace.name);
            value["output"] = json!(output.trace.name);
            object["bode"] = value;
        }
        if let Some(text) = ended {
            object["ended"] = json!(text);
        }
        object
    }

    /// The same as text for people.
    pub(super) fn to_text(&self) -> String {
        let Capture { triggered, traces, .. } = self.capture;
        let how = if *triggered { "triggered" } else { "no trigger" };
        let window = short(self.capture.window_s());
        let resets = match self.capture.resets() {
            0 => String::new(),
            resets => format!(", resets of the core: {resets}"),
        };
        let mut text = format!("{}  {window} s, {how}{resets}\n", printable(self.graph));
        let width = traces.iter().map(|it| it.trace.title().len()).max().unwrap_or(0);
        text += &format!(
            "{:<width$} {:>12} {:>12} {:>12} {:>12} {:>10} {:>8} {:>7}\n",
            "", "min", "max", "mean", "rms", "Hz", "cycles", "missing"
        );
        for it in traces {
            let title = printable(&it.trace.title());
            match figures(it) {
                None => text += &format!("{title:<width$} no value\n"),
                Some(of) => {
                    let cells = [of.min, of.max, of.mean, of.rms].map(short);
                    let [min, max, mean, rms] = cells;
                    let hz = of.frequency_hz.map_or("-".into(), short);
                    let (cycles, missing) = (of.cycles, of.missing);
                    text += &format!(
                        "{title:<width$} {min:>12} {max:>12} {mean:>12} {rms:>12} {hz:>10} \
                         {cycles:>8} {missing:>7}\n"
                    );
                }
            }
        }
        if self.args.step {
            self.steps().for_each(|(it, step)| text += &step_text(it, &step));
        }
        if self.args.spectrum {
            traces.iter().for_each(|it| text += &spectrum_text(it, &spectrum(it)));
        }
        if let Some((input, output, response)) = self.response() {
            text += &response_text(input, output, &response);
        }
        text
    }

    /// The step response of each trace except the input.
    fn steps(&self) -> impl Iterator<Item = (&Captured, Result<StepResponse, NotShown>)> {
        let traces = &self.capture.traces;
        let input = self.chosen.input.map(|at| &traces[at]);
        let begin_s = match input {
            Some(input) => step_of(input),
            None if self.capture.triggered => Ok(0.0),
            None => {
                Err(NotShown("the time of the step is not known; give --input or --trigger".into()))
            }
        };
        let within = self.args.settled();
        let responses =
            traces.iter().filter(move |it| input.is_none_or(|input| !std::ptr::eq(*it, input)));
        responses.map(move |it| {
            let begin_s = begin_s.clone();
            (it, begin_s.and_then(|begin_s| step_response(it, begin_s, within)))
        })
    }

    fn response(&self) -> Option<(&Captured, &Captured, Result<FrequencyResponse, NotShown>)> {
        self.args.bode.as_ref()?;
        let traces = &self.capture.traces;
        let (input, output) = (&traces[self.chosen.input?], &traces[self.chosen.output?]);
        let (segment, coherence_min) = (self.args.segment, self.args.coherence);
        let settings = FrequencySettings { segment, coherence_min };
        Some((input, output, frequency_response(input, output, &settings)))
    }
}

fn named(captured: &Captured, mut value: Value) -> Value {
    value["name"] = json!(captured.trace.name);
    value["unit"] = json!(captured.trace.unit);
    value
}

/// A result, or why there is none.
fn shown(result: Result<Value, NotShown>) -> Value {
    match result {
        Ok(result) => result,
        Err(why) => json!({"not_shown": why}),
    }
}

fn step_text(captured: &Captured, step: &Result<StepResponse, NotShown>) -> String {
    let name = printable(&captured.trace.name);
    let unit = match printable(&captured.trace.unit) {
        unit if unit.is_empty() => unit,
        unit => format!(" {unit}"),
    };
    match step {
        Err(why) => format!("step of {name}: {why}\n"),
        Ok(step) => format!(
            "step of {name}: {} to {}{unit}, rise {} s, overshoot {} %, peak at {} s, settled \
             within {} % after {} s\n",
            short(step.initial),
            short(step.steady),
            short(step.rise_s),
            short(step.overshoot_percent),
            short(step.peak_s),
            short(step.within * 100.0),
            short(step.settling_s),
        ),
    }
}

fn spectrum_text(captured: &Captured, spectrum: &Result<Spectrum, NotShown>) -> String {
    let (name, unit) = (printable(&captured.trace.name), printable(&captured.trace.unit));
    match spectrum {
        Err(why) => format!("spectrum of {name}: {why}\n"),
        Ok(spectrum) => {
            let peak = |(hz, amplitude): (f64, f64)| {
                format!("{} Hz {} {unit}", short(hz), short(amplitude))
            };
            let peaks: Vec<_> = spectrum.peaks(PEAKS).into_iter().map(peak).collect();
            let apart = short(spectrum.resolution_hz);
            format!("spectrum of {name}, {apart} Hz apart: {}\n", peaks.join(", "))
        }
    }
}

fn response_text(
    input: &Captured,
    output: &Captured,
    response: &Result<FrequencyResponse, NotShown>,
) -> String {
    let (input, output) = (printable(&input.trace.name), printable(&output.trace.name));
    let response = match response {
        Err(why) => return format!("{input} to {output}: {why}\n"),
        Ok(response) => response,
    };
    let points: Vec<_> = response.points.iter().filter(|point| point.shown).collect();
    let hidden = response.points.len() - points.len();
    let mut text = format!(
        "{input} to {output}: {} segments of {} cycles; {hidden} of {} frequencies are not shown: \
         too little excitation or coherence\n{:>12} {:>10} {:>10} {:>10}\n",
        response.segments,
        response.segment,
        response.points.len(),
        "Hz",
        "gain dB",
        "phase deg",
        "coherence"
    );
    let every = points.len().div_ceil(ROWS_MAX).max(1);
    for point in points.iter().step_by(every) {
        text += &format!(
            "{:>12} {:>10.3} {:>10.2} {:>10.4}\n",
            short(point.frequency_hz),
            point.gain_db,
            point.phase_deg,
            point.coherence
        );
    }
    text
}

/// Six digits, with an exponent if the number needs more.
fn short(number: f64) -> String {
    let size = number.abs();
    match () {
        () if number == 0.0 => "0".into(),
        () if !(1e-4..1e6).contains(&size) => format!("{number:.4e}"),
        () => {
            let digits = (5.0 - size.log10().floor()).clamp(0.0, 9.0) as usize;
            let text = format!("{number:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

//! Results from a capture besides its traces: XY, spectrum, step, Bode; and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::canvas::{Canvas, Line as Stroke, Points};
use sinew_scope::{
    Capture, Captured, FrequencyResponse, FrequencySettings, NotShown, Spectrum, StepResponse,
    WITHIN, frequency_response, spectrum, step_of, step_response, xy,
};

use super::keys::HELP;
use super::scale::{Scale, color, number, seconds};
use super::{Look, Pane};
use crate::fit::{draw_lines, rows_of};
use crate::rows::printable;
use crate::theme::Theme;

/// Peaks of a spectrum that are listed.
const PEAKS: usize = 5;

/// How many decades below the greatest amplitude a spectrum shows.
const DECADES: f64 = 5.0;

/// Draws any pane except the time pane.
pub(super) fn pane(
    frame: &mut Frame<'_>,
    area: Rect,
    capture: &Capture,
    look: &Look,
    theme: Theme,
) {
    let Some(chosen) = capture.traces.get(look.chosen) else { return };
    let first = &capture.traces[0];
    match look.pane {
        Pane::Time => {}
        Pane::Help => {
            let rows = |(key, text): &(&str, &str)| {
                rows_of(&format!("  {key:<12} "), text, area.width.into())
            };
            let lines = HELP.iter().flat_map(rows).map(Line::raw).collect();
            draw_lines(frame, lines, 0, area, theme);
        }
        Pane::Xy => draw_xy(frame, area, first, chosen, theme),
        Pane::Spectrum => {
            let found = spectrum(chosen);
            let text = spectrum_text(chosen, &found);
            let points = found.map(|it| log_points(&it)).unwrap_or_default();
            picture(frame, area, text, &[(points, color(look.chosen, theme))], theme);
        }
        Pane::Step => {
            let found = step(capture, first, chosen, look.chosen);
            let text = wrapped(&step_lines(chosen, &found), area.width);
            draw_lines(frame, text, 0, area, theme);
        }
        Pane::Bode => draw_bode(frame, area, first, chosen, theme),
    }
}

fn draw_xy(frame: &mut Frame<'_>, area: Rect, x: &Captured, y: &Captured, theme: Theme) {
    let pairs: Vec<_> = xy(x, y).into_iter().flatten().collect();
    let text = format!("{} over {}", printable(&y.trace.title()), printable(&x.trace.title()));
    picture(frame, area, vec![text], &[(pairs, color(0, theme))], theme);
}

/// Lines of text, and below them pictures side by side, each scaled to its own points.
fn picture(
    frame: &mut Frame<'_>,
    area: Rect,
    text: Vec<String>,
    pictures: &[(Vec<(f64, f64)>, Color)],
    theme: Theme,
) {
    let text = wrapped(&text, area.width);
    if pictures.iter().all(|(points, _)| points.is_empty()) {
        return draw_lines(frame, text, 0, area, theme);
    }
    let rows = area.height.min(text.len() as u16);
    let [head, body] =
        Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(area);
    draw_lines(frame, text, 0, head, theme);
    let areas = Layout::horizontal(vec![Constraint::Fill(1); pictures.len()]).split(body);
    for ((points, color), area) in pictures.iter().zip(areas.iter()) {
        let bounds = |of: fn(&(f64, f64)) -> f64| {
            let low = points.iter().map(of).fold(f64::MAX, f64::min);
            Scale::over(low, points.iter().map(of).fold(f64::MIN, f64::max))
        };
        if points.is_empty() {
            continue;
        }
        let (across, up) = (bounds(|point| point.0), bounds(|point| point.1));
        let coords: Vec<_> =
            points.iter().map(|point| (across.part(point.0), up.part(point.1))).collect();
        let canvas = Canvas::default()
            .marker(Marker::Braille)
            .x_bounds([0.0, 1.0])
            .y_bounds([0.0, 1.0])
            .paint(|context| {
                context.draw(&Points { coords: &coords, color: *color });
                for pair in coords.windows(2) {
                    let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
                    context.draw(&Stroke { x1, y1, x2, y2, color: *color });
                }
            });
        frame.render_widget(canvas, *area);
    }
}

fn wrapped(text: &[String], width: u16) -> Vec<Line<'static>> {
    text.iter().flat_map(|line| rows_of("", line, width.into())).map(Line::raw).collect()
}

fn spectrum_text(chosen: &Captured, found: &Result<Spectrum, NotShown>) -> Vec<String> {
    let name = printable(&chosen.trace.title());
    match found {
        Err(why) => vec![format!("spectrum of {name}"), why.to_string()],
        Ok(found) => {
            let peak = |(hz, amplitude)| format!("{} Hz: {}", number(hz), number(amplitude));
            let peaks: Vec<_> = found.peaks(PEAKS).into_iter().map(peak).collect();
            let last = found.frequencies_hz.last().copied().unwrap_or(0.0);
            let head = format!(
                "spectrum of {name}, 0 to {} Hz, {} Hz apart, {DECADES} decades",
                number(last),
                number(found.resolution_hz)
            );
            // As many as fit into 80 columns.
            [head].into_iter().chain(peaks.chunks(3).map(|row| row.join("  "))).collect()
        }
    }
}

fn log_points(found: &Spectrum) -> Vec<(f64, f64)> {
    let most = found.amplitudes.iter().skip(1).copied().fold(0.0, f64::max);
    let floor = (most.log10() - DECADES).max(f64::MIN);
    let pairs = found.frequencies_hz.iter().zip(&found.amplitudes).skip(1);
    pairs.map(|(hz, amplitude)| (*hz, amplitude.log10().max(floor))).collect()
}

fn step(
    capture: &Capture,
    first: &Captured,
    chosen: &Captured,
    at: usize,
) -> Result<StepResponse, NotShown> {
    let begin_s = match (at, capture.triggered) {
        (0, false) => {
            let text = "choose a trigger (t, up, down), or with n a trace that follows the first";
            return Err(NotShown(text.into()));
        }
        (0, true) => 0.0,
        _ => step_of(first)?,
    };
    step_response(chosen, begin_s, WITHIN)
}

fn step_lines(chosen: &Captured, found: &Result<StepResponse, NotShown>) -> Vec<String> {
    let unit = &chosen.trace.unit;
    let value = |value| printable(&format!("{} {unit}", number(value)));
    let head = format!("step response of {}", printable(&chosen.trace.title()));
    let rows = match found {
        Err(why) => return vec![head, why.to_string()],
        Ok(found) => [
            ("begins at".into(), seconds(found.begin_s)),
            ("from".into(), value(found.initial)),
            ("to".into(), value(found.steady)),
            ("rise, 10 to 90 %".into(), seconds(found.rise_s)),
            ("overshoot".into(), format!("{} %", number(found.overshoot_percent))),
            ("peak".into(), format!("{} after {}", value(found.peak), seconds(found.peak_s))),
            (
                format!("settled within {} %", number(found.within * 100.0)),
                format!("after {}", seconds(found.settling_s)),
            ),
        ],
    };
    let line = |(what, text): (String, String)| format!("  {what:<22} {text}");
    [head].into_iter().chain(rows.into_iter().map(line)).collect()
}

fn draw_bode(frame: &mut Frame<'_>, area: Rect, input: &Captured, output: &Captured, theme: Theme) {
    let found = frequency_response(input, output, &FrequencySettings::default());
    let head = format!("{} to {}", printable(&input.trace.name), printable(&output.trace.name));
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            let text = vec![head, why.to_string()];
            return picture(frame, area, text, &[], theme);
        }
    };
    let curve = |of: fn(&sinew_scope::FrequencyPoint) -> f64| -> Vec<(f64, f64)> {
        let shown = found.points.iter().filter(|point| point.shown);
        shown.map(|point| (point.frequency_hz.log10(), of(point))).collect()
    };
    let (gain, phase) = (curve(|point| point.gain_db), curve(|point| point.phase_deg));
    let [extents, range] = extents(&found, &gain, &phase);
    let text = vec![head, extents, range];
    let pictures = [(gain, color(0, theme)), (phase, color(1, theme))];
    picture(frame, area, text, &pictures, theme);
}

fn extents(found: &FrequencyResponse, gain: &[(f64, f64)], phase: &[(f64, f64)]) -> [String; 2] {
    let over = |points: &[(f64, f64)]| {
        let low = points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
        let high = points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
        format!("{} .. {}", number(low), number(high))
    };
    let hz = |point: Option<&(f64, f64)>| point.map_or("-".into(), |it| number(10f64.powf(it.0)));
    let (from, until) = (hz(gain.first()), hz(gain.last()));
    let (shown, all) = (gain.len(), found.points.len());
    [
        format!("left gain {} dB, right phase {} deg", over(gain), over(phase)),
        format!("{from} to {until} Hz (log), {shown} of {all} frequencies"),
    ]
}

//! The picture: a line at the top, the traces over time, a line for each trace, a line at the
//! bottom. Each trace has a vertical scale of its own, from its least to its greatest value.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Context, Line as Stroke};
use ratatui::widgets::{Block, Borders};
use sinew_scope::{Capture, Captured, Doing, Scope, Sweep, columns, cursors, figures};

use super::panes::pane;
use super::scale::{Scale, color, number, seconds};
use super::{Look, Pane};
use crate::fit::draw_lines;
use crate::rows::printable;
use crate::theme::Theme;

/// Width of a trace's number in dots: two columns and a gap.
const NUMBER_DOTS: usize = 6;

/// With a longer name, the figures of its line move to the right.
const NAME_WIDTH_MAX: usize = 30;

/// Draws the current moment.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    scope: &Scope,
    capture: &Capture,
    look: &Look,
    theme: Theme,
) {
    let rows = u16::try_from(capture.traces.len()).unwrap_or(u16::MAX);
    let legend = rows.min(frame.area().height / 2);
    let [head, body, names, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(legend),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let line = |text: String, style| vec![Line::styled(text, style)];
    draw_lines(frame, line(title(scope, capture, look), theme.strong()), 0, head, theme);
    match look.pane {
        Pane::Time => over_time(frame, body, scope, capture, look, theme),
        _ => pane(frame, body, capture, look, theme),
    }
    let width = capture.traces.iter().map(|it| it.trace.name.chars().count()).max().unwrap_or(0);
    let width = width.min(NAME_WIDTH_MAX);
    let legend = |at| legend_line(capture, at, width, look, theme);
    let lines = (0..capture.traces.len()).map(legend).collect();
    draw_lines(frame, lines, 0, names, theme);
    draw_lines(frame, line(below(scope, capture, look), theme.dim()), 0, foot, theme);
}

/// The state of the scope.
fn title(scope: &Scope, capture: &Capture, look: &Look) -> String {
    let settings = scope.settings();
    let doing = match scope.doing() {
        Doing::Frozen => "FROZEN",
        Doing::Done => "done, s: again",
        _ if look.silence.is_some() => "NO CYCLES",
        Doing::Rolling => "rolling",
        Doing::Waiting => "waiting",
        Doing::Filling => "triggered",
    };
    let trigger = match settings.sweep {
        Sweep::Roll => String::new(),
        sweep => format!(
            "  {} [{}] {} {}, {:.0} % before",
            sweep.word(),
            settings.trigger.trace + 1,
            settings.trigger.slope.word(),
            number(settings.trigger.level),
            settings.pre * 100.0
        ),
    };
    let lost = capture.traces.iter().map(|it| it.times.lost()).max().unwrap_or(0);
    let lost = if lost > 0 { format!("  {lost} CYCLES MISSING") } else { String::new() };
    let window = seconds(settings.window_ns as f64 / 1e9);
    format!("{}  {doing}  {window}{trigger}{lost}", printable(&look.graph))
}

/// The ends of the time axis, or the readings of cursors, or the last message.
fn below(scope: &Scope, capture: &Capture, look: &Look) -> String {
    if !look.said.is_empty() {
        return printable(&look.said);
    }
    if let Some((at, which)) = look.cursors
        && let Some(captured) = capture.traces.get(look.chosen)
    {
        let at_s = at.map(|part| capture.from_s + part * capture.window_s());
        let read = cursors(captured, at_s);
        let value = |value: Option<f64>| value.map_or("-".into(), number);
        return format!(
            "[{}] {}1: {} at {}  {}2: {} at {}  difference {} in {}{}",
            look.chosen + 1,
            if which == 0 { "*" } else { "" },
            value(read.values[0]),
            seconds(at_s[0]),
            if which == 1 { "*" } else { "" },
            value(read.values[1]),
            seconds(at_s[1]),
            value(read.difference),
            seconds(read.apart_s),
            read.apart_hz.map_or(String::new(), |hz| format!(", {} Hz", number(hz))),
        );
    }
    if let Some(silence) = &look.silence {
        return printable(silence);
    }
    let life = match scope.life() {
        0 => String::new(),
        life => format!("  life {} of the core", u64::from(life) + 1),
    };
    let (from, until) = (seconds(capture.from_s), seconds(capture.until_s));
    format!("{from} to {until}{life}  ? keys, q quits")
}

/// Number, name, last value, scale.
fn legend_line(
    capture: &Capture,
    at: usize,
    width: usize,
    look: &Look,
    theme: Theme,
) -> Line<'static> {
    let captured = &capture.traces[at];
    let trace = &captured.trace;
    let mark = if at == look.chosen { ">" } else { " " };
    let last = captured.values.last().copied().unwrap_or(f64::NAN);
    let shown = trace.label(last).map_or_else(|| number(last), str::to_owned);
    let rest = match figures(captured) {
        None => "no value".into(),
        Some(of) => {
            let hz = of.frequency_hz.map_or(String::new(), |hz| format!("  {} Hz", number(hz)));
            format!("{shown:>10} {:<6} {} .. {}{hz}", trace.unit, number(of.min), number(of.max))
        }
    };
    let name = format!("{mark}[{}] {:<width$} ", at + 1, printable(&trace.name));
    Line::from(vec![Span::styled(name, ink(at, theme)), Span::raw(printable(&rest))])
}

fn over_time(
    frame: &mut Frame<'_>,
    area: Rect,
    scope: &Scope,
    capture: &Capture,
    look: &Look,
    theme: Theme,
) {
    // Two dots are side by side in each cell.
    let dots = usize::from(area.width) * 2;
    let settings = scope.settings();
    let canvas = Canvas::default()
        .block(Block::new().borders(Borders::TOP | Borders::BOTTOM).border_style(theme.dim()))
        .marker(Marker::Braille)
        .x_bounds([0.0, dots.max(1) as f64])
        .y_bounds([0.0, 1.0])
        .paint(|context| {
            if settings.sweep != Sweep::Roll {
                let level = capture.traces.get(settings.trigger.trace);
                let level = level.and_then(Scale::of).map(|it| it.part(settings.trigger.level));
                level.iter().for_each(|y| dashed(context, *y, dots));
            }
            for (at, captured) in capture.traces.iter().enumerate() {
                trace(context, captured, (capture.from_s, capture.until_s), dots, color(at, theme));
            }
            context.layer();
            for (at, captured) in capture.traces.iter().enumerate() {
                name(context, captured, at, dots, theme);
            }
            let upright = |part: f64| {
                let x = part * dots as f64;
                Stroke { x1: x, y1: 0.0, x2: x, y2: 1.0, color: Color::Reset }
            };
            for part in look.cursors.iter().flat_map(|(at, _)| at) {
                context.draw(&upright(*part));
            }
        });
    frame.render_widget(canvas, area);
}

/// A trace in this many columns of dots. No spike is lost, and no line is drawn over missing
/// cycles.
fn trace(
    context: &mut Context<'_>,
    captured: &Captured,
    (from_s, until_s): (f64, f64),
    dots: usize,
    color: Color,
) {
    let Some(scale) = Scale::of(captured) else { return };
    let mut before: Option<f64> = None;
    for (x, column) in columns(captured, from_s, until_s, dots).iter().enumerate() {
        let Some(column) = column else {
            before = None;
            continue;
        };
        let (mut low, mut high) = (column.min, column.max);
        if let Some(before) = before {
            (low, high) = (low.min(before), high.max(before));
        }
        let x = x as f64 + 0.5;
        context.draw(&Stroke { x1: x, y1: scale.part(low), x2: x, y2: scale.part(high), color });
        before = Some(column.last);
    }
}

/// The number of a trace at its end: on a screen without colours, colours alone would not help.
/// Each number has its own columns, so that none hides another.
fn name(context: &mut Context<'_>, captured: &Captured, at: usize, dots: usize, theme: Theme) {
    let last = captured.values.iter().rfind(|value| value.is_finite());
    if let (Some(scale), Some(last)) = (Scale::of(captured), last) {
        let number = format!("{}", at + 1);
        let x = dots.saturating_sub((at + 1) * NUMBER_DOTS) as f64;
        context.print(x, scale.part(*last), Line::styled(number, ink(at, theme)));
    }
}

fn dashed(context: &mut Context<'_>, y: f64, dots: usize) {
    let color = Color::Reset;
    for x in (0..dots).step_by(6) {
        let x1 = x as f64;
        context.draw(&Stroke { x1, y1: y, x2: x1 + 2.0, y2: y, color });
    }
}

fn ink(at: usize, theme: Theme) -> Style {
    Style::new().fg(color(at, theme))
}

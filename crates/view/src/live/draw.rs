//! The picture of a run. Colour only repeats what words and weights already say.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Circle, Context, Line as Stroke, Points};
use sinew_control::status::Phase;
use sinew_report::ThreadStats;

use super::signals::signals;
use super::tables::{self, addresses};
use super::track::{Tracks, Window, isometric};
use crate::fit::{draw_lines, fit_words, rows_of};
use crate::rows::printable;
use crate::scene::Scene;
use crate::theme::{GRAY, MAGENTA, TEAL, Theme};

/// Least columns of the left half: enough for its figures. On a wide screen it has a third.
const LEFT: u16 = 49;

/// Least columns of the map. If there are fewer, the left half has the whole width.
const MAP_MIN: u16 = 20;

/// Most rows for the last events. There are fewer on a low screen.
const NOTICE_ROWS_MAX: usize = 3;

/// Radius of the ring around the tool.
const RING_DOTS: f64 = 3.0;

/// Draws the current moment.
pub(crate) fn draw(frame: &mut Frame<'_>, scene: &Scene<'_>, tracks: &Tracks, theme: Theme) {
    let area = frame.area();
    let has_map = area.width > LEFT + MAP_MIN;
    let left_columns = if has_map { LEFT.max(area.width / 3) } else { area.width };
    let mut top = vec![head(scene, theme, area.width)];
    top.extend(addresses(scene, theme, area.width));
    top.extend(notice(scene, theme, area));
    let left = left_lines(scene, theme, left_columns.into());
    let bottom = signal_lines(scene, theme, area.width);
    // The signals come last: on a low screen they are cut. On a high screen the map grows.
    let top_rows = area.height.min(top.len() as u16);
    let rest = area.height - top_rows;
    let body_rows = rest.min(rest.saturating_sub(bottom.len() as u16).max(left.len() as u16));
    let rows = [top_rows, body_rows, rest - body_rows].map(Constraint::Length);
    let [top_area, body, bottom_area] = Layout::vertical(rows).areas(area);
    // A part without any row is counted in the mark of the part above it.
    let below_left = if bottom_area.height == 0 { bottom.len() } else { 0 };
    let below_top = if body.height == 0 { left.len() + below_left } else { 0 };
    draw_lines(frame, top, below_top, top_area, theme);
    let columns = [Constraint::Length(left_columns), Constraint::Fill(1)];
    let [left_area, map_area] = Layout::horizontal(columns).spacing(1).areas(body);
    draw_lines(frame, left, below_left, left_area, theme);
    if has_map {
        draw_map(frame, tracks, theme, map_area);
    }
    draw_lines(frame, bottom, 0, bottom_area, theme);
}

/// The last events, in a few rows at most: the picture is more important.
fn notice(scene: &Scene<'_>, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let columns = usize::from(area.width);
    let rows_max = NOTICE_ROWS_MAX.min(usize::from(area.height) / 8).max(1);
    let mut rows = rows_of(" ", &printable(scene.notice.unwrap_or_default()), columns);
    if rows.len() > rows_max {
        let rest = rows.split_off(rows_max - 1);
        rows.push(fit_words(&format!(" {}", rest.join(" ").trim_start()), columns));
    }
    rows.retain(|row| !row.trim().is_empty());
    rows.into_iter().map(|row| Line::styled(row, theme.strong())).collect()
}

fn signal_lines(scene: &Scene<'_>, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let mut lines = signals(scene, theme, width);
    if !lines.is_empty() {
        lines.insert(0, theme.rule("signals", "", width.into()));
    }
    lines
}

fn head(scene: &Scene<'_>, theme: Theme, width: u16) -> Line<'static> {
    let style = theme.phase(scene.phase);
    let time = match scene.duration_s {
        Some(duration_s) => format!("{:.1} s of {duration_s} s", scene.elapsed_s),
        None => format!("{:.1} s", scene.elapsed_s),
    };
    let cycles = |control: &ThreadStats| format!("  {} cycles", control.totals().cycles);
    let mut cycles = scene.stats.control().map(cycles).unwrap_or_default();
    if scene.stats.records_lost() > 0 {
        cycles += &format!(", {} records lost", scene.stats.records_lost());
    }
    let spans = vec![
        Span::styled(format!(" {}  ", scene.graph), theme.strong()),
        Span::styled(scene.phase.word(), style.add_modifier(Modifier::BOLD)),
        Span::raw(format!("  {time}{cycles}")),
    ];
    let hint = match scene.phase {
        Phase::Held => "'sinew reset' starts it again, Ctrl-C ends it ",
        _ => "Ctrl-C stops in order ",
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let gap = usize::from(width).saturating_sub(used + hint.len());
    let mut line = Line::from(spans);
    if gap > 0 {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.push_span(Span::styled(hint, theme.dim()));
    }
    line
}

fn left_lines(scene: &Scene<'_>, theme: Theme, width: usize) -> Vec<Line<'static>> {
    // Lines begin one column to the right of their title.
    let columns = width.saturating_sub(1);
    let mut all = Vec::new();
    let mut section = |title: &str, more: &str, lines: Vec<Line<'static>>| {
        all.push(theme.rule(title, more, width));
        all.extend(lines.into_iter().map(|mut line| {
            line.spans.insert(0, Span::raw(" "));
            line
        }));
    };
    if let Some(control) = scene.stats.control() {
        let title = format!("{} every {} us", control.domain, control.period_ns / 1000);
        section(&title, "", tables::cycle(scene, control, theme, columns));
        section("nodes", "execution time, us", tables::nodes(scene, theme, columns));
        section("threads", "", tables::threads(scene, theme, columns));
    }
    if !scene.services.is_empty() {
        section("services", "restarts, last end", tables::services(scene, theme, columns));
    }
    let flows = tables::flows(scene, theme, columns);
    if !flows.is_empty() {
        section("flows", "now: under way, or waiting", flows);
    }
    all
}

/// The paths of the tool through space, with the axes in a corner.
fn draw_map(frame: &mut Frame<'_>, tracks: &Tracks, theme: Theme, area: Rect) {
    let (width, height) = (f64::from(area.width) * 2.0, f64::from(area.height) * 4.0 - 4.0);
    if width < 1.0 || height < 1.0 {
        return;
    }
    let Some(window) = tracks.window(width, height) else { return };
    let across_mm = (window.right[1] - window.right[0]) * 1e3;
    let block = theme.block("path", &format!("{across_mm:.0} mm across"));
    let count = tracks.iter().count();
    let last = tracks.iter().filter_map(|track| track.last).last().map(isometric);
    let canvas = Canvas::default().marker(Marker::Braille).block(block);
    let canvas = canvas.x_bounds(window.right).y_bounds(window.up).paint(|context| {
        draw_axes(context, &window, theme);
        // The last track shows what the machine did. It is drawn over the tracks of its commands.
        for (at, track) in tracks.iter().enumerate() {
            let points: Vec<_> = track.points.iter().copied().map(isometric).collect();
            let color = if at + 1 == count { TEAL } else { GRAY };
            context.draw(&Points { coords: &points, color: theme.or_none(color) });
            context.layer();
        }
        if let Some((x, y)) = last {
            // A ring of dots: text could be off by up to a whole cell.
            let radius = RING_DOTS * (window.right[1] - window.right[0]) / width;
            context.draw(&Circle { x, y, radius, color: theme.or_none(MAGENTA) });
        }
    });
    frame.render_widget(canvas, area);
}

fn draw_axes(context: &mut Context<'_>, window: &Window, theme: Theme) {
    let length = (window.right[1] - window.right[0]).min(window.up[1] - window.up[0]) / 8.0;
    let (right, up) = (window.right[0] + length * 1.5, window.up[0] + length);
    let axes = [("x", [1.0, 0.0, 0.0]), ("y", [0.0, 1.0, 0.0]), ("z", [0.0, 0.0, 1.0])];
    for (name, axis) in axes {
        let (along, over) = isometric(axis);
        let end = (right + along * length, up + over * length);
        let color = theme.or_none(GRAY);
        context.draw(&Stroke::new(right, up, end.0, end.1, color));
        let tip = (right + along * length * 1.4, up + over * length * 1.4);
        context.print(tip.0, tip.1, Span::styled(name, theme.dim()));
    }
}

#[cfg(test)]
mod tests;

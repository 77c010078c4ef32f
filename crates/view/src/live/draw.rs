//! The picture of a run. Colour only repeats what words and weights already say.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Circle, Context, Line as Stroke, Points};
use ratatui::widgets::{Block, Padding, Paragraph};
use sinew_control::status::Phase;
use sinew_figures::wrap::wrap_at;
use sinew_report::ThreadStats;

use super::signals::signals;
use super::tables::{self, addresses};
use super::track::{Tracks, Window, isometric};
use crate::scene::Scene;
use crate::theme::Theme;

/// Columns of the left half: enough for its widest table.
const LEFT: u16 = 47;

/// Rows of what went wrong.
const NOTICE_ROWS_MAX: usize = 3;

/// Radius of the ring around the tool.
const RING_DOTS: f64 = 3.0;

/// Draws the moment.
pub(crate) fn draw(frame: &mut Frame<'_>, scene: &Scene<'_>, tracks: &Tracks, theme: Theme) {
    let left = left_sections(scene, theme);
    let body = left.iter().map(|section| section.1.len() as u16 + 1).sum::<u16>();
    let area = frame.area();
    let bottom = signals(scene, theme, area.width);
    let bottom_rows = if bottom.is_empty() { 0 } else { bottom.len() as u16 + 1 };
    let (addresses, notice) = (addresses(scene, area.width), notice(scene, area.width));
    let top_rows = 1 + (addresses.len() + notice.len()) as u16;
    // The signals come last: on a low screen they are cut, on a high one the map grows.
    let body = body.max(area.height.saturating_sub(top_rows + bottom_rows));
    let rows = [1, addresses.len() as u16, notice.len() as u16, body].map(Constraint::Length);
    let [title, places, warning, body, bottom_area] =
        Layout::vertical(rows.into_iter().chain([Constraint::Fill(1)])).areas(area);
    frame.render_widget(head(scene, theme, area.width), title);
    frame.render_widget(Paragraph::new(addresses).style(theme.accent()), places);
    frame.render_widget(Paragraph::new(notice).style(theme.bad()), warning);
    let [left_area, map_area] =
        Layout::horizontal([Constraint::Length(LEFT), Constraint::Fill(1)]).spacing(1).areas(body);
    draw_sections(frame, left, left_area);
    draw_map(frame, tracks, theme, map_area);
    let cut = bottom.len().saturating_sub(usize::from(bottom_area.height.saturating_sub(1)));
    let more = if cut == 0 { String::new() } else { format!("{cut} more rows on a higher screen") };
    let block = theme.block("signals", &more);
    frame.render_widget(Paragraph::new(bottom).block(block), bottom_area);
}

/// What went wrong, in some rows at most: the picture matters more.
fn notice(scene: &Scene<'_>, width: u16) -> Vec<Line<'static>> {
    let mut text = String::new();
    if let Some(notice) = scene.notice {
        wrap_at(&mut text, " ", notice, width.into());
    }
    text.lines().take(NOTICE_ROWS_MAX).map(|line| Line::raw(line.to_string())).collect()
}

fn draw_sections(frame: &mut Frame<'_>, sections: Vec<(Block<'_>, Vec<Line<'_>>)>, area: Rect) {
    let heights = sections.iter().map(|section| Constraint::Length(section.1.len() as u16 + 1));
    let areas = Layout::vertical(heights).split(area);
    for ((block, lines), area) in sections.into_iter().zip(areas.iter()) {
        frame.render_widget(Paragraph::new(lines).block(block), *area);
    }
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

fn left_sections(scene: &Scene<'_>, theme: Theme) -> Vec<(Block<'static>, Vec<Line<'static>>)> {
    // Each line stands a column to the right of its title's beginning.
    let columns = usize::from(LEFT) - 1;
    let mut sections = Vec::new();
    if let Some(control) = scene.stats.control() {
        let title = format!("{} every {} us", control.domain, control.period_ns / 1000);
        sections.push((title, "", tables::cycle(scene, control, theme, columns)));
        let times = "execution time, us";
        sections.push(("nodes".into(), times, tables::nodes(scene, theme, columns)));
        sections.push(("threads".into(), "", tables::threads(scene, theme, columns)));
    }
    if !scene.services.is_empty() {
        let rows = tables::services(scene, theme, columns);
        sections.push(("services".into(), "restarts, last end", rows));
    }
    let flows = tables::flows(scene, theme, columns);
    if !flows.is_empty() {
        sections.push(("flows".into(), "now: under way, or waiting", flows));
    }
    let section = |(title, more, lines): (String, &str, _)| {
        (theme.block(&title, more).padding(Padding::left(1)), lines)
    };
    sections.into_iter().map(section).collect()
}

/// The ways of the tool through space, with the axes in a corner.
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
        // The last track, what the machine did, lies over those of what it was told.
        for (at, track) in tracks.iter().enumerate() {
            let points: Vec<_> = track.points.iter().copied().map(isometric).collect();
            let color = if at + 1 == count { Color::Cyan } else { Color::DarkGray };
            context.draw(&Points { coords: &points, color: theme.or_none(color) });
            context.layer();
        }
        if let Some((x, y)) = last {
            // A ring of dots: text would stand up to a whole cell beside the place.
            let radius = RING_DOTS * (window.right[1] - window.right[0]) / width;
            context.draw(&Circle { x, y, radius, color: theme.or_none(Color::Yellow) });
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
        let color = theme.or_none(Color::DarkGray);
        context.draw(&Stroke::new(right, up, end.0, end.1, color));
        let tip = (right + along * length * 1.4, up + over * length * 1.4);
        context.print(tip.0, tip.1, Span::styled(name, theme.dim()));
    }
}

#[cfg(test)]
mod tests;

//! The picture of a run. Colour only repeats what words and weights already say.

mod signals;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Circle, Context, Line as Stroke, Points};
use ratatui::widgets::{Block, Paragraph};
use sinew_runtime::status::Phase;

use self::signals::signals;
use super::flows::flows;
use super::services::{addresses, services};
use super::track::{Tracks, Window, isometric};
use crate::run::stats::ThreadStats;
use crate::run::view::Scene;
use crate::run::words::micros;
use crate::theme::Theme;
use sinew_figures::Distribution;
use sinew_figures::wrap::wrap_at;

/// Columns of the left half: enough for its widest table.
const LEFT: u16 = 47;

/// Rows of what went wrong.
const NOTICE_ROWS_MAX: usize = 3;

/// Cells of a node's bar.
const BAR: usize = 11;

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
    let style = match scene.phase {
        Phase::Running => theme.good(),
        Phase::Starting | Phase::Held | Phase::Stopping => theme.caution(),
    };
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
    let mut sections = Vec::new();
    if let Some(control) = scene.stats.control() {
        let title = format!("{} every {} us", control.domain, control.period_ns / 1000);
        sections.push((theme.block(&title, ""), cycle(scene, control, theme)));
        sections.push((theme.block("nodes", "execution time, us"), nodes(scene, theme)));
        sections.push((theme.block("threads", ""), threads(scene, theme)));
    }
    if !scene.services.is_empty() {
        sections.push((theme.block("services", "restarts, last end"), services(scene, theme)));
    }
    let flows = flows(scene, theme);
    if !flows.is_empty() {
        sections.push((theme.block("flows", "now: under way, or waiting"), flows));
    }
    sections
}

fn cycle(scene: &Scene<'_>, control: &ThreadStats, theme: Theme) -> Vec<Line<'static>> {
    let heading = format!(" {:<17}{:>7}{:>7}{:>7}{:>8}", "us", "p50", "p99", "p99.9", "max");
    let row = |name: &str, times: &Distribution| {
        let [p50, p99, p99_9] = [0.5, 0.99, 0.999].map(|share| percentile(times, share));
        let max = micros(times.max().map(|ns| ns as f64));
        Line::from(vec![
            Span::raw(format!(" {name:<17}")),
            Span::styled(format!("{p50:>7}"), theme.accent()),
            Span::raw(format!("{p99:>7}{p99_9:>7}{max:>8}")),
        ])
    };
    let mut lines =
        vec![Line::styled(heading, theme.dim()), row("cycle latency", &control.latency)];
    if control.is_timer_released() {
        lines.push(row("activation jitter", &control.jitter));
        lines.push(row("release to end", &control.response));
    }
    lines.push(counts(control, theme));
    if let Some(error) = scene.stats.tracking_error_m() {
        let (last_mm, max_mm) = (error.last * 1e3, error.max * 1e3);
        lines.push(Line::from(vec![
            Span::raw(" tracking error   "),
            Span::styled(format!("{last_mm:>7.4}"), theme.accent()),
            Span::raw(format!(" mm, {max_mm:.4} mm at most")),
        ]));
    }
    lines
}

fn counts(control: &ThreadStats, theme: Theme) -> Line<'static> {
    let totals = control.totals();
    Line::from(vec![
        Span::raw(" overruns "),
        Span::styled(totals.overruns.to_string(), theme.count(totals.overruns)),
        Span::raw("   skipped periods "),
        Span::styled(totals.skipped.to_string(), theme.count(totals.skipped)),
    ])
}

fn percentile(times: &Distribution, share: f64) -> String {
    micros(times.quantile(share).map(|ns| ns as f64))
}

/// A bar for each node's mean, relative to the longest.
fn nodes(scene: &Scene<'_>, theme: Theme) -> Vec<Line<'static>> {
    let nodes = || scene.stats.threads.iter().flat_map(|thread| &thread.nodes);
    let longest = nodes().filter_map(|node| node.execution.mean()).fold(0.0, f64::max);
    let heading = format!("{:<26}{:>6}{:>6}{:>8}", "", "p50", "p99", "max");
    let row = |node: &super::super::stats::NodeStats| {
        let times = &node.execution;
        let share = if longest > 0.0 { times.mean().unwrap_or(0.0) / longest } else { 0.0 };
        let name: String = node.name.chars().take(13).collect();
        let max = micros(times.max().map(|ns| ns as f64));
        Line::from(vec![
            Span::raw(format!(" {name:<14}")),
            Span::styled(bar(share), theme.accent()),
            Span::raw(format!("{:>6}", percentile(times, 0.5))),
            Span::raw(format!("{:>6}{max:>8}", percentile(times, 0.99))),
        ])
    };
    let rows = nodes().map(row);
    [Line::styled(heading, theme.dim())].into_iter().chain(rows).collect()
}

/// `share` of a full bar, to an eighth of a cell.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let filled = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    format!("{filled:<BAR$}")
}

fn threads(scene: &Scene<'_>, theme: Theme) -> Vec<Line<'static>> {
    let row = |(id, asked, obtained): &(_, sinew_runtime::privileges::Asked, _)| {
        let obtained: &sinew_runtime::privileges::Obtained = obtained;
        let thread = scene.stats.thread(*id);
        let name = thread.map_or(String::new(), |t| format!("{}/{}", t.domain, t.id.thread));
        let policy = obtained.policy_name().trim_start_matches("SCHED_");
        let (got, style) = match policy {
            "FIFO" if obtained.priority == asked.priority => {
                (format!("FIFO {}", asked.priority), theme.good())
            }
            _ => (format!("{policy}, not FIFO {}", asked.priority), theme.caution()),
        };
        let cpu = obtained.cpu.map_or("any CPU".into(), |cpu| format!("CPU {cpu}"));
        let locked = if obtained.locked_kib > 0 { "locked" } else { "unlocked" };
        Line::from(vec![
            Span::raw(format!(" {name:<13}")),
            Span::styled(format!("{got:<18}"), style),
            Span::raw(format!("{cpu:<8}")),
            Span::raw(locked),
        ])
    };
    scene.privileges.iter().map(row).collect()
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

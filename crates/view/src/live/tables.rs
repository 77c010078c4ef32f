//! The tables of the live view: cycles, nodes, threads, services, flow nodes.

use ratatui::text::{Line, Span};
use sinew_figures::Distribution;
use sinew_figures::short::{rate, short_span};
use sinew_report::{NodeStats, ThreadStats};
use sinew_runtime::run::ServiceState;

use crate::fit::rows_of;
use crate::rows::{Cell, Rows};
use crate::scene::Scene;
use crate::theme::Theme;

/// Cells of a node's bar.
const BAR: usize = 11;
/// Most flow nodes, sources first. `sinew top` shows all.
const FLOWS_MAX: usize = 16;
/// Rows for addresses. With more services, the rest is in `sinew list`.
const ADDRESS_ROWS_MAX: usize = 6;

/// The times of the control thread, and what did not go as planned.
pub(super) fn cycle(
    scene: &Scene<'_>,
    control: &ThreadStats,
    theme: Theme,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut rows = Rows::new(&["us", "p50", "p99", "p99.9", "max"]).at_least(&[17, 5, 5, 5, 6]);
    let mut row = |name: &str, times: &Distribution| {
        let [p50, p99, p99_9] = [0.5, 0.99, 0.999].map(|share| Cell::micros(times.quantile(share)));
        let max = Cell::micros(times.max());
        rows.add([Cell::new(name), p50.with(theme.accent()), p99, p99_9, max]);
    };
    row("cycle latency", &control.latency);
    if control.is_timer_released() {
        row("activation jitter", &control.jitter);
        row("release to end", &control.response);
    }
    let mut lines = rows.lines(theme, columns);
    let totals = control.totals();
    lines.push(Line::from(vec![
        Span::raw("overruns "),
        Span::styled(totals.overruns.to_string(), theme.count(totals.overruns)),
        Span::raw("   skipped periods "),
        Span::styled(totals.skipped.to_string(), theme.count(totals.skipped)),
    ]));
    if let Some(error) = scene.stats.tracking_error_m() {
        let (last_mm, max_mm) = (error.last * 1e3, error.max * 1e3);
        lines.push(Line::from(vec![
            Span::raw("tracking error   "),
            Span::styled(format!("{last_mm:>7.4}"), theme.accent()),
            Span::raw(format!(" mm, {max_mm:.4} mm at most")),
        ]));
    }
    lines
}

/// A bar for each node's mean, relative to the longest.
pub(super) fn nodes(scene: &Scene<'_>, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let nodes = || scene.stats.threads.iter().flat_map(|thread| &thread.nodes);
    let longest = nodes().filter_map(|node| node.execution.mean()).fold(0.0, f64::max);
    let mut rows = Rows::new(&["", "", "p50", "p99", "max"]).at_least(&[12, BAR, 4, 4, 6]);
    for NodeStats { name, execution: times, .. } in nodes() {
        let share = if longest > 0.0 { times.mean().unwrap_or(0.0) / longest } else { 0.0 };
        let [p50, p99] = [0.5, 0.99].map(|share| Cell::micros(times.quantile(share)));
        let bar = Cell::styled(bar(share), theme.accent());
        rows.add([Cell::new(name), bar, p50, p99, Cell::micros(times.max())]);
    }
    rows.lines(theme, columns)
}

/// A bar with a length of `share`, to an eighth of a cell.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// What each realtime thread got of what it asked for.
pub(super) fn threads(scene: &Scene<'_>, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let mut rows = Rows::new(&[""; 3]).at_least(&[9, 7]);
    for (id, asked, obtained) in scene.privileges {
        let thread = scene.stats.thread(*id);
        let name = thread.map_or(String::new(), |t| format!("{}/{}", t.domain, t.id.thread));
        let policy = obtained.policy_name().trim_start_matches("SCHED_");
        let got = match policy {
            "FIFO" if obtained.priority == asked.priority => {
                Cell::styled(format!("FIFO {}", asked.priority), theme.good())
            }
            _ => Cell::styled(format!("{policy}, not FIFO {}", asked.priority), theme.caution()),
        };
        let cpu = obtained.cpu.map_or("any CPU".into(), |cpu| format!("CPU {cpu}"));
        let locked = if obtained.locked_kib > 0 { "locked" } else { "unlocked" };
        rows.add([Cell::new(name), got, Cell::new(format!("{cpu}, {locked}"))]);
    }
    rows.lines(theme, columns)
}

/// A row for each service: its state, its restarts, and why it ended last.
pub(super) fn services(scene: &Scene<'_>, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let mut rows = Rows::new(&[""; 4]).at_least(&[11, 8, 4]);
    for (name, service) in scene.services {
        rows.add([
            Cell::new(name),
            Cell::styled(service.state.word(), theme.state(service.state)),
            Cell::count(service.restarts.into(), theme),
            Cell::styled(service.last_reason.as_deref().unwrap_or_default(), theme.dim()),
        ]);
    }
    rows.lines(theme, columns)
}

/// The addresses at which services are reached. Each is shown completely, in several rows if
/// necessary: an address that is cut would be useless.
pub(super) fn addresses(scene: &Scene<'_>, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let address = |(name, service): &(String, ServiceState)| {
        service.address.as_ref().map(|at| format!("{name}: {at}"))
    };
    let rows = |text: String| rows_of(" ", &text, width.into());
    let all: Vec<_> = scene.services.iter().filter_map(address).flat_map(rows).collect();
    let more = (all.len() > ADDRESS_ROWS_MAX).then(|| " more addresses: 'sinew list'".to_owned());
    let kept = if more.is_some() { ADDRESS_ROWS_MAX - 1 } else { ADDRESS_ROWS_MAX };
    let lines = all.into_iter().take(kept).chain(more);
    lines.map(|line| Line::styled(line, theme.accent())).collect()
}

/// A row for each flow node of all services. Sources come first, because they show what clients
/// see. Empty if there are no flow nodes.
pub(super) fn flows(scene: &Scene<'_>, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let names = ["", "/s", "now", "p50", "p99", "max", "err"];
    let mut rows = Rows::new(&names).at_least(&[11, 5, 3, 4, 4, 4]);
    let sources = scene.flows().filter(|node| node.is_source);
    let others = scene.flows().filter(|node| !node.is_source);
    for node in sources.chain(others).take(FLOWS_MAX) {
        let status = &node.status;
        let span = |ns: Option<u64>| Cell::figure(short_span(ns));
        rows.add([
            Cell::new(&node.name),
            Cell::figure(rate(status.packets_per_s)).with(theme.accent()),
            Cell::figure(status.in_flight),
            span(status.time_ns_p50),
            span(status.time_ns_p99),
            span(status.time_ns_max),
            Cell::count(status.errors, theme),
        ]);
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = rows.lines(theme, columns);
    for node in scene.flows().filter(|node| node.status.refused > 0) {
        let text = format!("{} refused {}: no room", node.name, node.status.refused);
        lines.push(Line::styled(text, theme.bad()));
    }
    let more = scene.flows().count().saturating_sub(FLOWS_MAX);
    if more > 0 {
        lines.push(Line::styled(format!("{more} more: 'sinew top' shows them"), theme.dim()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use sinew_control::status::{DomainState, FlowStatus};
    use sinew_report::fixture;
    use sinew_runtime::run::NodeState;

    use super::*;

    fn shown(nodes: Vec<NodeState>) -> Vec<String> {
        let service = ServiceState {
            domain: 0,
            state: DomainState::Running,
            pid: Some(7),
            restarts: 0,
            last_reason: None,
            address: None,
            flows: nodes,
        };
        let stats = fixture::stats(1);
        let scene = Scene { services: &[("web".into(), service)], ..Scene::of("ping", &stats) };
        flows(&scene, Theme { color: false }, 48).iter().map(Line::to_string).collect()
    }

    fn node(name: &str, is_source: bool) -> NodeState {
        let status = FlowStatus {
            packets: 123_456,
            errors: 3,
            refused: 0,
            in_flight: 12,
            packets_per_s: 34_512.0,
            time_ns_p50: Some(11_200),
            time_ns_p99: None,
            time_ns_max: Some(1_384_000),
            ..FlowStatus::default()
        };
        NodeState { name: name.into(), is_source, status }
    }

    #[test]
    fn sources_come_first_and_each_has_its_figures() {
        let lines = shown(vec![node("pong", false), node("listener", true)]);
        let expected = [
            "                /s  now   p50   p99    max  err",
            "listener     34.5k   12  11us     -  1.4ms    3",
            "pong         34.5k   12  11us     -  1.4ms    3",
        ];
        assert_eq!(lines, expected);
        assert!(shown(vec![]).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = shown((0..20).map(|at| node(&format!("n{at}"), false)).collect());
        assert_eq!(lines.last().map(String::as_str), Some("4 more: 'sinew top' shows them"));
        assert_eq!(lines.len(), FLOWS_MAX + 2);
    }
}

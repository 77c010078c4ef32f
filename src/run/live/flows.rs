//! The flow nodes in the live view: a row each.

use ratatui::text::{Line, Span};
use sinew_runtime::run::NodeState;

use crate::run::view::Scene;
use crate::run::words::{rate, short_span};
use crate::theme::Theme;

/// Rows at most, sources first; `sinew top` shows all.
const ROWS_MAX: usize = 16;

/// A heading, and a row for each flow node of all services: sources, which say what the world sees,
/// before the nodes behind them.
pub(super) fn flows(scene: &Scene<'_>, theme: Theme) -> Vec<Line<'static>> {
    let nodes = || scene.services.iter().flat_map(|(_, service)| &service.flows);
    let count = nodes().count();
    if count == 0 {
        return Vec::new();
    }
    let heading = format!(
        " {:<12}{:>7}{:>5}{:>6}{:>6}{:>6}{:>4}",
        "", "/s", "now", "p50", "p99", "max", "err"
    );
    let sources = nodes().filter(|node| node.is_source);
    let others = nodes().filter(|node| !node.is_source);
    let rows = sources.chain(others).take(ROWS_MAX).map(|node| row(node, theme));
    let mut lines = vec![Line::styled(heading, theme.dim())];
    lines.extend(rows);
    let refusing = nodes().filter(|node| node.status.refused > 0);
    lines.extend(refusing.map(|node| {
        let text = format!(" {} refused {} for want of room", node.name, node.status.refused);
        Line::styled(text, theme.bad())
    }));
    if count > ROWS_MAX {
        let more = format!(" {} more: 'sinew top' shows them", count - ROWS_MAX);
        lines.push(Line::styled(more, theme.dim()));
    }
    lines
}

fn row(node: &NodeState, theme: Theme) -> Line<'static> {
    let NodeState { name, status, .. } = node;
    let name: String = name.chars().take(11).collect();
    let [p50, p99, max] =
        [status.time_ns_p50, status.time_ns_p99, status.time_ns_max].map(short_span);
    Line::from(vec![
        Span::raw(format!(" {name:<12}")),
        Span::styled(format!("{:>7}", rate(status.packets_per_s)), theme.accent()),
        Span::raw(format!("{:>5}{p50:>6}{p99:>6}{max:>6}", status.in_flight)),
        Span::styled(format!("{:>4}", status.errors), theme.count(status.errors)),
    ])
}

#[cfg(test)]
mod tests {
    use sinew_runtime::run::ServiceState;
    use sinew_runtime::status::{DomainState, FlowStatus, Phase};

    use super::*;
    use crate::run::fixture;

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
        let scene = Scene {
            graph: "ping",
            stats: &fixture::stats(1),
            privileges: &[],
            services: &[("web".into(), service)],
            phase: Phase::Running,
            elapsed_s: 1.0,
            duration_s: None,
            late: None,
            notice: None,
        };
        flows(&scene, Theme { color: false }).iter().map(Line::to_string).collect()
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
        };
        NodeState { name: name.into(), is_source, status }
    }

    #[test]
    fn sources_come_first_and_each_has_its_figures() {
        let lines = shown(vec![node("pong", false), node("listener", true)]);
        let expected = [
            "                  /s  now   p50   p99   max err",
            " listener      34.5k   12  11us     - 1.4ms   3",
            " pong          34.5k   12  11us     - 1.4ms   3",
        ];
        assert_eq!(lines, expected);
        assert!(shown(vec![]).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = shown((0..20).map(|at| node(&format!("n{at}"), false)).collect());
        assert_eq!(lines.last().map(String::as_str), Some(" 4 more: 'sinew top' shows them"));
        assert_eq!(lines.len(), ROWS_MAX + 2);
    }
}

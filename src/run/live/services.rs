//! The services in the live view: a row each.

use ratatui::text::{Line, Span};
use sinew_runtime::run::ServiceState;
use sinew_runtime::status::DomainState;

use crate::run::view::Scene;
use crate::theme::Theme;

/// A row for each service: how far it is, how often it came back, why it ended last; below it
/// where people find what it serves.
pub(super) fn services(scene: &Scene<'_>, theme: Theme) -> Vec<Line<'static>> {
    let rows = |(name, service): &(String, ServiceState)| {
        let address = service.address.as_ref().map(|at| Line::raw(format!("   {at}")));
        [row(name, service, theme)].into_iter().chain(address).collect::<Vec<_>>()
    };
    scene.services.iter().flat_map(rows).collect()
}

fn row(name: &str, service: &ServiceState, theme: Theme) -> Line<'static> {
    let style = match service.state {
        DomainState::Running => theme.good(),
        DomainState::GivenUp | DomainState::Backoff => theme.caution(),
        _ => theme.dim(),
    };
    let name: String = name.chars().take(12).collect();
    let reason = service.last_reason.as_deref().unwrap_or_default();
    Line::from(vec![
        Span::raw(format!(" {name:<13}")),
        Span::styled(format!("{:<10}", service.state.word()), style),
        Span::styled(format!("{:>4}", service.restarts), theme.count(service.restarts.into())),
        Span::styled(format!("  {reason}"), theme.dim()),
    ])
}

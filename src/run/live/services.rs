//! The services in the live view: a row each, and where people find what they serve.

use ratatui::text::{Line, Span};
use sinew_runtime::run::ServiceState;
use sinew_runtime::status::DomainState;

use crate::run::view::Scene;
use crate::theme::Theme;

/// Rows of addresses: of more services the rest stands in `sinew list`.
const ADDRESS_ROWS_MAX: usize = 6;

/// A row for each service: how far it is, how often it came back, why it ended last.
pub(super) fn services(scene: &Scene<'_>, theme: Theme) -> Vec<Line<'static>> {
    scene.services.iter().map(|(name, service)| row(name, service, theme)).collect()
}

/// Where people find what services serve. Each to its last sign, over several rows if it must be:
/// one that is cut leads nowhere.
pub(super) fn addresses(scene: &Scene<'_>, width: u16) -> Vec<Line<'static>> {
    let address = |(name, service): &(String, ServiceState)| {
        service.address.as_ref().map(|at| format!(" {name}: {at}"))
    };
    let rows = |text: String| {
        let signs: Vec<char> = text.chars().collect();
        let rows = signs.chunks(usize::from(width.max(1))).map(|row| row.iter().collect());
        rows.map(Line::raw::<String>).collect::<Vec<_>>()
    };
    let all = scene.services.iter().filter_map(address).flat_map(rows);
    all.take(ADDRESS_ROWS_MAX).collect()
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

//! The state of the run as ROS diagnostics: each domain, each service's nodes, each topic.

use sinew_control::status::{DomainRole, DomainState, DomainStatus, Phase, Status};

use crate::definition::Byte;
use crate::messages::{DiagnosticArray, DiagnosticStatus, Header, KeyValue, Time};
use crate::session::Session;

const OK: Byte = Byte(0);
const WARN: Byte = Byte(1);
const ERROR: Byte = Byte(2);

/// The counters at the last diagnosis, to tell what is new.
#[derive(Default)]
pub(crate) struct Seen {
    /// By domain: overruns, skipped, restarts.
    domains: Vec<(u64, u64, u32)>,
}

/// A diagnosis of the run.
pub(crate) fn diagnose(
    status: &Status,
    session: &Session,
    hardware_id: &str,
    stamp: Time,
    seen: &mut Seen,
) -> DiagnosticArray {
    let mut all = Vec::new();
    let graph = &status.graph;
    let mut add = |name: &str, (level, message): (Byte, String), values| {
        let (name, hardware_id) = (format!("{graph}: {name}"), hardware_id.to_owned());
        all.push(DiagnosticStatus { level, name, message, hardware_id, values });
    };
    add("run", run(status), vec![value("elapsed_ms", status.elapsed_ms)]);
    seen.domains.resize(status.domains.len(), Default::default());
    for (domain, seen) in status.domains.iter().zip(&mut seen.domains) {
        add(&format!("domain {}", domain.name), judged(domain, seen), figures(domain));
    }
    for (node, figures) in session.notes() {
        let figures = figures.iter().map(|(name, figure)| value(name, figure)).collect();
        add(&format!("topic of {node}"), (OK, "ok".into()), figures);
    }
    let header = Header { stamp, frame_id: String::new() };
    DiagnosticArray { header, status: all }
}

fn value(key: &str, value: impl ToString) -> KeyValue {
    KeyValue { key: key.to_owned(), value: value.to_string() }
}

fn run(status: &Status) -> (Byte, String) {
    let level = match status.phase {
        Phase::Running => OK,
        Phase::Held => ERROR,
        Phase::Starting | Phase::Stopping => WARN,
    };
    (level, status.phase.to_string())
}

/// The level of a domain, and why. Late cycles, skipped periods or a restart since the last
/// diagnosis are a warning.
fn judged(domain: &DomainStatus, seen: &mut (u64, u64, u32)) -> (Byte, String) {
    let sum = |of: fn(&sinew_control::status::ThreadStatus) -> u64| -> u64 {
        domain.threads.iter().map(of).sum()
    };
    let now = (sum(|it| it.overruns), sum(|it| it.skipped), domain.restarts);
    let before = std::mem::replace(seen, now);
    let reason = domain.last_reason.as_deref().unwrap_or_default();
    let because = |level| (level, format!("{}: {reason}", domain.state));
    match domain.state {
        DomainState::Faulted | DomainState::GivenUp => because(ERROR),
        DomainState::Ended if domain.role == DomainRole::Realtime => because(ERROR),
        DomainState::Backoff => because(WARN),
        DomainState::Running if now.0 > before.0 => {
            (WARN, format!("{} overruns since the last diagnosis", now.0 - before.0))
        }
        DomainState::Running if now.1 > before.1 => {
            (WARN, format!("{} periods skipped since the last diagnosis", now.1 - before.1))
        }
        DomainState::Running if now.2 > before.2 => (WARN, format!("was restarted: {reason}")),
        DomainState::Running | DomainState::Ready | DomainState::Finished => {
            (OK, domain.state.to_string())
        }
        _ => (WARN, domain.state.to_string()),
    }
}

fn figures(domain: &DomainStatus) -> Vec<KeyValue> {
    let mut values = vec![value("role", domain.role), value("restarts", domain.restarts)];
    for (at, thread) in domain.threads.iter().enumerate() {
        let mut add = |name: &str, figure: u64| {
            values.push(value(&format!("thread {at} {name}"), figure));
        };
        add("cycles", thread.cycles);
        add("overruns", thread.overruns);
        add("skipped", thread.skipped);
        add("latency_ns_max", thread.latency_ns_max.unwrap_or(0));
    }
    if domain.role == DomainRole::Service {
        for node in &domain.nodes {
            let mut add = |name: &str, figure: u64| {
                values.push(value(&format!("{} {name}", node.name), figure));
            };
            add("received", node.received);
            add("sent", node.sent);
            add("lost", node.lost);
            add("dropped", node.dropped);
        }
    }
    values
}

#[cfg(test)]
mod tests;

//! `status`: how the run goes.

use sinew_control::status::{DomainStatus, Status};
use sinew_core::catalogue::Kind;
use sinew_flow::{Error, FLOW, FlowEntry, Make, Value, error, input, output};

use super::supervisor::{Ask, Rank, Run, asks, phase, stop};

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| asks(AsksStatus)) };

static INFO: Kind = Kind {
    name: "status",
    doc: "Asks the supervisor for the state of the run: its phase, its last stop, and the state of \
          each domain with the cycles and overruns of the core.",
    ports: &[
        input("in", "Any packet: it asks for the status."),
        output("out", "{graph, phase, elapsed_ms, stop, domains}."),
        error(),
    ],
    ..FLOW
};

struct AsksStatus;

impl Ask for AsksStatus {
    async fn ask(&self, run: Run<'_>, _packet: &Value) -> Result<Value, Error> {
        Ok(to_value(&run.status(Rank::Ordinary).await?))
    }
}

/// The part of a run's status that may be shown: no process, user or limit of this machine.
fn to_value(status: &Status) -> Value {
    Value::map([
        ("graph", Value::text(status.graph.clone())),
        ("phase", phase(status.phase)),
        ("elapsed_ms", Value::Integer(status.elapsed_ms as i64)),
        ("stop", stop(status.stop.as_ref())),
        ("domains", Value::map(status.domains.iter().map(|it| (it.name.clone(), domain(it))))),
    ])
}

fn domain(domain: &DomainStatus) -> Value {
    let mut entries = vec![
        ("role", Value::text(domain.role.word())),
        ("state", Value::text(domain.state.word())),
        ("restarts", Value::Integer(domain.restarts.into())),
        ("last_reason", domain.last_reason.clone().map_or(Value::Null, Value::text)),
    ];
    // For a domain with several threads, the highest count.
    if let Some(cycles) = domain.threads.iter().map(|thread| thread.cycles).max() {
        let overruns: u64 = domain.threads.iter().map(|thread| thread.overruns).sum();
        entries.push(("cycles", Value::Integer(cycles as i64)));
        entries.push(("overruns", Value::Integer(overruns as i64)));
    }
    Value::map(entries)
}

//! The graph as it is, watched for a while: how long its nodes compute.

use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_core::trace::{Record, ThreadId};
use sinew_report::{Observed, Stats};
use sinew_runtime::run::{Outcome, Run, RunRequest};

use crate::graph::faults;
use crate::rounds::Session;
use crate::scenario::CannotRun;

/// Longest pause between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a graph, services and all, for so long, or until it ends by itself. Its actuators move.
/// The median execution time of each node of the plan, ns; `None` of a service.
///
/// # Errors
/// It cannot be started, it faulted, or a node of its core never ran.
pub fn observe(
    request: RunRequest,
    duration: Duration,
    session: &Session<'_>,
) -> Result<Vec<Option<u64>>, CannotRun> {
    let plan = request.plan.clone();
    let (mut stats, mut observed) = (Stats::new(&plan), Observed::default());
    let run = Run::start(request);
    let mut run = run.map_err(|error| CannotRun(format!("cannot start the graph: {error}")))?;
    let clock = run.clock();
    let mut take = |id: ThreadId, record: &Record| {
        let Some(thread) = stats.thread(id) else { return };
        observed.read(record, thread.nodes.len(), clock);
        stats.add(id, &observed);
    };
    while run.poll(LOOK, &mut take) {
        let runs_ns = now_ns().saturating_sub(run.started_ns());
        let is_over = u128::from(runs_ns) >= duration.as_nanos();
        if (is_over || session.is_stopped()) && !run.is_ending() {
            run.stop_for("it was watched for long enough");
        }
    }
    if run.outcome() == Outcome::Faulted {
        return Err(CannotRun(format!("while it was watched, {}", faults(&run))));
    }
    let mut busy_ns = vec![None; plan.nodes.len()];
    for thread in &stats.threads {
        for (&node, seen) in thread.id.nodes(&plan).iter().zip(&thread.nodes) {
            let median = seen.execution.quantile(0.5).or(seen.execution.max());
            let name = &plan.nodes[node].name;
            busy_ns[node] = Some(median.ok_or_else(|| {
                CannotRun(format!("node '{name}' never ran while the graph was watched"))
            })?);
        }
    }
    Ok(busy_ns)
}

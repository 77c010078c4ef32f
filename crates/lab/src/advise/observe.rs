//! A graph with its own nodes, watched for a while: what it costs, and how long its nodes compute.

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_core::trace::{Record, ThreadId};
use sinew_report::{Observed, Stats};
use sinew_runtime::run::RunRequest;
use sinew_spec::plan::Plan;

use super::trial::Trial;
use crate::report::Row;
use crate::rounds::Session;
use crate::scenario::CannotRun;

/// How often the graph is started. Each start finds other places for threads, and on a shared
/// machine the median of one start may be a fifth off that of the next.
const STARTS: u32 = 3;

/// What was seen.
pub struct Observation {
    /// Median execution time of each node of the plan, ns; `None` for a service.
    pub(super) busy_ns: Vec<Option<u64>>,
    /// The figures, like those of an alternative.
    pub(super) row: Row,
    /// How long it was watched.
    pub(super) watch: Duration,
}

/// Runs a graph with its services for this long, in a few starts; each run may end by itself. Its
/// actuators move.
///
/// # Errors
/// It cannot be started, it faulted, or a node of its core never ran.
pub fn observe(
    request: RunRequest,
    watch: Duration,
    session: &Session<'_>,
) -> Result<Observation, CannotRun> {
    let plan = request.plan.clone();
    let (mut stats, mut observed) = (Stats::new(&plan), Observed::default());
    let mut take = |id: ThreadId, record: &Record, clock: Clock| {
        let Some(thread) = stats.thread(id) else { return };
        observed.read(record, thread.nodes.len(), clock);
        stats.add(id, &observed);
    };
    let mut row = Row::of(&[("nodes", "own")]);
    let mut trial = Trial::new(session, request, watch / STARTS);
    for _ in 0..STARTS {
        let seen = trial.add_round(&mut row, &mut take);
        seen.map_err(|why| CannotRun(format!("while the graph was watched, {why}")))?;
    }
    Ok(Observation { busy_ns: busy_ns(&plan, &stats).map_err(CannotRun)?, row, watch })
}

fn busy_ns(plan: &Plan, stats: &Stats) -> Result<Vec<Option<u64>>, String> {
    let mut busy_ns = vec![None; plan.nodes.len()];
    for thread in &stats.threads {
        for (&node, seen) in thread.id.nodes(plan).iter().zip(&thread.nodes) {
            let median = seen.execution.quantile(0.5).or(seen.execution.max());
            let name = &plan.nodes[node].name;
            let never = || format!("node '{name}' never ran while the graph was watched");
            busy_ns[node] = Some(median.ok_or_else(never)?);
        }
    }
    Ok(busy_ns)
}

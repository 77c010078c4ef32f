//! Tells the supervisor, twice a second, how many threads the pool has and what all workers have
//! counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_control::Request;
use sinew_control::Supervisor;
use sinew_control::status::{FLOW_TIMES_NS, FlowFigures, FlowStatus};
use sinew_core::clock::Clock;

use crate::Figures;
use crate::figures::Sum;
use crate::pool::PoolKeeper;

/// How often the supervisor is told.
const SPACING: Duration = Duration::from_millis(500);

/// Nodes in a request, so that it stays below the supervisor's limit: a node's figures take at most
/// 700 bytes beside its name.
const NODES_PER_REQUEST: usize = 4;

/// The figures of a domain's flows.
pub(crate) struct Tally {
    workers: Vec<Arc<Figures>>,
    clock: Clock,
    supervisor: Option<Supervisor>,
    keeper: PoolKeeper,
    told: Instant,
    /// Packets of each node at that time.
    packets: BTreeMap<String, u64>,
}

impl Tally {
    /// Tells this supervisor the figures of these workers and this pool.
    pub(crate) fn new(
        workers: Vec<Arc<Figures>>,
        keeper: PoolKeeper,
        clock: Clock,
        supervisor: Option<Supervisor>,
    ) -> Tally {
        let (told, packets) = (Instant::now(), BTreeMap::new());
        Tally { workers, clock, supervisor, keeper, told, packets }
    }

    /// Keeps the pool at its size. If it is time, tells the supervisor the figures of the nodes
    /// that exist now.
    pub(crate) fn tell_in_time(&mut self) {
        self.keeper.look();
        if self.told.elapsed() >= SPACING {
            self.forget_gone();
            self.tell();
        }
    }

    /// Tells the supervisor all figures; after the last flow also those of nodes that are gone.
    pub(crate) fn tell(&mut self) {
        let Some(supervisor) = self.supervisor.clone() else { return };
        for nodes in self.figures().chunks(NODES_PER_REQUEST) {
            let request = Request::Figures { nodes: nodes.to_vec() };
            // An error means that the supervisor is gone, and so this process is about to end.
            // Others handle that.
            let _ = supervisor.order(&request);
        }
        // An error is ignored for the same reason.
        let _ = supervisor.order(&Request::Pool { pool: self.keeper.status() });
    }

    /// Packets by how long they took.
    fn times(&self, sum: &Sum) -> [u64; FLOW_TIMES_NS.len() + 1] {
        let mut before = 0;
        std::array::from_fn(|at| {
            let within = match FLOW_TIMES_NS.get(at) {
                Some(&ns) => sum.within(self.clock.ticks_of(Duration::from_nanos(ns))),
                None => sum.packets,
            };
            within - std::mem::replace(&mut before, within)
        })
    }

    fn forget_gone(&self) {
        self.workers.iter().for_each(|worker| worker.forget_gone());
    }

    fn figures(&mut self) -> Vec<FlowFigures> {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for worker in &self.workers {
            worker.look(|name, figures| sums.entry(name.to_owned()).or_default().add(figures));
        }
        let (now, before) = (Instant::now(), &self.packets);
        let spacing_s = now.duration_since(self.told).as_secs_f64().max(1e-3);
        let row = |(name, sum): (&String, &Sum)| {
            let new = sum.packets - before.get(name).copied().unwrap_or_default().min(sum.packets);
            let ns = |ticks| self.clock.ns(ticks);
            let status = FlowStatus {
                packets: sum.packets,
                errors: sum.errors,
                refused: sum.refused,
                in_flight: sum.waiting,
                packets_per_s: new as f64 / spacing_s,
                time_ns_p50: sum.quantile(0.5).map(ns),
                time_ns_p99: sum.quantile(0.99).map(ns),
                time_ns_max: (sum.packets > 0).then(|| ns(sum.ticks_max)),
                time_ns_sum: ns(sum.ticks()),
                times: self.times(sum),
            };
            FlowFigures { name: name.clone(), status }
        };
        let rows = sums.iter().map(row).collect();
        self.told = now;
        self.packets = sums.into_iter().map(|(name, sum)| (name, sum.packets)).collect();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;
    use sinew_spec::plan::PoolSize;

    #[test]
    fn all_workers_count_and_a_node_that_is_gone_does_not() {
        let workers = [Arc::<Figures>::default(), Arc::default()];
        let nodes: Vec<_> = workers.iter().map(|worker| worker.node("a")).collect();
        let gone = workers[0].node("gone");
        nodes.iter().for_each(|node| (0..30).for_each(|_| node.record(1000)));
        nodes[1].failed();
        let _waits = nodes[0].waits();
        let (_pool, keeper) = Pool::start_kept(PoolSize::fixed(1)).expect("a thread");
        let mut tally = Tally::new(workers.to_vec(), keeper, Clock::from_rate(0.0), None);
        drop(gone);
        tally.forget_gone();
        let rows = tally.figures();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        let FlowStatus { packets, errors, in_flight, time_ns_p99, time_ns_max, .. } =
            rows[0].status;
        assert_eq!((packets, errors, in_flight), (60, 1, 1));
        assert_eq!((time_ns_p99, time_ns_max), (None, Some(1000)), "too few for a percentile");
        assert_eq!(rows[0].status.time_ns_p50, Some(1000), "never more than the maximum");
        assert_eq!(tally.figures()[0].status.packets_per_s, 0.0, "nothing came since");
    }
}

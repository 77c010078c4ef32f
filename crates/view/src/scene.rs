//! The moment of a run that is shown.

use sinew_control::status::Phase;
use sinew_core::privileges::{Asked, Obtained};
use sinew_core::trace::ThreadId;
use sinew_report::Stats;
use sinew_runtime::run::{NodeState, ServiceState};

/// A moment of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Name of the graph.
    pub graph: &'a str,
    /// The figures of its cycles.
    pub stats: &'a Stats,
    /// What each realtime thread asked for and got.
    pub privileges: &'a [(ThreadId, Asked, Obtained)],
    /// Name and state of each service domain.
    pub services: &'a [(String, ServiceState)],
    /// The phase of the run.
    pub phase: Phase,
    /// Time since the first release.
    pub elapsed_s: f64,
    /// How long the run will last.
    pub duration_s: Option<f64>,
    /// The worst late cycle since the last moment that was shown.
    pub late: Option<&'a str>,
    /// The last error outside the graph, or the last late cycle.
    pub notice: Option<&'a str>,
}

impl<'a> Scene<'a> {
    /// The start of a run, with only these figures.
    pub fn of(graph: &'a str, stats: &'a Stats) -> Scene<'a> {
        Scene {
            graph,
            stats,
            privileges: &[],
            services: &[],
            phase: Phase::Running,
            elapsed_s: 0.0,
            duration_s: None,
            late: None,
            notice: None,
        }
    }

    /// The flow nodes of all services.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &'a NodeState> + use<'a> {
        self.services.iter().flat_map(|(_, service)| &service.flows)
    }
}

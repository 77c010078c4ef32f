//! The moment of a run that is to be shown.

use sinew_control::status::Phase;
use sinew_core::privileges::{Asked, Obtained};
use sinew_core::trace::ThreadId;
use sinew_report::Stats;
use sinew_runtime::run::{NodeState, ServiceState};

/// The moment.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Name of the graph.
    pub graph: &'a str,
    /// The figures of its cycles.
    pub stats: &'a Stats,
    /// What each realtime thread asked for and has.
    pub privileges: &'a [(ThreadId, Asked, Obtained)],
    /// Name and state of each service domain.
    pub services: &'a [(String, ServiceState)],
    /// How far the run is.
    pub phase: Phase,
    /// Since the first release.
    pub elapsed_s: f64,
    /// How long it is to go on.
    pub duration_s: Option<f64>,
    /// The worst cycle that was late since the last moment that was shown.
    pub late: Option<&'a str>,
    /// What last went wrong outside the graph, or the last cycle that was late.
    pub notice: Option<&'a str>,
}

impl<'a> Scene<'a> {
    /// The beginning of a run with nothing but these figures.
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

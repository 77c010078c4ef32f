//! The drill: every fault that a graph must survive is injected on purpose, one run each, and
//! measured: how long until the machine had its safe output, how far it moved until it stood still,
//! how the core fared, what came back, what was left behind. All of this goes through the product's
//! own [`run::Run`](sinew_runtime::run), and so through the supervisor that users have.

pub mod article;
mod carry_out;
mod fault;
mod freeze;
mod judge;
mod left;
mod line;
mod machine;
mod naive;
mod network;
mod outside;
mod recording;
mod report;
mod seen;
mod select;
mod show;
mod stop;
mod table;

use carry_out::{Timing, carry_out};
use fastrand::Rng;
pub use fault::DrilledFault;
pub use network::{MISPLACE, Network, SEND_AGAIN, STRANGER};
pub use report::{Core, DrillReport, DrillRow, Round};
pub use seen::SeenHost;
pub use select::{Only, short};
pub use show::{plots, to_list, to_page, to_text};
use sinew_runtime::{Kinds, run};
pub use table::{Drill, Subject, all, of_services};

pub use crate::graph::{Files, arm, beside};
use crate::rounds::Session;

/// What to drill.
#[derive(Clone, Debug)]
pub struct DrillRequest {
    /// The graphs to run, and for each the drills to carry out, taken from [`all`]. The first graph
    /// names the report; another one has services beside its core.
    pub graphs: Vec<(run::RunRequest, Vec<Drill>)>,
    /// The other hosts of the first graph, if that is the part of one host: they run beside it.
    pub network: Option<Network>,
    /// How often each drill is carried out.
    pub rounds: u32,
    /// The seed that decides when exactly each fault comes.
    pub seed: u64,
    /// Whether the scenario of the article is to be carried out too.
    pub article: bool,
}

impl DrillRequest {
    /// All drills, each with its graph.
    fn drills(&self) -> impl Iterator<Item = (&run::RunRequest, &Drill)> {
        let graphs = self.graphs.iter();
        graphs.flat_map(|(graph, drills)| drills.iter().map(move |drill| (graph, drill)))
    }

    /// The other hosts beside a graph.
    fn network(&self, graph: &run::RunRequest) -> Option<&Network> {
        self.network.as_ref().filter(|_| graph.plan.hosts.own.is_some())
    }
}

/// The kinds that a domain of a drill may have: `kinds`, and the drill's own.
pub fn table(kinds: &Kinds) -> Kinds {
    let mut kinds = kinds.clone();
    kinds.nodes.push(naive::NODE);
    kinds
}

/// Carries out all drills. An interrupt ends this after the drill under way.
///
/// # Errors
/// If a run could not be started at all; the error says why.
pub fn run(request: &DrillRequest, session: &Session<'_>) -> Result<DrillReport, String> {
    let mut random = Rng::with_seed(request.seed);
    let mut report = DrillReport::planned(request);
    let drills: Vec<_> = request.drills().collect();
    let rows = &mut report.rows;
    let all = rows.len() * request.rounds as usize;
    for round in 0..request.rounds as usize {
        for (at, (graph, drill)) in drills.iter().enumerate() {
            if session.is_stopped() {
                report.partial = true;
                break;
            }
            let done = round * rows.len() + at;
            session.progress.at(&rows[at].id(), drill.takes(done), drill.takes(all));
            if rows[at].skipped.is_none() {
                let timing = Timing::by(random.u64(..));
                let carried = carry_out((graph, request.network(graph)), drill, &timing)?;
                match carried.outside.as_ref().and_then(|seen| seen.void.clone()) {
                    Some(why) => rows[at].skipped = Some(why),
                    None => rows[at].rounds.push(judge::judge(&graph.plan, drill, &carried)),
                }
            }
        }
    }
    report.partial |= request.article && session.is_stopped();
    if request.article && !report.partial {
        report.article = Some(article::run(&request.graphs[0].0.spec.machine.cpus)?);
    }
    Ok(report)
}

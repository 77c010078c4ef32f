//! What a drill found: plain data, for text, page and JSON.

use serde::{Deserialize, Serialize};
use sinew_figures::Machine;
use sinew_spec::plan::Plan;

use super::DrillRequest;
use super::article::Article;
use super::seen::SeenHost;
use super::stop::Stop;
use super::table::Drill;

/// The outcome of all drills.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrillReport {
    /// Name of the graph.
    pub graph: String,
    /// Its file.
    pub file: String,
    /// The machine on which it ran.
    pub machine: Machine,
    /// The seed that decided when exactly the faults came.
    pub seed: u64,
    /// How often each drill was to be carried out.
    pub rounds: u32,
    /// Whether it was interrupted.
    pub partial: bool,
    /// The drills.
    pub rows: Vec<DrillRow>,
    /// What partial failure costs, if that was asked for.
    pub article: Option<Article>,
}

impl DrillReport {
    /// The report with the drills that are to be carried out, before any of them was.
    pub fn planned(request: &DrillRequest) -> DrillReport {
        let graph = &request.graphs[0].0;
        DrillReport {
            graph: graph.plan.name.clone(),
            file: graph.spec.file.clone(),
            machine: Machine::read(),
            seed: request.seed,
            rounds: request.rounds,
            partial: false,
            rows: request
                .drills()
                .map(|(other, drill)| DrillRow {
                    of: (other.spec.file != graph.spec.file).then(|| other.plan.name.clone()),
                    ..DrillRow::new(drill, &other.plan)
                })
                .collect(),
            article: None,
        }
    }

    /// Whether everything was as expected.
    pub fn is_good(&self) -> bool {
        !self.partial
            && self.rows.iter().all(|row| row.rounds.iter().all(Round::is_good))
            && self.article.as_ref().is_none_or(|article| article.failures.is_empty())
    }
}

/// A drill, and what was found in each round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrillRow {
    /// `node`, `domain`, `link` or `host`.
    pub sort: String,
    /// Its name.
    pub subject: String,
    /// The graph, if it is not the report's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What happened.
    pub fault: String,
    /// How soon the machine must have its safe output, or why that is not required; and what else
    /// must be seen.
    pub rule: String,
    /// The same as a number of cycles of the machine.
    pub bar_cycles: Option<u64>,
    /// Why it is not carried out.
    pub skipped: Option<String>,
    /// One for each time that it was carried out.
    pub rounds: Vec<Round>,
}

impl DrillRow {
    fn new(drill: &Drill, plan: &Plan) -> DrillRow {
        DrillRow {
            sort: drill.subject.sort().into(),
            subject: drill.subject.name(plan),
            of: None,
            fault: drill.fault.word().into(),
            rule: drill.words(),
            bar_cycles: drill.rule.cycles(),
            skipped: drill.obstacle.clone(),
            rounds: vec![],
        }
    }

    /// All of it in one word: `node/ik/panic`; with another graph than the report's,
    /// `arm:node/ik/panic`.
    pub fn id(&self) -> String {
        let id = format!("{}/{}/{}", self.sort, self.subject, self.fault);
        self.of.as_ref().map_or(id.clone(), |graph| format!("{graph}:{id}"))
    }
}

/// What one run of a drill showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// What shows that the fault occurred.
    pub proof: Option<String>,
    /// How the machines stopped; with several machines the worst counts.
    #[serde(flatten)]
    pub stop: Stop,
    /// The core before the fault.
    pub core_before: Option<Core>,
    /// The core after the fault, if it went on.
    pub core_after: Option<Core>,
    /// How another host was seen, if something happened to it or to the line to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<SeenHost>,
    /// What the supervisor started again or gave up.
    pub restarted: Vec<String>,
    /// How the run ended.
    pub ending: String,
    /// What was left behind.
    pub left: Vec<String>,
    /// What was not as expected.
    pub failures: Vec<String>,
    /// What could not be seen, so that nobody knows whether it was as expected.
    pub not_shown: Vec<String>,
}

impl Round {
    /// Whether everything was seen, and as expected.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.not_shown.is_empty()
    }
}

/// The core over some time, as seen by the thread whose cycles go around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// How many cycles.
    pub cycles: u64,
    /// Median of the cycle latency.
    pub latency_ns_p50: Option<u64>,
    /// `None` with fewer than ten values beyond it.
    pub latency_ns_p99: Option<u64>,
    /// Greatest cycle latency.
    pub latency_ns_max: Option<u64>,
    /// Median of the activation jitter.
    pub jitter_ns_p50: Option<u64>,
    /// `None` with fewer than ten values beyond it.
    pub jitter_ns_p99: Option<u64>,
    /// Greatest activation jitter.
    pub jitter_ns_max: Option<u64>,
    /// Cycles past their deadline, and periods lost.
    pub overruns: u64,
}

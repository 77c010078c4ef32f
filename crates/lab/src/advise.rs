//! What a graph should be on this machine: every sensible alternative of thread layout and link
//! options is measured with stand-ins for its nodes. The result names the best alternative that
//! keeps the requirements, with the edits of the spec that lead to it.

mod alternatives;
mod candidates;
mod choose;
mod each;
mod observe;
mod receipt;
mod tables;
mod trial;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sinew_control::Spec;
use sinew_core::catalogue::Kind;
use sinew_runtime::inject::Injection;
use sinew_runtime::run::RunRequest;
use sinew_spec::duration_text;
use sinew_spec::edit::Change;
use sinew_spec::plan::{Isolation, Plan};

use self::alternatives::{Alternative, LinkWay, ThreadLayout, Ways, core_links};
use self::candidates::Candidate;
pub use self::choose::Choice;
use self::choose::{Measured, RuledOut, broken, choose, objective, why_not};
use self::each::OfLink;
pub use self::observe::{Observation, observe};
pub use self::receipt::Receipt;
use self::trial::{START, Trial};
use crate::report::{Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};
use crate::scenario::CannotRun;

/// About how long all rounds may take together, with starting and stopping. The last turns are not
/// part of it.
const BUDGET: Duration = Duration::from_secs(38);
/// Least and most time of a turn, without starting and stopping.
const SHARE_MIN: Duration = Duration::from_millis(150);
const SHARE_MAX: Duration = Duration::from_millis(800);
/// A turn holds at least this many periods: with fewer there is no median.
const PERIODS_MIN: u32 = 40;
/// Longest period, ns. With a longer one, a turn of `PERIODS_MIN` periods would take longer than
/// two seconds, and all turns longer than some minutes.
const PERIOD_NS_MAX: u64 = 50_000_000;
/// How many turns each alternative has.
pub const ROUNDS: u32 = 5;
/// How many choices at most are run with the graph's own nodes, until one holds.
const TRIES: usize = 3;
/// The name of the report.
const NAME: &str = "advise";

/// What a graph could be: all alternatives that compile, keep what must stand between nodes, and
/// differ from each other. The first is the graph as it is.
pub struct Alternatives<'a> {
    spec: &'a Spec,
    plan: &'a Plan,
    kinds: &'a [&'static Kind],
    candidates: Vec<Candidate>,
    /// Signatures of the plans that are already among the candidates.
    signatures: HashSet<String>,
    /// What to say about the alternatives that were left out.
    notes: Vec<String>,
}

/// How long the nodes compute.
pub enum ExecutionTimes {
    /// As a report says for each node of the plan, ns. Nothing is run with its own nodes then.
    Reported(Vec<Option<u64>>),
    /// As they were just observed. The choice is then also run with the graph's own nodes.
    Observed(Observation),
}

/// What is advised for a graph.
pub struct Advice {
    /// All that was measured; the first row is the graph as it is.
    pub report: ScenarioReport,
    /// Which row is chosen, and why not the others.
    pub choice: Choice,
    /// The graph as it is, and the choice if that is another one, as they ran with the graph's own
    /// nodes. Empty if nothing may move.
    pub own_nodes: Vec<Row>,
    /// The edits of the spec that lead to the choice; none if the graph stays as it is.
    pub changes: Vec<Change>,
    /// The spec with these edits.
    pub text: String,
}

impl<'a> Alternatives<'a> {
    /// Finds the alternatives. `plan` was made from `spec` with these kinds. Nothing is run.
    ///
    /// # Errors
    /// There is nothing to choose, or the core cannot be measured on its own.
    pub fn of(
        spec: &'a Spec,
        plan: &'a Plan,
        kinds: &'a [&'static Kind],
    ) -> Result<Alternatives<'a>, CannotRun> {
        if let Some(why) = nothing_to_choose(plan) {
            return Err(CannotRun(why));
        }
        let (candidates, signatures, notes) = (vec![], HashSet::new(), vec![]);
        let mut all = Alternatives { spec, plan, kinds, candidates, signatures, notes };
        all.find().map_err(|why| CannotRun(format!("{}: {why}", spec.file)))?;
        Ok(all)
    }

    /// Measures the alternatives and chooses. Starts and stops processes; blocks for about a
    /// minute, or until the session is stopped. If the nodes were observed, the choice is also run
    /// with them: its actuators move.
    pub fn measure(mut self, times: &ExecutionTimes, rounds: u32, session: &Session<'_>) -> Advice {
        let busy_ns = match times {
            ExecutionTimes::Reported(busy_ns) => busy_ns,
            ExecutionTimes::Observed(observation) => &observation.busy_ns,
        };
        let names = self.plan.nodes.iter().map(|node| node.name.clone());
        let busy_ns: HashMap<_, _> = names.zip(busy_ns.iter().copied()).collect();
        let every: Vec<usize> = (0..self.candidates.len()).collect();
        let mut report = self.turns(&every, &busy_ns, rounds, session);
        let mut ruled_out = RuledOut::new();
        let mut choice = self.choose(&report.rows, &ruled_out);
        if !report.partial {
            self.last_turns(&mut report, &mut choice, &mut ruled_out, &busy_ns, session);
        }
        let mut own_nodes = vec![];
        match times {
            ExecutionTimes::Observed(stands) if !report.partial => {
                own_nodes.push(stands.row.clone());
                let held = self.with_own_nodes(stands, &report, &mut choice, ruled_out, session);
                own_nodes.extend(held);
                report.partial |= session.is_stopped();
            }
            ExecutionTimes::Observed(_) => {}
            ExecutionTimes::Reported(_) => {
                self.notes.push("the choice was not run with the graph's own nodes".into());
            }
        }
        self.advice(report, choice, own_nodes)
    }

    /// The advice that follows from the figures.
    fn advice(self, mut report: ScenarioReport, choice: Choice, own_nodes: Vec<Row>) -> Advice {
        let measured = self.measured(&report.rows);
        let at = choice.chosen.unwrap_or(0);
        let (same, links) = self.of_links(at, &measured);
        let ways: Vec<_> = same.into_iter().map(|at| measured[at].clone()).collect();
        let mut tables = tables::all(&measured, &choice, &own_nodes);
        tables.push(tables::ways(&ways, &links));
        report.tables = tables;
        report.notes = self.notes;
        report.warning = Some(match choice.chosen {
            Some(0) => "Advice: the graph stays as it is".into(),
            Some(at) => format!("Advice: {}", report.rows[at].id()),
            None => "No alternative was shown to keep what the graph requires".into(),
        });
        let chosen = choice.chosen.map(|at| &self.candidates[at]);
        let changes = chosen.map_or(vec![], |chosen| chosen.alternative.changes.clone());
        let text = chosen.map_or(&self.spec.text, |chosen| &chosen.text).clone();
        Advice { report, choice, own_nodes, changes, text }
    }

    /// Measures these candidates in turns.
    fn turns(
        &self,
        some: &[usize],
        busy_ns: &HashMap<String, Option<u64>>,
        rounds: u32,
        session: &Session<'_>,
    ) -> ScenarioReport {
        let share = share(self.plan, self.candidates.len(), rounds);
        let contender = |&at: &usize| {
            let candidate = &self.candidates[at];
            let mut request = candidate.request.clone();
            request.injections = stand_ins(&request.plan, busy_ns);
            let trial = Trial::new(session, request, share);
            (row_of(candidate), Box::new(trial) as Box<dyn Contender>)
        };
        measure(NAME, false, rounds, some.iter().map(contender).collect(), session)
    }

    fn measured<'b>(&'b self, rows: &'b [Row]) -> Vec<Measured<'b>> {
        let measured = |(row, candidate): (&'b Row, &'b Candidate)| Measured {
            row,
            plan: &candidate.request.plan,
            changes_meaning: candidate.alternative.ways.changes_meaning(),
        };
        rows.iter().zip(&self.candidates).map(measured).collect()
    }

    fn choose(&self, rows: &[Row], ruled_out: &RuledOut) -> Choice {
        let period_ns = period_ns_max(self.plan).unwrap_or_default();
        choose(&self.measured(rows), ruled_out, objective(self.plan), period_ns)
    }

    /// The candidates that have the same thread layout as candidate `at` and give all links the
    /// same way, and what their figures say about each link.
    fn of_links(&self, at: usize, measured: &[Measured<'_>]) -> (Vec<usize>, Vec<OfLink>) {
        let layout = self.candidates[at].alternative.layout;
        let is_one = |at: &usize| {
            let Alternative { layout: of, ways, .. } = &self.candidates[*at].alternative;
            *of == layout && matches!(ways, Ways::All(_)) && !ways.changes_meaning()
        };
        let same: Vec<usize> = (0..measured.len()).filter(is_one).collect();
        let ways: Vec<_> = same.iter().map(|&at| measured[at].clone()).collect();
        let period_ns = period_ns_max(self.plan).unwrap_or_default();
        let links = each::of_layout(&ways, objective(self.plan), period_ns);
        (same, links)
    }

    /// In every layout whose links do not agree on one way, gives each link a way of its own.
    /// Measures these candidates beside the graph as it is and the best so far. All other
    /// candidates are ruled out.
    fn last_turns(
        &mut self,
        report: &mut ScenarioReport,
        choice: &mut Choice,
        ruled_out: &mut RuledOut,
        busy_ns: &HashMap<String, Option<u64>>,
        session: &Session<'_>,
    ) {
        let count = self.candidates.len();
        self.mix(&report.rows);
        if self.candidates.len() == count {
            return;
        }
        let mut some: Vec<usize> = [Some(0), choice.chosen].into_iter().flatten().collect();
        some.dedup();
        let others = (0..count).filter(|at| !some.contains(at));
        ruled_out.extend(others.map(|at| (at, choice.words[at].clone())));
        some.extend(count..self.candidates.len());
        let last = self.turns(&some, busy_ns, report.rounds, session);
        report.partial |= last.partial;
        report.rows.resize_with(self.candidates.len(), Row::default);
        for (at, row) in some.into_iter().zip(last.rows) {
            report.rows[at] = row;
        }
        *choice = self.choose(&report.rows, ruled_out);
    }

    /// Adds the candidates with a way for each link.
    fn mix(&mut self, rows: &[Row]) {
        let mut made = vec![];
        for &layout in ThreadLayout::ALL {
            let first = self.candidates.iter().position(|it| it.alternative.layout == layout);
            let Some(first) = first else { continue };
            let (same, links) = self.of_links(first, &self.measured(rows));
            let crossings: Vec<LinkWay> = same
                .iter()
                .filter_map(|&at| match self.candidates[at].alternative.ways {
                    Ways::All(crossing) => Some(crossing),
                    Ways::Each(_) => None,
                })
                .collect();
            let Some(ways) = each::mixed(&crossings, &links) else { continue };
            made.extend(
                self.laid(layout).and_then(Result::ok).and_then(|it| it.with(Ways::Each(ways))),
            );
        }
        made.into_iter().for_each(|alternative| self.add(alternative));
    }

    /// Runs the choice with the graph's own nodes, and another choice if that one does not hold.
    /// Returns the figures of the choice that holds, unless that is the graph as it is.
    fn with_own_nodes(
        &self,
        stands: &Observation,
        report: &ScenarioReport,
        choice: &mut Choice,
        mut ruled_out: RuledOut,
        session: &Session<'_>,
    ) -> Option<Row> {
        let stood = Measured { row: &stands.row, plan: self.plan, changes_meaning: false };
        if let Some(why) = broken(&stood) {
            ruled_out.insert(0, why);
            *choice = self.choose(&report.rows, &ruled_out);
        }
        for _ in 0..TRIES {
            let at = choice.chosen.filter(|&at| at > 0 && !session.is_stopped())?;
            match self.holds(at, stands, session) {
                Ok(row) => return Some(row),
                Err(why) => ruled_out.insert(at, why),
            };
            *choice = self.choose(&report.rows, &ruled_out);
        }
        for at in 1..self.candidates.len() {
            let why = "not run with the graph's own nodes: others were run, and did not hold";
            ruled_out.entry(at).or_insert_with(|| why.into());
        }
        *choice = self.choose(&report.rows, &ruled_out);
        None
    }

    /// The figures of a candidate that runs with the graph's own nodes, or why it does not hold.
    fn holds(&self, at: usize, stands: &Observation, session: &Session<'_>) -> Result<Row, String> {
        let Observation { row: stands, watch, .. } = stands;
        let told = "the choice with its own nodes: they move";
        session.progress.at(told, Duration::ZERO, *watch);
        let spec = Spec { text: self.candidates[at].text.clone(), ..self.spec.clone() };
        let plan = self.compiled(&spec.text)?;
        let request = RunRequest::new(spec, plan.clone());
        let Observation { row, .. } = observe(request, *watch, session).map_err(|it| it.0)?;
        let of = |row, plan| Measured { row, plan, changes_meaning: false };
        match why_not(&of(&row, &plan), &of(stands, self.plan)) {
            None => Ok(row),
            Some(why) => Err(why),
        }
    }
}

/// Why there is nothing to choose, before anything is run.
fn nothing_to_choose(plan: &Plan) -> Option<String> {
    let name = &plan.name;
    let nothing = |why: &str| Some(format!("there is nothing to choose in graph '{name}': {why}"));
    let Some(period_ns) = period_ns_max(plan) else {
        let why = "it has no core: flows are calls, and the firewall settles how services are \
                   linked";
        return nothing(why);
    };
    if core_links(plan).next().is_none() {
        return nothing("no node of its core writes to another one");
    }
    (period_ns > PERIOD_NS_MAX).then(|| {
        let (period, most) = (duration_text(period_ns), duration_text(PERIOD_NS_MAX));
        format!(
            "graph '{name}' has a period of {period}; above {most} the cycles are too few to \
             measure alternatives in turns; use a shorter period"
        )
    })
}

fn period_ns_max(plan: &Plan) -> Option<u64> {
    plan.domains.iter().filter_map(|domain| Some(domain.realtime()?.period_ns)).max()
}

/// How long a turn is, without starting and stopping.
fn share(plan: &Plan, count: usize, rounds: u32) -> Duration {
    let turns = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
    let period = Duration::from_nanos(period_ns_max(plan).unwrap_or_default());
    (BUDGET / turns).saturating_sub(START).clamp(SHARE_MIN, SHARE_MAX).max(period * PERIODS_MIN)
}

fn row_of(Candidate { alternative, request, .. }: &Candidate) -> Row {
    let [transport, sync, wait, delivery] = alternative.ways.words();
    let plan = &request.plan;
    let most = plan.links.iter().map(|link| plan.isolation(link)).max_by_key(|it| *it as u8);
    Row::of(&[
        ("layout", alternative.layout.word()),
        ("transport", transport),
        ("sync", sync),
        ("wait", wait),
        ("delivery", delivery),
        ("isolation", most.unwrap_or(Isolation::None).word()),
    ])
}

/// Stand-ins for every node of the core.
fn stand_ins(core: &Plan, busy_ns: &HashMap<String, Option<u64>>) -> Vec<Injection> {
    let busy_ns = |name: &str| busy_ns.get(name).copied().flatten().unwrap_or(0);
    let nodes = core.nodes.iter().enumerate();
    nodes.map(|(at, node)| Injection::stand_in(at, busy_ns(&node.name))).collect()
}

//! What a graph should be on this machine: every sensible alternative of thread layout and link
//! options is measured with stand-ins for its nodes, and the best that keeps the requirements is
//! said, with the edits that make it so.

mod alternatives;
mod choose;
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
use sinew_spec::edit::{Change, Places, edit};
use sinew_spec::plan::{Isolation, Plan, Requirement};
use sinew_spec::{SpecSource, compile, core_of, duration_text};

use self::alternatives::{
    Alternative, Crossings, ThreadLayout, core_links, floor, lay_out, of_layout,
};
pub use self::choose::{Choice, Measured, Objective, choose, objective};
pub use self::observe::observe;
pub use self::receipt::Receipt;
use self::trial::{START, Trial};
use crate::report::{Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};
use crate::scenario::CannotRun;

/// What all rounds may take together, starting and stopping among it, about.
const BUDGET: Duration = Duration::from_secs(46);
/// What a turn takes at least and at most, beside starting and stopping.
const SHARE_MIN: Duration = Duration::from_millis(150);
const SHARE_MAX: Duration = Duration::from_millis(800);
/// A turn holds so many periods at least: with fewer there is no median.
const PERIODS_MIN: u32 = 40;
/// Longest period, ns: a turn of the most periods would take longer than two seconds, and all
/// turns longer than some minutes.
const PERIOD_NS_MAX: u64 = 50_000_000;
/// The turns of each alternative.
pub const ROUNDS: u32 = 5;
/// The name of the report.
const NAME: &str = "advise";

/// What a graph could be: all that compile, keep what must stand between nodes, and differ from
/// each other. The first is what stands there.
pub struct Alternatives<'a> {
    spec: &'a Spec,
    plan: &'a Plan,
    kinds: &'a [&'static Kind],
    candidates: Vec<Candidate>,
    /// What is to be said of those that were left out.
    notes: Vec<String>,
}

/// What is said of a graph.
pub struct Advice {
    /// All that was measured; the first row is what stands there.
    pub report: ScenarioReport,
    /// Which row is taken, and why not the others.
    pub choice: Choice,
    /// The edits of the spec that make it so; none if it stays.
    pub changes: Vec<Change>,
    /// The spec with them.
    pub text: String,
}

/// An alternative that compiles.
struct Candidate {
    alternative: Alternative,
    text: String,
    /// The core alone.
    request: RunRequest,
}

impl<'a> Alternatives<'a> {
    /// Finds them. `plan` was made of `spec` with these kinds. Nothing is run.
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
        let mut all = Alternatives { spec, plan, kinds, candidates: vec![], notes: vec![] };
        all.find().map_err(|why| CannotRun(format!("{}: {why}", spec.file)))?;
        Ok(all)
    }

    /// Measures them and chooses; each node of the plan computes so long in a cycle, ns. Starts and
    /// stops processes; blocks for about a minute, or until the session is stopped.
    pub fn measure(
        mut self,
        busy_ns: &[Option<u64>],
        rounds: u32,
        session: &Session<'_>,
    ) -> Advice {
        let share = share(self.plan, self.candidates.len(), rounds);
        let names = self.plan.nodes.iter().map(|node| node.name.as_str());
        let busy_ns: HashMap<_, _> = names.zip(busy_ns.iter().copied()).collect();
        for Candidate { request, .. } in &mut self.candidates {
            request.injections = stand_ins(&request.plan, &busy_ns);
        }
        let contenders = self.candidates.iter().map(|candidate| {
            let trial = Trial::new(session, candidate.request.clone(), share);
            (row_of(candidate), Box::new(trial) as Box<dyn Contender>)
        });
        let mut report = measure(NAME, false, rounds, contenders.collect(), session);
        report.notes = self.notes;
        let measured = report.rows.iter().zip(&self.candidates).map(|(row, candidate)| Measured {
            row,
            plan: &candidate.request.plan,
            changes_meaning: candidate.alternative.crossings.changes_meaning(),
        });
        let measured: Vec<_> = measured.collect();
        let period_ns = period_ns_max(self.plan).unwrap_or_default();
        let choice = choose(&measured, objective(self.plan), period_ns);
        let tables = tables::all(&measured, &choice);
        report.tables = tables;
        report.warning = Some(match choice.chosen {
            Some(0) => "Advice: the graph stays as it is".into(),
            Some(at) => format!("Advice: {}", report.rows[at].id()),
            None => "No alternative is shown to keep what the graph requires".into(),
        });
        let chosen = choice.chosen.map(|at| &self.candidates[at]);
        let changes = chosen.map_or(vec![], |chosen| chosen.alternative.changes.clone());
        let text = chosen.map_or(&self.spec.text, |chosen| &chosen.text).clone();
        Advice { report, choice, changes, text }
    }

    fn find(&mut self) -> Result<(), String> {
        let text = &self.spec.text;
        let cpus = self.spec.machine.cpus.len();
        let places = Places::of(text).ok_or("the spec cannot be read again")?;
        let mut seen = HashSet::new();
        for &layout in ThreadLayout::ALL {
            let Some(changes) = lay_out(self.plan, &places, layout, cpus) else { continue };
            let made = edit(text, &changes).map_err(|why| why.to_string());
            let laid = made.and_then(|text| Ok((self.compiled(&text)?, text)));
            let (laid, laid_text) = match laid {
                Ok(laid) => laid,
                Err(why) => {
                    self.notes.push(format!("layout {} cannot be had: {why}", layout.word()));
                    continue;
                }
            };
            let places = Places::of(&laid_text).ok_or("an edit went wrong")?;
            for alternative in of_layout(&laid, &places, layout, &changes) {
                let is_first = self.candidates.is_empty();
                if layout != ThreadLayout::AsItStands && is_far_fetched(alternative.crossings) {
                    continue;
                }
                match self.candidate(alternative) {
                    Ok((_, plan)) if !is_first && !keeps_floors(self.plan, &plan) => {}
                    Ok((candidate, plan)) if seen.insert(signature(&plan)) => {
                        self.candidates.push(candidate);
                    }
                    Ok(_) => {}
                    Err(why) if is_first => return Err(why),
                    Err(why) => self.notes.push(why),
                }
            }
        }
        Ok(())
    }

    /// An alternative that compiles, and the plan of its whole text.
    fn candidate(&self, alternative: Alternative) -> Result<(Candidate, Plan), String> {
        let spec = self.spec;
        let text = edit(&spec.text, &alternative.changes).map_err(|why| why.to_string())?;
        let plan = self.compiled(&text)?;
        let alone = core_of(&text, &plan).ok_or("the spec is no graph with domains")?;
        let inside = |node: &str| {
            let found = plan.nodes.iter().position(|it| it.name == node);
            found.is_some_and(|at| !plan.is_service(at))
        };
        let of_core = |(name, _): &&(String, String)| {
            name.split_once('.').is_some_and(|(node, _)| inside(node))
        };
        let overrides = spec.overrides.iter().filter(of_core).cloned().collect();
        let (file, base) = (spec.file.clone(), spec.base.clone());
        let (machine, images) = (spec.machine.clone(), Vec::new());
        let alone = Spec { file, text: alone, base, overrides, images, machine };
        let mut core = compiled(&alone, &alone.text, self.kinds)
            .map_err(|why| format!("its core cannot be measured without its services: {why}"))?;
        tell_lines(&mut core, self.plan);
        Ok((Candidate { alternative, text, request: RunRequest::new(alone, core) }, plan))
    }

    fn compiled(&self, text: &str) -> Result<Plan, String> {
        compiled(self.spec, text, self.kinds)
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
            "graph '{name}' has a period of {period}, and cycles further apart than {most} are too \
             few to be measured in turns; ask with a shorter period"
        )
    })
}

fn period_ns_max(plan: &Plan) -> Option<u64> {
    plan.domains.iter().filter_map(|domain| Some(domain.realtime()?.period_ns)).max()
}

/// How long a turn is.
fn share(plan: &Plan, count: usize, rounds: u32) -> Duration {
    let turns = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
    let period = Duration::from_nanos(period_ns_max(plan).unwrap_or_default());
    (BUDGET / turns).saturating_sub(START).clamp(SHARE_MIN, SHARE_MAX).max(period * PERIODS_MIN)
}

fn row_of(Candidate { alternative, request, .. }: &Candidate) -> Row {
    let [transport, sync, wait, delivery] = alternative.crossings.words();
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

/// What is measured where the threads stand, and not once more for each other layout.
fn is_far_fetched(crossings: Crossings) -> bool {
    crossings.changes_meaning() || matches!(crossings, Crossings::Stream(..))
}

/// What is the same of two plans that would run alike.
fn signature(plan: &Plan) -> String {
    let threads = plan.domains.iter().map(|domain| domain.threads().to_vec());
    let links = plan.links.iter().map(|link| {
        let options = (link.transport, link.sync, link.wait, link.delivery);
        (link.fused, (!link.fused).then_some(options))
    });
    let (threads, links) = (threads.collect::<Vec<_>>(), links.collect::<Vec<_>>());
    format!("{threads:?} {links:?}")
}

/// Whether every link has what must stand between its ends.
fn keeps_floors(plan: &Plan, of: &Plan) -> bool {
    core_links(plan).all(|(at, _)| {
        let name = plan.link_name(at);
        let same = (0..of.links.len()).find(|&other| of.link_name(other) == name);
        same.is_some_and(|same| of.isolation(&of.links[same]).holds(floor(plan, at)))
    })
}

/// The requirements of the core get the lines on which they stand in the user's spec.
fn tell_lines(core: &mut Plan, user: &Plan) {
    for at in 0..core.requirements.len() {
        let (bound, subject) = (core.requirements[at].bound, core.requirements[at].subject(core));
        let is_it = |it: &&Requirement| it.bound == bound && it.subject(user) == subject;
        if let Some(written) = user.requirements.iter().find(is_it) {
            core.requirements[at].line = written.line;
        }
    }
}

/// Every node of the core is imitated.
fn stand_ins(core: &Plan, busy_ns: &HashMap<&str, Option<u64>>) -> Vec<Injection> {
    let busy_ns = |name: &str| busy_ns.get(name).copied().flatten().unwrap_or(0);
    let nodes = core.nodes.iter().enumerate();
    nodes.map(|(at, node)| Injection::stand_in(at, busy_ns(&node.name))).collect()
}

/// The plan of a text in the place of the spec's; the error is the first of the text.
fn compiled(spec: &Spec, text: &str, kinds: &[&'static Kind]) -> Result<Plan, String> {
    let Spec { file, overrides, images, machine, .. } = spec;
    let source = SpecSource { file, text, overrides, images };
    compile(&source, kinds, machine)
        .map_err(|errors| errors.first().map_or_else(String::new, |error| error.message.clone()))
}

//! What a graph should be on this machine: every sensible alternative of thread layout and link
//! options is measured with stand-ins for its nodes, and the best that keeps the requirements is
//! said, with the edits that make it so.

mod alternatives;
mod choose;
mod observe;
mod receipt;
mod tables;
mod trial;

use std::collections::HashSet;
use std::time::Duration;

use sinew_control::Spec;
use sinew_core::catalogue::Kind;
use sinew_runtime::inject::Injection;
use sinew_runtime::run::RunRequest;
use sinew_spec::edit::{Change, Places, edit};
use sinew_spec::plan::{Isolation, Plan, Requirement, TargetMachine};
use sinew_spec::{GuestImage, SpecSource, compile, core_of};

use self::alternatives::{
    Alternative, Crossings, ThreadLayout, core_links, floor, lay_out, of_layout,
};
pub use self::choose::{Choice, Measured, Objective, choose, objective};
pub use self::observe::{Observation, observe};
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
/// A turn holds so many periods at least.
const PERIODS_MIN: u32 = 40;
/// The turns of each alternative.
pub const ROUNDS: u32 = 5;
/// The name of the report.
const NAME: &str = "advise";

/// The graph that advice is asked for.
pub struct AdviseRequest<'a> {
    /// The spec: file, text, folder, overrides.
    pub spec: &'a Spec,
    /// What was made of it.
    pub plan: &'a Plan,
    /// The kinds of its nodes.
    pub kinds: &'a [&'static Kind],
    /// How long each node of the plan computes in a cycle, ns; `None` of a service.
    pub busy_ns: &'a [Option<u64>],
    /// Turns of each alternative.
    pub rounds: u32,
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
    plan: Plan,
    /// The core alone.
    request: RunRequest,
}

/// Measures the alternatives of a graph and chooses. Starts and stops processes; blocks for about a
/// minute, or until the session is stopped.
///
/// # Errors
/// There is nothing to choose, or the core cannot be measured on its own.
pub fn advise(request: &AdviseRequest<'_>, session: &Session<'_>) -> Result<Advice, CannotRun> {
    let plan = request.plan;
    if core_links(plan).next().is_none() {
        return Err(CannotRun(nothing_to_choose(plan)));
    }
    let (candidates, notes) = candidates(request)?;
    let share = share(plan, candidates.len(), request.rounds);
    let contenders = candidates.iter().map(|candidate| {
        let trial = Trial::new(session, candidate.request.clone(), share);
        (row_of(candidate), Box::new(trial) as Box<dyn Contender>)
    });
    let mut report = measure(NAME, false, request.rounds, contenders.collect(), session);
    report.notes = notes;
    let measured = report.rows.iter().zip(&candidates).map(|(row, candidate)| Measured {
        row,
        plan: &candidate.request.plan,
        changes_meaning: candidate.alternative.crossings.changes_meaning(),
    });
    let measured: Vec<_> = measured.collect();
    let choice = choose(&measured, objective(plan));
    let tables = tables::all(&measured, &choice);
    report.tables = tables;
    let chosen = choice.chosen.map(|at| &candidates[at]);
    let changes = chosen.map_or(vec![], |chosen| chosen.alternative.changes.clone());
    let text = chosen.map_or(&request.spec.text, |chosen| &chosen.text).clone();
    Ok(Advice { report, choice, changes, text })
}

fn nothing_to_choose(plan: &Plan) -> String {
    let name = &plan.name;
    let why = match plan.domains.iter().any(|domain| domain.realtime().is_some()) {
        true => "no node of its core writes to another one",
        false => {
            "it has no core: flows are calls, and the firewall settles how services are linked"
        }
    };
    format!("there is nothing to choose in graph '{name}': {why}")
}

/// How long a turn is.
fn share(plan: &Plan, count: usize, rounds: u32) -> Duration {
    let turns = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
    let periods = plan.domains.iter().filter_map(|domain| Some(domain.realtime()?.period_ns));
    let period = Duration::from_nanos(periods.max().unwrap_or_default());
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

/// All that compile, keep what must stand between nodes, and differ from each other; the first is
/// what stands there. With them what is to be said of those that were left out.
fn candidates(request: &AdviseRequest<'_>) -> Result<(Vec<Candidate>, Vec<String>), CannotRun> {
    let (plan, text) = (request.plan, &request.spec.text);
    let cpus = request.spec.machine.cpus.len();
    let cannot = |why: &str| CannotRun(format!("{}: {why}", request.spec.file));
    let places = Places::of(text).ok_or_else(|| cannot("the spec cannot be read again"))?;
    let (mut all, mut notes, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for &layout in ThreadLayout::ALL {
        let Some(changes) = lay_out(plan, &places, layout, cpus) else { continue };
        let made = edit(text, &changes).map_err(|why| why.to_string());
        let laid = made.and_then(|text| Ok((compiled(request, &text)?, text)));
        let (laid, laid_text) = match laid {
            Ok(laid) => laid,
            Err(why) => {
                notes.push(format!("layout {} cannot be had: {why}", layout.word()));
                continue;
            }
        };
        let places = Places::of(&laid_text).ok_or_else(|| cannot("an edit went wrong"))?;
        for alternative in of_layout(&laid, &places, layout, &changes) {
            if layout != ThreadLayout::AsItStands && is_far_fetched(alternative.crossings) {
                continue;
            }
            match candidate(request, alternative) {
                Ok(candidate) if !keeps_floors(plan, &candidate.plan) && !all.is_empty() => {}
                Ok(candidate) => {
                    if seen.insert(signature(&candidate.plan)) {
                        all.push(candidate);
                    }
                }
                Err(why) if all.is_empty() => return Err(cannot(&why)),
                Err(why) => notes.push(why),
            }
        }
    }
    Ok((all, notes))
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

fn candidate(request: &AdviseRequest<'_>, alternative: Alternative) -> Result<Candidate, String> {
    let spec = request.spec;
    let text = edit(&spec.text, &alternative.changes).map_err(|why| why.to_string())?;
    let plan = compiled(request, &text)?;
    let alone = core_of(&text, &plan).ok_or("the spec is no graph with domains")?;
    let inside = |node: &str| {
        let found = plan.nodes.iter().position(|it| it.name == node);
        found.is_some_and(|at| !plan.is_service(at))
    };
    let overrides = spec
        .overrides
        .iter()
        .filter(|(name, _)| name.split_once('.').is_some_and(|(node, _)| inside(node)));
    let overrides: Vec<_> = overrides.cloned().collect();
    let (machine, images) = (spec.machine.clone(), Vec::new());
    let mut core = compile_text(&spec.file, &alone, &overrides, &[], request.kinds, &machine)
        .map_err(|why| format!("its core cannot be measured without its services: {why}"))?;
    tell_lines(&mut core, request.plan);
    let injections = stand_ins(request, &core);
    let (file, base) = (spec.file.clone(), spec.base.clone());
    let alone = Spec { file, text: alone, base, overrides, images, machine };
    let request = RunRequest { injections, ..RunRequest::new(alone, core) };
    Ok(Candidate { alternative, text, plan, request })
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
fn stand_ins(request: &AdviseRequest<'_>, core: &Plan) -> Vec<Injection> {
    let busy_ns = |name: &str| {
        let at = request.plan.nodes.iter().position(|node| node.name == name)?;
        request.busy_ns[at]
    };
    let nodes = core.nodes.iter().enumerate();
    nodes.map(|(at, node)| Injection::stand_in(at, busy_ns(&node.name).unwrap_or(0))).collect()
}

fn compiled(request: &AdviseRequest<'_>, text: &str) -> Result<Plan, String> {
    let Spec { file, overrides, images, machine, .. } = request.spec;
    compile_text(file, text, overrides, images, request.kinds, machine)
}

fn compile_text(
    file: &str,
    text: &str,
    overrides: &[(String, String)],
    images: &[GuestImage],
    kinds: &[&'static Kind],
    machine: &TargetMachine,
) -> Result<Plan, String> {
    let source = SpecSource { file, text, overrides, images };
    compile(&source, kinds, machine)
        .map_err(|errors| errors.first().map_or_else(String::new, |error| error.message.clone()))
}

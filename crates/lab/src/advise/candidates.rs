//! The alternatives of a graph that compile, keep what must stand between nodes, and differ from
//! each other.

use sinew_control::Spec;
use sinew_core::catalogue::Kind;
use sinew_runtime::run::RunRequest;
use sinew_spec::edit::{Places, edit};
use sinew_spec::plan::{Plan, Requirement};
use sinew_spec::{SpecSource, compile, core_of};

use super::Alternatives;
use super::alternatives::{Alternative, Laid, ThreadLayout, core_links, floor, lay_out};

/// An alternative that compiles.
pub(super) struct Candidate {
    pub(super) alternative: Alternative,
    pub(super) text: String,
    /// How to run the core alone.
    pub(super) request: RunRequest,
}

impl Alternatives<'_> {
    pub(super) fn find(&mut self) -> Result<(), String> {
        for &layout in ThreadLayout::ALL {
            let laid = match self.laid(layout) {
                None => continue,
                Some(Ok(laid)) => laid,
                Some(Err(why)) => {
                    self.notes.push(format!("layout {} is not possible: {why}", layout.word()));
                    continue;
                }
            };
            for alternative in laid.uniform() {
                let is_first = self.candidates.is_empty();
                if alternative.ways.is_far_fetched(layout) {
                    continue;
                }
                let notes = self.notes.len();
                self.add(alternative);
                if is_first && self.candidates.is_empty() {
                    return Err(self.notes.split_off(notes).concat());
                }
            }
        }
        Ok(())
    }

    /// The threads in this layout; `None` if it is the layout that the spec has already, or one
    /// that this graph cannot have.
    pub(super) fn laid(&self, layout: ThreadLayout) -> Option<Result<Laid, String>> {
        let laid = || {
            let text = &self.spec.text;
            let places = Places::of(text).ok_or("the spec cannot be read again")?;
            let cpus = &self.spec.machine.cpus;
            let Some(changes) = lay_out(self.plan, &places, layout, cpus) else { return Ok(None) };
            let text = edit(text, &changes).map_err(|why| why.to_string())?;
            let plan = self.compiled(&text)?;
            let places = Places::of(&text).ok_or("an edit went wrong")?;
            Ok(Some(Laid { layout, changes, places, plan }))
        };
        laid().transpose()
    }

    /// Adds an alternative if it compiles, keeps what must stand between nodes, and is not yet
    /// among the candidates.
    pub(super) fn add(&mut self, alternative: Alternative) {
        let is_first = self.candidates.is_empty();
        match self.candidate(alternative) {
            Ok((_, plan)) if !is_first && !keeps_floors(self.plan, &plan) => {}
            Ok((candidate, plan)) => {
                if self.signatures.insert(signature(&plan)) {
                    self.candidates.push(candidate);
                }
            }
            Err(why) => self.notes.push(why),
        }
    }

    /// An alternative that compiles, and the plan of its whole text.
    fn candidate(&self, alternative: Alternative) -> Result<(Candidate, Plan), String> {
        let spec = self.spec;
        let text = edit(&spec.text, &alternative.changes).map_err(|why| why.to_string())?;
        let plan = self.compiled(&text)?;
        let alone = core_of(&text, &plan).ok_or("the spec is not a graph with domains")?;
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
        let outside = spec.outside.clone();
        let (text_alone, host, observe) = (alone, None, spec.observe);
        let alone = Spec {
            text: text_alone,
            file,
            base,
            overrides,
            images,
            outside,
            host,
            observe,
            machine,
        };
        let mut core = compiled(&alone, &alone.text, self.kinds)
            .map_err(|why| format!("its core cannot be measured without its services: {why}"))?;
        tell_lines(&mut core, self.plan);
        Ok((Candidate { alternative, text, request: RunRequest::new(alone, core) }, plan))
    }

    pub(super) fn compiled(&self, text: &str) -> Result<Plan, String> {
        compiled(self.spec, text, self.kinds)
    }
}

/// What is equal in two plans that would run alike.
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

/// Gives the requirements of the core the line numbers that they have in the user's spec.
fn tell_lines(core: &mut Plan, user: &Plan) {
    for at in 0..core.requirements.len() {
        let (bound, subject) = (core.requirements[at].bound, core.requirements[at].subject(core));
        let is_it = |it: &&Requirement| it.bound == bound && it.subject(user) == subject;
        if let Some(written) = user.requirements.iter().find(is_it) {
            core.requirements[at].line = written.line;
        }
    }
}

/// The plan of a text that replaces the spec's; the error is the first one in the text.
fn compiled(spec: &Spec, text: &str, kinds: &[&'static Kind]) -> Result<Plan, String> {
    let Spec { file, overrides, images, outside, host, machine, .. } = spec;
    let host = host.as_deref();
    let source = SpecSource { overrides, images, outside, host, ..SpecSource::of(file, text) };
    compile(&source, kinds, machine)
        .map_err(|errors| errors.first().map_or_else(String::new, |error| error.message.clone()))
}

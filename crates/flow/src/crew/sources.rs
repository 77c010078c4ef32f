//! The sources of a domain. They are opened for all workers, and each worker serves its part. Also
//! what becomes of them when an edited graph replaces the running one.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use futures_util::FutureExt;
use sinew_control::Request;
use sinew_core::Parameters;
use sinew_core::fault::{Cause, Fault};
use sinew_core::panics;
use sinew_spec::plan::Node;
use tokio::task::JoinSet;

use crate::across::called::Called;
use crate::crew::shared::{Graph, Parts, Shared, at, refused};
use crate::entry::{Make, entry};
use crate::{Held, Local, Outlet, Program, StopSignal, Stopper};

/// Kind and name of each source, and what its replacement may take over.
pub(crate) type HeldBy = BTreeMap<(&'static str, String), Vec<Held>>;

/// Sources that are open: the part of each worker, and what they hold.
pub(crate) struct OpenSources {
    pub(crate) parts: Vec<Parts>,
    pub(crate) held: HeldBy,
    pub(crate) addresses: Addresses,
}

/// Where people reach sources, each with its node by index of the plan.
pub(crate) type Addresses = Vec<(usize, String)>;

/// Opens the sources of a graph that `is_new` lets through; `before` is what the sources that they
/// replace hold.
///
/// # Errors
/// The node that cannot be made or opened, and why.
pub(crate) fn open(
    shared: &Shared,
    graph: &Graph,
    is_new: impl Fn(&Node) -> bool,
    before: &HeldBy,
) -> Result<OpenSources, (usize, Fault)> {
    let mut parts: Vec<Parts> = (0..shared.setup.workers).map(|_| Vec::new()).collect();
    let (mut held, mut addresses) = (HeldBy::new(), Addresses::new());
    for &index in graph.nodes.iter() {
        let node = &graph.plan.nodes[index];
        let Make::Source(make) = entry(&shared.setup.table, node).make else { continue };
        if !is_new(node) {
            continue;
        }
        let made = make(&Parameters::of(&graph.plan, node, &shared.setup.spec.base));
        let made = made.map_err(|refusals| (index, refused(index, &refusals).fault))?;
        let kind = node.kind.name;
        let same_kind = before.iter().filter(|((other, _), _)| *other == kind);
        let known: Vec<Held> = same_kind.flat_map(|(_, held)| held.iter().cloned()).collect();
        let opened =
            made.open_after(shared.setup.workers, &known).map_err(|fault| (index, fault))?;
        let holds = opened.iter().filter_map(|part| part.held()).collect();
        held.insert((kind, node.name.clone()), holds);
        let address = opened.first().and_then(|part| part.address());
        addresses.extend(address.map(|address| (index, address)));
        for (parts, part) in parts.iter_mut().zip(opened) {
            parts.push((node.name.clone(), part));
        }
    }
    Ok(OpenSources { parts, held, addresses })
}

/// Says where people reach sources, once it is certain that they will serve.
///
/// # Errors
/// The node whose address the supervisor does not take, and why.
pub(crate) fn announce(shared: &Shared, addresses: Addresses) -> Result<(), (usize, Fault)> {
    let Some(supervisor) = &shared.setup.supervisor else { return Ok(()) };
    for (node, address) in addresses {
        let said = supervisor.order(&Request::Announce { address });
        said.map_err(|text| (node, Fault::new(Cause::System, format_args!("{text}"))))?;
    }
    Ok(())
}

/// The sources that serve in one worker.
pub(crate) struct Sources {
    program: Rc<Program>,
    shared: Arc<Shared>,
    serving: Vec<Serving>,
    /// Sources that an edit has stopped; they end when they can.
    ending: Vec<Stopper>,
    /// Futures of the sources that serve and of those that end.
    lives: JoinSet<()>,
    /// What serves other domains.
    called: Called,
}

/// A source that serves.
struct Serving {
    name: String,
    outlet: Outlet,
    stopper: Stopper,
}

impl Sources {
    /// No sources yet; their flows are to begin in `program`.
    pub(crate) fn new(program: Rc<Program>, shared: Arc<Shared>) -> Sources {
        let called = Called::new(Rc::clone(&program), program.base.teller.clone());
        let (serving, ending, lives) = (Vec::new(), Vec::new(), JoinSet::new());
        Sources { program, shared, serving, ending, lives, called }
    }

    /// The program in which flows begin.
    pub(crate) fn program(&self) -> &Rc<Program> {
        &self.program
    }

    /// What serves other domains.
    pub(crate) fn called(&self) -> &Called {
        &self.called
    }

    /// Lets sources begin.
    pub(crate) fn begin(&mut self, parts: Parts) {
        for (name, part) in parts {
            let place = self.program.find(&name).expect("a source of this program");
            let outlet = Outlet::new(Rc::clone(&self.program), place);
            let (stopper, stop) = StopSignal::new();
            let (stopped, of) = (stop.clone(), outlet.clone());
            // As a boxed future, so that a panic before its first wait is caught like a later one.
            let serves = async move { part.serve(of, stop).await }.boxed_local();
            let (shared, program) = (Arc::clone(&self.shared), Rc::downgrade(&self.program));
            self.lives.spawn_local(live(name.clone(), serves, stopped, shared, program));
            self.serving.push(Serving { name, outlet, stopper });
        }
    }

    /// From now on flows begin in `program`. The sources that `stay` names go on as they are, all
    /// others stop, and those of `parts` begin. Returns how many flows are still to end in the old
    /// program.
    pub(crate) fn swap(&mut self, program: Rc<Program>, stay: &[String], parts: Parts) -> u64 {
        // Removes the sources that have ended.
        while self.lives.try_join_next().is_some() {}
        if self.lives.len() == self.serving.len() {
            self.ending.clear();
        }
        let before = std::mem::replace(&mut self.program, program);
        self.called.lead(&self.program);
        let (kept, stop): (Vec<_>, Vec<_>) =
            self.serving.drain(..).partition(|source| stay.contains(&source.name));
        for source in &kept {
            let place = self.program.find(&source.name).expect("a source of both programs");
            source.outlet.lead(&self.program, place);
        }
        self.serving = kept;
        // A source that had ended before has no outlet any more.
        let ending = stop.iter().filter(|source| source.outlet.is_shared()).count();
        stop.iter().for_each(|source| source.stopper.make_way());
        self.ending.extend(stop.into_iter().map(|source| source.stopper));
        self.begin(parts);
        before.retirement.begin();
        // Each reference belongs to a flow, except our own and those of sources that end.
        (Rc::strong_count(&before) - 1 - ending) as u64
    }

    /// Tells all sources to stop. Waits until they have ended, and also the flows that they had
    /// begun and the children of these flows.
    pub(crate) async fn end(&mut self) {
        let serving = self.serving.drain(..).map(|source| source.stopper);
        serving.chain(self.ending.drain(..)).for_each(|stopper| stopper.end());
        self.program.retirement.begin();
        self.called.close();
        while self.lives.join_next().await.is_some() {}
        self.program.base.children.all_ended().await;
        self.called.all_said().await;
    }
}

/// A source's life in this worker. It may end only after the stop; any other end, also a panic, is
/// the domain's fault. If an edit has stopped the source, its failure is only logged: the graph
/// does without it.
async fn live(
    name: String,
    serves: Local<'static, Result<(), Fault>>,
    stopped: StopSignal,
    shared: Arc<Shared>,
    program: Weak<Program>,
) {
    let served = AssertUnwindSafe(serves).catch_unwind().await;
    let Err(fault) = served.unwrap_or_else(|panic| Err(panics::take_or(&*panic))) else { return };
    let halt = &shared.setup.halt;
    match program.upgrade() {
        Some(program) if stopped.is_set() && !halt.is_stopping() => {
            program.base.teller.say(format_args!("node '{name}' as it stopped: {fault}"));
        }
        _ => halt.fault(match shared.born(&name) {
            Some(node) => at(Some(node), fault),
            None => at(None, Fault::new(Cause::Error, format_args!("node '{name}': {fault}"))),
        }),
    }
}

#[cfg(test)]
mod tests;

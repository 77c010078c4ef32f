//! Faults on purpose, for `sinew drill`: wrappers around nodes, services and writing ends that let
//! a given fault happen at a given cycle. There is a wrapper only where an injection names the
//! node or the link; a run without injections has none and pays nothing.

mod link;
mod node;
mod service;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGKILL, SIGSEGV, SIGSTOP};
use signal_hook::low_level::{emulate_default_handler, raise};
use sinew_spec::plan::Plan;

use crate::fault::{Cause, Fault};
use crate::node::Node;
use crate::service::Service;
use crate::transport::Sender;

/// A fault that is to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// To whom.
    pub target: Target,
    /// When: the number of the cycle of the node's thread, for a link that of its writer's thread,
    /// for a service that of its heartbeat.
    pub at_cycle: u64,
    /// What.
    pub what: What,
}

/// To whom a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node: index into [`Plan::nodes`].
    Node(usize),
    /// A link between threads or processes, at its writing end: index into [`Plan::links`].
    Link(usize),
}

/// What happens. The first eleven happen to nodes, the others to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It panics instead of its update.
    Panic,
    /// It returns an error instead of its update.
    Error,
    /// It raises SIGSEGV with the default action. (A raised one: this crate has no wild pointer to
    /// follow. The kernel ends the process in the same way.)
    Segv,
    /// It sends SIGKILL to its own process, in the middle of a cycle.
    Kill,
    /// It sends SIGSTOP to its own process, in the middle of a cycle.
    Stop,
    /// It never comes back from its update; it sleeps.
    Hang,
    /// After its update there is a NaN in each output that holds numbers.
    NotFinite,
    /// It is busy for so many periods before its update.
    Late {
        /// Periods; of a service, pauses between heartbeats that are a second apart.
        cycles: u32,
    },
    /// It refuses to start.
    FailStart,
    /// The writing end is closed; what is written afterwards goes nowhere, and the writer is told
    /// that it went well.
    PeerGone,
    /// So many messages are held back and lost; the writer is told that they went well.
    Stalled {
        /// How many.
        messages: u64,
    },
}

impl Injection {
    fn of(injections: &[Injection], target: Target) -> Vec<Injection> {
        injections.iter().filter(|injection| injection.target == target).cloned().collect()
    }
}

/// The node, or a wrapper of it if an injection names it.
pub(crate) fn node(
    node: Box<dyn Node>,
    plan: &Plan,
    index: usize,
    injections: &[Injection],
) -> Box<dyn Node> {
    match Injection::of(injections, Target::Node(index)) {
        none if none.is_empty() => node,
        injections => Box::new(node::Injected::new(node, plan.nodes[index].kind, injections)),
    }
}

/// The service, or a wrapper of it if an injection names it.
pub(crate) fn service(
    service: Box<dyn Service>,
    index: usize,
    injections: &[Injection],
) -> Box<dyn Service> {
    match Injection::of(injections, Target::Node(index)) {
        none if none.is_empty() => service,
        injections => Box::new(service::Injected::new(service, injections)),
    }
}

/// The writing end, or a wrapper of it if an injection names its link.
pub(crate) fn sender(
    sender: Box<dyn Sender>,
    link: usize,
    injections: &[Injection],
) -> Box<dyn Sender> {
    match Injection::of(injections, Target::Link(link)) {
        none if none.is_empty() => sender,
        injections => Box::new(link::Injected::new(sender, injections)),
    }
}

/// The fault of [`What::Error`] and [`What::FailStart`].
fn error(text: &str) -> Fault {
    Fault::new(Cause::Error, format_args!("injected by a drill: {text}"))
}

/// Ends or stops this process as [`What::Segv`], [`What::Kill`] and [`What::Stop`] say; returns
/// after the last, once somebody continues the process.
fn signal(what: What) {
    // Nothing is to be done if the kernel refuses: whoever injected it looks whether it happened.
    let _ = match what {
        What::Segv => {
            leave_no_core_file();
            // The standard library has a handler of its own, which a raised signal would survive.
            emulate_default_handler(SIGSEGV)
        }
        What::Kill => raise(SIGKILL),
        _ => raise(SIGSTOP),
    };
}

/// A drill leaves no file behind, and a death that writes one takes longer than it may.
fn leave_no_core_file() {
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    // If it is refused, there is a file.
    let _ = setrlimit(Resource::Core, limit);
}

/// Never comes back.
fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests;

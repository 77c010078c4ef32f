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
use sinew_spec::catalogue::{MessageType, Scalar};
use sinew_spec::plan::Plan;

use crate::service::Service;
use sinew_core::cycle::assemble::Wrap;
use sinew_core::fault::{Cause, Fault};
use sinew_core::node::Node;
use sinew_core::transport::{Carrier, Sender, Shape, row};

pub(crate) use self::link::spoil;
pub(crate) use self::service::Heartbeats;

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
        /// Periods; of a service, tenths of a second: so often it beats as it waits.
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
    /// Garbage stands in all words of the region, for ten cycles new one in each; nothing else is
    /// sent any more. (A byte stream has no region: it stalls.)
    Hostile,
}

impl Injection {
    fn of(injections: &[Injection], target: Target) -> Vec<Injection> {
        injections.iter().filter(|injection| injection.target == target).cloned().collect()
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

/// The injections of a run: a wrapper around each node and each writing end that one of them names.
pub(crate) struct Injections<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) all: &'a [Injection],
}

impl Wrap for Injections<'_> {
    fn node(&self, node: Box<dyn Node>, index: usize) -> Box<dyn Node> {
        let kind = self.plan.nodes[index].kind;
        match Injection::of(self.all, Target::Node(index)) {
            none if none.is_empty() => node,
            injections => Box::new(node::Injected::new(node, kind, injections)),
        }
    }

    fn sender(&self, carrier: Carrier, link: usize) -> Result<Box<dyn Sender>, Fault> {
        let planned = &self.plan.links[link];
        let region = match &carrier {
            Carrier::Region(region) => Some(region.clone()),
            Carrier::Stream(_) => None,
        };
        let sender = (row(planned.transport).sender)(carrier, &Shape::of(planned))?;
        Ok(match Injection::of(self.all, Target::Link(link)) {
            none if none.is_empty() => sender,
            injections => Box::new(link::Injected::new(sender, region, injections)),
        })
    }
}

/// The fault of [`What::Error`] and [`What::FailStart`].
fn error(text: &str) -> Fault {
    Fault::new(Cause::Error, format_args!("injected by a drill: {text}"))
}

/// Puts a NaN in the place of the first number of a message; without effect if it has none.
fn write_nan(message: &mut [u8], ty: &MessageType) {
    for field in ty.fields {
        let at = field.offset as usize;
        match field.scalar {
            Scalar::F64 => return message[at..at + 8].copy_from_slice(&f64::NAN.to_ne_bytes()),
            Scalar::F32 => return message[at..at + 4].copy_from_slice(&f32::NAN.to_ne_bytes()),
            _ => {}
        }
    }
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

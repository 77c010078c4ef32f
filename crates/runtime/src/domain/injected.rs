//! Faults on purpose: wrappers around nodes, services and writing ends that let a given fault
//! happen at a given cycle. There is a wrapper only where an injection names the node or the link;
//! a run without injections has none and pays nothing.

mod link;
mod node;
mod service;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGKILL, SIGSEGV, SIGSTOP};
use signal_hook::low_level::{emulate_default_handler, raise};
use sinew_core::cycle::assemble::Wrap;
use sinew_core::fault::{Cause, Fault};
use sinew_core::node::Node;
use sinew_core::transport::{Carrier, Sender, Shape, row};
use sinew_spec::catalogue::{MessageType, Scalar};
use sinew_spec::plan::Plan;

use crate::inject::{Injection, Target, What};
use crate::service::Service;

/// The service, or a wrapper of it if an injection names it.
pub(super) fn service(
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
pub(super) struct Injections<'a> {
    pub(super) plan: &'a Plan,
    pub(super) all: &'a [Injection],
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

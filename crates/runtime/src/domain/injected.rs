//! Faults on purpose: wrappers around nodes, services and writing ends that make a given fault
//! happen at a given cycle. There is a wrapper only where an injection names the node or the link;
//! a run without injections has none, at no cost.

mod link;
mod node;
mod service;
mod stand_in;

use sinew_core::cycle::assemble::Wrap;
use sinew_core::fault::Fault;
use sinew_core::node::Node;
use sinew_core::transport::{Carrier, LinkShape, Sender, row};
use sinew_spec::plan::Plan;

use crate::inject::{Injection, Target};
use crate::service::Service;

/// The service, or a wrapper of it if an injection names it.
pub(super) fn service(
    service: Box<dyn Service>,
    index: usize,
    injections: &[Injection],
) -> Box<dyn Service> {
    match Injection::of(injections, Target::Node(index)) {
        None => service,
        Some(injections) => Box::new(service::InjectedService { service, injections }),
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
            None => node,
            Some(injections) => match injections.iter().find_map(Injection::stands_in) {
                Some(busy_ns) => Box::new(stand_in::StandIn::new(kind, busy_ns)),
                None => Box::new(node::InjectedNode::new(node, kind, injections)),
            },
        }
    }

    fn sender(&self, carrier: Carrier, link: usize) -> Result<Box<dyn Sender>, Fault> {
        let planned = &self.plan.links[link];
        let region = carrier.region().cloned();
        let sender = (row(planned.transport).sender)(carrier, &LinkShape::of(planned))?;
        Ok(match Injection::of(self.all, Target::Link(link)) {
            None => sender,
            Some(injections) => Box::new(link::InjectedLink::new(sender, region, injections)),
        })
    }
}

#[cfg(test)]
mod tests;

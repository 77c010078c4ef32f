//! Links that a service has broken: it wrote over their region what no peer may. The core goes on
//! without them, in this life and the next ones; that is told once.
//!
//! A new region would have to reach a core that runs: a system call between two cycles, for a
//! service that was found to write where it must not. So what it has broken stays broken until
//! the graph is run again.

use super::Run;
use crate::assemble::link_ends;
use crate::clock::now_ns;
use crate::inject;
use crate::status::EventKind;

impl Run {
    /// Makes an event of each link that is broken since the last call.
    pub(super) fn tell_broken(&mut self) {
        let mut found = Vec::new();
        for (domain, planned) in self.domains.iter().zip(&self.request.plan.domains) {
            for (thread, planned) in domain.threads.iter().zip(planned.threads()) {
                let ends = &thread.counts.links;
                // Almost always none is: nothing is allocated for that.
                if ends.iter().any(|&(_, broken)| broken) {
                    let links = link_ends(&self.request.plan, &planned.nodes);
                    let broken = links.into_iter().zip(ends).filter(|(_, end)| end.1);
                    found.extend(broken.map(|(link, _)| link));
                }
            }
        }
        for link in found {
            if self.broken.insert(link) {
                let (service, text) = self.broken_text(link);
                self.events.add(EventKind::Note, Some(&service), text);
            }
        }
    }

    /// Writes garbage over the region of a link between domains, as a service that has lost its way
    /// would: for a drill, where the writer itself may never send. Whether the link has a region.
    pub fn spoil(&self, link: usize) -> bool {
        let region = self.carriers.region(&self.request.plan, link);
        region.inspect(|region| inject::spoil(region, &mut now_ns())).is_some()
    }

    /// What is to be said of each link that a service has broken.
    pub fn broken_links(&self) -> Vec<String> {
        self.broken.iter().map(|&link| self.broken_text(link).1).collect()
    }

    /// Of a link that is broken: the service that has done it, and what becomes of the link.
    fn broken_text(&self, link: usize) -> (String, String) {
        let plan = &self.request.plan;
        let link = &plan.links[link];
        let (from, to) = (&plan.nodes[link.from.node], &plan.nodes[link.to.node]);
        let service = if plan.is_service(link.from.node) { from } else { to };
        let service = plan.domains[service.domain].name.clone();
        let text = format!(
            "link {}.{} > {}.{} is broken: '{service}' has written over its region; the core goes \
             on without the link, also when '{service}' is back; to have it again, stop the graph \
             and run it again",
            from.name,
            plan.port(link.from).name,
            to.name,
            plan.port(link.to).name,
        );
        (service, text)
    }
}

//! The links between domains, opened by the parent; and those that a service has broken by
//! overwriting their region. The core goes on without them, in this life and the next ones; each is
//! reported once.
//!
//! A new region would have to reach a running core. That would be a system call between two cycles,
//! for a service that was found to write where it must not. So a broken link stays broken until the
//! graph is run again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use fastrand::Rng;
use sinew_carve_out::CarveOut;
use sinew_control::status::EventKind;
use sinew_core::bell::Bell;
use sinew_core::clock::now_ns;
use sinew_core::ends::{crosses_domains, leader, link_ends};
use sinew_core::sys::Region;
use sinew_core::transport::{Carrier, LinkShape, open_in, row};
use sinew_spec::guest;
use sinew_spec::plan::{Link, Plan};

use super::Run;
use super::doors::{Doors, Numbers, number};
use super::tuning::Tunings;
use crate::inject;

/// The carriers of all links between domains. Streams are dropped once their processes have
/// started: if the parent kept an end open, the peer would never see the stream end. Regions stay:
/// a service that comes back attaches to the same bytes.
#[derive(Default)]
pub(super) struct Links {
    writers: BTreeMap<usize, Carrier>,
    readers: BTreeMap<usize, Carrier>,
    /// By domain, the memory that a guest and the core see; the regions of its links are in it.
    carve_outs: BTreeMap<usize, Region>,
    /// For each link at whose ends a service and a guest sleep: the bell that Linux hears, and the
    /// one that the guest hears. They outlive both, as the regions do.
    bells: BTreeMap<usize, [Bell; 2]>,
    pub(super) doors: Doors,
    pub(super) tunings: Tunings,
    /// The links that a service has broken and that were reported.
    broken: BTreeSet<usize>,
}

impl Links {
    pub(super) fn open(plan: &Plan) -> io::Result<Links> {
        let mut links = Links::default();
        for (at, guest) in
            plan.domains.iter().enumerate().filter_map(|(at, it)| Some((at, it.guest()?)))
        {
            let region = Region::shared("sinew-carve-out", guest.memory_bytes as usize)?;
            CarveOut::create(region.clone()).map_err(io::Error::other)?;
            links.carve_outs.insert(at, region);
        }
        links.open_those(plan, |_| true)?;
        links.doors = Doors::open(plan)?;
        links.tunings = Tunings::open(plan)?;
        Ok(links)
    }

    /// Opens new carriers for the links inside the core, whose ends a new life makes anew. Those of
    /// a service stay, and a service that comes back attaches to the same bytes.
    pub(super) fn renew(&mut self, plan: &Plan) -> io::Result<()> {
        self.open_those(plan, |link| {
            !plan.is_service(link.from.node) && !plan.is_service(link.to.node)
        })
    }

    fn open_those(&mut self, plan: &Plan, chosen: impl Fn(&Link) -> bool) -> io::Result<()> {
        let links = plan.links.iter().enumerate().filter(|(_, link)| chosen(link));
        for (index, link) in links {
            if !link.fused && crosses_domains(plan, index) && leader(plan, index) == index {
                let shape = LinkShape::of(link);
                let (writer, reader) = match plan.carve_out(link) {
                    Some(guest) => open_in(&shape, self.part(plan, guest, index)?)?,
                    None => (row(link.transport).open)(&shape)?,
                };
                self.writers.insert(index, writer);
                self.readers.insert(index, reader);
                if guest::has_bell(plan, link) {
                    self.bells.insert(index, [Bell::create()?, Bell::create()?]);
                }
            }
        }
        Ok(())
    }

    /// The bells of the links of a domain: the link, the bell that Linux hears, the guest's.
    pub(super) fn bells_of(&self, plan: &Plan, domain: usize) -> Vec<(usize, RawFd, RawFd)> {
        let is_its = |link: usize| {
            let Link { from, to, .. } = plan.links[link];
            [from, to].iter().any(|end| plan.nodes[end.node].domain == domain)
        };
        let bells = self.bells.iter().filter(|(link, _)| is_its(**link));
        let file = |bell: &Bell| bell.as_fd().as_raw_fd();
        bells.map(|(&link, [linux, guest])| (link, file(linux), file(guest))).collect()
    }

    /// Where the region of a link is in the memory of a guest.
    fn part(&self, plan: &Plan, guest: usize, link: usize) -> io::Result<Region> {
        let rows = guest::rows(plan, guest);
        let row = rows.iter().find(|(at, _)| *at == link).map(|(_, row)| row);
        let file = self.carve_outs.get(&guest).and_then(Region::file);
        let (Some(row), Some(file)) = (row, file) else {
            return Err(io::Error::other(format!(
                "link {link} has no place in its guest's memory"
            )));
        };
        Region::map_part(file.try_clone_to_owned()?, row.offset as usize, row.size as usize)
    }

    /// The descriptor of the memory that a guest and the core see.
    pub(super) fn carve_out(&self, domain: usize) -> Option<RawFd> {
        self.carve_outs.get(&domain).map(number)
    }

    /// Tells services that nobody reads what they send to the core: a killed core could not tell
    /// them.
    pub(super) fn close_mailboxes(&self, plan: &Plan) {
        let links = plan.links.iter().enumerate();
        let inward =
            |link: &Link| plan.is_service(link.from.node) && !plan.is_service(link.to.node);
        for (at, link) in links.filter(|(_, link)| inward(link)) {
            let Some(region) = self.region(plan, at) else { continue };
            let carrier = Carrier::Region(region.clone());
            // A reader closes its link when it is dropped. A region that the service has spoiled
            // has no reader, and concerns only the service.
            drop((row(link.transport).receiver)(carrier, &LinkShape::of(link)));
        }
    }

    /// The descriptors that domain `domain` needs, for writing and for reading.
    pub(super) fn ends_of(&self, plan: &Plan, domain: usize) -> (Numbers, Numbers) {
        let descriptor = |carrier: &Carrier| match carrier {
            Carrier::Stream(file) => file.as_fd().as_raw_fd(),
            other => other.region().map_or(-1, number),
        };
        // A guest finds its ends in its memory.
        let is_guest = plan.domains[domain].guest().is_some();
        let here = |node: usize| plan.nodes[node].domain == domain && !is_guest;
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for (index, link) in plan.links.iter().enumerate() {
            if let Some(carrier) = self.writers.get(&index).filter(|_| here(link.from.node)) {
                writers.push((index, descriptor(carrier)));
            }
            let carrier = self.readers.get(&leader(plan, index));
            if let Some(carrier) = carrier.filter(|_| here(link.to.node) && !link.fused) {
                readers.push((index, descriptor(carrier)));
            }
        }
        (writers, readers)
    }

    /// Drops the streams, whose ends are with their processes now, and releases the memory that the
    /// regions take here.
    pub(super) fn keep_regions(&mut self) {
        let kept = |_: &usize, carrier: &mut Carrier| match carrier {
            Carrier::Region(region) | Carrier::Guest(region, _) => {
                region.let_go();
                true
            }
            Carrier::Stream(_) => false,
        };
        self.writers.retain(kept);
        self.readers.retain(kept);
    }

    /// The region of a link, if it has one and it joins two domains.
    pub(super) fn region(&self, plan: &Plan, link: usize) -> Option<&Region> {
        self.readers.get(&leader(plan, link))?.region()
    }
}

impl Run {
    /// Makes an event of each link that is broken since the last call.
    pub(super) fn tell_broken(&mut self) {
        let mut found = Vec::new();
        for (domain, planned) in self.core.domains.iter().zip(&self.request.plan.domains) {
            for (thread, planned) in domain.threads.iter().zip(planned.threads()) {
                let ends = &thread.counts.links;
                // Almost always no link is broken: nothing is allocated for that case.
                if ends.iter().any(|&(_, broken)| broken) {
                    let links = link_ends(&self.request.plan, &planned.nodes);
                    let broken = links.into_iter().zip(ends).filter(|(_, end)| end.1);
                    found.extend(broken.map(|(link, _)| link));
                }
            }
        }
        for link in found {
            if self.links.broken.insert(link) {
                let (service, text) = self.broken_text(link);
                self.events.add(EventKind::Note, Some(&service), text);
            }
        }
    }

    /// Writes garbage over the region of a link between domains, as a service with a bug would: for
    /// a drill, where the writer itself may never send. Returns whether the link has a region.
    pub fn spoil(&self, link: usize) -> bool {
        let region = self.links.region(&self.request.plan, link);
        region.inspect(|region| inject::spoil(region, &mut Rng::with_seed(now_ns()))).is_some()
    }

    /// A text for each link that a service has broken.
    pub fn broken_links(&self) -> Vec<String> {
        self.links.broken.iter().map(|&link| self.broken_text(link).1).collect()
    }

    /// For a broken link: the service that has broken it, and what becomes of the link.
    fn broken_text(&self, link: usize) -> (String, String) {
        let plan = &self.request.plan;
        let link = &plan.links[link];
        let end = if plan.is_service(link.from.node) { link.from } else { link.to };
        let service = plan.domains[plan.nodes[end.node].domain].name.clone();
        let text = format!(
            "link {} > {} is broken: '{service}' has overwritten its memory; the core goes on \
             without the link, even after '{service}' restarts; to restore the link, stop the \
             graph and run it again",
            plan.end_name(link.from),
            plan.end_name(link.to),
        );
        (service, text)
    }
}

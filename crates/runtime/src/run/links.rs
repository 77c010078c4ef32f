//! The links between domains, opened by the parent.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use sinew_spec::plan::{Link, Plan};

use crate::assemble::{crosses_domains, leader};
use crate::sys::Region;
use crate::transport::{Carrier, Shape, row};

/// Link and number of the descriptor, for each end of one sort.
pub(super) type Numbers = Vec<(usize, RawFd)>;

/// The carriers of all links between domains. Streams are let go once their processes have started:
/// who keeps the other end of one open would never let its peer see the end. Regions stay: a
/// service that comes back attaches to the same bytes.
pub(super) struct Carriers {
    writers: BTreeMap<usize, Carrier>,
    readers: BTreeMap<usize, Carrier>,
}

impl Carriers {
    pub(super) fn open(plan: &Plan) -> io::Result<Carriers> {
        let mut carriers = Carriers { writers: BTreeMap::new(), readers: BTreeMap::new() };
        carriers.open_those(plan, |_| true)?;
        Ok(carriers)
    }

    /// New ones for the links inside the core, whose ends a new life makes anew. Those of a service
    /// stay, and who comes back attaches to the same bytes.
    pub(super) fn renew(&mut self, plan: &Plan) -> io::Result<()> {
        self.open_those(plan, |link| {
            !plan.is_service(link.from.node) && !plan.is_service(link.to.node)
        })
    }

    fn open_those(&mut self, plan: &Plan, chosen: impl Fn(&Link) -> bool) -> io::Result<()> {
        let links = plan.links.iter().enumerate().filter(|(_, link)| chosen(link));
        for (index, link) in links {
            if !link.fused && crosses_domains(plan, index) && leader(plan, index) == index {
                let (writer, reader) = (row(link.transport).open)(&Shape::of(link))?;
                self.writers.insert(index, writer);
                self.readers.insert(index, reader);
            }
        }
        Ok(())
    }

    /// Says to services that nobody reads what they send to the core: one that was killed could
    /// not.
    pub(super) fn close_mailboxes(&self, plan: &Plan) {
        let links = plan.links.iter().enumerate();
        let inward =
            |link: &Link| plan.is_service(link.from.node) && !plan.is_service(link.to.node);
        for (at, link) in links.filter(|(_, link)| inward(link)) {
            let Some(region) = self.region(plan, at) else { continue };
            let carrier = Carrier::Region(region.clone());
            // A reader closes its link when it is dropped. A region that the service has spoiled
            // has none, and is the service's affair.
            drop((row(link.transport).receiver)(carrier, &Shape::of(link)));
        }
    }

    /// The descriptors that domain `domain` needs, for writing and for reading.
    pub(super) fn of(&self, plan: &Plan, domain: usize) -> (Numbers, Numbers) {
        let descriptor = |carrier: &Carrier| match carrier {
            Carrier::Region(region) => number(region),
            Carrier::Stream(file) => file.as_fd().as_raw_fd(),
        };
        let here = |node: usize| plan.nodes[node].domain == domain;
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

    /// Lets go of the streams, whose ends are with their processes now, and of the memory that the
    /// regions take here.
    pub(super) fn keep_regions(&mut self) {
        let kept = |_: &usize, carrier: &mut Carrier| match carrier {
            Carrier::Region(region) => {
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
        match self.readers.get(&leader(plan, link))? {
            Carrier::Region(region) => Some(region),
            Carrier::Stream(_) => None,
        }
    }
}

/// Number of the descriptor behind a region.
pub(super) fn number(region: &Region) -> RawFd {
    region.file().map_or(-1, |file: BorrowedFd<'_>| file.as_raw_fd())
}

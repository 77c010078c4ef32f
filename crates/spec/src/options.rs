//! The options of links: what stands for those that are not written, and which may not be written.
//!
//! The rules of links with a service at an end are the firewall of the core, as
//! [`crate::firewall`] shows it: the core never waits for a service, and what it shares with one
//! outlives the service's process.

use sinew_plan::plan::{Delivery, Full, Sync, Transport, Wait};

use crate::draft::{Draft, Link};
use crate::join::{Joined, show};
use crate::place::{Home, Reach};

/// The options of a link, decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) transport: Transport,
    pub(crate) sync: Sync,
    pub(crate) delivery: Delivery,
    pub(crate) wait: Wait,
    pub(crate) capacity: u32,
    pub(crate) full: Full,
}

impl Options {
    /// What was written, and the defaults of where the link leads.
    pub(crate) fn of(link: &Link<'_>, reach: Reach, same_domain: bool) -> Options {
        let transport = if same_domain { Transport::InProcess } else { Transport::SharedMemory };
        let (delivery, wait, full) = match reach {
            Reach::Core => (Delivery::Queue, Wait::Spin, Full::Fault),
            Reach::Outwards => (Delivery::Latest, Wait::Spin, Full::Fault),
            Reach::Inwards => (Delivery::Queue, Wait::Spin, Full::Drop),
            Reach::Services => (Delivery::Queue, Wait::Park, Full::Drop),
        };
        let delivery = link.delivery.unwrap_or(delivery);
        Options {
            transport: link.transport.unwrap_or(transport),
            sync: link.sync.unwrap_or(Sync::LockFree),
            delivery,
            wait: link.wait.unwrap_or(wait),
            capacity: if delivery == Delivery::Latest { 1 } else { link.capacity },
            full: link.full.unwrap_or(full),
        }
    }
}

/// Reports options that do not go together, or not where the link leads. `homes` may have gaps.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>], homes: &[Option<Home>]) {
    for Joined { from, to, link } in joined {
        let (Some(a), Some(b)) = (homes[from.node], homes[to.node]) else { continue };
        let reach = Reach::of(draft, a, b);
        let options = Options::of(link, reach, a.domain == b.domain);
        match reach {
            Reach::Core => core(link, &options, a.domain == b.domain),
            Reach::Outwards | Reach::Inwards => {
                border(link, reach);
                if reach == Reach::Inwards && is_actuator(draft, to.node, to.port) {
                    let message = format!(
                        "a service must not command an actuator, and {} is one",
                        show(draft, *to)
                    );
                    let help = "link it to a node of the core that checks the command";
                    link.fields.report.error(link.node.span, message, help);
                }
            }
            Reach::Services => services(link, a.domain == b.domain),
        }
        meaningless(link, &options, reach);
    }
}

fn is_actuator(draft: &Draft<'_>, node: usize, port: usize) -> bool {
    draft.nodes[node].kind.is_some_and(|kind| !kind.port(port).safe.is_empty())
}

/// Between nodes of the core.
fn core(link: &Link<'_>, options: &Options, same_domain: bool) {
    let transport = options.transport;
    in_process(link, same_domain);
    let shares_memory = matches!(transport, Transport::InProcess | Transport::SharedMemory);
    if options.sync == Sync::Mutex && !shares_memory {
        link.fields.report.error(
            link.fields.at("sync"),
            format!("sync mutex needs shared bytes, and {} has none", transport.word()),
            "remove 'sync', or write transport: shared_memory",
        );
    }
}

fn in_process(link: &Link<'_>, same_domain: bool) {
    if !same_domain && link.transport == Some(Transport::InProcess) {
        link.fields.report.error(
            link.fields.at("transport"),
            "transport in_process cannot cross between two domains",
            "write shared_memory, or put both nodes in one domain",
        );
    }
}

/// Between the core and a service.
fn border(link: &Link<'_>, reach: Reach) {
    if let Some(transport) = link.transport.filter(|&given| given != Transport::SharedMemory) {
        let message =
            format!("transport {} cannot cross between the core and a service", transport.word());
        let help = match transport {
            Transport::InProcess => "remove it, or write shared_memory: they are two processes",
            _ => {
                "remove it, or write shared_memory: a service that comes back attaches again to \
                 the same bytes; a stream could not be picked up, and would cost the core a \
                 system call"
            }
        };
        link.fields.report.error(link.fields.at("transport"), message, help);
    }
    if link.sync == Some(Sync::Mutex) {
        let help = "remove it, or write lock_free: a service that is stopped while it holds a \
                    mutex would stop the core";
        link.fields.report.error(
            link.fields.at("sync"),
            "the core and a service cannot share a mutex",
            help,
        );
    }
    match (reach, link.delivery) {
        (Reach::Outwards, Some(Delivery::Queue)) => link.fields.report.error(
            link.fields.at("delivery"),
            "a queue cannot lead from the core to a service: it is full when the service stands",
            "write latest (the newest message) or broadcast (the service knows what it lost)",
        ),
        (Reach::Inwards, Some(Delivery::Broadcast)) => link.fields.report.error(
            link.fields.at("delivery"),
            "a broadcast cannot lead from a service to the core: the core could lose what was said",
            "write queue (a mailbox: one message a cycle, full is the service's affair) or latest",
        ),
        _ => {}
    }
    if let Some(entry) = link.fields.entry("wait") {
        let help = "remove it: the core never sleeps on such a link and wakes nobody; a service \
                    looks when it likes";
        link.fields.report.error(
            entry.span,
            "'wait' has no meaning between the core and a service",
            help,
        );
    }
}

/// Between services.
fn services(link: &Link<'_>, same_domain: bool) {
    in_process(link, same_domain);
    let stream =
        |given: &Transport| !matches!(given, Transport::InProcess | Transport::SharedMemory);
    if let Some(transport) = link.transport.filter(stream) {
        let message = format!("transport {} cannot cross between services", transport.word());
        let help = "remove it, or write shared_memory: a service that comes back attaches again \
                    to the same bytes; a stream could not be picked up";
        link.fields.report.error(link.fields.at("transport"), message, help);
    }
    if link.sync == Some(Sync::Mutex) {
        let help = "remove it, or write lock_free: a service that is stopped while it holds a \
                    mutex would stop the other one";
        link.fields.report.error(link.fields.at("sync"), "services cannot share a mutex", help);
    }
    if let Some(wait) = link.wait.filter(|wait| matches!(wait, Wait::Spin | Wait::Yield)) {
        let message = format!("services cannot wait with {}", wait.word());
        let help = "write park or spin_then_park: a service that polls takes a CPU from the core";
        link.fields.report.error(link.fields.at("wait"), message, help);
    }
}

/// Reports options that are left without a meaning.
fn meaningless(link: &Link<'_>, options: &Options, reach: Reach) {
    let delivery = options.delivery;
    for (option, means) in
        [("capacity", delivery != Delivery::Latest), ("full", delivery == Delivery::Queue)]
    {
        if let Some(entry) = link.fields.entry(option).filter(|_| !means) {
            let message = format!("'{option}' has no meaning with delivery: {}", delivery.word());
            let help = match (reach, option) {
                (Reach::Outwards, "capacity") => "remove it, or write delivery: broadcast",
                (Reach::Outwards, _) => "remove it: the core never waits for a service",
                _ => "remove it, or write delivery: queue",
            };
            link.fields.report.error(entry.span, message, help);
        }
    }
    let is_written_by_service = matches!(reach, Reach::Inwards | Reach::Services);
    if let Some(full) = link.full.filter(|&full| full != Full::Drop)
        && is_written_by_service
        && delivery == Delivery::Queue
    {
        link.fields.report.error(
            link.fields.at("full"),
            format!("'full: {}' has no meaning on a link that a service writes", full.word()),
            "remove it, or write full: drop: what finds no room is counted, and the service is \
             told and decides",
        );
    }
    if let Some(entry) = link.fields.entry("delay").filter(|_| reach != Reach::Core) {
        let message = "'delay' has no meaning on a link of a service";
        link.fields.report.error(
            entry.span,
            message,
            "remove it: a service is not part of the cycle",
        );
    }
}

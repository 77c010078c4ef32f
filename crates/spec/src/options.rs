//! The options of links: the defaults, and which options must not be written.
//!
//! The rules for links with a service at one end are the core's firewall, which [`crate::firewall`]
//! shows: the core never waits for a service, and memory that it shares with one outlives the
//! service's process.

use sinew_plan::plan::{self, Delivery, Full, Sync, Transport, Wait};

use crate::draft::{Draft, Link};
use crate::join::{Joined, show};
use crate::place::{Home, Reach};

/// A link with all its options: those that were written, and the defaults for where it leads.
/// `guest` says whether one end is in a guest.
pub(crate) fn decide(
    joined: &Joined<'_, '_>,
    reach: Reach,
    guest: bool,
    a: Home,
    b: Home,
) -> plan::Link {
    let &Joined { from, to, message, ref part, link } = joined;
    let fused = a == b && reach == Reach::Core;
    let transport = match guest {
        true => Transport::CarveOut,
        false if a.domain == b.domain => Transport::InProcess,
        false => Transport::SharedMemory,
    };
    let by_service = matches!(reach, Reach::Inwards | Reach::Services);
    let wait = match reach {
        Reach::Services if guest => Wait::SpinThenPark,
        Reach::Services => Wait::Park,
        _ => Wait::Spin,
    };
    let full = if by_service { Full::Drop } else { Full::Fault };
    let delivery = delivery(link, reach);
    plan::Link {
        from,
        to,
        message,
        part: part.clone(),
        fused,
        transport: link.transport.filter(|_| !fused).unwrap_or(transport),
        sync: link.sync.unwrap_or(Sync::LockFree),
        delivery,
        wait: link.wait.unwrap_or(wait),
        capacity: if delivery == Delivery::Latest { 1 } else { link.capacity },
        full: link.full.unwrap_or(full),
        delay: link.delay,
        tuning: None,
        after_ns: None,
    }
}

fn delivery(link: &Link<'_>, reach: Reach) -> Delivery {
    let default = if reach == Reach::Outwards { Delivery::Latest } else { Delivery::Queue };
    link.delivery.unwrap_or(default)
}

/// Reports options that exclude each other, or are not allowed where the link leads. `homes` may
/// have gaps.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>], homes: &[Option<Home>]) {
    for Joined { from, to, part, link, .. } in joined {
        let (Some(a), Some(b)) = (homes[from.node], homes[to.node]) else { continue };
        let reach = Reach::of(draft, a, b);
        let guests = [a, b].map(|home| draft.domains[home.domain].guest().is_some());
        match guests {
            [false, false] => refused(link, reach, a.domain == b.domain),
            [true, true] => refused_between_guests(link),
            _ => refused_to_guest(link, reach),
        }
        meaningless(link, reach);
        if part.is_some() && reach != Reach::Core {
            part_leaves_core(link);
        }
        // Commands of a guest are judged by the guard at the port, like commands of the core.
        let judged = reach != Reach::Inwards || guests[0];
        let kind = draft.nodes[to.node].kind.filter(|_| !judged);
        if kind.is_some_and(|kind| !kind.port(to.port).safe.is_empty()) {
            let message =
                format!("a service must not command an actuator, and {} is one", show(draft, *to));
            let help = "link it to a node of the core that checks the command";
            draft.report.error(link.node.span, message, help);
        }
    }
}

/// Reports a link that takes one number of a message and does not join two nodes of one core.
pub(crate) fn part_leaves_core(link: &Link<'_>) {
    let (span, message) = match link.field {
        Some(field) => (field.span, "'field' has no meaning on a link of a service"),
        None => (link.port.span, "a number is converted only between nodes of the core"),
    };
    let help = "link the whole message, or take the number out of it with a node of the core first";
    link.fields.report.error(span, message, help);
}

/// Reports a link with both ends in guests.
fn refused_between_guests(link: &Link<'_>) {
    let message = "a guest has links to the core and to services only";
    let help = "link it to a node of the core or to a service, and link that node to the guest";
    link.fields.report.error(link.node.span, message, help);
}

/// Reports options that a link to or from a guest cannot have.
fn refused_to_guest(link: &Link<'_>, reach: Reach) {
    let report = link.fields.report;
    if let Some(other) = link.transport.filter(|&given| given != Transport::CarveOut) {
        let message =
            format!("transport {} cannot cross to another operating system", other.word());
        let help = "remove it, or write carve_out: the memory that both see";
        report.error(link.fields.at("transport"), message, help);
    }
    if link.sync == Some(Sync::Mutex) {
        let message = "two operating systems cannot share a mutex";
        let help = "remove it, or write lock_free: only loads and stores cross";
        report.error(link.fields.at("sync"), message, help);
    }
    refused_delivery(link, reach);
    refused_wait(link, reach);
}

/// Reports options that a link cannot have where it leads.
fn refused(link: &Link<'_>, reach: Reach, same_domain: bool) {
    let refuse = |option: &str, message: &str, help: &str| {
        link.fields.report.error(link.fields.at(option), message, help);
    };
    let stream =
        |given: &Transport| [Transport::Pipe, Transport::Unix, Transport::Tcp].contains(given);
    let stream = link.transport.filter(stream).map(Transport::word);
    let across = match reach {
        Reach::Core => None,
        Reach::Outwards | Reach::Inwards => Some("the core and a service"),
        Reach::Services => Some("services"),
    };
    let is_border = matches!(reach, Reach::Outwards | Reach::Inwards);
    if link.transport == Some(Transport::InProcess) && is_border {
        let message = "transport in_process cannot cross between the core and a service";
        let help = "remove it, or write shared_memory: they are two processes";
        refuse("transport", message, help);
    } else if link.transport == Some(Transport::InProcess) && !same_domain {
        let message = "transport in_process cannot cross between two domains";
        refuse("transport", message, "write shared_memory, or put both nodes in one domain");
    } else if let (Some(stream), Some(across)) = (stream, across) {
        let message = format!("transport {stream} cannot cross between {across}");
        let cost = if is_border { ", and would cost the core a system call" } else { "" };
        let help = format!(
            "remove it, or write shared_memory: a service that restarts attaches to the same \
             memory again; a stream would be lost{cost}"
        );
        refuse("transport", &message, &help);
    }
    if link.sync == Some(Sync::Mutex) {
        if let Some(across) = across {
            let other = if is_border { "core" } else { "other one" };
            let help = format!(
                "remove it, or write lock_free: a service that is stopped while it holds a mutex \
                 would stop the {other}"
            );
            refuse("sync", &format!("{across} cannot share a mutex"), &help);
        } else if let Some(stream) = stream {
            let message = format!("sync mutex needs shared bytes, and {stream} has none");
            refuse("sync", &message, "remove 'sync', or write transport: shared_memory");
        }
    }
    if link.transport == Some(Transport::CarveOut) {
        let message = "transport carve_out leads to a guest, and there is none at either end";
        refuse("transport", message, "remove it, or write shared_memory");
    }
    refused_delivery(link, reach);
    refused_wait(link, reach);
}

/// Reports a service that would poll.
fn refused_wait(link: &Link<'_>, reach: Reach) {
    let polls = |wait: &Wait| matches!(wait, Wait::Spin | Wait::Yield);
    if let Some(wait) = link.wait.filter(|wait| reach == Reach::Services && polls(wait)) {
        let message = format!("services cannot wait with {}", wait.word());
        let help = "write park or spin_then_park: a service that polls takes a CPU from the core";
        link.fields.report.error(link.fields.at("wait"), message, help);
    }
}

/// Reports a delivery that cannot cross the firewall.
fn refused_delivery(link: &Link<'_>, reach: Reach) {
    let refuse = |option: &str, message: &str, help: &str| {
        link.fields.report.error(link.fields.at(option), message, help);
    };
    match (reach, link.delivery) {
        (Reach::Outwards, Some(Delivery::Queue)) => refuse(
            "delivery",
            "a queue cannot lead from the core to a service: it would be full when the service \
             stops",
            "write latest (the newest message) or broadcast (the service knows what it lost)",
        ),
        (Reach::Inwards, Some(Delivery::Broadcast)) => refuse(
            "delivery",
            "a broadcast cannot lead from a service to the core: the core could lose messages",
            "write queue (a mailbox: the core takes one message a cycle, the service sees when it \
             is full) or latest",
        ),
        _ => {}
    }
}

/// Reports options that have no effect.
fn meaningless(link: &Link<'_>, reach: Reach) {
    let tell = |option: &str, place: &str, help: &str| {
        if let Some(entry) = link.fields.entry(option) {
            let message = format!("'{option}' has no meaning {place}");
            link.fields.report.error(entry.span, message, help);
        }
    };
    let delivery = delivery(link, reach);
    let with = format!("with delivery: {}", delivery.word());
    let of_core = reach == Reach::Outwards;
    if delivery == Delivery::Latest {
        let other = if of_core { "broadcast" } else { "queue" };
        tell("capacity", &with, &format!("remove it, or write delivery: {other}"));
    }
    if delivery != Delivery::Queue {
        let never = "remove it: the core never waits for a service";
        tell("full", &with, if of_core { never } else { "remove it, or write delivery: queue" });
    } else if let Some(full) = link.full.filter(|&full| full != Full::Drop)
        && matches!(reach, Reach::Inwards | Reach::Services)
    {
        link.fields.report.error(
            link.fields.at("full"),
            format!("'full: {}' has no meaning on a link that a service writes", full.word()),
            "remove it, or write full: drop: a message without room is counted, and the service is \
             told",
        );
    }
    if matches!(reach, Reach::Outwards | Reach::Inwards) {
        let help = "remove it: the core never sleeps on such a link and wakes no service; services \
                    poll";
        tell("wait", "between the core and a service", help);
    }
    if reach != Reach::Core {
        tell("delay", "on a link of a service", "remove it: a service is not part of the cycle");
    }
}

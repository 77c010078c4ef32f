//! A plan as a picture: [`svg`] for people, [`text`] for a terminal, [`json`] for programs, and
//! [`c_header`] for C. Pure: only the plan is drawn.

mod header;
mod json;
mod layout;
mod line;
mod svg;
mod text;

pub use header::c_header;
pub use json::json;
use sinew_plan::duration_text;
use sinew_plan::plan::{
    Delivery, Domain, Full, Link, Overrun, Plan, Release, RemoteCall, RemoteLink, Restart,
    RestartPolicy, Role, ServiceDomain, ServiceLimits, Thread,
};
pub use svg::{Escaped, svg};
pub use text::{lines, summary, text, wrap};

use crate::value::size_text;

/// The numbers of domains, threads, nodes and so on.
fn counts(plan: &Plan) -> String {
    let threads = plan.domains.iter().map(|domain| domain.threads().len()).sum();
    let services = plan.domains.iter().filter(|domain| domain.service().is_some()).count();
    let nodes = plan.nodes.len();
    let flow_nodes = (0..nodes).filter(|&node| plan.is_flow(node)).count();
    let links = count(plan.links.len() + plan.flow_links.len(), "link");
    let hosts = match plan.own_host() {
        Some(own) => Some(format!("the part of host {}", own.name)),
        None => plan.is_whole().then(|| count(plan.hosts.all.len(), "host")),
    };
    if flow_nodes == nodes {
        let services = count(services, "service domain");
        let parts = [services, count(nodes, "flow node"), links];
        return hosts.into_iter().chain(parts).collect::<Vec<_>>().join(", ");
    }
    let mut parts = vec![count(plan.domains.len(), "domain"), count(threads, "thread")];
    if services > 0 {
        parts[0] += &format!(" ({})", count(services, "service"));
        parts[1] = parts[1].replace("thread", "realtime thread");
    }
    parts.push(count(nodes, "node"));
    if flow_nodes > 0 {
        parts[2] += &format!(" ({flow_nodes} of flows)");
    }
    parts.push(links);
    hosts.into_iter().chain(parts).collect::<Vec<_>>().join(", ")
}

/// The links between hosts, and the notes of the plan.
fn notes(plan: &Plan) -> Vec<String> {
    let remote = plan.hosts.links.iter().map(|link| {
        let RemoteLink { from, to, message, delivery, after_ns, .. } = link;
        let after = after_ns.map_or(String::new(), |after_ns| {
            format!(", dropped when older than {}", duration_text(after_ns))
        });
        let (from, to) = (plan.remote_name(from), plan.remote_name(to));
        format!(
            "between hosts: {from} -> {to}, {} of {} B, {}{after}",
            message.name,
            message.size,
            delivery.word()
        )
    });
    let calls = plan.hosts.calls.iter().map(|RemoteCall { from, to, .. }| {
        let (from, to) = (plan.remote_name(from), plan.remote_name(to));
        format!("between hosts: {from} -> {to}, packets and their replies")
    });
    remote.chain(calls).chain(plan.notes.iter().map(|note| format!("note: {note}"))).collect()
}

/// `1 link`, `2 links`.
pub(crate) fn count(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

/// The facts about a domain that are shown beside its name.
fn domain_facts(plan: &Plan, domain: &Domain) -> Vec<String> {
    let mut facts = match &domain.role {
        Role::Realtime(realtime) => vec![
            format!("every {}", duration_text(realtime.period_ns)),
            format!("deadline {}", duration_text(realtime.deadline_ns)),
            format!("priority {}", realtime.priority),
            match realtime.overrun {
                Overrun::Stop { consecutive_max } => {
                    format!("stops past {consecutive_max} overruns in a row")
                }
                Overrun::Count => "overruns are counted".to_owned(),
            },
        ],
        Role::Service(service) => {
            let mut facts = match &service.guest {
                None => vec!["service".to_owned()],
                Some(guest) => vec![
                    format!("guest on board {}", guest.board.word()),
                    format!("every {}", duration_text(guest.period_ns)),
                    format!("image {}", guest.image),
                    format!("{} shared", size_text(guest.memory_bytes)),
                ],
            };
            facts.extend(service.cpus.as_deref().map(cpus_text));
            facts.extend(flows_text(plan, service));
            facts.push(restart_text(&service.restart));
            facts.extend(limits_text(&service.limits));
            facts
        }
    };
    facts.extend(domain.user.as_ref().map(|user| format!("user {user}")));
    if plan.is_whole() {
        let host = domain.host.map(|host| format!("on host {}", plan.hosts.all[host].name));
        facts.splice(..0, host);
    }
    facts
}

/// The flow nodes of a service, and the threads that run them.
fn flows_text(plan: &Plan, service: &ServiceDomain) -> Option<String> {
    let nodes = service.nodes.iter().filter(|&&node| plan.is_flow(node)).count();
    let of_cpus = service.cpus.as_ref().map(Vec::len);
    let workers = match service.flows.workers.map(|workers| workers as usize).or(of_cpus) {
        Some(workers) => count(workers, "worker"),
        None => "a worker for each CPU that the core leaves".to_owned(),
    };
    (nodes > 0).then(|| format!("{} on {workers}", count(nodes, "flow node")))
}

/// The CPUs that a service is limited to.
fn cpus_text(cpus: &[u32]) -> String {
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    format!("on {word} {}", cpus.join(", "))
}

fn restart_text(restart: &Restart) -> String {
    let most = count(restart.restarts_max as usize, "time");
    let most = format!("at most {most} in {}", duration_text(restart.window_ns));
    match restart.policy {
        RestartPolicy::Never => "never restarted".to_owned(),
        RestartPolicy::OnFailure => format!("restarted on failure, {most}"),
        RestartPolicy::Always => format!("restarted always, {most}"),
    }
}

/// The limits of a service; `None` if it has none.
fn limits_text(limits: &ServiceLimits) -> Option<String> {
    let parts = [
        limits.memory_bytes.map(size_text),
        limits.cpu_percent.map(|percent| format!("{percent}% of a CPU")),
        limits.descriptors.map(|descriptors| format!("{descriptors} descriptors")),
        limits.processes.map(|processes| format!("{processes} processes")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("uses {} at most", parts.join(", ")))
}

/// The nodes of each thread of a domain. In a service each node has a thread of its own, so all are
/// in one row.
fn rows(domain: &Domain) -> Vec<&[usize]> {
    match &domain.role {
        Role::Realtime(realtime) => {
            realtime.threads.iter().map(|thread| thread.nodes.as_slice()).collect()
        }
        Role::Service(service) => vec![&service.nodes],
    }
}

/// The facts about a thread.
fn thread_facts(plan: &Plan, thread: &Thread) -> [String; 2] {
    [
        thread.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}")),
        match thread.release {
            Release::Timer => "released by the clock".to_owned(),
            Release::Input(link) => {
                format!("released by {}", plan.end_name(plan.links[link].from))
            }
        },
    ]
}

/// Separates facts in one line.
const SEPARATOR: &str = "  ·  ";

/// Number and facts of a thread in one line.
fn thread_head(plan: &Plan, at: usize, thread: &Thread) -> String {
    format!("thread {at}{SEPARATOR}{}", thread_facts(plan, thread).join(SEPARATOR))
}

/// The message of a link, its size, and whether it arrives one cycle later.
fn message_text(link: &Link) -> String {
    let delay = if link.delay { " · delay 1" } else { "" };
    let field = link.part.as_ref().map_or("", |part| &part.field);
    let of = if field.is_empty() { "" } else { " of " };
    format!("{}{of}{field} · {} B{delay}", link.message.name, link.message.size)
}

/// Delivery, capacity and what happens when it is full.
pub(crate) fn delivery_text(link: &Link) -> String {
    let capacity = match link.delivery {
        Delivery::Latest => String::new(),
        _ => format!(" {}", link.capacity),
    };
    let full = match (link.delivery, link.full) {
        (Delivery::Queue, Full::Wait | Full::Drop) => format!(" ({} if full)", link.full.word()),
        _ => String::new(),
    };
    format!("{}{capacity}{full}", link.delivery.word())
}

/// How a link crosses: transport and sync, then delivery and wait. A fused link has neither, and on
/// a link between the core and a service nothing waits.
fn option_texts(plan: &Plan, link: &Link) -> Option<[String; 2]> {
    if link.fused {
        return None;
    }
    let wait = match plan.leaves_core(link) {
        true => "no thread waits".to_owned(),
        false => link.wait.word().to_owned(),
    };
    Some([
        format!("{} · {}", link.transport.word(), link.sync.word()),
        format!("{} · {wait}", delivery_text(link)),
    ])
}

//! The firewall as text, for `sinew check`, and as JSON.

use serde_json::{Value as Json, json};
use sinew_plan::catalogue::Direction;
use sinew_plan::duration_text;
use sinew_plan::plan::{Delivery, Link, Plan};

use super::{Firewall, On, ThreadWaits, WaitsFor, direction, why};
use crate::picture::{count, delivery_text};

/// Why the core cannot wait for its observers.
const OBSERVING: &str = "they read the records of the core's cycles, in memory that they cannot \
                         write; the core never waits for them";

/// Which messages of a link are dropped because of their age.
fn past(link: &Link) -> String {
    link.after_ns.map_or(String::new(), |after_ns| {
        format!(
            ", and drops messages of another host that are older than {}",
            duration_text(after_ns)
        )
    })
}

impl Firewall {
    /// The firewall in a few lines. With services: their links to the core and what each realtime
    /// thread can wait for. With a core: how many threads poll on how many CPUs.
    pub fn text(&self, plan: &Plan) -> String {
        if self.threads.is_empty() {
            return "firewall: services only, no core that could wait for them\n".to_owned();
        }
        let mut lines = Vec::new();
        if plan.domains.iter().any(|domain| domain.service().is_some()) {
            lines.extend(self.crossing_lines(plan));
            lines.extend(self.observer_line(plan));
            lines.extend(self.waiting_lines(plan));
        }
        lines.push(self.polling_line());
        lines.extend(self.violations.iter().map(|what| format!("  violated: {what}")));
        lines.join("\n") + "\n"
    }

    fn crossing_lines(&self, plan: &Plan) -> Vec<String> {
        let rows: Vec<[String; 4]> = self
            .crossings
            .iter()
            .map(|&at| {
                let link = &plan.links[at];
                let (from, to) = (plan.end_name(link.from), plan.end_name(link.to));
                [
                    format!("{} {from} -> {to}", direction_text(plan, link)),
                    delivery_text(link),
                    format!("{} B", link.message.size),
                    why(plan, link).to_owned() + &past(link),
                ]
            })
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths = [0, 1, 2].map(|column| width(column).unwrap_or_default());
        let head = match rows.len() {
            0 => "firewall: no link between the core and a service".to_owned(),
            all => format!(
                "firewall: {} between the core and services, the core never waits on {}",
                count(all, "link"),
                if all == 1 { "it" } else { "them" }
            ),
        };
        let line = |[link, delivery, size, why]: &[String; 4]| {
            let [a, b, c] = widths;
            format!("  {link:a$}  {delivery:b$}  {size:>c$}  {why}")
        };
        [head].into_iter().chain(rows.iter().map(line)).collect()
    }

    fn observer_line(&self, plan: &Plan) -> Option<String> {
        let names: Vec<&str> =
            self.observers.iter().map(|&node| plan.nodes[node].name.as_str()).collect();
        (!names.is_empty()).then(|| format!("observing: {}; {OBSERVING}", names.join(", ")))
    }

    fn waiting_lines(&self, plan: &Plan) -> Vec<String> {
        let head = match self.violations.is_empty() {
            true => "what each realtime thread can wait for, without any service:",
            false => "what each realtime thread can wait for:",
        };
        let line = |thread: &ThreadWaits| {
            let mut waits: Vec<String> =
                thread.waits.iter().map(|wait| wait_text(plan, *wait)).collect();
            // Several links from one node bring their feedback together, so they are shown once.
            waits.dedup();
            let domain = &plan.domains[thread.domain].name;
            format!("  {domain}, thread {}: {}", thread.thread, waits.join("; "))
        };
        [head.to_owned()].into_iter().chain(self.threads.iter().map(line)).collect()
    }

    fn polling_line(&self) -> String {
        let all = count(self.threads.len(), "realtime thread");
        let cpus = count(self.cpus, "CPU");
        format!("polling while they wait: {} of {all}, on {cpus}", self.polling())
    }

    /// The firewall as one JSON object.
    pub fn json(&self, plan: &Plan) -> Json {
        let links = self.crossings.iter().map(|&at| {
            let link = &plan.links[at];
            json!({
                "from": plan.end_name(link.from),
                "to": plan.end_name(link.to),
                "direction": direction_text(plan, link).trim_end(),
                "delivery": link.delivery.word(),
                "capacity": link.capacity,
                "full": (link.delivery == Delivery::Queue).then(|| link.full.word()),
                "bytes": link.message.size,
                "why": why(plan, link),
            })
        });
        let threads = self.threads.iter().map(|thread| {
            let waits = thread.waits.iter().map(|wait| wait_json(plan, *wait));
            json!({
                "domain": plan.domains[thread.domain].name,
                "thread": thread.thread,
                "waits_for": waits.collect::<Json>(),
                "polls": thread.polls,
            })
        });
        let observers = self.observers.iter().map(|&node| {
            let node = &plan.nodes[node];
            json!({ "node": node.name, "domain": plan.domains[node.domain].name, "why": OBSERVING })
        });
        json!({
            "links": links.collect::<Json>(),
            "observers": observers.collect::<Json>(),
            "threads": threads.collect::<Json>(),
            "threads_polling": self.polling(),
            "cpus": self.cpus,
            "violations": self.violations,
        })
    }
}

fn direction_text(plan: &Plan, link: &Link) -> &'static str {
    match direction(plan, link) {
        Direction::Out => "out",
        Direction::In => "in ",
    }
}

/// `'drives' (plant, thread 0)`.
fn thread_of(plan: &Plan, node: usize) -> String {
    let row = &plan.nodes[node];
    let domain = &plan.domains[row.domain];
    match domain.service() {
        None => format!("'{}' ({}, thread {})", row.name, domain.name, row.thread),
        Some(service) => {
            let what = if service.guest.is_some() { "a guest" } else { "a service" };
            format!("'{}' ({}, {what})", row.name, domain.name)
        }
    }
}

fn wait_text(plan: &Plan, wait: WaitsFor) -> String {
    let WaitsFor::Link(what, link) = wait else { return "the clock".to_owned() };
    let link = &plan.links[link];
    let (from, to) = (|| thread_of(plan, link.from.node), || thread_of(plan, link.to.node));
    match what {
        On::Message => format!("a message from {}, at most half a period past its time", from()),
        On::Feedback => format!("feedback from {}, until the deadline", from()),
        On::Room => format!("room in the queue to {}, until the deadline", to()),
        On::Mutex => {
            let (from, to) = (plan.end_name(link.from), plan.end_name(link.to));
            format!("the mutex of {from} -> {to}, for a copy")
        }
    }
}

fn wait_json(plan: &Plan, wait: WaitsFor) -> Json {
    let WaitsFor::Link(what, link) = wait else { return json!({"what": "clock"}) };
    let link = &plan.links[link];
    let what = what.word();
    json!({"what": what, "from": plan.end_name(link.from), "to": plan.end_name(link.to)})
}

//! Checks whether messages of links between hosts were sent before they were received, according to
//! their times in the merged file.
//!
//! A recording has no numbers of such messages. A message is found on both sides by its bytes, and
//! only if these bytes occur once on each side within some seconds. It was sent after its cycle on
//! the sending side had begun, and it had arrived before the reader's next cycle began.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use sinew_core::trace::ThreadId;
use sinew_spec::plan::{Plan, RemoteEnd};

use crate::topics::{cycle_topic, port_topic, topics};

/// How long the bytes of a message are remembered. A message is on a link for ten seconds at most.
const KEPT_NS: i64 = 10_000_000_000;
/// How many messages of a link are remembered. Beyond that the oldest are judged earlier.
const KEPT_MAX: usize = 1 << 17;

/// A time by the clock of the merged file, and its possible error; `None` if the error is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) ns: i64,
    pub(super) uncertainty_ns: Option<i64>,
}

impl Moment {
    /// The possible error of the difference between both.
    pub(super) fn uncertainty_with(self, other: Moment) -> Option<i64> {
        Some(self.uncertainty_ns?.saturating_add(other.uncertainty_ns?))
    }
}

/// The role of a topic for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sent,
    Received,
    /// The cycles of the thread that receives.
    Cycle,
}

/// The result for a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkOrder {
    /// In words.
    pub(super) name: String,
    pub(super) received: u64,
    /// Messages that were found on both sides.
    pub(super) judged: u64,
    /// Of these: messages received before they were sent.
    pub(super) before: u64,
    /// Of these: messages received earlier by more than the possible error of the clocks.
    pub(super) beyond: u64,
}

/// All links that are recorded on both sides.
pub(super) struct Causality(Vec<Crossing>);

struct Crossing {
    /// Host, topic, and the topic's role for the link.
    topics: [(usize, String, Role); 3],
    /// Messages received in a cycle whose end is not reached yet.
    open: Vec<(u64, Moment)>,
    seen: HashMap<u64, Seen>,
    /// The keys of `seen`, in order of arrival.
    order: VecDeque<(i64, u64)>,
    found: LinkOrder,
}

/// How often some bytes occur on each side, and when last.
#[derive(Default)]
struct Seen {
    sent: (u64, Option<Moment>),
    /// The time is the end of the cycle.
    received: (u64, Option<Moment>),
}

impl Causality {
    /// For the links between hosts whose parts have these plans and names.
    pub(super) fn of(plans: &[Plan], names: &[&str]) -> Causality {
        let mut crossings = Vec::new();
        for (reader, plan) in plans.iter().enumerate() {
            let is_here = |end: &RemoteEnd| plan.hosts.own == Some(end.host);
            for link in plan.hosts.links.iter().filter(|link| is_here(&link.to)) {
                let from = &plan.hosts.all[link.from.host].name;
                let Some(writer) = names.iter().position(|name| name == from) else { continue };
                let sent = port_topic(&link.from.node, &link.from.port);
                let received = port_topic(&link.to.node, &link.to.port);
                let is_recorded = topics(&plans[writer]).iter().any(|it| it.head.name == sent);
                let Some(cycles) = cycles_of(plan, &received).filter(|_| is_recorded) else {
                    continue;
                };
                let end =
                    |end: &RemoteEnd, host: &str| format!("{}.{} at {host}", end.node, end.port);
                let name = format!("{} -> {}", end(&link.from, from), end(&link.to, names[reader]));
                crossings.push(Crossing {
                    topics: [
                        (writer, sent, Role::Sent),
                        (reader, received, Role::Received),
                        (reader, cycles, Role::Cycle),
                    ],
                    open: Vec::new(),
                    seen: HashMap::new(),
                    order: VecDeque::new(),
                    found: LinkOrder { name, ..LinkOrder::default() },
                });
            }
        }
        Causality(crossings)
    }

    /// The links that a topic of a host belongs to, and its role for each.
    pub(super) fn roles(&self, host: usize, topic: &str) -> Vec<(usize, Role)> {
        let all = self.0.iter().enumerate();
        let of = all.flat_map(|(at, it)| it.topics.iter().map(move |topic| (at, topic)));
        let is_it = |of: &(usize, String, Role)| of.0 == host && of.1 == topic;
        of.filter(|(_, it)| is_it(it)).map(|(at, it)| (at, it.2)).collect()
    }

    /// Takes a message of a topic with these roles. Messages arrive in the order of the file.
    pub(super) fn take(&mut self, roles: &[(usize, Role)], at: Moment, data: &[u8]) {
        for (crossing, role) in roles {
            self.0[*crossing].take(*role, at, data);
        }
    }

    /// The result, after the last message.
    pub(super) fn end(self) -> Vec<LinkOrder> {
        self.0.into_iter().map(Crossing::end).collect()
    }
}

/// The topic of the cycles of the thread that reads this topic.
fn cycles_of(plan: &Plan, topic: &str) -> Option<String> {
    let topics = topics(plan);
    let thread = topics.iter().find(|it| it.head.name == topic)?.thread;
    ThreadId::all(plan).nth(thread).map(|id| cycle_topic(plan, id))
}

impl Crossing {
    fn take(&mut self, role: Role, at: Moment, data: &[u8]) {
        while let Some(&(first_ns, key)) = self.order.front()
            && (at.ns.saturating_sub(first_ns) > KEPT_NS || self.order.len() > KEPT_MAX)
        {
            self.order.pop_front();
            self.judge(key);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(data);
        let key = hasher.finish();
        match role {
            Role::Sent => self.see(key, at, |seen| &mut seen.sent),
            Role::Received => {
                self.found.received += 1;
                self.open.push((key, at));
            }
            Role::Cycle => {
                // This row's cycle began when the messages that it received arrived, so only
                // earlier ones are done.
                let (over, open) = self.open.drain(..).partition(|(_, began)| began.ns < at.ns);
                self.open = open;
                let over: Vec<(u64, Moment)> = over;
                over.into_iter().for_each(|(key, _)| self.see(key, at, |seen| &mut seen.received));
            }
        }
    }

    fn see(&mut self, key: u64, at: Moment, side: fn(&mut Seen) -> &mut (u64, Option<Moment>)) {
        let order = &mut self.order;
        let seen = self.seen.entry(key).or_insert_with(|| {
            order.push_back((at.ns, key));
            Seen::default()
        });
        let (count, when) = side(seen);
        (*count, *when) = (*count + 1, Some(at));
    }

    /// Judges a message that occurs once on each side.
    fn judge(&mut self, key: u64) {
        let Some(Seen { sent: (1, Some(sent)), received: (1, Some(received)) }) =
            self.seen.remove(&key)
        else {
            return;
        };
        self.found.judged += 1;
        let early_ns = sent.ns.saturating_sub(received.ns);
        self.found.before += u64::from(early_ns > 0);
        let is_beyond = sent.uncertainty_with(received).is_some_and(|it| early_ns > it);
        self.found.beyond += u64::from(is_beyond);
    }

    fn end(mut self) -> LinkOrder {
        while let Some((_, key)) = self.order.pop_front() {
            self.judge(key);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossing() -> Crossing {
        Crossing {
            topics: [Role::Sent, Role::Received, Role::Cycle].map(|role| (0, String::new(), role)),
            open: Vec::new(),
            seen: HashMap::new(),
            order: VecDeque::new(),
            found: LinkOrder::default(),
        }
    }

    fn found(rows: &[(Role, i64, u8)]) -> (u64, u64, u64, u64) {
        let mut crossing = crossing();
        for (role, ns, byte) in rows {
            crossing.take(*role, Moment { ns: *ns, uncertainty_ns: Some(10) }, &[*byte]);
        }
        let LinkOrder { received, judged, before, beyond, .. } = crossing.end();
        (received, judged, before, beyond)
    }

    #[test]
    fn what_was_received_before_it_was_sent_is_found() {
        use Role::{Cycle, Received, Sent};
        let good = [(Sent, 0, 1), (Cycle, 5, 0), (Received, 5, 1), (Cycle, 9, 0)];
        assert_eq!(found(&good), (1, 1, 0, 0));
        // It may have arrived at the end of its cycle, at 9.
        let within = [(Received, 5, 1), (Cycle, 5, 0), (Sent, 7, 1), (Cycle, 9, 0)];
        assert_eq!(found(&within), (1, 1, 0, 0));
        for (sent_ns, beyond) in [(10, 0), (29, 0), (30, 1)] {
            let early = [(Received, 5, 1), (Cycle, 5, 0), (Cycle, 9, 0), (Sent, sent_ns, 1)];
            assert_eq!(found(&early), (1, 1, 1, beyond), "{sent_ns}");
        }
    }

    #[test]
    fn what_stands_twice_on_a_side_or_once_in_all_says_nothing() {
        use Role::{Cycle, Received, Sent};
        let twice = [(Received, 1, 1), (Cycle, 2, 0), (Sent, 3, 1), (Sent, 4, 1)];
        assert_eq!(found(&twice), (1, 0, 0, 0));
        assert_eq!(found(&[(Received, 1, 1), (Cycle, 2, 0), (Sent, 3, 2)]), (1, 0, 0, 0));
        let later = [(Received, 1, 1), (Cycle, 2, 0), (Sent, 3 + KEPT_NS, 1)];
        assert_eq!(found(&later), (1, 0, 0, 0));
    }
}

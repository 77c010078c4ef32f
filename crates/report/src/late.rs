//! Late cycles: which node lost the time, and what the kernel did to its thread at that time.
//!
//! Records say where the time went. An observer of the kernel's counters, outside the core, says
//! what else happened. Every late cycle is counted by its cause, and the worst ones are kept for
//! the report. To keep a flood of late cycles from filling a log, only one is reported at a time,
//! with the number of the others.

mod account;
mod explain;
mod place;

use std::mem;

use serde_json::{Map, Value, json};
use sinew_core::trace::ThreadId;
use sinew_figures::units::counted;
use sinew_runtime::observer::Observer;
use sinew_spec::plan::Plan;

use self::account::{Account, Judgement};
use self::explain::Cause;
use self::place::{LateCycle, Place, Times};
use crate::stats::Observed;

/// Most late cycles that the report describes in detail.
const WORST_MAX: usize = 10;

/// What is needed of a realtime thread to judge a late cycle.
#[derive(Debug)]
struct Thread {
    id: ThreadId,
    domain: String,
    /// The domain, with the thread's number if the domain has several.
    name: String,
    nodes: Vec<String>,
    times: Times,
    /// The nodes whose feedback its cycles await, and the threads of these nodes.
    feedback: Vec<(String, ThreadId)>,
    /// When its last cycle ended.
    end_ns: u64,
}

/// What is known about late cycles.
pub struct Late {
    observer: Observer,
    threads: Vec<Thread>,
    /// Index of the thread, and the cycle; not judged yet.
    found: Vec<(usize, LateCycle)>,
    cycles: u64,
    by_cause: [u64; Cause::ALL.len()],
    /// The worst cycles by lateness, the greatest first.
    worst: Vec<Account>,
    /// The worst cycle since the last report, and how many were late since then.
    news: (Option<Account>, u64),
}

impl Late {
    /// For this plan, without any cycle.
    pub fn new(plan: &Plan) -> Late {
        Late {
            observer: Observer::default(),
            threads: ThreadId::all(plan).filter_map(|id| Thread::new(plan, id)).collect(),
            found: vec![],
            cycles: 0,
            by_cause: [0; Cause::ALL.len()],
            worst: vec![],
            news: (None, 0),
        }
    }

    /// The core starts again, with other threads.
    pub fn begin_life(&mut self) {
        self.observer = Observer::default();
        self.threads.iter_mut().for_each(|thread| thread.end_ns = 0);
    }

    /// Takes in a cycle.
    pub fn take(&mut self, id: ThreadId, observed: &Observed) {
        let Some(at) = self.threads.iter().position(|thread| thread.id == id) else { return };
        let thread = &mut self.threads[at];
        let late = LateCycle::of(observed, thread.times, thread.end_ns);
        self.found.extend(late.map(|late| (at, late)));
        thread.end_ns = observed.end_ns();
    }

    /// Reads what the kernel counted, for the late cycles since the last call and for those to
    /// come. `started` returns each thread that has started, with its process id and its thread id.
    pub fn look(&mut self, started: impl FnOnce() -> Vec<(ThreadId, u32, u32)>) {
        if !self.threads.iter().all(|thread| self.observer.is_watching(thread.id)) {
            for (id, process, thread) in started() {
                if !self.observer.is_watching(id) {
                    self.observer.watch(id, process, thread);
                }
            }
        }
        if self.found.is_empty() {
            return self.observer.read_if_due();
        }
        self.observer.read();
        let found = mem::take(&mut self.found);
        let mut sharing = vec![0; self.threads.len()];
        found.iter().for_each(|(at, _)| sharing[*at] += 1);
        found.iter().for_each(|(at, late)| self.judge(*at, late, sharing[*at]));
    }

    /// `sharing`: how many cycles of the same thread were late in the same window.
    fn judge(&mut self, at: usize, late: &LateCycle, sharing: u64) {
        let thread = &self.threads[at];
        let judgements = thread.suspects(late.place).into_iter().map(|(who, id)| {
            let meanwhile = self.observer.meanwhile(id, late.since_ns);
            let cause = Cause::of(late.place, late.part_ns, meanwhile.as_ref().ok());
            Judgement { cause, who, meanwhile, sharing }
        });
        let is_found = |cause| !matches!(cause, Cause::Unknown | Cause::Unread);
        // The first thread that explains the cycle; if none does, the likeliest one.
        let judgement = judgements.reduce(|first, next| match is_found(first.cause) {
            false if is_found(next.cause) => next,
            _ => first,
        });
        let Some(judgement) = judgement else { return };
        self.cycles += 1;
        self.by_cause[judgement.cause as usize] += 1;
        self.news.1 += 1;
        let least_ns = self.worst.get(WORST_MAX - 1).map(|event| event.late_ns);
        let is_worst = least_ns.is_none_or(|least_ns| late.late_ns > least_ns);
        let is_news = self.news.0.as_ref().is_none_or(|news| late.late_ns > news.late_ns);
        if !is_worst && !is_news {
            return;
        }
        let event = Account::new(thread, late, &judgement);
        if is_worst {
            let at = self.worst.partition_point(|other| other.late_ns >= event.late_ns);
            self.worst.insert(at, event.clone());
            self.worst.truncate(WORST_MAX);
        }
        if is_news {
            self.news.0 = Some(event);
        }
    }

    /// The worst late cycle since the last call, and how many more there were.
    pub fn tell(&mut self) -> Option<String> {
        let (event, cycles) = mem::take(&mut self.news);
        let Account { text, .. } = event?;
        match cycles {
            0 | 1 => Some(text),
            _ => Some(format!("{text}; {}", counted(cycles - 1, "more late cycle"))),
        }
    }

    /// The number of late cycles.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// The number of late cycles for each cause that occurred: `20 waited for a CPU`.
    pub fn causes(&self) -> impl Iterator<Item = String> + '_ {
        let rows = Cause::ALL.iter().zip(self.by_cause).filter(|row| row.1 > 0);
        rows.map(|((_, _, words), n)| format!("{n} {words}"))
    }

    /// The worst late cycles in words, by lateness.
    pub fn worst(&self) -> impl Iterator<Item = &str> {
        self.worst.iter().map(|event| event.text.as_str())
    }

    /// As one JSON object: the number, the causes, and the worst ones.
    pub fn to_json(&self) -> Value {
        let rows = Cause::ALL.iter().zip(self.by_cause);
        let by_cause: Map<_, _> = rows.map(|(row, n)| (row.1.to_string(), json!(n))).collect();
        let worst: Vec<_> = self.worst.iter().map(|event| &event.object).collect();
        json!({ "cycles": self.cycles, "by_cause": by_cause, "worst": worst })
    }
}

impl Thread {
    fn new(plan: &Plan, id: ThreadId) -> Option<Thread> {
        let planned = &plan.domains[id.domain];
        let (domain, realtime) = (planned.name.clone(), planned.realtime()?);
        let name = match realtime.threads.len() {
            1 => domain.clone(),
            _ => format!("{domain}/{}", id.thread),
        };
        let planned = &realtime.threads[id.thread];
        let node = |&node: &usize| plan.nodes[node].name.clone();
        let times = Times { period_ns: realtime.period_ns, deadline_ns: realtime.deadline_ns };
        // The same rule as in the runtime: see `Assembly::thread`.
        let awaited = plan
            .links
            .iter()
            .filter(|link| plan.is_feedback(link) && planned.nodes.contains(&link.to.node));
        let mut feedback: Vec<_> = awaited
            .map(|link| &plan.nodes[link.from.node])
            .map(|node| (node.name.clone(), ThreadId::of(node)))
            .collect();
        feedback.dedup();
        let nodes = planned.nodes.iter().map(node).collect();
        Some(Thread { id, domain, name, nodes, times, feedback, end_ns: 0 })
    }

    /// The threads that may have lost the time, the likeliest first.
    fn suspects(&self, place: Place) -> Vec<(String, ThreadId)> {
        let own = ("the thread".to_string(), self.id);
        let feedback =
            self.feedback.iter().map(|(node, id)| (format!("the thread of '{node}'"), *id));
        match place {
            Place::Feedback => feedback.chain([own]).collect(),
            Place::Outside => [own].into_iter().chain(feedback).collect(),
            _ => vec![own],
        }
    }

    /// The nodes whose feedback is awaited: `'drives'`.
    fn feedback_words(&self) -> String {
        let nodes: Vec<_> = self.feedback.iter().map(|row| format!("'{}'", row.0)).collect();
        nodes.join(" or ")
    }

    fn node(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests;

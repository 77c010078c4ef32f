//! The report of a run: everything that is known at its end, as one JSON object or as text.

mod text;

use serde_json::{Map, Value, json};
use sinew_control::status::{DomainRole, DomainState, StopStatus};
use sinew_core::board::FaultAt;
use sinew_core::privileges::{Asked, Obtained};
use sinew_core::trace::ThreadId;
use sinew_figures::Distribution;
use sinew_figures::Machine;
use sinew_runtime::run::{NodeState, Outcome, ServiceState};
use sinew_spec::plan::{Plan, Release};

use crate::late::Late;
use crate::links::{LinkStats, Links};
use crate::requirements::{Judged, Kept};
use crate::stats::{Extent, SignalStats, Stats, ThreadStats};
use crate::usage::ProcessUsage;

/// How a run ended, from the user's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The graph came to its end.
    Ended(Outcome),
    /// The user did not wait for the stop: we brought nothing to rest.
    Killed,
}

impl Ending {
    /// Whether the run ended as intended.
    pub fn is_good(self) -> bool {
        matches!(self, Ending::Ended(Outcome::Finished | Outcome::Stopped))
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Ended(outcome) => outcome.fmt(f),
            Ending::Killed => f.write_str("killed"),
        }
    }
}

/// Everything that is known at the end of a run.
pub struct Report<'a> {
    /// What was run.
    pub plan: &'a Plan,
    /// The figures of its cycles.
    pub stats: &'a Stats,
    /// How long messages took between nodes of the core.
    pub links: &'a Links,
    /// The results for the graph's requirements.
    pub judged: Vec<Judged>,
    /// Whether a requirement that was not shown to be kept is a failure.
    pub strict: bool,
    /// Its late cycles.
    pub late: &'a Late,
    /// How it ended.
    pub ending: Ending,
    /// Domain and fault, for the last life of the core.
    pub faults: Vec<(usize, FaultAt)>,
    /// The same for earlier lives, with the number of the life, from 1.
    pub earlier_faults: Vec<(u32, usize, FaultAt)>,
    /// The last stop of the core.
    pub stop: Option<StopStatus>,
    /// How often the core was started again.
    pub resets: u32,
    /// What each realtime thread asked for and got.
    pub privileges: Vec<(ThreadId, Asked, Obtained)>,
    /// One entry for each domain.
    pub processes: Vec<ProcessUsage>,
    /// The state of each service at the end.
    pub services: Vec<ServiceState>,
    /// What to say about links that a service has broken.
    pub broken_links: Vec<String>,
    /// From the first line of the command until the first node ran.
    pub start_to_first_cycle_ms: Option<f64>,
    /// From the first release to the end of the last process.
    pub duration_s: f64,
    /// The files with a row for every cycle.
    pub csv: Option<Value>,
    /// What is missing of the requested files, in words.
    pub lacks: Vec<String>,
    /// The machine of the run.
    pub machine: &'a Machine,
}

impl Report<'_> {
    /// The report as one JSON object.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.into(), value);
        put("graph", json!(self.plan.name));
        put("outcome", json!(self.ending.to_string()));
        if let Some(control) = self.stats.control() {
            put("of", json!({ "domain": control.domain, "thread": control.id.thread }));
            for (key, value) in figures(control) {
                put(key, value);
            }
        }
        let tracking = self.stats.tracking_error_m().map(|error| error.max);
        put("tracking_error_m_max", json!(tracking));
        put("duration_s", json!(self.duration_s));
        put("start_to_first_cycle_ms", json!(self.start_to_first_cycle_ms));
        put(
            "faults",
            self.faults.iter().map(|(domain, at)| self.fault_json(*domain, at)).collect(),
        );
        put("resets", json!(self.resets));
        put("earlier_faults", self.earlier_faults_json());
        put("stop", json!(self.stop));
        put("late", self.late.to_json());
        put("notes", json!(self.plan.notes));
        put("links", self.links.rows.iter().map(|row| self.link_json(row)).collect());
        put("requirements", self.judged.iter().map(Judged::to_json).collect());
        put("threads", self.stats.threads.iter().map(thread_json).collect());
        put("privileges", self.privileges.iter().map(|row| self.privileges_json(row)).collect());
        put("domains", self.domains_json());
        put("given_up", self.given_up().collect());
        put("broken_links", json!(self.broken_links));
        put("signals", self.stats.signals().map(signal_json).collect());
        put("records_lost", json!(self.stats.records_lost()));
        put("csv", json!(self.csv));
        put("lacks", json!(self.lacks));
        put("exit_status", json!(self.exit_status()));
        put("machine", self.machine.to_json());
        Value::Object(object)
    }

    /// 0 if everything went as requested, otherwise 1.
    pub fn exit_status(&self) -> u8 {
        let breaks = self.strict && self.not_kept().next().is_some();
        u8::from(!self.ending.is_good() || !self.lacks.is_empty() || breaks)
    }

    /// Requirements that were not shown to be kept.
    pub fn not_kept(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| judged.kept != Kept::Yes)
    }

    fn link_json(&self, row: &LinkStats) -> Value {
        let link = &self.plan.links[row.link];
        json!({
            "from": self.plan.end_name(link.from),
            "to": self.plan.end_name(link.to),
            "isolation": self.plan.isolation(link).word(),
            "latency_ns": row.latency.to_json(),
            "may_lag": row.may_lag,
        })
    }

    /// Services that ended more often than their policy allows. They do not affect the exit status:
    /// a graph does not fail because of a service.
    fn given_up(&self) -> impl Iterator<Item = &str> {
        let lost = self.services.iter().filter(|service| service.state == DomainState::GivenUp);
        lost.map(|service| &*self.plan.domains[service.domain].name)
    }

    fn earlier_faults_json(&self) -> Value {
        let row = |(life, domain, at): &(u32, usize, FaultAt)| {
            let mut row = self.fault_json(*domain, at);
            row["life"] = json!(life);
            row
        };
        self.earlier_faults.iter().map(row).collect()
    }

    fn fault_json(&self, domain: usize, at: &FaultAt) -> Value {
        json!({
            "domain": self.plan.domains[domain].name,
            "node": self.node_name(at),
            "cycle": at.cycle,
            "cause": at.fault.cause.word(),
            "text": at.fault.text(),
        })
    }

    /// A process that has faulted has written the board, so its index may be any number.
    fn node_name(&self, at: &FaultAt) -> Option<&str> {
        self.plan.nodes.get(at.node?).map(|node| node.name.as_str())
    }

    fn privileges_json(&self, (id, asked, obtained): &(ThreadId, Asked, Obtained)) -> Value {
        json!({
            "domain": self.plan.domains[id.domain].name,
            "thread": id.thread,
            "asked": { "policy": "SCHED_FIFO", "priority": asked.priority, "cpu": asked.cpu },
            "obtained": {
                "policy": obtained.policy_name(),
                "priority": obtained.priority,
                "cpu": obtained.cpu,
                "locked_kib": obtained.locked_kib,
            },
            "missing": obtained.missing(asked),
        })
    }

    fn domains_json(&self) -> Value {
        let rows = self.plan.domains.iter().enumerate().zip(&self.processes);
        let rows = rows.map(|((at, domain), process)| {
            let mut row = json!({
                "name": domain.name,
                "role": DomainRole::of(domain).word(),
                "pid": process.pid,
                "resident_kib_max": process.resident_kib_max,
                "cpu_percent": process.cpu_percent(),
            });
            if let Some(service) = self.services.iter().find(|service| service.domain == at) {
                row["state"] = json!(service.state);
                row["restarts"] = json!(service.restarts);
                row["last_reason"] = json!(service.last_reason);
                let flow = |node: &NodeState| json!({ "name": node.name, "flow": node.status });
                row["nodes"] = service.flows.iter().map(flow).collect();
            }
            row
        });
        rows.collect()
    }
}

/// The figures of a thread, with their keys.
fn figures(thread: &ThreadStats) -> [(&'static str, Value); 10] {
    let totals = thread.totals();
    // An input releases its thread at any time, so there is no planned start.
    let of_timer = |times: &Distribution| match thread.is_timer_released() {
        true => times.to_json(),
        false => Value::Null,
    };
    let nodes = thread.nodes.iter().map(|node| {
        let execution_ns = node.execution.to_json();
        let allocations = node.allocations();
        json!({ "name": node.name, "execution_ns": execution_ns, "allocations": allocations })
    });
    let by = thread.overruns_by;
    [
        ("cycles", json!(totals.cycles)),
        ("stopping_cycles", json!(totals.stopping_cycles)),
        ("overruns", json!(totals.overruns)),
        (
            "overruns_by",
            json!({ "late_start": by.late_start, "feedback": by.feedback, "nodes": by.nodes }),
        ),
        ("skipped", json!(totals.skipped)),
        ("cycle_latency_ns", thread.latency.to_json()),
        ("activation_jitter_ns", of_timer(&thread.jitter)),
        ("response_ns", of_timer(&thread.response)),
        ("slack_ns", thread.latency.slack_json(thread.period_ns)),
        ("nodes", nodes.collect()),
    ]
}

fn thread_json(thread: &ThreadStats) -> Value {
    let release = match thread.release {
        Release::Timer => "timer",
        Release::Input(_) => "input",
    };
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.into(), value);
    put("domain", json!(thread.domain));
    put("thread", json!(thread.id.thread));
    put("period_ns", json!(thread.period_ns));
    put("deadline_ns", json!(thread.deadline_ns));
    put("release", json!(release));
    for (key, value) in figures(thread) {
        put(key, value);
    }
    put("cycles_without_input", json!(thread.totals().without_input));
    put("cycles_without_feedback", json!(thread.totals().without_feedback));
    put("records_lost", json!(thread.records_lost));
    put("messages_lost", json!(thread.totals().messages_lost));
    put("messages_dropped", json!(thread.totals().messages_dropped));
    Value::Object(object)
}

fn signal_json(signal: &SignalStats) -> Value {
    let column = |of: fn(&Extent) -> f64| -> Value {
        signal.values.iter().map(|extent| json!(of(extent))).collect()
    };
    let mut object = json!({
        "node": signal.node,
        "name": signal.signal.name,
        "unit": signal.signal.unit,
        "last": column(|extent| extent.last),
        "min": column(|extent| extent.min),
        "max": column(|extent| extent.max),
    });
    if !signal.signal.labels.is_empty() {
        object["last_words"] = (0..signal.values.len()).map(|at| json!(signal.label(at))).collect();
    }
    object
}

#[cfg(test)]
mod tests;

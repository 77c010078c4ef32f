//! The report about one late cycle.

use serde_json::{Value, json};
use sinew_figures::short::span;
use sinew_figures::units::counted;
use sinew_runtime::observer::Meanwhile;

use super::Thread;
use super::explain::{Cause, words};
use super::place::{LateCycle, Place};

/// What the counters of a thread say about a late cycle.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) cause: Cause,
    /// The thread whose counters were read.
    pub(crate) who: String,
    /// What was counted, or why nothing is known.
    pub(crate) meanwhile: Result<Meanwhile, String>,
    /// The number of cycles that were late in the same window.
    pub(crate) sharing: u64,
}

/// A late cycle, with its cause.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) late_ns: u64,
    /// The whole report in a sentence.
    pub(crate) text: String,
    /// The same in JSON.
    pub(crate) object: Value,
}

impl Account {
    pub(crate) fn new(thread: &Thread, late: &LateCycle, judgement: &Judgement) -> Account {
        let (name, cycle, late_ns) = (&thread.name, late.cycle, late.late_ns);
        let Judgement { cause, who, meanwhile, .. } = judgement;
        // Without feedback the cycle ended at the deadline, not when the feedback came.
        let by = match late.is_feedback_missing {
            true => format!("without feedback from {}", thread.feedback_words()),
            false => format!("by {}", span(late_ns)),
        };
        let place = place(thread, late);
        let meanwhile = meanwhile.as_ref().map_err(String::as_str);
        let because = words(*cause, late.place, who, meanwhile);
        let window = window(judgement);
        let text = format!("{name}: cycle {cycle} late {by}, {place}: {because}{window}");
        let object = json!({
            "domain": thread.domain,
            "thread": thread.id.thread,
            "cycle": cycle,
            "late_ns": late_ns,
            "feedback_missing": late.is_feedback_missing,
            "place": late.place.word(),
            "part_ns": late.part_ns,
            "node": node(thread, late),
            "slowest_node": thread.node(late.slowest.0),
            "slowest_node_ns": late.slowest.1,
            "cause": cause.word(),
            "late_cycles_in_window": judgement.sharing,
            "text": text,
            "meanwhile": meanwhile.ok().map(|meanwhile| meanwhile_json(who, meanwhile)),
        });
        Account { late_ns, text, object }
    }
}

fn place(thread: &Thread, late: &LateCycle) -> String {
    let part = span(late.part_ns);
    match late.place {
        Place::BeforeFirstNode => format!("before the first node ({part})"),
        Place::CycleBefore(before) => format!("begun after cycle {before} was late"),
        Place::Node(at) => format!("in node '{}' ({part})", thread.node(at)),
        Place::Feedback => format!("awaiting it ({part})"),
        Place::Outside => {
            let (slowest, slowest_ns) = (thread.node(late.slowest.0), span(late.slowest.1));
            format!("outside the nodes ({part}; the slowest, '{slowest}', took {slowest_ns})")
        }
    }
}

/// The node that lost the time, if a node did.
fn node<'a>(thread: &'a Thread, late: &LateCycle) -> Option<&'a str> {
    match (late.place, thread.feedback.as_slice()) {
        (Place::Node(at), _) => Some(thread.node(at)),
        (Place::Feedback, [(node, _)]) => Some(node),
        _ => None,
    }
}

/// The two readings between which this was counted: something else in that time may be the reason.
fn window(judgement: &Judgement) -> String {
    let Judgement { cause, meanwhile: Ok(meanwhile), sharing, .. } = judgement else {
        return String::new();
    };
    if *cause == Cause::CycleBefore {
        return String::new();
    }
    let span = span(meanwhile.window_ns);
    let from = if meanwhile.is_cut { ", begun after it was due" } else { "" };
    let with = match sharing {
        0 | 1 => String::new(),
        _ => format!(" with {}", counted(*sharing, "late cycle")),
    };
    format!(" (counted over {span}{with}{from})")
}

fn meanwhile_json(who: &str, meanwhile: &Meanwhile) -> Value {
    let Meanwhile { window_ns, is_cut, counted, usual, .. } = meanwhile;
    json!({
        "of": who,
        "window_ns": window_ns,
        "window_is_cut": is_cut,
        "cpu_ns": counted.cpu_ns,
        "cpu_usual_ns": usual.cpu_ns,
        "run_delay_ns": counted.run_delay_ns,
        "run_delay_usual_ns": usual.run_delay_ns,
        "steal_ns": counted.steal_ns,
        "steal_usual_ns": usual.steal_ns,
        "involuntary_switches": counted.involuntary_switches,
        "minor_faults": counted.minor_faults,
        "major_faults": counted.major_faults,
    })
}

//! A cycle of a realtime thread in a recording. It is a message whose layout follows from the plan
//! alone, so a reader with the plan can decode it.
//!
//! Eight-byte values come first, then four-byte values, then the flags, so that CDR needs no
//! padding.

use std::fmt::Write as _;

use sinew_core::clock::Clock;
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Past, Record, taps};
use sinew_spec::plan::Plan;

use super::format::{CDR_HEAD, message};
use super::schema::{Names, field_line};

/// Numbers of each cycle, in this order. The numbers of links and nodes follow.
const NUMBERS: [&str; 7] =
    ["number", "release_ns", "start_ns", "latency_ns", "skipped", "lost_total", "dropped_total"];
/// These are in `flags` too; here they are for people with a viewer. In this order, followed by the
/// flags of links and taps.
const FLAGS: [&str; 5] = ["overrun", "feedback_missing", "told_to_stop", "failed", "without_input"];
/// Length of the line between a schema and the types that it uses.
const RULE: usize = 80;

/// A cycle, as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCycle {
    /// Number, times, flags, signals. Times that are in timer counts elsewhere are in nanoseconds
    /// here.
    pub past: Past,
    /// [`Record::is_closed`] of each tap.
    pub closed: Vec<bool>,
}

/// The layout of a thread's cycles in their messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleLayout {
    /// How many signals each node has.
    nodes: Vec<usize>,
    links: usize,
    taps: usize,
}

impl CycleLayout {
    /// For a thread of an observed plan, as in every recording.
    pub fn of(plan: &Plan, id: ThreadId) -> CycleLayout {
        let nodes = id.nodes(plan);
        let signals = |&node: &usize| plan.nodes[node].kind.signals.iter().map(|it| it.count).sum();
        CycleLayout {
            nodes: nodes.iter().map(signals).collect(),
            links: Record::of(plan, nodes).links().len(),
            taps: taps(plan, nodes).len(),
        }
    }

    fn words(&self) -> usize {
        NUMBERS.len() + self.links + self.nodes.len() + self.nodes.iter().sum::<usize>()
    }

    /// Bytes of a message.
    fn size(&self) -> usize {
        CDR_HEAD.len() + 8 * self.words() + 4 + FLAGS.len() + self.links + self.taps
    }

    /// Adds the message of a cycle to `to`.
    pub fn write(&self, record: &Record, clock: Clock, to: &mut Vec<u8>) {
        to.extend(CDR_HEAD);
        let mut word = |word: u64| to.extend(word.to_le_bytes());
        word(record.number());
        word(record.release_ns());
        word(record.start_ns());
        word(clock.ns(record.latency_ticks()));
        word(record.skipped());
        word(record.totals().messages_lost);
        word(record.totals().messages_dropped);
        record.links().for_each(|(total, _)| word(total));
        let mut signals = record.signals();
        for (node, &count) in self.nodes.iter().enumerate() {
            word(clock.ns(record.execution_ticks(node)));
            signals.by_ref().take(count).for_each(|signal| word(signal.to_bits()));
        }
        to.extend(record.flags().to_le_bytes());
        let flags = [
            record.is_overrun(),
            record.is_feedback_missing(),
            record.is_told_to_stop(),
            record.is_failed(),
            record.is_without_input(),
        ];
        to.extend(flags.map(u8::from));
        to.extend(record.links().map(|(_, broken)| u8::from(broken)));
        to.extend((0..self.taps).map(|tap| u8::from(record.is_closed(tap))));
    }

    /// Reads the message of a cycle, except for its values of single links. `None` if it is not a
    /// message of this thread.
    pub fn read(&self, data: &[u8]) -> Option<RecordedCycle> {
        if data.len() != self.size() {
            return None;
        }
        let (words, rest) = message(data)?.split_at(8 * self.words());
        let mut words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next();
        let (flags, rest) = rest.split_first_chunk()?;
        let (_, closed) = rest.split_at_checked(FLAGS.len() + self.links)?;
        let mut past = Past {
            number: word()?,
            release_ns: word()?,
            start_ns: word()?,
            latency_ticks: word()?,
            skipped: word()?,
            lost_total: word()?,
            dropped_total: word()?,
            flags: u32::from_le_bytes(*flags),
            ..Past::default()
        };
        for _ in 0..self.links {
            word()?;
        }
        for &count in &self.nodes {
            past.execution_ticks.push(word()?);
            for _ in 0..count {
                past.signals.push(f64::from_bits(word()?));
            }
        }
        let closed = closed.iter().map(|&closed| closed != 0).collect();
        Some(RecordedCycle { past, closed })
    }
}

/// Name and text of the schema of a thread's cycles.
pub fn schema(plan: &Plan, id: ThreadId) -> (String, String) {
    let domain = &plan.domains[id.domain];
    let nodes = id.nodes(plan);
    let layout = CycleLayout::of(plan, id);
    let name = Names::default().of_type(&format!("{} thread {} cycle", domain.name, id.thread));
    let (mut text, mut of_nodes, mut types) = (String::new(), String::new(), String::new());
    for name in NUMBERS {
        field_line(&mut text, "uint64", 1, name);
    }
    list(&mut text, "uint64", layout.links, "link_lost");
    text.push_str("sinew/Nodes nodes\nuint32 flags\n");
    for name in FLAGS {
        field_line(&mut text, "bool", 1, name);
    }
    list(&mut text, "bool", layout.links, "link_broken");
    list(&mut text, "bool", layout.taps, "tap_closed");
    let (mut names, mut type_names) = (Names::default(), Names::default());
    for &node in nodes {
        let node = &plan.nodes[node];
        let type_name = type_names.of_type(&format!("node {}", node.name));
        field_line(&mut of_nodes, &format!("sinew/{type_name}"), 1, &names.field(&node.name));
        let mut signals = Names::default();
        begin(&mut types, &type_name);
        field_line(&mut types, "uint64", 1, &signals.field("execution_ns"));
        for signal in node.kind.signals {
            list(&mut types, "float64", signal.count, &signals.field(signal.name));
        }
    }
    begin(&mut text, "Nodes");
    (format!("sinew/msg/{name}"), text + &of_nodes + &types)
}

/// A line for `count` values. Nothing if there are none.
fn list(text: &mut String, scalar: &str, count: usize, name: &str) {
    if count > 0 {
        field_line(text, scalar, count as u32, name);
    }
}

/// Begins a type that the schema uses.
fn begin(text: &mut String, name: &str) {
    writeln!(text, "{:=<RULE$}\nMSG: sinew/{name}", "").expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use sinew_robot::NODES;
    use sinew_spec::plan::TargetMachine;
    use sinew_spec::{SpecSource, compile};

    use super::*;
    use crate::fixture::OBSERVER;

    /// The arm of the examples, with a recorder.
    fn plan() -> Plan {
        let text = include_str!("../../../graphs/arm/arm.yaml");
        let text = format!("{text}\n  - {{kind: recorder, name: recorder, domain: recorder}}\n");
        let text = text.replace("\nnodes:", "\n  recorder: {}\nnodes:");
        let source = SpecSource::of("arm.yaml", &text);
        let kinds = NODES.iter().map(|entry| entry.kind).chain([OBSERVER.kind]);
        let kinds: Vec<_> = kinds.collect();
        compile(&source, &kinds, &TargetMachine::of(vec![0, 1])).expect("the graph is good")
    }

    #[test]
    fn a_cycle_comes_back_as_it_was() {
        let plan = plan();
        for domain in 0..2 {
            let id = ThreadId { domain, thread: 0 };
            let nodes = &plan.domains[domain].threads()[0].nodes;
            let layout = CycleLayout::of(&plan, id);
            let signals = layout.nodes.iter().sum::<usize>();
            let past = Past {
                number: 1 << 40,
                release_ns: 1,
                start_ns: 2,
                latency_ticks: 3,
                skipped: 4,
                flags: 0b1_0011,
                lost_total: 5,
                dropped_total: 6,
                execution_ticks: (5..).take(nodes.len()).collect(),
                signals: (0..signals).map(|signal| signal as f64 / 3.0).collect(),
            };
            let mut record = Record::of(&plan, nodes);
            record.restore(&past);
            record.restore_message(0, None, true);
            let mut data = Vec::new();
            layout.write(&record, Clock::from_rate(0.0), &mut data);
            let cycle = layout.read(&data).expect("it is one of this thread");
            assert_eq!(cycle.past, past);
            assert!(cycle.closed[0] && !cycle.closed[1] && cycle.closed.len() == layout.taps);
            assert_eq!(layout.read(&data[1..]), None);
        }
    }

    #[test]
    fn a_schema_says_how_long_a_cycle_is() {
        let plan = plan();
        let id = ThreadId { domain: 0, thread: 0 };
        let (name, text) = schema(&plan, id);
        assert_eq!(name, "sinew/msg/ControlThread0Cycle");
        assert!(text.contains("\nMSG: sinew/NodeIk\nuint64 execution_ns\nfloat64[6] joint_rad\n"));
        let bytes = |line: &str| {
            let (scalar, count) = line.split(' ').next().map_or(("", 1), |scalar| {
                let Some((scalar, count)) = scalar.split_once('[') else { return (scalar, 1) };
                (scalar, count.trim_end_matches(']').parse().expect("a number"))
            });
            let size = match scalar {
                "uint64" | "float64" => 8,
                "uint32" => 4,
                "bool" => 1,
                _ => 0,
            };
            size * count
        };
        let sum: usize = text.lines().map(bytes).sum();
        assert_eq!(CDR_HEAD.len() + sum, CycleLayout::of(&plan, id).size());
    }
}

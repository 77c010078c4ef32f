//! A graph of this repository on a single thread, with a probe that records what nodes write.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use sinew_control_kinds::NODES;
use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real};
use sinew_plan::catalogue::{Kind, Port, RunsIn};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

/// What the four inputs of the probe were in a cycle.
pub(crate) type Row = [f64; 4];

const PROBE: Kind = Kind {
    name: "probe",
    runs_in: RunsIn::Realtime,
    doc: "Keeps what it reads in each cycle.",
    ports: &[
        Port::input("a", "A number.", Real::TYPE).optional(),
        Port::input("b", "A number.", Real::TYPE).optional(),
        Port::input("c", "A number.", Real::TYPE).optional(),
        Port::input("d", "A number.", Real::TYPE).optional(),
    ],
    parameters: &[],
    signals: &[],
};

thread_local! {
    static SEEN: RefCell<Vec<Row>> = const { RefCell::new(Vec::new()) };
}

struct Probe;

impl Node for Probe {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let row = std::array::from_fn(|port| io.read::<Real>(port).value);
        SEEN.with_borrow_mut(|seen| seen.push(row));
        Ok(())
    }
}

fn make(_: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Probe))
}

/// The text of the graph with this name, as a user runs it.
pub(crate) fn text(name: &str) -> String {
    let path = format!("{}/../../graphs/{name}/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text after these replacements. Each text to be replaced must occur once.
pub(crate) fn edited(text: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "'{from}' stands once in:\n{text}");
        text.replace(from, to)
    })
}

/// The inputs of the node 'probe' in each cycle of 1 ms. Control and plant share a thread, and the
/// dashboard is left out. Each of `links` is a link as it is written in the text, and the input of
/// the probe to which the same output goes too.
pub(crate) fn run(text: &str, links: &[(&str, &str)], cycles: u64) -> Vec<Row> {
    let fused = edited(
        text,
        &[
            ("  plant: {realtime: {trigger: input, overrun: {policy: count}}}\n", ""),
            ("  dashboard: {restart: {policy: always}}\n", ""),
            (
                "  - {kind: dashboard, name: dashboard, domain: dashboard}\n",
                "  - {kind: probe, domain: control}\n",
            ),
            ("    domain: plant\n", "    domain: control\n"),
        ],
    );
    let linked = links.iter().fold(fused, |text, (link, input)| {
        edited(&text, &[(link, &format!("{link}, {{name: probe, port: {input}}}"))])
    });
    let table: Vec<NodeEntry> =
        NODES.iter().copied().chain([NodeEntry { kind: &PROBE, make, safe: None }]).collect();
    let kinds: Vec<_> = table.iter().map(|entry| entry.kind).collect();
    let source = SpecSource::of("fused.yaml", &linked);
    let plan = compile(&source, &kinds, &TargetMachine::of(vec![0]))
        .unwrap_or_else(|bad| panic!("{}", render(&bad, &linked, false)));
    let mut executor = Executor::fused(&plan, &table, Path::new(".")).expect("makes");
    SEEN.take();
    for number in 0..cycles {
        executor.cycle(&Cycle::new(number, 1_000_000), u64::MAX).expect("runs");
    }
    SEEN.take()
}

/// The cycles in which number 0 of the rows stays the same for more than `least` cycles, with that
/// number.
pub(crate) fn rests(seen: &[Row], least: usize) -> Vec<(Range<usize>, f64)> {
    let mut rests = Vec::new();
    let mut from = 0;
    for to in 1..=seen.len() {
        if to == seen.len() || seen[to][0] != seen[from][0] {
            if to - from > least {
                rests.push((from..to, seen[from][0]));
            }
            from = to;
        }
    }
    rests
}

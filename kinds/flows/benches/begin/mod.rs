//! A source for benchmarks, which begins flows by hand.

use std::path::Path;
use std::sync::Arc;

use sinew_core::Fault;
use sinew_core::catalogue::{Kind, RunsIn};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{Fixture, Opened, Source as FlowSource, output};
use sinew_flows::FLOWS;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile};

static BEGIN: Kind = Kind {
    name: "begin",
    runs_in: RunsIn::Flow,
    doc: "Begins flows by hand.",
    ports: &[output("out", "The packet.")],
    parameters: &[],
    signals: &[],
};

struct Begin;

impl FlowSource for Begin {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

/// The nodes of a graph that may name the kind `begin`.
pub(crate) fn fixture(text: &str) -> Fixture {
    let begin = FlowEntry { kind: &BEGIN, make: Make::Source(|_| Ok(Box::new(Begin))) };
    let table = [&[begin], FLOWS].concat();
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let source = Source { file: "bench.yaml", text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: vec![0] }).expect("the spec is good");
    Fixture::new(&Arc::new(plan), &table, Path::new(".")).expect("the nodes are good")
}

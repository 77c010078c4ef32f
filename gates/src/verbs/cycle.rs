//! A cycle of four fused nodes that pass messages of 256 bytes in place and do no other work.

use std::hint::black_box;
use std::path::Path;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, message};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};

use super::{TIMES, Work};

message! {
    /// 256 bytes.
    pub struct Payload {
        /// Words, so that none is checked to be finite.
        pub values: [u64; 32],
    }
}

/// A node that passes its message on.
pub(super) static PASS: Kind = Kind::new(
    "pass",
    RunsIn::Realtime,
    &[
        Port::input("in", "", Payload::TYPE).optional(),
        Port::output("out", "", Payload::TYPE).optional(),
    ],
);

struct Pass;

impl Node for Pass {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let first = io.read::<Payload>(0).values[0];
        io.write::<Payload>(1).values[0] = first;
        Ok(())
    }
}

const SPEC: &str = "name: four
domains: {control: {realtime: {period: 1ms}}}
nodes:
  - {kind: pass, name: a, ports: {out: [{name: b, port: in}]}}
  - {kind: pass, name: b, ports: {out: [{name: c, port: in}]}}
  - {kind: pass, name: c, ports: {out: [{name: d, port: in}]}}
  - {kind: pass, name: d}
";

/// Runs the cycle.
pub(super) fn four() -> Work {
    let table = [NodeEntry { kind: &PASS, make: |_| Ok(Box::new(Pass)), safe: None }];
    let source = SpecSource::of("four.yaml", SPEC);
    let plan = compile(&source, &[&PASS], &TargetMachine::of(vec![0])).expect("the spec is good");
    let executor = Executor::fused(&plan, &table, Path::new("."));
    let (mut executor, mut cycle) = (executor.expect("good nodes"), Cycle::new(0, 1_000_000));
    Box::new(move || {
        for _ in 0..TIMES {
            black_box(&mut executor).cycle(&cycle, u64::MAX).expect("nothing fails");
            cycle.number += 1;
        }
    })
}

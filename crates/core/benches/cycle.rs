//! What the executor costs: a cycle of four fused nodes that pass messages of 256 bytes in place
//! and do no work, against the same four calls by hand, interleaved. `cargo bench -p sinew-core
//! --bench cycle`
//!
//! The figure to hold: at the median at most 60 ns above the calls by hand, with the execution time
//! of every node taken.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::Path;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::clock::Clock;
use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, message};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};

const ROUNDS: usize = 20;
const CYCLES: usize = 20_000;
const BAR_NS: f64 = 60.0;

message! {
    /// 256 bytes.
    pub struct Payload {
        /// Doubles, so that they are checked to be finite.
        pub values: [u64; 32],
    }
}

/// Passes on.
static PASS: Kind = Kind::new(
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

/// The same call without a runtime.
trait ByHand {
    fn update(&mut self, input: &Payload, output: &mut Payload) -> Result<(), Fault>;
}

impl ByHand for Pass {
    fn update(&mut self, input: &Payload, output: &mut Payload) -> Result<(), Fault> {
        output.values[0] = input.values[0];
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

fn main() {
    let table = [NodeEntry { kind: &PASS, make: |_| Ok(Box::new(Pass)), safe: None }];
    let source = SpecSource::of("four.yaml", SPEC);
    let plan = compile(&source, &[&PASS], &TargetMachine::of(vec![0])).expect("the spec is good");
    let mut executor = Executor::fused(&plan, &table, Path::new(".")).expect("the nodes are good");
    let mut stages: Vec<Box<dyn ByHand>> = (0..4).map(|_| Box::new(Pass) as _).collect();
    let mut payloads = [Payload::default(); 5];
    let clock = Clock::calibrate();
    let (mut cycle_ticks, mut hand_ticks) = (Vec::new(), Vec::new());
    let mut cycle = Cycle::new(0, 1_000_000);
    for _ in 0..ROUNDS {
        for _ in 0..CYCLES {
            let start = clock.ticks();
            black_box(&mut executor).cycle(&cycle, u64::MAX).expect("nothing fails");
            cycle_ticks.push(clock.ticks() - start);
            cycle.number += 1;
        }
        for _ in 0..CYCLES {
            let start = clock.ticks();
            for (at, stage) in black_box(&mut stages).iter_mut().enumerate() {
                let (input, output) = payloads.split_at_mut(at + 1);
                stage.update(&input[at], &mut output[0]).expect("nothing fails");
            }
            hand_ticks.push(clock.ticks() - start);
            black_box(&payloads);
        }
    }
    let empty = (0..CYCLES).map(|_| clock.ticks().abs_diff(clock.ticks())).collect();
    println!("{} cycles each, {ROUNDS} rounds, interleaved; ns", ROUNDS * CYCLES);
    println!("{:22} {:>8} {:>8} {:>10}", "", "p50", "p99", "max");
    let show = |name: &str, mut ticks: Vec<u64>| {
        ticks.sort_unstable();
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| {
            ticks[((ticks.len() - 1) as f64 * share) as usize] as f64 * clock.rate().max(1e-9)
        });
        println!("{name:22} {p50:8.0} {p99:8.0} {max:10.0}");
        p50
    };
    let cycle = show("cycle of four nodes", cycle_ticks);
    let hand = show("four calls by hand", hand_ticks);
    show("two clock readings", empty);
    let added = cycle - hand;
    let verdict = if added <= BAR_NS { "reached" } else { "not reached" };
    println!("the executor adds {added:.0} ns at the median; bar {BAR_NS:.0} ns: {verdict}");
}

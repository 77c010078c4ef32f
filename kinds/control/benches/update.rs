//! Measures what an update of a kind takes, with its ports and signals, beside an update that does
//! no work: `cargo bench -p sinew-control-kinds --bench update`
//!
//! The limits, above a node that passes a number on: `pid` 10 ns, `biquad` 6 ns, an `expression` of
//! ten terms 30 ns. Rounds are interleaved. For each node the median, the least and the greatest
//! round are printed.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use sinew_control_kinds::NODES;
use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, NodeFixture, Parameters, Real};
use sinew_spec::alone;

const ROUNDS: usize = 41;
const UPDATES: u32 = 50_000;
const PERIOD: Duration = Duration::from_millis(1);

/// Passes a number on: its time is what reading and writing take.
static PASS: Kind = Kind::new(
    "pass",
    RunsIn::Realtime,
    &[Port::input("in", "", Real::TYPE), Port::output("out", "", Real::TYPE)],
);
const PASSES: NodeEntry = NodeEntry { kind: &PASS, make: |_| Ok(Box::new(Pass)), safe: None };

struct Pass;

impl Node for Pass {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        io.write::<Real>(1).value = io.read::<Real>(0).value;
        Ok(())
    }
}

const TEN: &str = "'a*b + b*c - c*d + d*a + a*c'";
const TEN_COMPARED: &str = "'if(a > b and b < c or not (c == d), a*d + 1, b / 2 - c)'";

/// Parameters of a node, as a spec gives them.
type Given = &'static [(&'static str, &'static str)];

/// What is measured: a name, its kind, its parameters, and its inputs.
const ROWS: [(&str, &str, Given, usize); 8] = [
    ("pass", "", &[], 1),
    ("biquad", "biquad", &[("shape", "lowpass"), ("frequency_hz", "40")], 1),
    ("lowpass, order 4", "lowpass", &[("cutoff_hz", "40"), ("order", "4")], 1),
    ("pid", "pid", &[("kp", "2"), ("ki", "3"), ("kd", "0.1"), ("derivative_filter_s", "0.01")], 2),
    ("expression, ten terms", "expression", &[("inputs", "[a, b, c, d]"), ("expression", TEN)], 4),
    (
        "expression, ten compared",
        "expression",
        &[("inputs", "[a, b, c, d]"), ("expression", TEN_COMPARED)],
        4,
    ),
    ("limiter", "limiter", &[("rate_max", "5"), ("acceleration_max", "50")], 1),
    ("statistics, window 1000", "statistics", &[("window", "1000")], 1),
];

fn fixture(kind: &str, given: &[(&str, &str)]) -> NodeFixture {
    let entry = NODES.iter().find(|row| row.kind.name == kind).unwrap_or(&PASSES);
    let node = alone(entry.kind, given, "").unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters::alone(node.kind, &node.values, PERIOD);
    NodeFixture::new(&NodeEntry { kind: node.kind, ..*entry }, &parameters).expect("makes")
}

fn main() {
    let mut nodes: Vec<_> = ROWS
        .iter()
        .map(|(_, kind, given, inputs)| {
            let mut node = fixture(kind, given);
            for port in 0..*inputs {
                node.put(port, &Real { value: 0.25 + port as f64 });
            }
            node
        })
        .collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); nodes.len()];
    for _ in 0..ROUNDS {
        for (node, times) in nodes.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..UPDATES {
                black_box(&mut *node).update().expect("no fault");
            }
            times.push(begin.elapsed().as_nanos() as f64 / f64::from(UPDATES));
        }
    }
    println!(
        "{:26} {:>8} {:>8} {:>8} {:>11}",
        "ns an update", "median", "least", "most", "above pass"
    );
    let mut floor = 0.0;
    for ((name, ..), times) in ROWS.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        if *name == "pass" {
            floor = median;
        }
        let (least, most, above) = (times[0], times[ROUNDS - 1], median - floor);
        println!("{name:26} {median:8.1} {least:8.1} {most:8.1} {above:11.1}");
    }
}

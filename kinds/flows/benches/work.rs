//! What a unit of work costs: expressions near their limit, and other things that are paid for.
//! `cargo bench -p sinew-flows --bench work`
//!
//! The figure to hold: 100 ns for a unit at most, so that an evaluation ends after ten ms.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[expect(dead_code, reason = "what counts is the work of one flow")]
mod begin;

use std::time::{Duration, Instant};

use begin::verdict;
use sinew_flow::testing::{fixture, run};
use sinew_flow::{FlowLimits, Value};
use sinew_flows::FLOWS;

const ROUNDS: usize = 7;
const BAR_NS: f64 = 100.0;
const WORK: u64 = 1 << 40;

/// Each row: an expression, and how many numbers are the packet.
const EXPRESSIONS: &[(&str, i64)] = &[
    ("packet.map(a, packet.map(b, a * b)).size()", 70),
    ("packet.all(a, packet.all(b, a + b >= 0))", 65),
    ("packet.exists(a, packet.exists(b, a + b < 0))", 65),
    ("packet.filter(a, packet.filter(b, a < b).size() > 5).size()", 65),
    ("packet.map(a, a * 2).size()", 2500),
    ("packet.size()", 40_000),
    ("packet.map(a, string(a) + 'x').size()", 1500),
    ("packet.map(a, {'a': a, 'b': [a, a]}).size()", 1500),
    ("packet.map(a, 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1).size()", 1000),
    ("packet.map(a, a in [1,2,3,4,5,6,7,8,9,10]).size()", 1000),
    ("packet.map(a, a == 1 || a == 2 || a == 3 || a == 4 ? 1 : 2).size()", 1000),
    ("packet.map(a, a in packet).size()", 250),
    ("packet.map(a, packet == packet).size()", 100),
    ("packet.map(a, packet + packet).size()", 40),
    ("packet.map(a, packet[a] + packet[0]).size()", 250),
    ("packet.map(a, string(a).matches('^[0-9]+$')).size()", 1000),
    ("packet.map(a, string(a).split('').join(',').replace(',', ';')).size()", 500),
    ("packet.map(a, a.foo).size() > 0 || packet.all(a, a > 0 || a.b)", 1000),
    ("[packet].map(a, a + a).map(a, a + a).map(a, a + a)[0].size()", 500),
];

fn main() {
    println!("{:>9} {:>9} {:>9}  expression, packet", "units", "us", "ns/unit");
    let mut most = 0.0_f64;
    for (expression, count) in EXPRESSIONS {
        let fixture = fixture(
            &format!("- {{kind: snippet, name: a, language: cel, code: \"{expression}\"}}\n"),
            FLOWS,
        );
        let packet = Value::list((0..*count).map(Value::Integer));
        let limits = FlowLimits { deadline: Duration::from_secs(30), work: WORK };
        let (mut least, mut units, mut note) = (f64::MAX, 0, String::new());
        for _ in 0..ROUNDS {
            let flow = fixture.flow();
            let (reply, took) = run(async {
                let begun = Instant::now();
                (fixture.send(&flow, "begin", 0, packet.clone(), limits).await, begun.elapsed())
            });
            least = least.min(took.as_nanos() as f64);
            units = WORK - flow.work_left();
            note =
                reply.err().map_or(String::new(), |error| error.text().chars().take(90).collect());
        }
        let each = least / units as f64;
        most = most.max(each);
        println!("{units:>9} {:>9.0} {each:>9.1}  {expression}, {count} {note}", least / 1e3);
    }
    println!("bar {BAR_NS:.0} ns: {}", verdict(most <= BAR_NS));
}

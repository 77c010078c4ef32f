//! What benchmarks share: graphs whose flows are begun by hand, and rounds of them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_flow::{Fixture, Value};
use sinew_flows::FLOWS;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// The nodes of a graph; those of the kind `test` begin flows.
pub(crate) fn fixture(text: &str) -> Fixture {
    let kinds: Vec<_> = FLOWS.iter().map(|row| row.kind).collect();
    let source = Source { file: "bench.yaml", text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: vec![0] }).expect("the spec is good");
    Fixture::new(&Arc::new(plan), FLOWS, Path::new(".")).expect("the nodes are good")
}

/// Runs a future as a worker would.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, future)
}

/// Nanoseconds of a flow with this packet from the node `begin`, on average of so many.
pub(crate) async fn flow_ns(fixture: &Fixture, packet: &Value, flows: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..flows {
        let packet = std::hint::black_box(packet.clone());
        let reply = fixture.open("begin", 0, packet, Duration::from_secs(30)).await;
        std::hint::black_box(reply).expect("nothing fails");
    }
    begun.elapsed().as_nanos() as f64 / flows as f64
}

/// What `round` gives for each contender in so many rounds, interleaved: least, median, max.
pub(crate) fn interleave<T>(
    rounds: usize,
    contenders: &[T],
    round: impl AsyncFn(&T) -> f64,
) -> Vec<[f64; 3]> {
    let mut figures = vec![Vec::with_capacity(rounds); contenders.len()];
    run(async {
        for _ in 0..rounds {
            for (contender, figures) in contenders.iter().zip(&mut figures) {
                figures.push(round(contender).await);
            }
        }
    });
    figures.into_iter().map(summary).collect()
}

/// Least, median, max.
pub(crate) fn summary(mut figures: Vec<f64>) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at])
}

/// Whether a bar is held, for the last line.
pub(crate) fn verdict(is_held: bool) -> &'static str {
    if is_held { "reached" } else { "not reached" }
}

//! What benchmarks share: flows that are begun by hand, and rounds of them.

use std::time::{Duration, Instant};

use sinew_flow::testing::run;
use sinew_flow::{FlowFixture, Value};

/// Nanoseconds of a flow with this packet from the node `begin`, on average of so many.
pub(crate) async fn flow_ns(fixture: &FlowFixture, packet: &Value, flows: usize) -> f64 {
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

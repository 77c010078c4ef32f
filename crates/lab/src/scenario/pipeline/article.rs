//! The figures of the article whose claims are tested, as data, with our figures beside them.
//!
//! "Lock-free vs Mutex: Robot Control System IPC Performance Benchmark": four stages on four
//! threads (`in_process`) or in four processes (`shared_memory`, `pipe`).

use crate::report::{Row, Table};

/// A row of its table "After Optimization (Lock-free)", in none of which a deadline was missed.
pub(super) struct Published {
    pub(super) transport: &'static str,
    pub(super) period_ms: u32,
    pub(super) mean_us: f64,
    pub(super) p99_us: f64,
    /// The figure that the article calls jitter.
    pub(super) jitter_us: f64,
}

const fn published(
    transport: &'static str,
    period_ms: u32,
    mean_us: f64,
    p99_us: f64,
    jitter_us: f64,
) -> Published {
    Published { transport, period_ms, mean_us, p99_us, jitter_us }
}

/// The whole table.
pub(super) const PUBLISHED: [Published; 12] = [
    published("in_process", 1, 0.79, 1.90, 999.21),
    published("in_process", 2, 0.74, 1.34, 1999.26),
    published("in_process", 4, 0.76, 1.41, 3999.24),
    published("in_process", 10, 0.82, 2.30, 9999.18),
    published("shared_memory", 1, 0.78, 1.29, 999.22),
    published("shared_memory", 2, 0.76, 1.79, 1999.24),
    published("shared_memory", 4, 0.75, 1.45, 3999.25),
    published("shared_memory", 10, 0.77, 1.82, 9999.23),
    published("pipe", 1, 68.92, 174.00, 931.08),
    published("pipe", 2, 86.62, 179.07, 1913.38),
    published("pipe", 4, 79.47, 173.84, 3920.53),
    published("pipe", 10, 82.06, 174.79, 9917.94),
];

impl Published {
    /// Our row that corresponds to it.
    pub(super) fn ours<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        let placement = if self.transport == "in_process" { "4_threads" } else { "4_processes" };
        let (sync, wait) = match self.transport {
            "pipe" => ("-", "park"),
            _ => ("lock_free", "yield"),
        };
        let period = format!("{}ms", self.period_ms);
        find(rows, &["none", placement, self.transport, sync, wait, &period])
    }
}

/// The row with these values, in the order of the axes, if it was measured.
pub(super) fn find<'a>(rows: &'a [Row], values: &[&str]) -> Option<&'a Row> {
    let is_it = |row: &&Row| {
        let own = row.axes.iter().map(|(_, value)| value.as_str());
        own.eq(values.iter().copied()) && row.measure("cycle_latency").is_some()
    };
    rows.iter().find(is_it)
}

/// The article's table beside our figures.
pub(super) fn table(rows: &[Row]) -> Table {
    let columns = [
        "transport",
        "period ms",
        "their mean us",
        "their P99 us",
        "their 'jitter' us",
        "their misses",
        "our mean us",
        "our P50 us",
        "our P99 us",
        "our max us",
        "our slack us",
        "our overruns",
    ];
    let cells = |published: &Published| {
        let ours = published.ours(rows);
        let latency = ours.and_then(|row| row.measure("cycle_latency"));
        let latency = latency.map(|measure| &measure.distribution);
        let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.2}", ns / 1000.0));
        let whole = |ns: Option<u64>| us(ns.map(|ns| ns as f64));
        let figure = |name| ours.and_then(|row| row.figure(name));
        vec![
            published.transport.to_string(),
            published.period_ms.to_string(),
            format!("{:.2}", published.mean_us),
            format!("{:.2}", published.p99_us),
            format!("{:.2}", published.jitter_us),
            "0".into(),
            us(latency.and_then(|of| of.mean())),
            whole(latency.and_then(|of| of.quantile(0.5))),
            whole(latency.and_then(|of| of.quantile(0.99))),
            whole(latency.and_then(|of| of.max())),
            us(figure("slack_mean")),
            figure("overruns").map_or("-".into(), |count| count.to_string()),
        ]
    };
    let rows = PUBLISHED.iter().map(cells).collect();
    Table::of("the article's rows, lock-free, and ours", columns, rows)
}

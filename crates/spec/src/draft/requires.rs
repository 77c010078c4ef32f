//! The requirements that the user wrote after `requires`.

use sinew_plan::plan::{Bound, Isolation};
use sinew_plan::{Span, duration_text};

use crate::fields::Fields;

/// A requirement, and its place.
pub(crate) type Required = (Bound, Span);

/// Reads the key `requires` of a mapping, if it is given. A link takes no CPU time of its own.
pub(crate) fn read(outer: &Fields<'_>, takes_cpu_time: bool) -> Vec<Required> {
    let Some(entry) = outer.entry("requires") else { return Vec::new() };
    let fields = outer.inner("requires");
    let number = |name: &str| Some((fields.number_if_given(name)?, fields.entry(name)?.span));
    let (latency, latency_max) = (number("latency"), number("latency_max"));
    if let (Some((p99_ns, span)), Some((max_ns, _))) = (latency, latency_max)
        && p99_ns > max_ns
    {
        let (p99, max) = (duration_text(p99_ns), duration_text(max_ns));
        let message = format!("latency {p99} has no effect: latency_max is {max}");
        fields.report.error(span, message, "remove it, or write less than latency_max");
    }
    let mut all = Vec::new();
    all.extend(latency.map(|(ns, span)| (Bound::Latency(ns), span)));
    all.extend(latency_max.map(|(ns, span)| (Bound::LatencyMax(ns), span)));
    if let Some(isolation) = fields.given_word("isolation", Isolation::ALL) {
        all.push((Bound::Isolation(isolation), fields.at("isolation")));
    }
    if takes_cpu_time {
        all.extend(number("cpu").map(|(percent, span)| (Bound::Cpu(percent as u32), span)));
    }
    if fields.entries().is_empty() {
        let help = "write a bound, such as {latency: 10us}, or remove it";
        outer.report.error(entry.span, "'requires' is empty", help);
    }
    all
}

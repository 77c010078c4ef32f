//! The figures of a time that was measured many times: exact count, mean, spread and extremes, and
//! percentiles from a histogram with constant memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Significant digits of a percentile: it is within a thousandth of the true value.
const DIGITS: u8 = 3;

/// A percentile is printed only with this many samples beyond it: fewer would prove nothing.
const BEYOND_MIN: f64 = 10.0;

/// Names of the percentiles in reports, and the share of samples below each.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999)];

/// For slack the low end is the critical one.
const LOW_PERCENTILES: [(&str, f64); 3] = [("p0_1", 0.001), ("p1", 0.01), ("p5", 0.05)];

/// Times in nanoseconds. No value is dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct Distribution {
    histogram: Histogram<u64>,
    n: u64,
    mean: f64,
    /// Sum of the squared distances from the mean, kept by Welford's method.
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

impl Distribution {
    /// An empty distribution.
    pub fn new() -> Distribution {
        let histogram = Histogram::new(DIGITS).expect("1 to 5 digits are allowed");
        Distribution { histogram, n: 0, mean: 0.0, squares: 0.0, min: u64::MAX, max: 0 }
    }

    /// Adds a value. May allocate while the histogram still grows.
    pub fn add(&mut self, ns: u64) {
        // The histogram grows with the values. All 64-bit values fit.
        self.histogram.record(ns).expect("a histogram that resizes itself takes any value");
        self.n += 1;
        let distance = ns as f64 - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (ns as f64 - self.mean);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// The number of values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The exact mean. `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// Standard deviation with n - 1 in the denominator.
    pub fn stddev(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt())
    }

    /// The exact least value. `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.n > 0).then_some(self.min)
    }

    /// The exact greatest value. `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// The value below which `share` of the samples are, if enough samples are beyond it (on the
    /// nearer side).
    pub fn quantile(&self, share: f64) -> Option<u64> {
        // The shares are decimal fractions. Without the small term, 0.01 of 1000 would be less than
        // ten.
        let beyond = self.n as f64 * share.min(1.0 - share) + 1e-6;
        let value = || self.histogram.value_at_quantile(share).clamp(self.min, self.max);
        (beyond >= BEYOND_MIN).then(value)
    }

    /// The median of times from a clock with steps of `step_ns`, if there are enough of them. It is
    /// interpolated within its step, as for grouped data: readings of the same time fall on one of
    /// two neighbouring steps, with frequencies that follow from its place between them.
    pub fn median_of_steps(&self, step_ns: f64) -> Option<f64> {
        let median = self.quantile(0.5)? as f64;
        let (from, to) = (median - step_ns / 2.0, median + step_ns / 2.0);
        let (mut below, mut within) = (0, 0);
        for (ns, n) in self.buckets() {
            match ns as f64 {
                ns if ns < from => below += n,
                ns if ns < to => within += n,
                _ => {}
            }
        }
        let share = (self.n as f64 / 2.0 - below as f64) / within.max(1) as f64;
        Some(from + share.clamp(0.0, 1.0) * step_ns)
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        self.histogram.add(&other.histogram).expect("a histogram that resizes itself takes any");
        let (n, more) = (self.n as f64, other.n as f64);
        if other.n > 0 {
            // The sum of squares for two sets with different means: Chan, Golub and LeVeque (1979).
            let apart = other.mean - self.mean;
            self.mean += apart * more / (n + more);
            self.squares += other.squares + apart * apart * n * more / (n + more);
        }
        self.n += other.n;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    /// The histogram: the least value of each bucket, and its count. A bucket is as wide as a
    /// thousandth of its value. Empty buckets are left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let low = |value| self.histogram.lowest_equivalent(value);
        self.histogram
            .iter_recorded()
            .map(move |step| (low(step.value_iterated_to()), step.count_at_value()))
    }

    /// The summary, without the histogram.
    pub fn to_json(&self) -> Value {
        let mut object = self.head();
        for (name, share) in PERCENTILES {
            object.insert(name.into(), json!(self.quantile(share)));
        }
        object.insert("min".into(), json!(self.min()));
        object.insert("max".into(), json!(self.max()));
        object.insert("stddev".into(), json!(self.stddev().map(tenths)));
        Value::Object(object)
    }

    /// The rest of `period_ns`: negative if it was not enough. Its low percentiles mirror the high
    /// ones of the time itself.
    pub fn slack_json(&self, period_ns: u64) -> Value {
        let left = |ns: u64| i128::from(period_ns) - i128::from(ns);
        let left = |ns: Option<u64>| json!(ns.map(|ns| left(ns) as i64));
        let mut object = self.head();
        object.insert("mean".into(), json!(self.mean().map(|ns| tenths(period_ns as f64 - ns))));
        for (name, share) in PERCENTILES.into_iter().chain(LOW_PERCENTILES) {
            object.insert(name.into(), left(self.quantile(mirrored(share))));
        }
        object.insert("min".into(), left(self.max()));
        object.insert("max".into(), left(self.min()));
        object.insert("stddev".into(), json!(self.stddev().map(tenths)));
        Value::Object(object)
    }

    fn head(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("n".into(), json!(self.n));
        object.insert("mean".into(), json!(self.mean().map(tenths)));
        object
    }
}

/// A distribution as it is stored: the summary for readers, and everything needed to continue it.
#[derive(Serialize, Deserialize)]
struct Stored {
    n: u64,
    mean: Option<f64>,
    p50: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p99_9: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    stddev: Option<f64>,
    /// Least value of each bucket and its count.
    buckets: Vec<(u64, u64)>,
}

impl From<Distribution> for Stored {
    fn from(from: Distribution) -> Stored {
        let [p50, p95, p99, p99_9] = PERCENTILES.map(|(_, share)| from.quantile(share));
        let (mean, stddev) = (from.mean(), from.stddev());
        let (n, min, max, buckets) = (from.n, from.min(), from.max(), from.buckets().collect());
        Stored { n, mean, p50, p95, p99, p99_9, min, max, stddev, buckets }
    }
}

impl TryFrom<Stored> for Distribution {
    type Error = String;

    fn try_from(from: Stored) -> Result<Distribution, String> {
        let mut distribution = Distribution::new();
        let mut counted = 0_u64;
        for &(value, count) in &from.buckets {
            let recorded = distribution.histogram.record_n(value, count);
            recorded.map_err(|error| format!("bucket at {value}: {error}"))?;
            counted = counted.saturating_add(count);
        }
        if counted != from.n {
            return Err(format!("n is {}, but the buckets hold {counted}", from.n));
        }
        if let (Some(mean), Some(min), Some(max)) = (from.mean, from.min, from.max) {
            let deviation = from.stddev.unwrap_or(0.0);
            distribution.squares = deviation * deviation * from.n.saturating_sub(1) as f64;
            (distribution.n, distribution.mean) = (from.n, mean);
            (distribution.min, distribution.max) = (min, max);
        }
        Ok(distribution)
    }
}

/// One minus the share, rounded to the exact decimal fraction.
fn mirrored(share: f64) -> f64 {
    ((1.0 - share) * 1e6).round() / 1e6
}

/// Further digits of a nanosecond would be noise.
fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|ns| distribution.add(ns));
        distribution
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        assert_eq!(of(1..=999).quantile(0.99), None);
        assert_eq!(of(1..=1000).quantile(0.99), Some(990));
        assert_eq!(of(1..=19).quantile(0.5), None);
        assert_eq!(of(1..=20).quantile(0.5), Some(10));
        assert_eq!(of(1..=1000).quantile(0.999), None);
        assert_eq!(of(1..=1000).quantile(0.01), Some(10));
    }

    #[test]
    fn a_median_lies_between_the_steps_of_its_clock() {
        // A time of 87 ns is read as 80 in three of ten cases, and otherwise as 90.
        let seen = of((0..1000_u64).map(|begin| (begin % 10 + 87) / 10 * 10));
        assert_eq!(seen.quantile(0.5), Some(90));
        assert!((seen.median_of_steps(10.0).expect("enough") - 87.0).abs() < 1.0);
        // With a fine clock, or with values that are far apart, it equals the median.
        for values in [of(1..=1000), of((1..=1000).map(|i| i * i * 1000))] {
            let (median, plain) = (values.median_of_steps(1.0), values.quantile(0.5));
            let (median, plain) = (median.expect("enough"), plain.expect("enough") as f64);
            assert!((median / plain - 1.0).abs() < 2e-3, "{median} {plain}");
        }
        assert_eq!(of(1..=19).median_of_steps(10.0), None);
    }

    #[test]
    fn mean_spread_and_extremes_are_exact() {
        let distribution = of([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(distribution.mean(), Some(5.0));
        assert!((distribution.stddev().expect("eight") - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((distribution.min(), distribution.max()), (Some(2), Some(9)));
        let far = of([1_000_000_007, 3]);
        assert_eq!(far.max(), Some(1_000_000_007));
    }

    #[test]
    fn nothing_measured_is_null_not_zero() {
        let json = Distribution::new().to_json();
        assert_eq!(json["n"], 0);
        for key in ["mean", "p50", "p95", "p99", "p99_9", "max", "stddev"] {
            assert!(json[key].is_null() && json.get(key).is_some(), "{key}: {json}");
        }
    }

    #[test]
    fn percentiles_hold_over_many_decades() {
        let distribution = of((0..1000).map(|i| if i < 500 { 1000 } else { i * 1_000_000 }));
        assert_eq!(distribution.quantile(0.5), Some(1000));
        let p95 = distribution.quantile(0.95).expect("enough") as f64;
        assert!((p95 / 949e6 - 1.0).abs() < 1e-3, "{p95}");
    }

    /// Checks that every percentile is exact to a thousandth, and nothing is lost.
    fn is_exact(mut values: Vec<u64>) {
        let distribution = of(values.iter().copied());
        values.sort_unstable();
        for share in [0.01, 0.5, 0.95, 0.99, 0.999] {
            let rank = (share * values.len() as f64).round() as usize;
            let (exact, found) = (values[rank - 1], distribution.quantile(share).expect("enough"));
            let off = (found as f64 / exact as f64 - 1.0).abs();
            assert!(off <= 1e-3, "{share}: {found} for {exact}");
        }
        assert_eq!(distribution.n(), values.len() as u64);
        assert_eq!(distribution.buckets().map(|(_, count)| count).sum::<u64>(), distribution.n());
        assert_eq!((distribution.min(), distribution.max()), (Some(values[0]), values.pop()));
    }

    #[test]
    fn percentiles_of_known_distributions_are_the_exact_ones() {
        const N: u64 = 100_000;
        let share = |i: u64| (i as f64 + 0.5) / N as f64;
        is_exact((0..N).map(|i| 1_000 + i * 37).collect());
        is_exact((0..N).map(|i| (-(1.0 - share(i)).ln() * 70_000.0) as u64 + 500).collect());
        // Two modes that are far apart, and one value that is even further.
        let modes = (0..N).map(|i| if i % 10 < 9 { 290 + i % 13 } else { 68_000 + i % 997 });
        is_exact(modes.chain([3_000_000_000]).collect());
    }

    #[test]
    fn any_time_can_be_added() {
        let distribution = of([0, 1, u64::MAX / 2, u64::MAX]);
        assert_eq!((distribution.min(), distribution.max()), (Some(0), Some(u64::MAX)));
    }

    #[test]
    fn two_halves_make_the_whole() {
        let values = || (0..1000_u64).map(|i| i * i % 7919);
        let mut halves = of(values().take(300));
        halves.merge(&of(values().skip(300)));
        let whole = of(values());
        assert_eq!((halves.n(), halves.min(), halves.max()), (1000, whole.min(), whole.max()));
        assert_eq!(halves.quantile(0.95), whole.quantile(0.95));
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() / b.unwrap() - 1.0).abs() < 1e-9;
        assert!(near(halves.mean(), whole.mean()) && near(halves.stddev(), whole.stddev()));
    }

    #[test]
    fn what_is_written_can_be_read_and_goes_on() {
        let distribution = of((0..5000).map(|i| 17 + i * i % 100_003));
        let text = serde_json::to_string(&distribution).expect("plain data");
        let read: Distribution = serde_json::from_str(&text).expect("what was written");
        assert_eq!(read.to_json(), distribution.to_json());
        assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
        let bad = text.replacen("\"n\":5000", "\"n\":4999", 1);
        let error = serde_json::from_str::<Distribution>(&bad).expect_err("a lie");
        assert!(error.to_string().contains("n is 4999, but the buckets hold 5000"), "{error}");
    }

    #[test]
    fn slack_may_be_negative_and_mirrors_the_latency() {
        let json = of(501..=1500).slack_json(1000);
        assert_eq!((&json["min"], &json["max"]), (&json!(-500), &json!(499)));
        assert_eq!(json["mean"], json!(-0.5));
        // 99 % of the cycles have less slack than p99; 1 % of them have less than p1.
        assert_eq!((&json["p99"], &json["p1"]), (&json!(490), &json!(-490)));
        assert!(json["p99_9"].is_null());
    }
}

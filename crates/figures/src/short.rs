//! Figures of a run for reading at a glance: each in its own unit, with as many digits as are
//! useful.

/// Nanoseconds in microseconds, with as many digits as are useful; `-` for none.
pub fn micros(ns: Option<u64>) -> String {
    mean_micros(ns.map(|ns| ns as f64))
}

/// The same for a mean.
pub fn mean_micros(ns: Option<f64>) -> String {
    match ns.map(|ns| ns / 1e3) {
        None => "-".into(),
        Some(us) if us < 10.0 => format!("{us:.2}"),
        Some(us) if us < 10_000.0 => format!("{us:.1}"),
        Some(us) => format!("{us:.0}"),
    }
}

/// A number of nanoseconds in the unit that suits it, with at most three digits.
fn scaled(ns: u64) -> (f64, &'static str) {
    match ns as f64 {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "us"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    }
}

/// Nanoseconds in the unit that suits them, with at most three digits: `1.38 ms`.
pub fn span(ns: u64) -> String {
    match scaled(ns) {
        (count, "ns") => format!("{count} ns"),
        (count, unit) if count < 9.995 => format!("{count:.2} {unit}"),
        (count, unit) if count < 99.95 => format!("{count:.1} {unit}"),
        (count, unit) => format!("{count:.0} {unit}"),
    }
}

/// The same in five columns, for narrow tables: `1.4ms`; `-` for none.
pub fn short_span(ns: Option<u64>) -> String {
    match ns.map(scaled) {
        None => "-".into(),
        Some((count, unit)) if count < 9.95 && unit != "ns" => format!("{count:.1}{unit}"),
        Some((count, unit)) => format!("{count:.0}{unit}"),
    }
}

/// A rate per second, with as many digits as are useful: `0.5`, `12`, `34.5k`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate if rate < 9_999.5 => format!("{rate:.0}"),
        rate if rate < 999.95e3 => format!("{:.1}k", rate / 1e3),
        rate => format!("{:.2}M", rate / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_digits_that_are_of_use() {
        let shown = [1_234, 99_940, 123_456_789].map(|ns| micros(Some(ns)));
        assert_eq!(shown, ["1.23", "99.9", "123457"]);
        assert_eq!(micros(None), "-");
        let spans = [7, 999, 1_000, 99_949, 999_499, 999_500, 1_384_000, 2_000_000_000].map(span);
        let expected =
            ["7 ns", "999 ns", "1.00 us", "99.9 us", "999 us", "1.00 ms", "1.38 ms", "2.00 s"];
        assert_eq!(spans, expected);
        let short = [7, 1_000, 9_940, 99_949, 1_384_000, 2_000_000_000].map(Some).map(short_span);
        assert_eq!(short, ["7ns", "1.0us", "9.9us", "100us", "1.4ms", "2.0s"]);
        assert_eq!(short_span(None), "-");
        let rates = [0.0, 0.5, 12.3, 9_999.0, 34_512.0, 1_234_567.0].map(rate);
        assert_eq!(rates, ["0.0", "0.5", "12", "9999", "34.5k", "1.23M"]);
    }
}

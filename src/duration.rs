//! Durations as users write them: like in a spec, within the limits of the command line.

use std::time::Duration;

use sinew_spec::{decimal_comma, duration_ns};

/// The longest duration that a user may give: ten years. Arithmetic with a point in time so far
/// away does not overflow.
const HOURS_MAX: u64 = 10 * 365 * 24;
const NS_MAX: u64 = HOURS_MAX * 3_600_000_000_000;

/// A number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match duration_ns(text) {
        Ok(ns @ 1..=NS_MAX) => Ok(Duration::from_nanos(ns)),
        _ => Err(decimal_comma(text, |point| duration(point).is_ok()).unwrap_or_else(|| {
            format!(
                "'{text}' is not a duration: expected a number above 0 with ns, us, ms, s, m or h, \
                 {HOURS_MAX}h at most"
            )
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert!(duration("1,5s").unwrap_err().starts_with("write 1.5s: "));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(duration("87600h"), Ok(Duration::from_secs(87_600 * 3600)));
        for bad in
            ["", "10", "s", "-1s", "0s", "1d", "NaNs", "infs", "1e300h", "1 s x", "87601h", "9e15h"]
        {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

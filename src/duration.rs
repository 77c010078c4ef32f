//! Durations as users write them.

use std::time::Duration;

/// The longest duration that a user may give, ten years: a point in time so far away can still be
/// reckoned with.
const DURATION_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected =
        || format!("'{text}' is no duration: expected a number above 0 with us, ms, s, m or h");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let duration = Duration::try_from_secs_f64(number * unit_s).map_err(|_| expected())?;
    if duration.is_zero() {
        return Err("no time at all: expected more than zero".into());
    }
    if duration > DURATION_MAX {
        let most_h = DURATION_MAX.as_secs() / 3600;
        return Err(format!("'{text}' is too long: expected {most_h}h at most"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in
            ["", "10", "s", "-1s", "0s", "1d", "NaNs", "infs", "1e300h", "1 s x", "10µs", "9e15h"]
        {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

//! Durations as a spec writes them.

use crate::decimal::decimal_comma;

/// Units of a duration, with their length in ns.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration such as `1ms` or `2.5us`, in ns.
///
/// # Errors
/// The text is not a duration; the error says what to write instead.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let form = "write a number and ns, us, ms, s, m or h, such as 1ms or 500us";
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    if let Some(positive) = text.strip_prefix('-') {
        return Err(format!("a duration is positive: write {positive}"));
    }
    if unit.is_empty() && !number.is_empty() {
        return Err(format!("a bare number has no unit: write {text}ms, {text}us or {text}s"));
    }
    let value_ns = || {
        let (_, unit_ns) = UNITS.iter().find(|(word, _)| *word == unit.trim_start())?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let nanos = |digits: &str| digits.parse::<u64>().ok()?.checked_mul(*unit_ns);
        let scale = 10u64.checked_pow(fraction.len() as u32)?;
        nanos(whole)?.checked_add(nanos(fraction)? / scale)
    };
    value_ns().ok_or_else(|| {
        let with_point = decimal_comma(text, |point| duration_ns(point).is_ok());
        with_point.unwrap_or_else(|| form.to_owned())
    })
}

/// A duration as the spec writes it, in the largest unit up to seconds that gives a whole number.
pub fn duration_text(ns: u64) -> String {
    let is_shown = |unit: &str| !["µs", "m", "h"].contains(&unit);
    let whole = |&&(unit, unit_ns): &&(&str, u64)| is_shown(unit) && ns.is_multiple_of(unit_ns);
    let (unit, unit_ns) = UNITS.iter().rev().find(whole).unwrap_or(&UNITS[0]);
    format!("{}{unit}", ns / unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration_ns("1ms"), Ok(1_000_000));
        assert_eq!(duration_ns("2.5us"), Ok(2_500));
        assert_eq!(duration_ns("10 s"), Ok(10_000_000_000));
        assert_eq!(duration_ns("1.5m"), duration_ns("90s"));
        assert_eq!(duration_ns("2h"), duration_ns("7200s"));
        assert!(duration_ns("100").unwrap_err().contains("write 100ms"));
        assert!(duration_ns("-1ms").unwrap_err().contains("positive"));
        assert!(duration_ns("1,5ms").unwrap_err().starts_with("write 1.5ms: "));
        for bad in ["", "ms", "1.ms", ".5ms", "1e9s", "1d", "99999999999999999999s", "µ", "nan"] {
            assert!(duration_ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for text in ["1ms", "500us", "2s", "100ns", "1500us", "0s", "3600s"] {
            assert_eq!(duration_text(duration_ns(text).unwrap()), text);
        }
    }
}

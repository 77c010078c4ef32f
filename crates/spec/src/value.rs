//! Single values: sizes, numbers, words, and values of parameters.

use sinew_plan::catalogue::{Parameter, ParameterType, ParameterValue};
use sinew_plan::{Data, Item, decimal_comma, duration_ns, duration_text};

use crate::diagnostic::Report;
use crate::nearest::suggest;

/// Units of a size, with their length in bytes.
const SIZES: &[(&str, u64)] = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A size such as `256MiB`, in bytes. The error is what to write instead.
fn size_bytes(text: &str) -> Result<u64, String> {
    let form = "write a whole number and KiB, MiB or GiB, such as 256MiB";
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    if unit.is_empty() && !number.is_empty() {
        return Err(format!("a bare number has no unit: write {text}KiB, {text}MiB or {text}GiB"));
    }
    let unit = SIZES.iter().find(|(word, _)| *word == unit.trim_start());
    let bytes = unit.and_then(|(_, bytes)| number.parse::<u64>().ok()?.checked_mul(*bytes));
    bytes.ok_or_else(|| form.to_owned())
}

/// A size as the spec writes it, in the largest unit that gives a whole number.
pub(crate) fn size_text(bytes: u64) -> String {
    let whole = |&&(_, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(unit);
    match SIZES.iter().rev().find(whole) {
        Some((unit, unit_bytes)) => format!("{}{unit}", bytes / unit_bytes),
        None => format!("{bytes}B"),
    }
}

/// Hundredths such as `50%`.
pub(crate) fn percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?.trim_end();
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The text of a single value; reports anything else.
pub(crate) fn scalar<'a>(item: &'a Item, what: &str, report: &Report) -> Option<&'a str> {
    match &item.data {
        Data::Scalar { text, plain } if !(*plain && text.is_empty()) => Some(text),
        _ => {
            let message = format!("{what} takes a single value, found {}", item.sort());
            report.error(item.span, message, format!("write one value after '{what}:'"));
            None
        }
    }
}

/// The value of a text; a list has none. The error may say what to write instead.
pub(crate) fn read(ty: ParameterType, text: &str) -> Result<ParameterValue, Option<String>> {
    let value = match ty {
        ParameterType::Bool => text.parse().ok().map(ParameterValue::Bool),
        ParameterType::Integer { min, max } => text
            .parse()
            .ok()
            .filter(|value| (min..=max).contains(value))
            .map(ParameterValue::Integer),
        ParameterType::Number { min, max } => finite(text, min, max).map(ParameterValue::Number),
        ParameterType::Duration { min_ns, max_ns } => {
            let value = within(duration_ns(text)?, min_ns, max_ns, duration_text)?;
            Some(ParameterValue::Duration(value))
        }
        ParameterType::Size { min_bytes, max_bytes } => {
            let value = within(size_bytes(text)?, min_bytes, max_bytes, size_text)?;
            Some(ParameterValue::Size(value))
        }
        ParameterType::Choice(words) if !words.contains(&text) => {
            return Err(Some(suggest(text, words.iter().copied())));
        }
        ParameterType::Path if text.is_empty() => None,
        ParameterType::Choice(_) | ParameterType::Text | ParameterType::Path => {
            Some(ParameterValue::Text(text.to_owned()))
        }
        _ => None,
    };
    value.ok_or_else(|| decimal_comma(text, |point| read(ty, point).is_ok()))
}

/// The value of a parameter, as the spec writes it after its key; for single values.
///
/// # Errors
/// A sentence that says what was expected.
pub fn read_parameter(row: &Parameter, text: &str) -> Result<ParameterValue, String> {
    let text = text.trim();
    read(row.ty, text).map_err(|help| {
        let help = help.unwrap_or_else(|| format!("write {}", expected(row)));
        format!("{} cannot be '{text}': {help}", row.name)
    })
}

/// A value for a parameter of a kind; `None` if the item does not fit, which is reported.
pub(crate) fn parameter(row: &Parameter, item: &Item, report: &Report) -> Option<ParameterValue> {
    let refuse = |found: &str, help: Option<String>| {
        let help = help.unwrap_or_else(|| format!("write {}", expected(row)));
        report.error(item.span, format!("{} cannot be {found}", row.name), help);
        None
    };
    match &item.data {
        _ if row.ty == ParameterType::Yaml => Some(ParameterValue::Yaml(item.clone())),
        Data::List(items) => {
            let (values, fits) = match row.ty {
                ParameterType::Numbers { count_min, count_max, min, max } => {
                    let number = |item: &Item| match &item.data {
                        Data::Scalar { text, plain: true } => finite(text, min, max),
                        _ => None,
                    };
                    let values: Option<_> = items.iter().map(number).collect();
                    let fits = (count_min..=count_max).contains(&items.len());
                    (values.map(ParameterValue::Numbers), fits)
                }
                ParameterType::Texts { max } | ParameterType::Paths { max } => {
                    let text = |item: &Item| match &item.data {
                        Data::Scalar { text, .. } if !text.is_empty() => Some(text.clone()),
                        _ => None,
                    };
                    let values: Option<_> = items.iter().map(text).collect();
                    (values.map(ParameterValue::Texts), items.len() <= max)
                }
                _ => return refuse(item.sort(), None),
            };
            match values {
                Some(values) if fits => Some(values),
                Some(_) => refuse(&format!("a list of {}", items.len()), None),
                None => refuse("a list with such an entry", None),
            }
        }
        Data::Scalar { text, plain } if !(*plain && text.is_empty()) => {
            let shown = format!("'{text}'");
            match read(row.ty, text) {
                // In quotes it is a text.
                Ok(
                    ParameterValue::Bool(_)
                    | ParameterValue::Integer(_)
                    | ParameterValue::Number(_),
                ) if !plain => refuse(&shown, None),
                Ok(value) => Some(value),
                Err(help) => {
                    let is_choice = matches!(row.ty, ParameterType::Choice(_));
                    refuse(&shown, help.filter(|_| is_choice || !text.is_empty()))
                }
            }
        }
        Data::Scalar { .. } | Data::Map(_) => refuse(item.sort(), None),
    }
}

/// A finite number in limits.
fn finite(text: &str, min: f64, max: f64) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && (min..=max).contains(value))
}

/// A value within limits. `text` writes a limit; the error says what to write instead.
fn within(value: u64, min: u64, max: u64, text: fn(u64) -> String) -> Result<u64, String> {
    let fits = (min..=max).contains(&value);
    fits.then_some(value)
        .ok_or_else(|| format!("it is at least {} and at most {}", text(min), text(max)))
}

/// What a parameter accepts, in words: `a whole number from 1 to 99 (Hz)`.
pub fn expected(parameter: &Parameter) -> String {
    let text = taken(parameter.ty);
    if parameter.unit.is_empty() { text } else { format!("{text} ({})", parameter.unit) }
}

/// A limit, in short form if it is very large or small.
fn figure(limit: f64) -> String {
    match limit.abs() {
        0.0 | 1e-3..1e6 => limit.to_string(),
        _ => format!("{limit:e}"),
    }
}

/// The same without a unit.
pub(crate) fn taken(ty: ParameterType) -> String {
    match ty {
        ParameterType::Bool => "true or false".to_owned(),
        ParameterType::Integer { min, max } => format!("a whole number from {min} to {max}"),
        ParameterType::Number { min, max } => {
            format!("a number from {} to {}", figure(min), figure(max))
        }
        ParameterType::Numbers { count_min, count_max, min, max } if count_min == count_max => {
            format!("a list of {count_min} numbers from {} to {}", figure(min), figure(max))
        }
        ParameterType::Numbers { count_min, count_max, min, max } => {
            let (min, max) = (figure(min), figure(max));
            format!("a list of {count_min} to {count_max} numbers from {min} to {max}")
        }
        ParameterType::Text => "a text".to_owned(),
        ParameterType::Choice(words) => format!("one of {}", words.join(", ")),
        ParameterType::Path => "a file, relative to the folder of the spec".to_owned(),
        ParameterType::Texts { max } => format!("a list of {max} texts at most"),
        ParameterType::Paths { max } => {
            format!("a list of {max} files at most, relative to the folder of the spec")
        }
        ParameterType::Duration { min_ns, max_ns } => {
            format!("a time from {} to {}", duration_text(min_ns), duration_text(max_ns))
        }
        ParameterType::Size { min_bytes, max_bytes } => {
            format!("a size from {} to {}", size_text(min_bytes), size_text(max_bytes))
        }
        ParameterType::Yaml => "any value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_binary_unit_and_are_written_as_they_are_read() {
        for text in ["1KiB", "256MiB", "3GiB", "1536MiB"] {
            assert_eq!(size_text(size_bytes(text).unwrap()), text);
        }
        assert_eq!(size_bytes("8 MiB"), Ok(8 << 20));
        assert_eq!(size_text(1000), "1000B");
        for bad in ["", "64", "64MB", "64M", "1.5GiB", "-1MiB", "99999999999999999GiB", "MiB"] {
            assert!(size_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_share_is_a_whole_number_with_its_sign() {
        assert_eq!((percent("50%"), percent("200 %")), (Some(50), Some(200)));
        for bad in ["50", "%", "-1%", "+1%", "0.5%", "99999999999%", "5%%"] {
            assert_eq!(percent(bad), None, "{bad}");
        }
    }
}

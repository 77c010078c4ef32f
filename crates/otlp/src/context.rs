//! The place of a span in its trace, as sent to others: Trace Context of the W3C.

use std::fmt;
use std::sync::Arc;

/// Length of a traceparent of the known version, in characters.
const LEN: usize = 55;
/// Most entries of a tracestate. One with more is ignored (3.3.1.1 of the recommendation).
const STATE_ENTRIES_MAX: usize = 32;
/// Most characters of a tracestate that are passed on, at least as many as the recommendation asks
/// for. Further entries are left out.
const STATE_LEN_MAX: usize = 512;

/// The place of a span in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The number of the trace; never 0.
    pub trace: u128,
    /// The number of the span; never 0.
    pub span: u64,
    /// Whether the spans of this trace are recorded.
    pub is_sampled: bool,
    /// What other services have added to the trace, for services that understand it.
    pub state: Option<Arc<str>>,
}

impl SpanContext {
    /// The content of a traceparent header. `None` if it is not understood; then it counts as
    /// missing.
    pub fn parse(text: &[u8]) -> Option<SpanContext> {
        let (text, rest) = text.split_at_checked(LEN)?;
        let is_whole = match hex(&text[..2])? {
            0 => rest.is_empty(),
            0xff => false,
            // A later version may add more after a dash.
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };
        if !is_whole || [2, 35, 52].iter().any(|at| text[*at] != b'-') {
            return None;
        }
        let (trace, span) = (hex(&text[3..35])?, hex(&text[36..52])? as u64);
        let is_sampled = hex(&text[53..])? & 1 == 1;
        (trace != 0 && span != 0).then_some(SpanContext { trace, span, is_sampled, state: None })
    }

    /// The same with the content of the lines of the tracestate header, unless it is malformed.
    pub fn with_state<'a>(mut self, lines: impl IntoIterator<Item = &'a str>) -> SpanContext {
        let lines: Vec<_> = lines.into_iter().collect();
        let all = lines.join(",");
        let entries: Vec<_> =
            all.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        if entries.len() > STATE_ENTRIES_MAX || !entries.iter().all(|entry| is_entry(entry)) {
            return self;
        }
        let mut state = String::new();
        for entry in entries {
            let comma = if state.is_empty() { "" } else { "," };
            if state.len() + comma.len() + entry.len() > STATE_LEN_MAX {
                break;
            }
            state += comma;
            state += entry;
        }
        self.state = (!state.is_empty()).then(|| state.into());
        self
    }
}

/// In the format of the traceparent header.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Parses digits in lower case only.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

fn is_entry(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_plain
        && text.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = SpanContext::parse(TEXT.as_bytes()).expect("that of the recommendation");
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span, context.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), TEXT);
        for (end, is_sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let text = format!("{}{end}", &TEXT[..53]);
            let context = SpanContext::parse(text.as_bytes()).expect(&text);
            assert_eq!(context.is_sampled, is_sampled, "{text}");
        }
        // Later versions may have more after it.
        for text in [format!("cc{}", &TEXT[2..]), format!("cc{}-what", &TEXT[2..])] {
            assert!(SpanContext::parse(text.as_bytes()).is_some(), "{text}");
        }
    }

    #[test]
    fn a_malformed_traceparent_is_none() {
        let bad = [
            String::new(),
            TEXT[..54].to_owned(),
            format!("{TEXT}0"),
            format!("{TEXT}-what"),
            format!("ff{}", &TEXT[2..]),
            format!("cc{}.what", &TEXT[2..]),
            TEXT.to_uppercase(),
            TEXT.replace('-', "_"),
            TEXT.replace("4bf9", "4bg9"),
            TEXT.replace("-01", "-0x"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01".to_owned(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01".to_owned(),
            "x".repeat(55),
            "\u{fc}".repeat(55),
        ];
        for text in bad {
            assert_eq!(SpanContext::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_tracestate_is_passed_on_as_far_as_it_may() {
        let state = |lines: &[&str]| {
            let context = SpanContext::parse(TEXT.as_bytes()).expect("a context");
            let state = context.with_state(lines.iter().copied()).state;
            state.map(|state| state.to_string())
        };
        assert_eq!(state(&["a=1,b=2", " c=3 ,, d@e=f g"]).as_deref(), Some("a=1,b=2,c=3,d@e=f g"));
        for bad in ["", "a", "=1", "a=", "a=1,b", "a=\u{1}"] {
            assert_eq!(state(&[bad]), None, "{bad}");
        }
        let many = |count: usize| vec!["a=1"; count].join(",");
        assert!(state(&[&many(32)]).is_some() && state(&[&many(33)]).is_none());
        let long = format!("a={}", "x".repeat(300));
        assert_eq!(state(&[&long, &long]), Some(long));
    }
}

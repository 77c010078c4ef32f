//! Which part of a file a request asks for, and whether it has it already (RFC 9110, 13 and 14).

use super::Found;

/// Bytes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) begin: u64,
    pub(super) len: u64,
}

/// What is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Whole,
    Part(Part),
    /// The client has it.
    Unchanged,
    /// There are no such bytes.
    OutOfRange,
}

impl State {
    /// Decides by the headers of a request. Several ranges, or an invalid one, are answered with
    /// the whole file: that is allowed, and no client can ask for a thousand parts of one file.
    pub(super) fn of(
        found: &Found,
        header: impl Fn(&str) -> Option<String>,
        is_head: bool,
    ) -> State {
        let is_unchanged = match header("if-none-match") {
            Some(tags) => {
                let mut tags = tags.split(',').map(str::trim);
                tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == found.tag)
            }
            None => header("if-modified-since").is_some_and(|date| found.is_as_old_as(&date)),
        };
        if is_unchanged {
            return State::Unchanged;
        }
        let is_same = header("if-range").is_none_or(|of| match of.contains('"') {
            true => of == found.tag,
            false => found.modified().is_some_and(|time| httpdate::fmt_http_date(time) == of),
        });
        match header("range").filter(|_| is_same && !is_head) {
            Some(range) => part(&range, found.len),
            None => State::Whole,
        }
    }
}

impl Found {
    fn is_as_old_as(&self, date: &str) -> bool {
        let date = httpdate::parse_http_date(date).ok();
        matches!((self.modified(), date), (Some(own), Some(date)) if own <= date)
    }
}

/// The part of `len` bytes that a header `range` asks for.
fn part(range: &str, len: u64) -> State {
    let Some((unit, range)) = range.split_once('=') else { return State::Whole };
    let Some((first, last)) = range.split_once('-') else { return State::Whole };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More than any file has.
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (begin, end) = match (number(first), number(last)) {
        _ if !unit.eq_ignore_ascii_case("bytes") => return State::Whole,
        (Some(first), Some(last)) if first > last => return State::Whole,
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(len)),
        (Some(first), None) if last.is_empty() => (first, len),
        (None, Some(count)) if first.is_empty() && count > 0 => (len.saturating_sub(count), len),
        (None, Some(0)) if first.is_empty() => return State::OutOfRange,
        _ => return State::Whole,
    };
    match end.checked_sub(begin) {
        Some(part_len @ 1..) => State::Part(Part { begin, len: part_len }),
        _ => State::OutOfRange,
    }
}

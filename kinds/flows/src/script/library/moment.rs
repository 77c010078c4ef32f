//! Times, as milliseconds since 1970-01-01T00:00:00Z and as text.

use std::cell::Cell;

use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};
use sinew_flow::Value;

use super::Given;

/// What a call costs, in units of work. At its first use a zone is read from small files of the
/// system, in some 20 us; after that it is in memory.
pub(super) const WORK: u64 = 200;
/// Longest pattern, and longest text that is read, in bytes. A pattern may ask for padding.
const LEN_MAX: usize = 256;

thread_local! {
    /// The time that a test says it is.
    static PRETENDED_MS: Cell<Option<i64>> = const { Cell::new(None) };
}

/// The time, in ms since 1970; in a test the time that the test sets.
pub(crate) fn now_ms() -> i64 {
    PRETENDED_MS.get().unwrap_or_else(|| Timestamp::now().as_millisecond())
}

/// Sets the time of this thread, until the returned value is dropped.
pub(crate) fn pretend(now_ms: i64) -> Pretended {
    PRETENDED_MS.set(Some(now_ms));
    Pretended
}

/// While this exists, the time is that of a test.
pub(crate) struct Pretended;

impl Drop for Pretended {
    fn drop(&mut self) {
        PRETENDED_MS.set(None);
    }
}

pub(super) fn format(given: &Given<'_>) -> Result<Value, String> {
    let time = time(given)?;
    if !given.has(1) {
        return Ok(Value::text(format!("{time:.3}")));
    }
    let zoned = time.to_zoned(zone(given)?);
    strtime::format(short(given, 1)?, &zoned).map(Value::text).map_err(|error| error.to_string())
}

pub(super) fn parse(given: &Given<'_>) -> Result<Value, String> {
    let text = short(given, 0)?;
    let time = match given.has(1) {
        false => text.parse(),
        true => {
            let zone = zone(given)?;
            BrokenDownTime::parse(short(given, 1)?, text).and_then(|parts| timestamp(&parts, zone))
        }
    };
    time.map(of).map_err(|error| error.to_string())
}

/// The time of a text; `zone` holds where the text names none.
fn timestamp(parts: &BrokenDownTime, zone: TimeZone) -> Result<Timestamp, jiff::Error> {
    if parts.timestamp().is_some() || parts.offset().is_some() {
        return parts.to_timestamp();
    }
    if parts.iana_time_zone().is_some() {
        return parts.to_zoned().map(|zoned| zoned.timestamp());
    }
    Ok(parts.to_datetime()?.to_zoned(zone)?.timestamp())
}

pub(super) fn add(given: &Given<'_>) -> Result<Value, String> {
    let zoned: Zoned = time(given)?.to_zoned(zone(given)?);
    let span: Result<Span, _> = short(given, 1)?.parse();
    let later = span.and_then(|span| zoned.checked_add(span));
    later.map(|zoned| of(zoned.timestamp())).map_err(|error| error.to_string())
}

pub(super) fn duration(given: &Given<'_>) -> Result<Value, String> {
    let duration: SignedDuration =
        short(given, 0)?.parse().map_err(|error: jiff::Error| error.to_string())?;
    let whole = i64::try_from(duration.as_millis());
    whole.map(Value::Integer).map_err(|_| "too long".to_owned())
}

fn of(time: Timestamp) -> Value {
    Value::Integer(time.as_millisecond())
}

fn time(given: &Given<'_>) -> Result<Timestamp, String> {
    Timestamp::from_millisecond(given.integer(0)?).map_err(|error| error.to_string())
}

/// The third argument, or UTC.
fn zone(given: &Given<'_>) -> Result<TimeZone, String> {
    if !given.has(2) {
        return Ok(TimeZone::UTC);
    }
    let name = short(given, 2)?;
    TimeZone::get(name).map_err(|_| format!("this machine knows no time zone '{name}'"))
}

fn short<'a>(given: &Given<'a>, at: usize) -> Result<&'a str, String> {
    let text = given.text(at)?;
    match text.len() <= LEN_MAX {
        true => Ok(text),
        false => Err(format!("argument {} has {} bytes, at most {LEN_MAX}", at + 1, text.len())),
    }
}

//! The operations on entries of a store, in memory and on disk: their rules and limits.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sinew_flow::{Error, Value, cbor};

/// An entry counts as this many bytes beside its key and its value, against `bytes_max`.
pub(super) const ENTRY_BYTES: u64 = 256;
/// Most expired entries that each operation removes, beside those whose room it needs.
const EXPIRED_PER_TURN: usize = 16;
/// The expiry time of an entry that never expires.
const NEVER: u64 = u64::MAX;

/// What a store may hold, and what happens past it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreLimits {
    pub(super) entries_max: u64,
    /// Of keys and values, with [`ENTRY_BYTES`] for each entry.
    pub(super) bytes_max: u64,
    pub(super) value_max: usize,
    /// Whether old entries are removed for new ones; otherwise a full store is an error.
    pub(super) evicts: bool,
}

/// What is to be done with an entry.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Get,
    Set(Bytes),
    Append { element: Bytes, keep: u64 },
    Replace { expected: Value, value: Bytes },
    Increment(i64),
    Delete,
}

/// An operation: the act, and the entry's key.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) key: Box<str>,
    pub(super) act: Act,
    /// How long after the operation the entry expires; `None` for the act's own rule.
    pub(super) expire_ms: Option<u64>,
}

impl Asked {
    /// Bytes that the operation takes while it waits.
    pub(super) fn len(&self) -> usize {
        let value = match &self.act {
            Act::Set(value) | Act::Append { element: value, .. } => value.len(),
            // The expected value is not counted: it is no larger than data that the flow already
            // holds.
            Act::Replace { value, .. } => value.len(),
            Act::Get | Act::Increment(_) | Act::Delete => 0,
        };
        self.key.len() + value + ENTRY_BYTES as usize
    }
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The value that the entry has now, or had before it was deleted.
    Is(Bytes),
    /// There is no such entry.
    Missing,
    /// It had a value other than the expected one.
    Differs,
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Bytes,
    /// When it expires, by the table's clock.
    pub(super) until_ms: u64,
}

/// How much a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl Totals {
    /// The totals of one entry.
    pub(super) fn of(key: &str, value: &[u8]) -> Totals {
        Totals { entries: 1, bytes: ENTRY_BYTES + (key.len() + value.len()) as u64 }
    }

    pub(super) fn add(&mut self, more: Totals) {
        self.entries += more.entries;
        self.bytes += more.bytes;
    }

    /// Saturating, because a file that was tampered with may hold less than it says.
    pub(super) fn take(&mut self, less: Totals) {
        self.entries = self.entries.saturating_sub(less.entries);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}

/// What a store has counted since its domain began.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Entries that were removed for new ones.
    pub(super) evicted: AtomicU64,
    /// Entries that have expired.
    pub(super) expired: AtomicU64,
    /// Operations for which there was no room.
    pub(super) refused: AtomicU64,
    /// Replies that `cache` found, made, and could not keep.
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) unkept: AtomicU64,
}

pub(super) fn count(place: &AtomicU64) {
    // Relaxed: it is a number alone; no other data goes with it.
    place.fetch_add(1, Ordering::Relaxed);
}

/// The entries: by key, by age, and by expiry.
pub(super) trait Table {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error>;
    /// Notes that the entry was used.
    fn touch(&mut self, _key: &str) {}
    /// Writes the entry; it is the newest from now on.
    fn put(&mut self, key: &str, entry: Entry) -> Result<(), Error>;
    fn remove(&mut self, key: &str) -> Result<(), Error>;
    fn totals(&self) -> Totals;
    /// The entry that expires first, and when.
    fn next_to_expire(&self) -> Result<Option<(u64, Box<str>)>, Error>;
    /// The entry that is removed first for new ones.
    fn oldest(&self) -> Result<Option<Box<str>>, Error>;
}

/// Carries out an operation at this time of the table's clock.
///
/// # Errors
/// There is no room (507), the value is too long (413) or not what the operation needs (409); or
/// the disk fails.
pub(super) fn carry_out(
    table: &mut impl Table,
    Asked { key, act, expire_ms }: &Asked,
    limits: StoreLimits,
    now_ms: u64,
    counts: &Counts,
) -> Result<Outcome, Error> {
    for _ in 0..EXPIRED_PER_TURN {
        if !expire_next(table, now_ms, counts)? {
            break;
        }
    }
    let before = table.get(key)?.filter(|entry| entry.until_ms > now_ms);
    let kept_ms = before.as_ref().map_or(NEVER, |entry| entry.until_ms);
    let (value, until_ms) = match act {
        Act::Get => {
            table.touch(key);
            return Ok(before.map_or(Outcome::Missing, |entry| Outcome::Is(entry.value)));
        }
        Act::Delete => {
            table.remove(key)?;
            return Ok(before.map_or(Outcome::Missing, |entry| Outcome::Is(entry.value)));
        }
        Act::Set(value) => (value.clone(), NEVER),
        Act::Append { element, keep } => {
            (cbor::appended(before.as_ref().map(|entry| &*entry.value), element, *keep)?, kept_ms)
        }
        Act::Replace { expected, value } => {
            let found = before.as_ref().map_or(Ok(Value::Null), |entry| cbor::value(&entry.value));
            if found? != *expected {
                return Ok(Outcome::Differs);
            }
            (value.clone(), NEVER)
        }
        Act::Increment(by) => (incremented(before.as_ref(), *by)?, kept_ms),
    };
    if value.len() > limits.value_max {
        let (len, max) = (value.len(), limits.value_max);
        let what = format!("the entry would have {len} bytes; the store's 'value_max' is {max}");
        return Err(Error::new(what).with_status(413));
    }
    let until_ms = expire_ms.map_or(until_ms, |span_ms| now_ms.saturating_add(span_ms));
    make_room(table, key, &value, limits, now_ms, counts)?;
    table.put(key, Entry { value: value.clone(), until_ms })?;
    Ok(Outcome::Is(value))
}

fn incremented(before: Option<&Entry>, by: i64) -> Result<Bytes, Error> {
    let before = before.map_or(Ok(Value::Integer(0)), |entry| cbor::value(&entry.value))?;
    let Value::Integer(number) = before else {
        let what = format!("the entry is {}, expected a whole number", before.sort());
        return Err(Error::new(what).with_status(409));
    };
    let sum = number.checked_add(by).ok_or_else(|| {
        Error::new(format_args!("{number} + {by} is not a whole number of 64 bits"))
            .with_status(409)
    })?;
    cbor::bytes(&Value::Integer(sum), 9)
}

/// Removes the next expired entry; whether there was one.
fn expire_next(table: &mut impl Table, now_ms: u64, counts: &Counts) -> Result<bool, Error> {
    match table.next_to_expire()? {
        Some((until_ms, key)) if until_ms <= now_ms => {
            table.remove(&key)?;
            count(&counts.expired);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Makes room for an entry with this value. Entries that are removed for it stay removed, even if
/// there is no room in the end.
fn make_room(
    table: &mut impl Table,
    key: &str,
    value: &[u8],
    limits: StoreLimits,
    now_ms: u64,
    counts: &Counts,
) -> Result<(), Error> {
    let need = Totals::of(key, value);
    loop {
        let mut after = table.totals();
        if let Some(own) = table.get(key)? {
            after.take(Totals::of(key, &own.value));
        }
        after.add(need);
        if after.entries <= limits.entries_max && after.bytes <= limits.bytes_max {
            return Ok(());
        }
        if expire_next(table, now_ms, counts)? {
            continue;
        }
        let can_fit = need.bytes <= limits.bytes_max;
        match table.oldest()?.filter(|_| limits.evicts && can_fit) {
            Some(oldest) => {
                table.remove(&oldest)?;
                if *oldest != *key {
                    count(&counts.evicted);
                }
            }
            None => {
                count(&counts.refused);
                return Err(full(after, limits));
            }
        }
    }
}

#[cold]
fn full(Totals { entries, bytes }: Totals, limits: StoreLimits) -> Error {
    Error::new(format_args!(
        "the store is full: it would hold {entries} of {} entries, {bytes} of {} bytes; raise \
         'entries_max' or 'bytes_max', let entries expire, or write 'full: evict'",
        limits.entries_max, limits.bytes_max
    ))
    .with_status(507)
}

#[cfg(test)]
mod tests;

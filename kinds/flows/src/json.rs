//! Writes values as JSON text for a flow, which is charged by the length of the text. The text is
//! written piece by piece, so that a long one keeps no other flow waiting.

use std::sync::Arc;

use serde::Serialize;
use sinew_flow::{Error, Flow, Map, Value};

/// Bytes that are written between two checks of the clock, in a tenth of a millisecond at most.
const PIECE_LEN: usize = 16 << 10;
/// Capacity that the buffer of a short text begins with, in bytes.
const SHORT_LEN: usize = 96;
/// Most values and pieces of text that are written at once, in some ten microseconds.
const AT_ONCE_MAX: usize = 256;
/// Bytes of such a piece of text.
const TEXT_PIECE_LEN: usize = 64;
/// Bytes that are written for one unit of work, at least. The worst case is small numbers only.
const BYTES_PER_UNIT: usize = 8;

/// A value as JSON text, the same JSON as that of [`Value::to_json`].
///
/// # Errors
/// The flow has too little work left (503), or a document in the value is malformed.
pub(crate) async fn write(flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
    let mut room = AT_ONCE_MAX;
    if is_short(value, &mut room) {
        let mut text = Vec::with_capacity(SHORT_LEN);
        serde_json::to_writer(&mut text, value).map_err(Error::new)?;
        flow.spend((text.len() / BYTES_PER_UNIT) as u64)?;
        return Ok(text);
    }
    // Boxed, so that the future of a short text stays small.
    Box::pin(in_pieces(flow, value)).await
}

/// Whether the value is short enough to be written at once. Takes what it needs from `room`.
fn is_short(value: &Value, room: &mut usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Number(_) => takes(room, 0),
        Value::Text(text) => takes(room, text.len()),
        Value::List(items) => takes(room, 0) && items.iter().all(|item| is_short(item, room)),
        Value::Map(entries) => {
            takes(room, 0)
                && entries
                    .iter()
                    .all(|(key, value)| takes(room, key.len()) && is_short(value, room))
        }
        Value::Bytes(_) | Value::Stream(_) | Value::Document(_) => false,
    }
}

fn takes(room: &mut usize, len: usize) -> bool {
    let left = room.checked_sub(1 + len / TEXT_PIECE_LEN);
    *room = left.unwrap_or(0);
    left.is_some()
}

async fn in_pieces(flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
    let mut writer = Writer { flow, text: Vec::new(), paid: 0, open: Vec::new() };
    let mut next = Some(value.clone());
    while let Some(value) = next {
        match value {
            Value::List(items) => writer.open(b'[', Open::List(items, 0)),
            Value::Map(entries) => writer.open(b'{', Open::Map(entries, 0)),
            Value::Document(_) => {
                next = Some(flow.resolve(&value)?);
                continue;
            }
            Value::Text(text) => writer.quote(&text).await?,
            Value::Bytes(bytes) => writer.quote(&String::from_utf8_lossy(&bytes)).await?,
            one => writer.put(&one)?,
        }
        writer.turn().await?;
        next = writer.next()?;
    }
    writer.pay()?;
    Ok(writer.text)
}

/// Like `write`, but gives a `String`.
pub(crate) async fn text(flow: &Flow, value: &Value) -> Result<String, Error> {
    String::from_utf8(write(flow, value).await?).map_err(Error::new)
}

/// Like `text`, but gives a value that is a text as it is, without quotes.
pub(crate) async fn line(flow: &Flow, value: &Value) -> Result<String, Error> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        other => text(flow, other).await,
    }
}

struct Writer<'a> {
    flow: &'a Flow,
    text: Vec<u8>,
    /// Bytes of `text` that the flow has been charged for.
    paid: usize,
    /// The lists and mappings that are begun, from the outside in.
    open: Vec<Open>,
}

/// A list or a mapping, and how much of it is written.
enum Open {
    List(Arc<Vec<Value>>, usize),
    Map(Arc<Map>, usize),
}

impl Writer<'_> {
    fn open(&mut self, sign: u8, open: Open) {
        self.text.push(sign);
        self.open.push(open);
    }

    /// Writes what comes before the next value (a comma, a key), and gives that value.
    fn next(&mut self) -> Result<Option<Value>, Error> {
        while let Some(open) = self.open.last_mut() {
            let (at, found, end) = match open {
                Open::List(items, at) => {
                    let item = items.get(*at).map(|item| (None, item));
                    (at, item, b']')
                }
                Open::Map(entries, at) => {
                    let entry = entries.get_index(*at);
                    (at, entry.map(|(key, value)| (Some(&**key), value)), b'}')
                }
            };
            if let Some((key, value)) = found {
                if *at > 0 {
                    self.text.push(b',');
                }
                if let Some(key) = key {
                    serde_json::to_writer(&mut self.text, key).map_err(Error::new)?;
                    self.text.push(b':');
                }
                let value = value.clone();
                *at += 1;
                return Ok(Some(value));
            }
            self.text.push(end);
            self.open.pop();
        }
        Ok(None)
    }

    fn put(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        serde_json::to_writer(&mut self.text, value).map_err(Error::new)
    }

    /// Writes a text, however long it is.
    async fn quote(&mut self, mut rest: &str) -> Result<(), Error> {
        let begin = self.text.len();
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_LEN));
            let at = self.text.len();
            self.put(piece)?;
            if at > begin {
                // The first piece has opened the quotes: this piece's own opening quote is removed.
                self.text.remove(at);
            }
            if after.is_empty() {
                return Ok(());
            }
            self.text.pop();
            self.turn().await?;
            rest = after;
        }
    }

    /// Once a piece is written: charges the flow for it, and lets others have the worker.
    async fn turn(&mut self) -> Result<(), Error> {
        if self.text.len() - self.paid >= PIECE_LEN {
            self.pay()?;
            self.flow.turn().await;
        }
        Ok(())
    }

    fn pay(&mut self) -> Result<(), Error> {
        let units = (self.text.len() - self.paid) / BYTES_PER_UNIT;
        self.paid += units * BYTES_PER_UNIT;
        self.flow.spend(units as u64)
    }
}

#[cfg(test)]
mod tests;

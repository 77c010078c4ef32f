//! Server-sent events (HTML, 9.2): makes events of the lines of a stream.

use bytes::Bytes;
use bytestring::ByteString;
use sinew_flow::{Error, Map, Value};

use super::text;

/// The name of an event that gives none.
const MESSAGE: &str = "message";

/// An event of which some lines have come.
#[derive(Default)]
pub(super) struct EventReader {
    /// The line in which it begins.
    number: u64,
    data: Option<Vec<u8>>,
    event: Vec<u8>,
    retry: Option<i64>,
    /// The id of the last event that had one.
    id: Vec<u8>,
    /// A line has ended with a carriage return; a line feed that follows belongs to it.
    skips_feed: bool,
}

impl EventReader {
    /// Bytes that it holds.
    pub(super) fn len(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len) + self.event.len() + self.id.len()
    }

    /// Whether a line feed that comes now belongs to the line before.
    pub(super) fn skips_feed(&self) -> bool {
        self.skips_feed
    }

    /// Notes that this line feed has come.
    pub(super) fn has_fed(&mut self) {
        self.skips_feed = false;
    }

    /// Notes that a line has ended, and whether with a carriage return.
    pub(super) fn end_line(&mut self, with_return: bool) {
        self.skips_feed = with_return;
    }

    /// Takes a line. If it ends an event, returns the line in which the event begins, its data, and
    /// its value.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        number: u64,
    ) -> Option<(u64, Bytes, Result<Value, Error>)> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if self.number == 0 {
            self.number = number;
        }
        match name {
            b"data" => match &mut self.data {
                None => self.data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            },
            b"event" => self.event = value.to_vec(),
            b"id" if !value.contains(&0) => self.id = value.to_vec(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
            }
            // A comment, or an unknown field.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<(u64, Bytes, Result<Value, Error>)> {
        let number = std::mem::take(&mut self.number);
        let (event, retry) = (std::mem::take(&mut self.event), self.retry.take());
        let data = Bytes::from(self.data.take()?);
        Some((number, data.clone(), self.value(&data, &event, retry)))
    }

    fn value(&self, data: &[u8], event: &[u8], retry: Option<i64>) -> Result<Value, Error> {
        let mut map = Map::new();
        let name = if event.is_empty() { ByteString::from_static(MESSAGE) } else { text(event)? };
        map.insert("event".into(), Value::Text(name));
        if !self.id.is_empty() {
            map.insert("id".into(), Value::Text(text(&self.id)?));
        }
        map.insert("data".into(), Value::Text(text(data)?));
        if let Some(retry) = retry {
            map.insert("retry".into(), Value::Integer(retry));
        }
        Ok(Value::Map(map.into()))
    }
}

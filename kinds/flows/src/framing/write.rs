//! Writes elements as bytes.

use sinew_core::Parameters;
use sinew_flow::{Error, Flow, Value};

use crate::json;

/// The format in which elements are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// Texts, a line each; other values as JSON.
    Lines,
    /// JSON, a line each.
    Ndjson,
    /// Rows: lists, or the values of mappings.
    Csv,
    /// Server-sent events.
    Sse,
    /// Texts and bytes, with nothing between them.
    Bytes,
}

/// The fields of an event; a mapping with no other fields is an event.
const FIELDS: [&str; 4] = ["event", "id", "data", "retry"];

/// A comment, which keeps a connection alive while no event comes.
pub(crate) const COMMENT: &[u8] = b":\n\n";

impl Outgoing {
    /// The format that the parameter of this name gives.
    pub(crate) fn of(parameters: &Parameters<'_>, name: &str) -> Outgoing {
        match parameters.text(name) {
            "lines" => Outgoing::Lines,
            "csv" => Outgoing::Csv,
            "sse" => Outgoing::Sse,
            "bytes" => Outgoing::Bytes,
            _ => Outgoing::Ndjson,
        }
    }

    /// The HTTP content type of the bytes.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Outgoing::Lines => "text/plain; charset=utf-8",
            Outgoing::Ndjson => "application/x-ndjson",
            Outgoing::Csv => "text/csv; charset=utf-8",
            Outgoing::Sse => "text/event-stream",
            Outgoing::Bytes => "application/octet-stream",
        }
    }

    /// The bytes of an element. The cost is drawn from the flow's work.
    ///
    /// # Errors
    /// It cannot be written in this format (422); or the flow has no work left for it (503).
    pub(crate) async fn write(self, flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
        if let Value::Stream(_) = value {
            return Err(refused("an element is a value, this is a stream"));
        }
        let mut bytes = match self {
            Outgoing::Sse => return event(flow, value).await,
            Outgoing::Bytes => return whole(value),
            Outgoing::Lines => line(flow, value).await?,
            Outgoing::Ndjson => json::write(flow, value).await?,
            Outgoing::Csv => row(flow, value).await?,
        };
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn refused(what: &str) -> Error {
    Error::new(what).with_status(422)
}

fn whole(value: &Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.to_vec()),
        Value::Text(text) => Ok(text.as_bytes().to_vec()),
        other => Err(refused(&format!(
            "an element of 'as: bytes' is a text or bytes, this is {}; take 'as: ndjson'",
            other.sort()
        ))),
    }
}

/// A text as a line; other values as JSON.
///
/// # Errors
/// The text contains the end of a line (400).
pub(crate) async fn line(flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
    let line = json::line(flow, value).await?.into_bytes();
    if memchr::memchr2(b'\n', b'\r', &line).is_some() {
        let text = "the text contains an end of line; write it as ndjson, or as csv in a list";
        return Err(Error::new(text).with_status(400));
    }
    Ok(line)
}

/// A row of CSV, with quotes around the fields that need them.
///
/// # Errors
/// It is not a list or mapping (400).
pub(crate) async fn row(flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
    let fields: Vec<Value> = match flow.resolve(value)? {
        Value::List(items) => items.to_vec(),
        Value::Map(entries) => entries.values().cloned().collect(),
        other => {
            let text = format!("a row of CSV is a list or a mapping, this is {}", other.sort());
            return Err(Error::new(text).with_status(400));
        }
    };
    let mut row = Vec::new();
    for (at_field, field) in fields.iter().enumerate() {
        if at_field > 0 {
            row.push(b',');
        }
        let text = match field {
            Value::Null => String::new(),
            field => json::line(flow, field).await?,
        };
        // A row of one empty field needs quotes, otherwise its line would be empty.
        let is_alone = text.is_empty() && fields.len() == 1;
        if is_alone || text.contains(['"', ',', '\n', '\r']) {
            row.extend(format!("\"{}\"", text.replace('"', "\"\"")).into_bytes());
        } else {
            row.extend(text.into_bytes());
        }
    }
    Ok(row)
}

/// An event: a mapping with only the keys of an event, or any other value as its data.
async fn event(flow: &Flow, value: &Value) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let fields = match value {
        Value::Map(map) if !map.is_empty() => {
            map.keys().all(|key| FIELDS.contains(&&**key)).then_some(map)
        }
        _ => None,
    };
    let Some(fields) = fields else {
        data(&mut bytes, &json::line(flow, value).await?);
        bytes.push(b'\n');
        return Ok(bytes);
    };
    for name in ["event", "id", "retry"] {
        let text = match (name, fields.get(name)) {
            (_, None | Some(Value::Null)) => continue,
            ("retry", Some(Value::Integer(milliseconds @ 0..))) => milliseconds.to_string(),
            ("event", Some(Value::Text(text))) => text.to_string(),
            ("id", Some(Value::Text(text))) => text.to_string(),
            ("id", Some(Value::Integer(number))) => number.to_string(),
            (_, Some(other)) => {
                let text = format!("the '{name}' of an event is {}", other.sort());
                return Err(refused(&format!("{text}; expected a text, for 'retry' a number")));
            }
        };
        if text.contains(['\n', '\r', '\0']) {
            return Err(refused(&format!("the '{name}' of an event has an end of line in it")));
        }
        bytes.extend(format!("{name}: {text}\n").into_bytes());
    }
    if let Some(value) = fields.get("data") {
        data(&mut bytes, &json::line(flow, value).await?);
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes each line of a text as a `data` line, so that no empty line ends the event too early.
fn data(bytes: &mut Vec<u8>, text: &str) {
    let text = text.replace("\r\n", "\n");
    for line in text.split(['\n', '\r']) {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
}

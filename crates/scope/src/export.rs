//! A capture for other tools: CSV, and MCAP with a JSON message for each value.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::sync::Arc;

use mcap::records::MessageHeader;
use serde_json::{Map, Value, json};

use crate::series::{Capture, Captured, Times};

/// Writes a capture as CSV: `time_s`, a column for each trace with its unit, the number of cycles
/// missing before the row, and the life of the core, counted from 1. There is a row for each cycle.
/// A cell is empty if the trace's thread has no cycle at that time, or the trace has no finite
/// value.
///
/// # Errors
/// An error of `to`.
pub fn write_csv(capture: &Capture, to: &mut dyn Write) -> io::Result<()> {
    let titles: Vec<_> =
        capture.traces.iter().map(|captured| quoted(&captured.trace.title())).collect();
    writeln!(to, "time_s,{},missing_cycles,life", titles.join(","))?;
    let mut threads = threads(capture);
    while let Some(at_s) = threads.iter().filter_map(Row::at_s).min_by(f64::total_cmp) {
        write!(to, "{at_s}")?;
        for captured in &capture.traces {
            let row = threads.iter().find(|row| Arc::ptr_eq(&row.times, &captured.times));
            let row = row.filter(|row| row.at_s() == Some(at_s));
            match row.map(|row| captured.values[row.next]) {
                Some(value) if value.is_finite() => write!(to, ",{value}")?,
                _ => write!(to, ",")?,
            }
        }
        let (mut missing, mut life) = (0, 0);
        for row in threads.iter_mut().filter(|row| row.at_s() == Some(at_s)) {
            missing = row.times.missing_before(row.next).unwrap_or(0).saturating_add(missing);
            life = row.times.lives[row.next].max(life);
            row.next += 1;
        }
        writeln!(to, ",{missing},{}", u64::from(life) + 1)?;
    }
    to.flush()
}

/// Writes a capture as MCAP. Each trace has a topic `/node/signal`, with its unit as metadata. Each
/// cycle with a finite value has a message `{"value": ...}` at its monotonic time. The first
/// message after a gap also has the number of missing cycles before it, and the life of the core.
///
/// # Errors
/// An error of `to`.
pub fn write_mcap(capture: &Capture, to: impl Write + Seek) -> io::Result<()> {
    let mut writer = mcap::Writer::new(to).map_err(io::Error::other)?;
    for captured in &capture.traces {
        write_trace(capture, captured, &mut writer).map_err(io::Error::other)?;
    }
    writer.finish().map_err(io::Error::other)?;
    Ok(())
}

fn write_trace<W: Write + Seek>(
    capture: &Capture,
    captured: &Captured,
    writer: &mut mcap::Writer<W>,
) -> mcap::McapResult<()> {
    let trace = &captured.trace;
    let schema = json!({
        "type": "object",
        "title": trace.title(),
        "properties": {
            "value": {"type": "number", "description": trace.doc},
            "missing_cycles": {"type": "integer", "description": "gone before this one"},
            "life": {"type": "integer", "description": "of the core, after a gap; the first is 1"},
        },
        "required": ["value"],
    });
    let schema = writer.add_schema(&trace.name, "jsonschema", schema.to_string().as_bytes())?;
    let metadata: BTreeMap<String, String> = [("unit", &trace.unit), ("doc", &trace.doc)]
        .map(|(key, text)| (key.into(), text.clone()))
        .into();
    let topic = format!("/{}", trace.name.replace('.', "/"));
    let channel_id = writer.add_channel(schema, &topic, "json", &metadata)?;
    for (at, (&at_s, &value)) in captured.times.at_s.iter().zip(&captured.values).enumerate() {
        if !value.is_finite() {
            continue;
        }
        let mut message = Map::new();
        message.insert("value".into(), json!(value));
        if let Some(missing) = captured.times.missing_before(at) {
            message.insert("missing_cycles".into(), json!(missing));
            message.insert("life".into(), json!(u64::from(captured.times.lives[at]) + 1));
        }
        let log_time = capture.zero_ns.wrapping_add((at_s * 1e9).round() as i64 as u64);
        let sequence = u32::try_from(at).unwrap_or(u32::MAX);
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        let message = Value::Object(message).to_string();
        writer.write_to_known_channel(&header, message.as_bytes())?;
    }
    Ok(())
}

/// The next cycle of a thread.
struct Row {
    times: Arc<Times>,
    next: usize,
}

impl Row {
    fn at_s(&self) -> Option<f64> {
        self.times.at_s.get(self.next).copied()
    }
}

fn threads(capture: &Capture) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for captured in &capture.traces {
        if !rows.iter().any(|row| Arc::ptr_eq(&row.times, &captured.times)) {
            rows.push(Row { times: Arc::clone(&captured.times), next: 0 });
        }
    }
    rows
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

//! Rows of an answer: as values within bounds, or as lines of JSON.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use sinew_flow::{Error, Map, Value};
use tokio::time::timeout;

use super::Lease;
use super::failure::too_late;

/// About how many bytes a cell takes beside its text or bytes.
const CELL_SIZE: u64 = 16;
/// This many bytes of cells cost a unit of work, beside one unit for each cell.
const BYTES_PER_UNIT: u64 = 1024;
/// A part of a stream of rows is sent when it has this many bytes, or when no more rows come.
pub(super) const PART_SIZE: usize = 16 << 10;

/// Lines of JSON, part by part.
pub(in crate::data::sql) type PartsToCome = BoxStream<'static, Result<Bytes, Error>>;

/// How much of an answer is taken.
#[derive(Clone, Copy)]
pub(in crate::data::sql) struct Bounds {
    /// Whether rows are kept at all.
    pub(in crate::data::sql) keeps: bool,
    pub(in crate::data::sql) rows_max: usize,
    pub(in crate::data::sql) size_max: u64,
}

/// All rows of an answer.
#[derive(Default)]
pub(in crate::data::sql) struct TableRows {
    pub(in crate::data::sql) rows: Vec<Value>,
    /// How many rows the statement has changed.
    pub(in crate::data::sql) changed: u64,
    cells: u64,
    size: u64,
}

impl TableRows {
    /// The cost of the rows, in units of work.
    pub(super) fn price(&self) -> u64 {
        self.cells + self.size / BYTES_PER_UNIT
    }

    /// Takes one more row.
    ///
    /// # Errors
    /// There are too many rows, or too many bytes.
    pub(super) fn add(&mut self, row: Row, bounds: Bounds) -> Result<(), Error> {
        let Bounds { keeps, rows_max, size_max } = bounds;
        if !keeps {
            return Ok(());
        }
        (self.cells, self.size) = (self.cells + row.cells, self.size + row.size);
        if self.rows.len() >= rows_max {
            return Err(Error::new(format_args!(
                "more than {rows_max} rows; write LIMIT, raise 'rows_max', or take 'rows: stream'"
            )));
        }
        if self.size > size_max {
            return Err(Error::new(format_args!(
                "rows of more than {size_max} bytes; write LIMIT, raise 'size_max', or take \
                 'rows: stream'"
            )));
        }
        self.rows.push(row.value);
        Ok(())
    }
}

/// A row: a mapping by the names of its columns.
pub(super) struct Row {
    value: Value,
    cells: u64,
    size: u64,
}

fn size(cell: &Value) -> u64 {
    let beside = match cell {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    CELL_SIZE + beside as u64
}

impl Row {
    /// Appends it as a line of JSON.
    pub(super) fn write(&self, to: &mut Vec<u8>) -> Result<(), Error> {
        serde_json::to_writer(&mut *to, &self.value).map_err(Error::new)?;
        to.push(b'\n');
        Ok(())
    }
}

/// The names of an answer's columns.
pub(super) struct Columns(Vec<ByteString>);

impl Columns {
    /// The columns of these names.
    ///
    /// # Errors
    /// Two names are the same, which is not possible because a row is a mapping.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Result<Columns, Error> {
        let names: Vec<ByteString> = names.map(ByteString::from).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(Error::new(format_args!(
                    "two columns have the name '{name}'; name one of them otherwise with AS"
                )));
            }
        }
        Ok(Columns(names))
    }

    /// A row of these cells, one for each column.
    ///
    /// # Errors
    /// The error of a cell.
    pub(super) fn row(
        &self,
        mut cell: impl FnMut(usize) -> Result<Value, Error>,
    ) -> Result<Row, Error> {
        let (mut row, mut bytes) = (Map::with_capacity(self.0.len()), 0);
        for (at, name) in self.0.iter().enumerate() {
            let value = cell(at)?;
            bytes += size(&value);
            row.insert(name.clone(), value);
        }
        let cells = self.0.len() as u64;
        Ok(Row { value: Value::Map(Arc::new(row)), cells, size: bytes })
    }
}

/// The same parts; a late part becomes an error. When all parts have come, the connection is free.
/// If the stream is dropped earlier, its statement is cancelled.
pub(super) fn in_time(parts: PartsToCome, patience: Duration, lease: Lease) -> PartsToCome {
    let next = move |state: Option<(PartsToCome, Lease)>| async move {
        let (mut parts, mut lease) = state?;
        match timeout(patience, parts.next()).await {
            Ok(Some(Ok(part))) => Some((Ok(part), Some((parts, lease)))),
            Ok(Some(Err(error))) => Some((Err(error), None)),
            Ok(None) => {
                lease.ended();
                None
            }
            Err(_) => Some((Err(too_late(patience)), None)),
        }
    };
    unfold(Some((parts, lease)), next).boxed()
}

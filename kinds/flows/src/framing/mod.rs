//! Splits bytes that come one after the other into elements, in bounded memory, from a file or over
//! a connection; and writes elements as bytes again.

mod sse;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use bytes::Bytes;
use bytestring::ByteString;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use sinew_core::{Parameters, Refusal};
use sinew_flow::{Error, Value};

use self::sse::EventReader;

/// The UTF-8 byte order mark that some programs write at the beginning of a file. It is not part of
/// the first line.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes that one unit of work pays for: bytes that are decoded, and bytes of text that are only
/// passed on.
const BYTES_PER_UNIT: u64 = 4;
const TEXT_BYTES_PER_UNIT: u64 = 1024;

/// What the bytes contain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementFormat {
    /// One element: all of it.
    Whole,
    /// A text in each line.
    Lines,
    /// A row in each record (RFC 4180).
    Csv { has_header: bool, separator: u8 },
    /// A JSON text in each line.
    Ndjson,
    /// An event of server-sent events (HTML, 9.2).
    Sse,
    /// Parts as they come.
    Bytes,
}

impl ElementFormat {
    /// The cost of an element of this many bytes, in units of work.
    pub(crate) fn price(self, len: usize) -> u64 {
        let bytes_per_unit = match self {
            ElementFormat::Csv { .. } | ElementFormat::Ndjson => BYTES_PER_UNIT,
            ElementFormat::Whole | ElementFormat::Lines | ElementFormat::Sse => TEXT_BYTES_PER_UNIT,
            ElementFormat::Bytes => return 0,
        };
        len as u64 / bytes_per_unit
    }
}

/// The separator between two fields of CSV, from the parameter `separator`.
///
/// # Errors
/// It is not one character of ASCII, or a quote or the end of a line.
pub(crate) fn separator(parameters: &Parameters<'_>) -> Result<u8, Refusal> {
    match *parameters.text("separator").as_bytes() {
        [separator] if !matches!(separator, b'"' | b'\n' | b'\r' | 128..) => Ok(separator),
        _ => {
            let text = "a separator is one character of ASCII, and no quote";
            let help = "write separator: ';', or \"\\t\"";
            Err(Refusal::new(parameters.span("separator"), text, help))
        }
    }
}

/// A place in the bytes: an offset, and the number of lines before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) offset: u64,
    pub(crate) line: u64,
}

/// An element.
#[derive(Debug)]
pub(crate) struct Element {
    /// The line in which it begins, from 1.
    pub(crate) number: u64,
    /// Where the next element begins.
    pub(crate) next: FilePlace,
    /// The bytes of the element, without the end of its line.
    pub(crate) raw: Bytes,
    /// The value of the element.
    pub(crate) value: Result<Value, Error>,
}

/// The next element, if there is one.
#[derive(Debug)]
pub(crate) enum NextElement {
    Element(Element),
    /// More bytes are needed, or the call of [`Framer::end`] that says that none come.
    More,
    End,
}

/// Finds elements in bytes.
pub(crate) struct Framer {
    /// The beginning of error texts: where the bytes come from.
    of: String,
    format: ElementFormat,
    size_max: usize,
    /// The place of the first byte that was not taken yet.
    place: FilePlace,
    /// The bytes that came; those from `taken` on were not taken yet.
    buffer: Vec<u8>,
    taken: usize,
    /// How many of the untaken bytes are known to have no end of a line.
    looked: usize,
    csv: Csv,
    events: EventReader,
    has_begun: bool,
    /// Says that no more bytes come.
    is_last: bool,
    is_over: bool,
}

/// What CSV needs.
struct Csv {
    separator: u8,
    /// Made only for the first row, because to make it costs as much as to read a thousand lines.
    reader: Option<Reader>,
    fields: Vec<u8>,
    ends: Vec<usize>,
    columns: Option<Vec<ByteString>>,
    /// How far the present row is read: bytes read, bytes of fields, and fields that have ended.
    read: usize,
    filled: usize,
    ended: usize,
}

/// A row of CSV: its line, its bytes, its fields.
struct Row {
    number: u64,
    raw: Bytes,
    fields: Result<Vec<ByteString>, Error>,
}

impl Framer {
    /// A framer whose error texts begin with `of`, which is empty or ends with a comma.
    pub(crate) fn new(of: String, format: ElementFormat, size_max: usize) -> Framer {
        let separator =
            if let ElementFormat::Csv { separator, .. } = format { separator } else { b',' };
        let (fields, ends) = match format {
            ElementFormat::Csv { .. } => (vec![0; 1024], vec![0; 64]),
            _ => (Vec::new(), Vec::new()),
        };
        let (reader, columns) = (None, None);
        let csv = Csv { separator, reader, fields, ends, columns, read: 0, filled: 0, ended: 0 };
        Framer {
            of,
            format,
            size_max,
            place: FilePlace::default(),
            buffer: Vec::new(),
            taken: 0,
            looked: 0,
            csv,
            events: EventReader::default(),
            has_begun: false,
            is_last: false,
            is_over: false,
        }
    }

    /// The place of the first byte that was not taken yet.
    pub(crate) fn place(&self) -> FilePlace {
        self.place
    }

    /// Takes the next bytes.
    pub(crate) fn give(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no more bytes come.
    pub(crate) fn end(&mut self) {
        self.is_last = true;
    }

    /// Goes on at a place that was reached before; the header must be known already.
    pub(crate) fn go_to(&mut self, place: FilePlace) {
        (self.place, self.taken, self.looked, self.is_last) = (place, 0, 0, false);
        self.buffer.clear();
        self.csv.reader.iter_mut().for_each(Reader::reset);
        (self.csv.read, self.csv.filled, self.csv.ended) = (0, 0, 0);
        self.is_over = matches!(self.format, ElementFormat::Whole);
    }

    /// Begins again, with other bytes.
    pub(crate) fn restart(&mut self) {
        self.go_to(FilePlace::default());
        (self.has_begun, self.is_over, self.csv.columns) = (false, false, None);
        self.events = EventReader::default();
    }

    /// Takes what comes before the first element: the byte order mark and the header. Whether all
    /// of that was there.
    ///
    /// # Errors
    /// The header is malformed, or too long.
    pub(crate) fn begin(&mut self) -> Result<bool, Error> {
        if self.has_begun {
            return Ok(true);
        }
        if self.place.offset == 0 && !matches!(self.format, ElementFormat::Bytes) {
            let rest = &self.buffer[self.taken..];
            if rest.len() < MARK.len() && MARK.starts_with(rest) && !self.is_last {
                return Ok(false);
            }
            if rest.starts_with(MARK) {
                self.take(MARK.len());
            }
        }
        if matches!(self.format, ElementFormat::Csv { has_header: true, .. }) {
            match self.row()? {
                None if !self.is_last => return Ok(false),
                None => {}
                Some(row) => self.set_columns(row.fields?)?,
            }
        }
        self.has_begun = true;
        Ok(true)
    }

    fn set_columns(&mut self, columns: Vec<ByteString>) -> Result<(), Error> {
        let twice = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name));
        if let Some((_, name)) = twice {
            let text = format!("the header has '{name}' twice; rename one, or write header: false");
            return Err(self.wrong(1, &text));
        }
        self.csv.columns = Some(columns);
        Ok(())
    }

    /// The next element, if there is one.
    ///
    /// # Errors
    /// An element is too long.
    pub(crate) fn next(&mut self) -> Result<NextElement, Error> {
        if !self.begin()? {
            self.check_len(self.buffer.len() - self.taken)?;
            return Ok(NextElement::More);
        }
        let element = match self.format {
            _ if self.is_over => None,
            ElementFormat::Whole => self.whole()?,
            ElementFormat::Csv { .. } => self.csv_record()?,
            ElementFormat::Lines | ElementFormat::Ndjson => self.line()?,
            ElementFormat::Sse => self.event()?,
            ElementFormat::Bytes => self.part(),
        };
        Ok(match element {
            Some(element) => NextElement::Element(element),
            None if self.is_last || self.is_over => NextElement::End,
            None => NextElement::More,
        })
    }

    fn whole(&mut self) -> Result<Option<Element>, Error> {
        self.check_len(self.buffer.len() - self.taken)?;
        if !self.is_last {
            return Ok(None);
        }
        let bytes = Bytes::copy_from_slice(&self.buffer[self.taken..]);
        self.take(bytes.len());
        (self.place.line, self.is_over) = (1, true);
        let value = match ByteString::try_from(bytes.clone()) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Bytes(bytes.clone()),
        };
        Ok(Some(self.element(1, bytes, Ok(value))))
    }

    fn part(&mut self) -> Option<Element> {
        let bytes = Bytes::copy_from_slice(&self.buffer[self.taken..]);
        if bytes.is_empty() {
            return None;
        }
        self.take(bytes.len());
        self.place.line += 1;
        Some(self.element(self.place.line, bytes.clone(), Ok(Value::Bytes(bytes))))
    }

    fn line(&mut self) -> Result<Option<Element>, Error> {
        loop {
            let rest = &self.buffer[self.taken..];
            let end = memchr::memchr(b'\n', &rest[self.looked..]);
            let len = match end {
                Some(at) => self.looked + at + 1,
                None if self.is_last && !rest.is_empty() => rest.len(),
                None => {
                    self.looked = rest.len();
                    self.check_len(rest.len())?;
                    return Ok(None);
                }
            };
            let raw = without_end(&rest[..len]);
            self.check_len(raw.len())?;
            let raw = Bytes::copy_from_slice(raw);
            let number = self.place.line + 1;
            self.take(len);
            self.looked = 0;
            // A last line without an end also counts as a line.
            self.place.line = number;
            let is_json = matches!(self.format, ElementFormat::Ndjson);
            if is_json && raw.trim_ascii().is_empty() {
                continue;
            }
            let value = if is_json { json(&raw) } else { text(&raw).map(Value::Text) };
            return Ok(Some(self.element(number, raw, value)));
        }
    }

    fn event(&mut self) -> Result<Option<Element>, Error> {
        loop {
            let rest = &self.buffer[self.taken..];
            if self.events.skips_feed() && rest.first() == Some(&b'\n') {
                self.events.has_fed();
                self.take(1);
                continue;
            }
            let Some(at) = memchr::memchr2(b'\r', b'\n', &rest[self.looked..]) else {
                self.looked = rest.len();
                self.check_len(rest.len() + self.events.len())?;
                // An event that is cut off does not count (HTML, 9.2.6).
                return Ok(None);
            };
            let len = self.looked + at;
            self.check_len(len + self.events.len())?;
            self.events.end_line(rest[len] == b'\r');
            let number = self.place.line + 1;
            let event = self.events.line(&rest[..len], number);
            self.take(len + 1);
            self.looked = 0;
            self.place.line = number;
            if let Some((number, raw, value)) = event {
                return Ok(Some(self.element(number, raw, value)));
            }
        }
    }

    fn csv_record(&mut self) -> Result<Option<Element>, Error> {
        let Some(Row { number, raw, fields }) = self.row()? else { return Ok(None) };
        let value = fields.and_then(|fields| match &self.csv.columns {
            None => Ok(Value::list(fields.into_iter().map(Value::Text))),
            Some(columns) if columns.len() == fields.len() => {
                let fields = fields.into_iter().map(Value::Text);
                Ok(Value::map(columns.iter().cloned().zip(fields)))
            }
            Some(columns) => Err(Error::new(format_args!(
                "{} fields, expected {} as in the header",
                fields.len(),
                columns.len()
            ))
            .with_status(400)),
        });
        Ok(Some(self.element(number, raw, value)))
    }

    /// The next row of CSV, if it is complete.
    fn row(&mut self) -> Result<Option<Row>, Error> {
        loop {
            let Csv { separator, reader, fields, ends, read, filled, ended, .. } = &mut self.csv;
            let reader =
                reader.get_or_insert_with(|| ReaderBuilder::new().delimiter(*separator).build());
            let input = &self.buffer[self.taken + *read..];
            if input.is_empty() && !self.is_last {
                self.check_len(self.buffer.len() - self.taken)?;
                return Ok(None);
            }
            let (result, more_read, more_filled, more_ended) =
                reader.read_record(input, &mut fields[*filled..], &mut ends[*ended..]);
            *read += more_read;
            *filled += more_filled;
            *ended += more_ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => fields.resize(fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
                ReadRecordResult::Record => return self.row_end().map(Some),
                ReadRecordResult::End => {
                    let read = std::mem::take(read);
                    self.take(read);
                    return Ok(None);
                }
            }
        }
    }

    /// Takes a row that was read completely.
    fn row_end(&mut self) -> Result<Row, Error> {
        let (mut read, ended) = (self.csv.read, self.csv.ended);
        (self.csv.read, self.csv.filled, self.csv.ended) = (0, 0, 0);
        // Of the two bytes `\r\n` that end a line, the reader has taken only the first; it would
        // skip the second before the next row.
        let all = &self.buffer[self.taken..];
        read += usize::from(all[read - 1] == b'\r' && all.get(read) == Some(&b'\n'));
        let all = &all[..read];
        let empty = all.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let (empty_len, empty_lines) =
            empty.fold((0, 0), |(len, lines), byte| (len + 1, lines + u64::from(*byte == b'\n')));
        let raw = without_end(&all[empty_len..]);
        self.check_len(raw.len())?;
        let raw = Bytes::copy_from_slice(raw);
        let lines = memchr::memchr_iter(b'\n', all).count() as u64;
        let number = self.place.line + empty_lines + 1;
        let begins = std::iter::once(0).chain(self.csv.ends[..ended].iter().copied());
        let fields: Result<_, _> = begins
            .zip(&self.csv.ends[..ended])
            .map(|(begin, &end)| text(&self.csv.fields[begin..end]))
            .collect();
        self.take(read);
        self.place.line += lines;
        Ok(Row { number, raw, fields })
    }

    fn element(&self, number: u64, raw: Bytes, value: Result<Value, Error>) -> Element {
        Element { number, next: self.place, raw, value }
    }

    fn take(&mut self, len: usize) {
        self.taken += len;
        self.place.offset += len as u64;
    }

    /// Checks that an element may have this many bytes, without the end of its line.
    fn check_len(&self, len: usize) -> Result<(), Error> {
        if len <= self.size_max {
            return Ok(());
        }
        let what = match self.format {
            ElementFormat::Whole => "the file is",
            ElementFormat::Csv { .. } => "the record is (is a quote missing?)",
            ElementFormat::Sse => "the event is",
            ElementFormat::Lines | ElementFormat::Ndjson | ElementFormat::Bytes => "the line is",
        };
        let text = format!("{what} longer than {} bytes; raise line_size_max", self.size_max);
        Err(self.wrong(self.place.line + 1, &text).with_status(413))
    }

    /// An error in this line.
    pub(crate) fn wrong(&self, line: u64, what: &str) -> Error {
        Error::new(format_args!("{}line {line}: {what}", self.of))
    }
}

/// The entries of a packet about an element that has failed.
pub(crate) fn rejected(number: u64, raw: &[u8], error: &Error) -> [(&'static str, Value); 4] {
    [
        ("line", Value::text(String::from_utf8_lossy(raw).into_owned())),
        ("number", Value::Integer(number as i64)),
        ("error", Value::text(error.to_string())),
        ("status", Value::Integer(error.status().into())),
    ]
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn text(bytes: &[u8]) -> Result<ByteString, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(ByteString::from).map_err(|error| Error::new(error).with_status(400))
}

fn json(line: &[u8]) -> Result<Value, Error> {
    let wrong = |error| Error::new(format_args!("not JSON: {error}")).with_status(400);
    serde_json::from_slice(line).map_err(wrong)
}

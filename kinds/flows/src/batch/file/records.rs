//! The records of a file, one after the other, in bounded memory. All of it blocks: it is for a
//! thread of the pool.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use ring::digest;
use rustix::fs::OFlags;
use sinew_flow::{Error, Value};

use crate::script::library::hex;

/// Bytes that are read from the file at a time.
const PIECE_LEN: usize = 64 << 10;
/// So many bytes at the beginning of a file say whether it is the same one.
const HEAD_LEN: usize = 4096;
/// The mark of UTF-8 that some programs begin a file with. It is no part of the first line.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What stands in a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    /// One element: all of it.
    Whole,
    /// A text in each line.
    Lines,
    /// A row in each record (RFC 4180).
    Csv { has_header: bool, separator: u8 },
    /// A JSON text in each line.
    Ndjson,
}

/// How far a file was read: to this byte, after so many lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilePlace {
    pub(super) offset: u64,
    pub(super) line: u64,
}

/// A file, as one knows it again.
#[derive(Debug)]
pub(super) struct Known {
    /// Seen from the folder of the spec.
    pub(super) name: String,
    /// Its place among the files that are read.
    pub(super) at: usize,
    pub(super) inode: u64,
    /// Its length when it was opened.
    pub(super) len: u64,
    /// Its first bytes then.
    head: Vec<u8>,
}

impl Known {
    /// How many of its first bytes say which file it is, of those before `offset`.
    pub(super) fn head_len(&self, offset: u64) -> u64 {
        offset.min(self.head.len() as u64)
    }

    /// SHA-256 of so many of its first bytes, if it has them.
    pub(super) fn head_sha256(&self, len: u64) -> Option<String> {
        self.head.get(..usize::try_from(len).ok()?).map(digest_of)
    }
}

/// An element.
pub(super) struct Record {
    pub(super) file: Arc<Known>,
    /// The line in which it begins, from 1.
    pub(super) number: u64,
    /// Where the next one begins.
    pub(super) next: FilePlace,
    /// As it stands in the file, without the end of its line.
    pub(super) raw: Bytes,
    /// What it means.
    pub(super) value: Result<Value, Error>,
}

/// A file that is read.
pub(super) struct Records {
    file: File,
    pub(super) known: Arc<Known>,
    format: Format,
    size_max: usize,
    /// Where the first byte lies that was not taken yet.
    place: FilePlace,
    /// Read, and from `taken` on not taken.
    buffer: Vec<u8>,
    taken: usize,
    csv: Csv,
    /// Whether what stands before the first record was there.
    is_begun: bool,
    /// More may come at its end: a last record without an end is none yet.
    follows: bool,
    is_over: bool,
}

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) format: Format,
    pub(super) size_max: usize,
    pub(super) follows: bool,
}

/// What has become of a file that is followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Same,
    Grown,
    /// It has fewer bytes than were read of it, or begins otherwise.
    Cut,
    /// There is another file in its place.
    Moved,
}

/// What CSV needs.
struct Csv {
    reader: Reader,
    fields: Vec<u8>,
    ends: Vec<usize>,
    columns: Option<Vec<ByteString>>,
}

impl Records {
    /// Opens the file; `is_ours`: nobody else may read it so meanwhile.
    ///
    /// # Errors
    /// It is not there (404), no file, or another flow has it (409).
    pub(super) fn open(
        (path, name, at): (&Path, &str, usize),
        manner: Manner,
        is_ours: bool,
    ) -> Result<Records, Error> {
        let fail = |error: io::Error| {
            let status = if error.kind() == io::ErrorKind::NotFound { 404 } else { 500 };
            Error::new(format_args!("the file '{name}' cannot be read: {error}"))
                .with_status(status)
        };
        // What is no file may have nobody at its other end: that is not waited for.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut file = File::options().read(true).custom_flags(flags).open(path).map_err(fail)?;
        let state = file.metadata().map_err(fail)?;
        if !state.is_file() {
            let text =
                format!("'{name}' is no file; name one, or a pattern such as '{name}/*.csv'");
            return Err(Error::new(text).with_status(400));
        }
        if is_ours {
            file.try_lock().map_err(|error| match error {
                TryLockError::Error(error) => fail(error),
                TryLockError::WouldBlock => Error::new(format_args!(
                    "another flow reads '{name}' with a checkpoint; let it end first"
                ))
                .with_status(409),
            })?;
        }
        let mut head = Vec::with_capacity(HEAD_LEN);
        (&mut file).take(HEAD_LEN as u64).read_to_end(&mut head).map_err(fail)?;
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let known = Known { name: name.to_owned(), at, inode: state.ino(), len: state.len(), head };
        let Manner { format, size_max, follows } = manner;
        let separator = if let Format::Csv { separator, .. } = format { separator } else { b',' };
        let reader = ReaderBuilder::new().delimiter(separator).build();
        let csv = Csv { reader, fields: vec![0; 1024], ends: vec![0; 64], columns: None };
        let (known, place) = (Arc::new(known), FilePlace::default());
        let mut records = Records {
            file,
            known,
            format,
            size_max,
            place,
            buffer: Vec::new(),
            taken: 0,
            csv,
            is_begun: false,
            follows,
            is_over: false,
        };
        records.begin()?;
        Ok(records)
    }

    /// What stands before the first record.
    fn begin(&mut self) -> Result<(), Error> {
        self.fill()?;
        if self.buffer.starts_with(MARK) {
            self.take(MARK.len());
        }
        if !matches!(self.format, Format::Csv { has_header: true, .. }) {
            self.is_begun = !self.buffer.is_empty();
            return Ok(());
        }
        let Some((_, _, fields)) = self.row()? else { return Ok(()) };
        self.is_begun = true;
        let columns = fields?;
        let twice = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name));
        if let Some((_, name)) = twice {
            let text = format!("the header has '{name}' twice; rename one, or write header: false");
            return Err(self.wrong(1, &text));
        }
        self.csv.columns = Some(columns);
        Ok(())
    }

    /// Goes on where somebody has been before.
    pub(super) fn go_to(&mut self, place: FilePlace) -> Result<(), Error> {
        if place == FilePlace::default() {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(place.offset)).map_err(|error| self.broken(&error))?;
        (self.place, self.taken, self.is_begun) = (place, 0, true);
        self.buffer.clear();
        self.csv.reader.reset();
        self.is_over = matches!(self.format, Format::Whole);
        Ok(())
    }

    /// Goes back to the beginning of a file that was cut, and is another one now.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(0)).map_err(|error| self.broken(&error))?;
        (self.place, self.taken, self.is_begun) = (FilePlace::default(), 0, false);
        self.buffer.clear();
        self.csv.reader.reset();
        self.csv.columns = None;
        self.know(0)
    }

    /// Takes more of its beginning to know it by, if it was too short for that.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn know_more(&mut self) -> Result<(), Error> {
        match self.known.head.len() {
            HEAD_LEN.. => Ok(()),
            len => self.know(len),
        }
    }

    /// Knows it by its beginning as it is now, after so many bytes that are known.
    fn know(&mut self, from: usize) -> Result<(), Error> {
        let broken = |error: io::Error| self.broken(&error);
        let len = self.file.metadata().map_err(broken)?.len();
        let mut head = self.known.head[..from].to_vec();
        head.resize(HEAD_LEN.min(usize::try_from(len).unwrap_or(HEAD_LEN)).max(from), 0);
        self.file.read_exact_at(&mut head[from..], from as u64).map_err(broken)?;
        let Known { name, at, inode, .. } = &*self.known;
        self.known = Arc::new(Known { name: name.clone(), at: *at, inode: *inode, len, head });
        Ok(())
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// It cannot be read, or a record is too long.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        if !self.is_begun && !self.is_over {
            self.begin()?;
        }
        match self.format {
            _ if self.is_over => Ok(None),
            Format::Whole => self.whole().map(Some),
            Format::Csv { .. } => self.csv_record(),
            Format::Lines | Format::Ndjson => self.line(),
        }
    }

    /// What has become of the file, which is at `path`.
    ///
    /// # Errors
    /// It cannot be read any more.
    pub(super) fn look(&self, path: &Path) -> Result<Look, Error> {
        let broken = |error: io::Error| self.broken(&error);
        let len = self.file.metadata().map_err(broken)?.len();
        let read = self.place.offset + (self.buffer.len() - self.taken) as u64;
        let mut head = vec![0; self.known.head.len()];
        // What is shorter than its beginning was is cut, too.
        let begins = self.file.read_exact_at(&mut head, 0).is_ok() && head == self.known.head;
        let other = fs::metadata(path).is_ok_and(|state| state.ino() != self.known.inode);
        Ok(match len {
            _ if len < read || !begins => Look::Cut,
            _ if len > read => Look::Grown,
            _ if other => Look::Moved,
            _ => Look::Same,
        })
    }

    /// Where the first byte lies that is in no record yet.
    pub(super) fn place(&self) -> FilePlace {
        self.place
    }

    /// Nothing more comes: what is left is its last record.
    pub(super) fn end(&mut self) {
        self.follows = false;
    }

    /// Whether more may come.
    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    fn whole(&mut self) -> Result<Record, Error> {
        while self.fill()? > 0 {}
        self.check_len(self.buffer.len())?;
        let bytes = Bytes::copy_from_slice(&self.buffer[self.taken..]);
        self.take(bytes.len());
        (self.place.line, self.is_over) = (1, true);
        let value = match ByteString::try_from(bytes.clone()) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Bytes(bytes.clone()),
        };
        Ok(self.record(1, bytes, Ok(value)))
    }

    fn line(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let mut looked = 0;
            let len = loop {
                let rest = &self.buffer[self.taken..];
                if let Some(at) = memchr::memchr(b'\n', &rest[looked..]) {
                    break looked + at + 1;
                }
                looked = rest.len();
                if self.fill()? == 0 {
                    if self.follows {
                        return Ok(None);
                    }
                    break self.buffer.len() - self.taken;
                }
            };
            if len == 0 {
                self.is_over = true;
                return Ok(None);
            }
            let raw = without_end(&self.buffer[self.taken..self.taken + len]);
            self.check_len(raw.len())?;
            let raw = Bytes::copy_from_slice(raw);
            let number = self.place.line + 1;
            self.take(len);
            // A last line without an end is a line, too.
            self.place.line = number;
            let is_json = matches!(self.format, Format::Ndjson);
            if is_json && raw.trim_ascii().is_empty() {
                continue;
            }
            let value = if is_json { json(&raw) } else { text(&raw).map(Value::Text) };
            return Ok(Some(self.record(number, raw, value)));
        }
    }

    fn csv_record(&mut self) -> Result<Option<Record>, Error> {
        let Some((number, raw, fields)) = self.row()? else {
            self.is_over = !self.follows;
            return Ok(None);
        };
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
        Ok(Some(self.record(number, raw, value)))
    }

    /// The next row of CSV: its line, how it stands there, its fields.
    #[expect(clippy::type_complexity, reason = "two readers, next to it")]
    fn row(&mut self) -> Result<Option<(u64, Bytes, Result<Vec<ByteString>, Error>)>, Error> {
        let (mut read, mut filled, mut ended) = (0, 0, 0);
        loop {
            // At the end of the file there is nothing, which says so.
            if self.taken + read == self.buffer.len() && self.fill()? == 0 && self.follows {
                self.csv.reader.reset();
                return Ok(None);
            }
            let Csv { reader, fields, ends, .. } = &mut self.csv;
            let input = &self.buffer[self.taken + read..];
            let (result, more_read, more_filled, more_ended) =
                reader.read_record(input, &mut fields[filled..], &mut ends[ended..]);
            (read, filled, ended) = (read + more_read, filled + more_filled, ended + more_ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => fields.resize(fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
                ReadRecordResult::Record => break,
                ReadRecordResult::End => {
                    self.take(read);
                    return Ok(None);
                }
            }
        }
        // Of a pair that ends a line it has taken the first only.
        if self.buffer[self.taken + read - 1] == b'\r' {
            if self.taken + read == self.buffer.len() {
                self.fill()?;
            }
            read += usize::from(self.buffer.get(self.taken + read) == Some(&b'\n'));
        }
        let all = &self.buffer[self.taken..self.taken + read];
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
        Ok(Some((number, raw, fields)))
    }

    fn record(&self, number: u64, raw: Bytes, value: Result<Value, Error>) -> Record {
        Record { file: Arc::clone(&self.known), number, next: self.place, raw, value }
    }

    fn take(&mut self, len: usize) {
        self.taken += len;
        self.place.offset += len as u64;
    }

    /// Reads more; how much came. 0 at the end of the file.
    fn fill(&mut self) -> Result<usize, Error> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.check_len(self.buffer.len())?;
        let len = self.buffer.len();
        self.buffer.resize(len + PIECE_LEN, 0);
        let read = self.file.read(&mut self.buffer[len..]);
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        let read = read.map_err(|error| self.broken(&error))?;
        if read == 0 && !self.follows {
            let now = self.file.metadata().map_err(|error| self.broken(&error))?.len();
            if now < self.place.offset {
                let text = format!("the file has become shorter, {now} bytes, while it was read");
                return Err(self.wrong(self.place.line, &text));
            }
        }
        Ok(read)
    }

    /// Whether a record of so many bytes, without the end of its line, may be.
    fn check_len(&self, len: usize) -> Result<(), Error> {
        if len <= self.size_max {
            return Ok(());
        }
        let what = match self.format {
            Format::Whole => "the file is",
            Format::Csv { .. } => "the record is (is a quote missing?)",
            Format::Lines | Format::Ndjson => "the line is",
        };
        let text = format!("{what} longer than {} bytes; raise line_size_max", self.size_max);
        Err(self.wrong(self.place.line + 1, &text).with_status(413))
    }

    fn broken(&self, error: &io::Error) -> Error {
        self.wrong(self.place.line + 1, &format!("cannot be read: {error}"))
    }

    fn wrong(&self, line: u64, what: &str) -> Error {
        Error::new(format_args!("file '{}', line {line}: {what}", self.known.name))
    }
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
    let json = serde_json::from_slice::<serde_json::Value>(line);
    let wrong = |error| Error::new(format_args!("no JSON: {error}")).with_status(400);
    json.map(Value::from).map_err(wrong)
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

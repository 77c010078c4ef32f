//! Reads one file of a recording from its beginning, record by record. The file may be cut
//! anywhere, and may be anything: lengths in it are believed only up to a limit.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use mcap::McapError;
use mcap::records::{Record, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::format::ATTACHMENT_BYTES_MAX;
use super::summary::FRAME_BYTES;

/// Longest record and chunk that are read: the longest data file of a node, and its surroundings.
/// The recorder's chunks are a hundredth of it. With a longer record the file counts as damaged.
const RECORD_BYTES_MAX: usize = ATTACHMENT_BYTES_MAX as usize + (1 << 20);
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// How far a file could be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it was read.
    Complete,
    /// The reader wanted no more.
    Stopped,
    /// It ends in the middle: its writer was killed, or is still writing.
    Cut,
    /// It is no MCAP.
    Foreign,
    /// What is wrong with it.
    Damaged(String),
}

/// A function that takes records, and says whether it wants more.
type Each<'a> = dyn FnMut(&Record<'_>) -> ControlFlow<()> + 'a;

/// Passes the records of a file to `each`, those in chunks one by one, until the file breaks off. A
/// chunk counts only if it is complete.
///
/// # Errors
/// The system's error on opening or reading the file.
pub(crate) fn read(path: &Path, each: &mut Each<'_>) -> Result<Extent, String> {
    let options = LinearReaderOptions::default().with_prevalidate_chunk_crcs(true);
    let file = open(path)?;
    let read = records(&file, left(&file), options, &mut |record, _| each(record));
    read.map_err(|error| cannot(path, &error))
}

/// As [`read`], but without the content of chunks: for the beginning of a file.
pub(crate) fn read_beginning(path: &Path, each: &mut Each<'_>) -> Result<Extent, String> {
    beginning(&open(path)?, each).map_err(|error| cannot(path, &error))
}

fn open(path: &Path) -> Result<File, String> {
    // Opening a pipe would block until somebody writes to it.
    if !path.metadata().map_err(|error| cannot(path, &error))?.is_file() {
        return Err(format!("'{}' is not a file; give a recording", path.display()));
    }
    File::open(path).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &io::Error) -> String {
    format!("cannot read '{}': {error}", path.display())
}

/// As [`read_beginning`], for an open file.
pub(crate) fn beginning(mut file: &File, each: &mut Each<'_>) -> io::Result<Extent> {
    file.rewind()?;
    let options = LinearReaderOptions::default().with_emit_chunks(true);
    records(file, left(file), options, &mut |record, _| match record {
        Record::Chunk { .. } => ControlFlow::Break(()),
        record => each(record),
    })
}

/// Passes the records of the chunk at a place in a file to `each`, with their places in the chunk.
/// `None` if the chunk is damaged.
pub(crate) fn chunk(
    mut file: &File,
    at: u64,
    len: u64,
    each: &mut dyn FnMut(&Record<'_>, u64) -> ControlFlow<()>,
) -> io::Result<Option<()>> {
    file.seek(SeekFrom::Start(at))?;
    let options = LinearReaderOptions::default().with_prevalidate_chunk_crcs(true);
    let options = options.with_skip_start_magic(true).with_skip_end_magic(true);
    let mut place = 0;
    let extent = records(file, len, options, &mut |record, body_len| {
        let here = place;
        place += FRAME_BYTES + body_len;
        each(record, here)
    })?;
    Ok((!matches!(extent, Extent::Damaged(_) | Extent::Foreign)).then_some(()))
}

/// The length of a file in bytes.
fn left(file: &File) -> u64 {
    // A file without a known length counts as empty.
    file.metadata().map_or(0, |file| file.len())
}

/// Passes the records in the next `left` bytes to `each`, with the lengths of their bodies.
fn records(
    file: &File,
    mut left: u64,
    options: LinearReaderOptions,
    each: &mut dyn FnMut(&Record<'_>, u64) -> ControlFlow<()>,
) -> io::Result<Extent> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file.take(left));
    let options = options.with_record_length_limit(RECORD_BYTES_MAX);
    let mut reader = LinearReader::new_with_options(options);
    let (mut read_any, mut at_end) = (false, false);
    while let Some(event) = reader.next_event() {
        let (opcode, data) = match event {
            Ok(LinearReadEvent::ReadRequest(need)) => {
                // A record may claim more bytes than exist.
                let need = usize::try_from(left).map_or(need, |left| need.min(left));
                let count = file.read(reader.insert(need))?;
                (at_end, left) = (count == 0, left - count as u64);
                reader.notify_read(count);
                continue;
            }
            Ok(LinearReadEvent::Record { opcode, data }) => (opcode, data),
            Err(McapError::BadMagic) => return Ok(Extent::Foreign),
            Err(McapError::UnexpectedEof) if at_end && read_any => return Ok(Extent::Cut),
            Err(McapError::UnexpectedEof) => return Ok(Extent::Foreign),
            Err(error) => return Ok(Extent::Damaged(error.to_string())),
        };
        read_any = true;
        if opcode == op::DATA_END {
            return Ok(Extent::Complete);
        }
        if opcode == op::ATTACHMENT && !is_attachment(data) {
            return Ok(Extent::Damaged("an attachment is shorter than it says".into()));
        }
        let len = data.len() as u64;
        match mcap::parse_record(opcode, data) {
            Ok(record) if each(&record, len).is_break() => return Ok(Extent::Stopped),
            Ok(_) => {}
            Err(error) => return Ok(Extent::Damaged(error.to_string())),
        }
    }
    Ok(Extent::Cut)
}

/// Whether a body is long enough for all fields around an attachment's data: the parser does not
/// check this.
fn is_attachment(body: &[u8]) -> bool {
    const TIMES: usize = 16;
    const LENGTH_AND_SUM: usize = 12;
    let skip_text = |rest: &'_ [u8]| {
        let (len, rest) = rest.split_first_chunk()?;
        rest.split_at_checked(u32::from_le_bytes(*len) as usize).map(|(_, rest)| rest.len())
    };
    let after = |len: usize| skip_text(&body[body.len() - len..]);
    let rest = body.len().checked_sub(TIMES).and_then(after).and_then(after);
    rest.is_some_and(|rest| rest >= LENGTH_AND_SUM)
}

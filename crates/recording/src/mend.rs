//! Existing parts: what is in them, and an end for those that have none.
//!
//! A kill leaves a file that may break off anywhere. Complete records are kept, the rest is cut
//! off, and an end is written, as if the part had been finished there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;

use binrw::{BinRead, BinReaderExt};
use mcap::records::{
    AttachmentHeader, AttachmentIndex, ChunkHeader, ChunkIndex, Header, MessageIndexEntry,
    Metadata, MetadataIndex, Record, op,
};
use mcap::{Channel, MAGIC, Schema, Summary};

use super::disk::Disk;
use super::format::{HEAD, LIBRARIES, PartHead};
use super::read::{beginning, chunk};
use super::summary::{FRAME_BYTES, preamble, write_end, write_places};

/// Longer than the header of any chunk. Only this much of a long record is read.
const BEGIN_BYTES_MAX: u64 = 256;
/// The same for an attachment, whose name is a path.
const NAMED_BYTES_MAX: u64 = 16 << 10;
/// Longest of all other records that a recorder writes. A longer record is not from a recorder.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Where the messages of a chunk are, by their topics.
type Places = BTreeMap<u16, Vec<MessageIndexEntry>>;

/// What is in a file.
#[derive(Debug)]
pub struct Scan {
    pub(crate) summary: Summary,
    /// Bytes of complete records, without the end of a finished part.
    pub(crate) len: u64,
}

/// Whether a file has the end of a finished part.
///
/// # Errors
/// The system's error on reading.
pub fn is_finished(mut file: &File) -> io::Result<bool> {
    let (bytes, magic_bytes) = (file.metadata()?.len(), MAGIC.len() as u64);
    if bytes < 2 * magic_bytes {
        return Ok(false);
    }
    let mut end = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(bytes - magic_bytes))?;
    file.read_exact(&mut end)?;
    Ok(end == MAGIC)
}

/// The description in a file, or why this program does not understand it. `None` if the file is no
/// part of a recording, or breaks off before the description.
///
/// # Errors
/// The system's error on reading.
pub fn head(file: &File) -> io::Result<Option<Result<PartHead, String>>> {
    let mut head = None;
    beginning(file, &mut |record| match record {
        Record::Metadata(row) if row.name == HEAD => {
            head = Some(PartHead::from_metadata(&row.metadata));
            ControlFlow::Break(())
        }
        Record::Header(_) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })?;
    Ok(head)
}

/// Scans a file. `None` if no recorder wrote it.
///
/// # Errors
/// The system's error on reading.
pub fn scan(file: &File) -> io::Result<Option<Scan>> {
    let bytes = file.metadata()?.len();
    let mut frames = Frames { file: BufReader::new(file), at: MAGIC.len() as u64, bytes };
    let mut begin = Vec::new();
    frames.file.rewind()?;
    frames.file.by_ref().take(preamble().len() as u64).read_to_end(&mut begin)?;
    let mut scan = Scan { summary: Summary::default(), len: 0 };
    if preamble().starts_with(&begin) && begin.len() < preamble().len() {
        return Ok(Some(scan));
    }
    if !begin.starts_with(MAGIC) || !frames.is_ours()? {
        return Ok(None);
    }
    scan.len = frames.at;
    while let Some((op, len)) = frames.next()? {
        let body_len = match op {
            op::CHUNK | op::MESSAGE_INDEX => len.min(BEGIN_BYTES_MAX),
            op::ATTACHMENT => len.min(NAMED_BYTES_MAX),
            _ => len,
        };
        let Some(body) = frames.body(body_len)? else { break };
        if scan.note(op, &body, FRAME_BYTES + len).is_none() {
            break;
        }
        frames.at = scan.len;
    }
    if let Some(first) = scan.summary.chunk_indexes.first().cloned() {
        chunk(file, first.chunk_start_offset, first.chunk_length, &mut |record, _| match record {
            Record::Message { .. } => ControlFlow::Break(()),
            record => {
                scan.define(record);
                ControlFlow::Continue(())
            }
        })?;
    }
    Ok(Some(scan))
}

/// The records of a file, one by one, without their content.
struct Frames<'a> {
    file: BufReader<&'a File>,
    /// The start of the next record.
    at: u64,
    bytes: u64,
}

impl Frames<'_> {
    /// The next record's type and length, if it is complete.
    fn next(&mut self) -> io::Result<Option<(u8, u64)>> {
        let Some(room) = (self.bytes - self.at).checked_sub(FRAME_BYTES) else { return Ok(None) };
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut frame = [0; FRAME_BYTES as usize];
        self.file.read_exact(&mut frame)?;
        let [op, len @ ..] = frame;
        let len = u64::from_le_bytes(len);
        Ok((len <= room).then_some((op, len)))
    }

    /// The first bytes of the record that `next` has found. `None` if no recorder writes records so
    /// long.
    fn body(&mut self, len: u64) -> io::Result<Option<Vec<u8>>> {
        if len > BODY_BYTES_MAX {
            return Ok(None);
        }
        let mut body = vec![0; len as usize];
        self.file.read_exact(&mut body)?;
        Ok(Some(body))
    }

    /// Reads the header. Returns whether it is a recorder's.
    fn is_ours(&mut self) -> io::Result<bool> {
        let Some((op::HEADER, len)) = self.next()? else { return Ok(false) };
        let Some(body) = self.body(len)? else { return Ok(false) };
        self.at += FRAME_BYTES + len;
        let header = parse::<Header>(&body);
        Ok(header.is_some_and(|header| header.library.starts_with(LIBRARIES)))
    }
}

fn parse<T: for<'a> BinRead<Args<'a> = ()>>(body: &[u8]) -> Option<T> {
    Cursor::new(body).read_le().ok()
}

impl Scan {
    /// Adds the next record to the summary. `None` if no recorder writes such a record there.
    fn note(&mut self, op: u8, body: &[u8], length: u64) -> Option<()> {
        let (offset, summary) = (self.len, &mut self.summary);
        match op {
            op::METADATA => {
                let Metadata { name, .. } = parse(body)?;
                summary.metadata_indexes.push(MetadataIndex { offset, length, name });
            }
            op::ATTACHMENT => summary.attachment_indexes.push(attachment(body, offset, length)?),
            op::CHUNK => summary.chunk_indexes.push(index(&parse(body)?, offset, length)),
            op::MESSAGE_INDEX => {
                let topic = u16::from_le_bytes(*body.first_chunk()?);
                let chunk = summary.chunk_indexes.last_mut()?;
                chunk.message_index_offsets.insert(topic, offset);
                chunk.message_index_length += length;
            }
            // Older recorders wrote schemas and topics here.
            op::SCHEMA | op::CHANNEL => self.define(&mcap::parse_record(op, body).ok()?),
            _ => return None,
        }
        self.len += length;
        Some(())
    }

    /// Adds a schema or a topic.
    fn define(&mut self, record: &Record<'_>) {
        let Summary { schemas, channels: topics, .. } = &mut self.summary;
        match record {
            Record::Schema { header, data } => {
                let (name, encoding) = (header.name.clone(), header.encoding.clone());
                let data = data.to_vec().into();
                let schema = Schema { id: header.id, name, encoding, data };
                schemas.insert(header.id, Arc::new(schema));
            }
            Record::Channel(row) => {
                let topic = Channel {
                    id: row.id,
                    topic: row.topic.clone(),
                    schema: schemas.get(&row.schema_id).cloned(),
                    message_encoding: row.message_encoding.clone(),
                    metadata: row.metadata.clone(),
                };
                topics.insert(row.id, Arc::new(topic));
            }
            _ => {}
        }
    }

    /// Number of the newest message of a topic. `number` takes it from the message's `sequence` and
    /// data.
    ///
    /// # Errors
    /// The system's error on reading.
    pub fn newest(
        &self,
        file: &File,
        topic: &str,
        number: &dyn Fn(u32, &[u8]) -> Option<u64>,
    ) -> io::Result<Option<u64>> {
        let topic = self.summary.channels.values().find(|row| row.topic == topic);
        let Some(id) = topic.map(|topic| topic.id) else { return Ok(None) };
        let chunks = self.summary.chunk_indexes.iter().rev();
        for row in chunks.filter(|row| row.message_index_offsets.contains_key(&id)) {
            let mut newest = None;
            chunk(file, row.chunk_start_offset, row.chunk_length, &mut |record, _| {
                if let Record::Message { header, data } = record
                    && header.channel_id == id
                {
                    newest = number(header.sequence, data);
                }
                ControlFlow::Continue(())
            })?;
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Writes the end of a part that was not finished. Returns how many bytes were cut off.
    ///
    /// # Errors
    /// The system's error on reading or writing. Then the part has no end, and no complete record
    /// is lost.
    pub fn mend(self, file: &File) -> io::Result<u64> {
        let bytes = file.metadata()?.len();
        let Scan { mut summary, len: mut whole } = self;
        let (mut len, mut behind) = (whole, Vec::new());
        // The index of the last chunk's messages may be missing, completely or in part.
        if let Some(mut last) = summary.chunk_indexes.pop_if(|last| follows(last, whole)) {
            len = last.chunk_start_offset;
            match places(file, &last)? {
                Some(places) => {
                    len += last.chunk_length;
                    behind = write_places(&mut last, places);
                    summary.chunk_indexes.push(last);
                }
                None => whole = len,
            }
        }
        if len == 0 {
            behind = preamble();
        }
        let mut disk = file.try_clone()?;
        disk.cut(len)?;
        disk.add(&behind)?;
        write_end(&mut disk, len + behind.len() as u64, &summary)?;
        Ok(bytes - whole)
    }
}

/// The index of a chunk's messages. `None` if the chunk is damaged.
fn places(file: &File, row: &ChunkIndex) -> io::Result<Option<Places>> {
    let mut places = Places::new();
    let whole = chunk(file, row.chunk_start_offset, row.chunk_length, &mut |record, offset| {
        if let Record::Message { header, .. } = record {
            let entry = MessageIndexEntry { log_time: header.log_time, offset };
            places.entry(header.channel_id).or_default().push(entry);
        }
        ControlFlow::Continue(())
    })?;
    Ok(whole.map(|()| places))
}

fn attachment(body: &[u8], offset: u64, length: u64) -> Option<AttachmentIndex> {
    let mut reader = Cursor::new(body);
    let header: AttachmentHeader = reader.read_le().ok()?;
    Some(AttachmentIndex {
        offset,
        length,
        log_time: header.log_time,
        create_time: header.create_time,
        data_size: reader.read_le().ok()?,
        name: header.name,
        media_type: header.media_type,
    })
}

fn index(header: &ChunkHeader, chunk_start_offset: u64, chunk_length: u64) -> ChunkIndex {
    ChunkIndex {
        message_start_time: header.message_start_time,
        message_end_time: header.message_end_time,
        chunk_start_offset,
        chunk_length,
        message_index_offsets: Default::default(),
        message_index_length: 0,
        compression: header.compression.clone(),
        compressed_size: header.compressed_size,
        uncompressed_size: header.uncompressed_size,
    }
}

/// Whether nothing but the index of its messages is between a chunk and `end`.
fn follows(chunk: &ChunkIndex, end: u64) -> bool {
    chunk.chunk_start_offset + chunk.chunk_length + chunk.message_index_length == end
}

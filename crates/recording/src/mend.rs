//! Parts that are there: what is in them, and an end for those that have none.
//!
//! A kill leaves a file that breaks off anywhere. What is whole in it is kept, what is not is cut
//! off, and an end is written, as if the part had been finished there.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

use binrw::BinReaderExt;
use mcap::MAGIC;
use mcap::read::ChunkReader;
use mcap::records::{
    AttachmentHeader, AttachmentIndex, ChunkHeader, ChunkIndex, Header, Metadata, MetadataIndex,
    Record, op,
};

use super::chunk::{Chunk, Stamp};
use super::format::{HEAD, Head};
use super::index::{ChunkRow, FRAME_BYTES, Index, TOPIC};
use super::writer::{Disk, LIBRARIES, PartWriter, preamble};

/// Longer than the header of any chunk: of what is long, only the beginning is read.
const BEGIN_BYTES_MAX: u64 = 256;
/// The same of an attachment, whose name is a path.
const NAMED_BYTES_MAX: u64 = 16 << 10;
/// Longest of all other records that a recorder writes; a longer one is none of them.
const BODY_BYTES_MAX: u64 = 16 << 20;
/// Of one place in a record of places; and of what stands before the first.
const PLACE_BYTES: u64 = 16;
const PLACES_HEAD_BYTES: u64 = 2 + 4;

/// What is in a file.
#[derive(Debug)]
pub struct Scan {
    pub index: Index,
    /// What the part says of itself; `None` if it broke off before that.
    pub head: Option<Head>,
    /// Bytes of whole records, without the end that makes a part finished.
    len: u64,
}

/// Whether a file has the end of a part that is finished.
pub fn is_finished(mut file: &File) -> io::Result<bool> {
    let bytes = file.metadata()?.len();
    if bytes <= preamble().len() as u64 {
        return Ok(false);
    }
    let mut end = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(bytes - MAGIC.len() as u64))?;
    file.read_exact(&mut end)?;
    Ok(end == MAGIC)
}

/// Looks through a file; `None` if no recorder wrote it.
pub fn scan(file: &File) -> io::Result<Option<Scan>> {
    look(file, |_| true)
}

/// What a part says of itself; `None` if it broke off before that, or if no recorder wrote it.
pub fn head(file: &File) -> io::Result<Option<Head>> {
    Ok(look(file, |scan| scan.head.is_none())?.and_then(|scan| scan.head))
}

/// Whether a recorder has written it and it says of which run it is, in whatever version.
pub fn is_part(file: &File) -> io::Result<bool> {
    let scan = look(file, |scan| scan.index.metadata.is_empty())?;
    Ok(scan.is_some_and(|scan| scan.index.metadata.iter().any(|row| row.name == HEAD)))
}

fn look(file: &File, goes_on: fn(&Scan) -> bool) -> io::Result<Option<Scan>> {
    let bytes = file.metadata()?.len();
    let mut reader = Records { file: BufReader::new(file), at: MAGIC.len() as u64, bytes };
    let mut begin = Vec::new();
    reader.file.rewind()?;
    reader.file.by_ref().take(preamble().len() as u64).read_to_end(&mut begin)?;
    let mut scan = Scan { index: Index::default(), head: None, len: 0 };
    if preamble().starts_with(&begin) && begin.len() < preamble().len() {
        return Ok(Some(scan));
    }
    if !begin.starts_with(MAGIC) || !reader.is_ours()? {
        return Ok(None);
    }
    scan.len = reader.at;
    while goes_on(&scan)
        && let Some((op, len)) = reader.next()?
    {
        let body_len = match op {
            op::CHUNK | op::MESSAGE_INDEX => len.min(BEGIN_BYTES_MAX),
            op::ATTACHMENT => len.min(NAMED_BYTES_MAX),
            _ if len > BODY_BYTES_MAX => break,
            _ => len,
        };
        let body = reader.body(body_len)?;
        let length = FRAME_BYTES as u64 + len;
        if scan.index.note(op, &body, reader.at, length, &mut scan.head).is_none() {
            break;
        }
        reader.at += length;
        scan.len = reader.at;
    }
    Ok(Some(scan))
}

/// The records of a file, one by one.
struct Records<'a> {
    file: BufReader<&'a File>,
    /// Where the next one begins.
    at: u64,
    bytes: u64,
}

impl Records<'_> {
    /// What the next record is, and how long, if it is whole.
    fn next(&mut self) -> io::Result<Option<(u8, u64)>> {
        let left = self.bytes - self.at;
        let Some(room) = left.checked_sub(FRAME_BYTES as u64) else { return Ok(None) };
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut frame = [0; FRAME_BYTES];
        self.file.read_exact(&mut frame)?;
        let [op, len @ ..] = frame;
        let len = u64::from_le_bytes(len);
        Ok((len <= room).then_some((op, len)))
    }

    /// The first bytes of the record that was next.
    fn body(&mut self, len: u64) -> io::Result<Vec<u8>> {
        let mut body = vec![0; usize::try_from(len).expect("it is in a file")];
        self.file.read_exact(&mut body)?;
        Ok(body)
    }

    /// Takes the header: whether it is a recorder's.
    fn is_ours(&mut self) -> io::Result<bool> {
        let Some((op::HEADER, len)) = self.next()? else { return Ok(false) };
        let header = parse::<Header>(&self.body(len)?);
        self.at += FRAME_BYTES as u64 + len;
        Ok(header.is_some_and(|header| header.library.starts_with(LIBRARIES)))
    }
}

fn parse<T: for<'a> binrw::BinRead<Args<'a> = ()>>(body: &[u8]) -> Option<T> {
    Cursor::new(body).read_le().ok()
}

impl Index {
    /// Notes a record that stands in the file; `None` if it is none that a recorder writes there.
    fn note(
        &mut self,
        op: u8,
        body: &[u8],
        offset: u64,
        length: u64,
        head: &mut Option<Head>,
    ) -> Option<()> {
        match op {
            op::SCHEMA => self.schemas.add(op, body),
            TOPIC => self.topics.add(op, body),
            op::METADATA => {
                let Metadata { name, metadata } = parse(body)?;
                if name == HEAD {
                    *head = Head::from_metadata(&metadata).ok();
                }
                self.metadata.push(MetadataIndex { offset, length, name });
            }
            op::ATTACHMENT => self.attachments.push(attachment(body, offset, length)?),
            op::CHUNK => {
                let index = chunk(&parse(body)?, offset, length);
                self.chunks.push(ChunkRow { index, counts: Vec::new() });
            }
            op::MESSAGE_INDEX => {
                let topic = u16::from_le_bytes(*body.first_chunk()?);
                let places = (length - FRAME_BYTES as u64).checked_sub(PLACES_HEAD_BYTES)?;
                let row = self.chunks.last_mut()?;
                row.index.message_index_offsets.insert(topic, offset);
                row.index.message_index_length += length;
                row.counts.push((topic, places / PLACE_BYTES));
            }
            _ => return None,
        }
        Some(())
    }
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

fn chunk(header: &ChunkHeader, chunk_start_offset: u64, chunk_length: u64) -> ChunkIndex {
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

/// A message, as it stands in a file.
pub type Stored = (Stamp, Vec<u8>);

/// The messages of a chunk; `None` if they cannot be read.
pub fn messages(mut file: &File, row: &ChunkRow) -> io::Result<Option<Vec<Stored>>> {
    file.seek(SeekFrom::Start(row.index.chunk_start_offset + FRAME_BYTES as u64))?;
    let len = usize::try_from(row.index.chunk_length).expect("it is in a file");
    let mut body = vec![0; len - FRAME_BYTES];
    file.read_exact(&mut body)?;
    let mut reader = Cursor::new(body.as_slice());
    let Ok(header) = reader.read_le::<ChunkHeader>() else { return Ok(None) };
    let data = &body[usize::try_from(reader.position()).expect("it is in memory")..];
    let Ok(records) = ChunkReader::new(header, data) else { return Ok(None) };
    let message = |record| match record {
        Ok(Record::Message { header, data }) => Some((Stamp::of(&header), data.into_owned())),
        _ => None,
    };
    Ok(records.map(message).collect())
}

impl Scan {
    /// Bytes of whole records.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Gives a part that was not finished its end; how many bytes were cut off.
    pub fn mend(self, file: &File) -> io::Result<u64> {
        let bytes = file.metadata()?.len();
        let Scan { mut index, len: mut whole, .. } = self;
        let (mut len, mut end) = (whole, Vec::new());
        // The places of the last chunk's messages may be missing, all or some.
        if let Some(last) = index.chunks.pop_if(|last| follows(&last.index, whole)) {
            len = last.index.chunk_start_offset;
            match messages(file, &last)? {
                Some(messages) => {
                    let mut chunk = Chunk::default();
                    messages.iter().for_each(|(stamp, data)| chunk.add(*stamp, &[data]));
                    len += last.index.chunk_length;
                    index.chunks.push(chunk.write_places(last, &mut end));
                }
                None => whole = len,
            }
        }
        if len == 0 {
            end = preamble();
        }
        let mut disk = file.try_clone()?;
        disk.cut(len)?;
        disk.add(&end)?;
        PartWriter::resume(disk, len + end.len() as u64, index).finish().0?;
        Ok(bytes - whole)
    }
}

/// Whether nothing but the places of its messages comes between a chunk and `end`.
fn follows(chunk: &ChunkIndex, end: u64) -> bool {
    chunk.chunk_start_offset + chunk.chunk_length + chunk.message_index_length == end
}

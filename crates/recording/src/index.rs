//! What an MCAP file holds and where: from it the end of the file is made, by which readers find
//! their way. Whoever writes a part keeps one; whoever mends a part makes it again from the file.
//!
//! The records' types and their encoding are the `mcap` crate's; its writer is not ours, because it
//! can neither go on in a file nor take back what a full disk has cut off.

use std::collections::BTreeMap;
use std::io::Cursor;

use binrw::{BinWrite, BinWriterExt};
use mcap::MAGIC;
use mcap::records::{
    AttachmentIndex, Channel, ChunkIndex, DataEnd, Footer, MetadataIndex, Statistics,
    SummaryOffset, op,
};

use super::format::ENCODING;

/// Of a record: what it is, and how many bytes follow.
pub const FRAME_BYTES: usize = 1 + 8;

/// What MCAP calls a channel: a topic, with the schema of its messages.
pub const TOPIC: u8 = op::CHANNEL;

/// The body of a topic's record.
pub fn topic(id: u16, schema_id: u16, name: &str, metadata: BTreeMap<String, String>) -> Vec<u8> {
    let (topic, message_encoding) = (name.into(), ENCODING.into());
    encode(&Channel { id, schema_id, topic, message_encoding, metadata })
}

/// Adds a record.
pub fn frame(to: &mut Vec<u8>, op: u8, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    to.push(op);
    to.extend((len as u64).to_le_bytes());
    parts.iter().for_each(|part| to.extend_from_slice(part));
}

/// The body of a record.
pub fn encode(record: &impl for<'a> BinWrite<Args<'a> = ()>) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    bytes.write_le(record).expect("memory takes all, and the types are whole");
    bytes.into_inner()
}

/// A chunk in the file.
#[derive(Clone, Debug)]
pub struct ChunkRow {
    /// Where it is, and where the places of its messages.
    pub index: ChunkIndex,
    /// How many messages each topic has in it.
    pub counts: Vec<(u16, u64)>,
}

/// Records of one kind, as they stand in the file.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    bytes: Vec<u8>,
    count: u32,
}

impl Copies {
    /// Adds one.
    pub fn add(&mut self, op: u8, body: &[u8]) {
        frame(&mut self.bytes, op, &[body]);
        self.count += 1;
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub schemas: Copies,
    pub topics: Copies,
    pub chunks: Vec<ChunkRow>,
    pub attachments: Vec<AttachmentIndex>,
    pub metadata: Vec<MetadataIndex>,
}

impl Index {
    /// Forgets what begins at `len` or later: the file has been cut there.
    pub fn cut(&mut self, len: u64) {
        self.chunks.retain(|chunk| chunk.index.chunk_start_offset < len);
        self.attachments.retain(|it| it.offset < len);
        self.metadata.retain(|it| it.offset < len);
    }

    /// The end of a file that is `len` bytes long so far.
    pub fn end(&self, len: u64) -> Vec<u8> {
        let mut end = Vec::new();
        frame(&mut end, op::DATA_END, &[&encode(&DataEnd::default())]);
        let summary_at = end.len();
        let mut offsets = Vec::new();
        let mut section = |op, bytes: &[u8], end: &mut Vec<u8>| {
            if !bytes.is_empty() {
                let (group_start, group_length) = (len + end.len() as u64, bytes.len() as u64);
                offsets.push(SummaryOffset { group_opcode: op, group_start, group_length });
                end.extend_from_slice(bytes);
            }
        };
        section(op::SCHEMA, &self.schemas.bytes, &mut end);
        section(TOPIC, &self.topics.bytes, &mut end);
        section(op::STATISTICS, &all(op::STATISTICS, [&self.statistics()]), &mut end);
        let chunks = self.chunks.iter().map(|chunk| &chunk.index);
        section(op::CHUNK_INDEX, &all(op::CHUNK_INDEX, chunks), &mut end);
        section(op::ATTACHMENT_INDEX, &all(op::ATTACHMENT_INDEX, &self.attachments), &mut end);
        section(op::METADATA_INDEX, &all(op::METADATA_INDEX, &self.metadata), &mut end);
        let mut footer = Footer {
            summary_start: len + summary_at as u64,
            summary_offset_start: len + end.len() as u64,
            summary_crc: 0,
        };
        end.extend(all(op::SUMMARY_OFFSET, &offsets));
        // The sum covers all from the summary on, its own four bytes apart.
        let mut summed = end[summary_at..].to_vec();
        frame(&mut summed, op::FOOTER, &[&encode(&footer)]);
        footer.summary_crc = crc32fast::hash(&summed[..summed.len() - 4]);
        frame(&mut end, op::FOOTER, &[&encode(&footer)]);
        end.extend_from_slice(MAGIC);
        end
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            schema_count: u16::try_from(self.schemas.count).expect("few schemas"),
            channel_count: self.topics.count,
            attachment_count: self.attachments.len() as u32,
            metadata_count: self.metadata.len() as u32,
            chunk_count: self.chunks.len() as u32,
            message_start_time: self.times(|it| it.message_start_time).min().unwrap_or(0),
            message_end_time: self.times(|it| it.message_end_time).max().unwrap_or(0),
            ..Statistics::default()
        };
        for &(topic, count) in self.chunks.iter().flat_map(|chunk| &chunk.counts) {
            statistics.message_count += count;
            *statistics.channel_message_counts.entry(topic).or_default() += count;
        }
        statistics
    }

    fn times(&self, time: fn(&ChunkIndex) -> u64) -> impl Iterator<Item = u64> {
        self.chunks.iter().map(move |chunk| time(&chunk.index))
    }
}

/// Records of one kind, one behind the other.
fn all<'a, T>(op: u8, records: impl IntoIterator<Item = &'a T>) -> Vec<u8>
where
    T: for<'b> BinWrite<Args<'b> = ()> + 'a,
{
    let mut bytes = Vec::new();
    records.into_iter().for_each(|record| frame(&mut bytes, op, &[&encode(record)]));
    bytes
}

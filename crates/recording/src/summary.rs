//! The end of a file, which readers use as an index. It is written behind all complete records.
//!
//! Version 0.26 of the `mcap` crate writes a summary only once, and only behind what the same
//! writer has written. It cannot add an end to a file that a kill has broken off. Nor can it remove
//! a chunk that a full disk has refused or that must make room for the end. So the crate's writer
//! keeps the content of the summary, and our code writes the end.

use std::io::{self, Cursor};

use binrw::{BinWrite, BinWriterExt};
use mcap::records::{
    Channel, ChunkIndex, DataEnd, Footer, Header, MessageIndex, MessageIndexEntry, SchemaHeader,
    Statistics, SummaryOffset, op,
};
use mcap::{MAGIC, Summary};

use super::disk::Disk;
use super::format::LIBRARY;

/// The head of a record: its type and the number of bytes that follow.
pub(crate) const FRAME_BYTES: u64 = 1 + 8;
/// The size of one place in an index record, and of the head before the first place.
const PLACE_BYTES: u64 = 16;
const PLACES_HEAD_BYTES: u64 = 2 + 4;

/// Writes the end behind the first `len` bytes. If that fails, nothing of it remains.
pub(crate) fn write_end(disk: &mut impl Disk, len: u64, summary: &Summary) -> io::Result<()> {
    disk.cut(len)?;
    let Err(error) = disk.add(&end(len, summary)) else { return Ok(()) };
    disk.cut(len)?;
    Err(error)
}

/// Removes what begins at `len` or later: the file has been cut there.
pub(crate) fn cut(summary: &mut Summary, len: u64) {
    summary.chunk_indexes.retain(|chunk| chunk.chunk_start_offset < len);
    summary.attachment_indexes.retain(|it| it.offset < len);
    summary.metadata_indexes.retain(|it| it.offset < len);
    // Schemas and topics are in the first chunk.
    if summary.chunk_indexes.is_empty() {
        summary.schemas.clear();
        summary.channels.clear();
    }
}

/// The first bytes of every part, as the crate's writer makes them.
pub(crate) fn preamble() -> Vec<u8> {
    let header = Header { profile: String::new(), library: LIBRARY.into() };
    [MAGIC, &records(op::HEADER, [&header])].concat()
}

/// Writes the index of messages behind a chunk that lacks it.
pub(crate) fn write_places(
    chunk: &mut ChunkIndex,
    places: impl IntoIterator<Item = (u16, Vec<MessageIndexEntry>)>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    chunk.message_index_offsets.clear();
    for (channel_id, records) in places {
        let at = chunk.chunk_start_offset + chunk.chunk_length + bytes.len() as u64;
        chunk.message_index_offsets.insert(channel_id, at);
        frame(&mut bytes, op::MESSAGE_INDEX, &encode(&MessageIndex { channel_id, records }));
    }
    chunk.message_index_length = bytes.len() as u64;
    bytes
}

fn end(len: u64, summary: &Summary) -> Vec<u8> {
    let mut end = records(op::DATA_END, [&DataEnd::default()]);
    let summary_at = end.len();
    let mut offsets = Vec::new();
    for (group_opcode, bytes) in sections(summary).iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let (group_start, group_length) = (len + end.len() as u64, bytes.len() as u64);
        offsets.push(SummaryOffset { group_opcode: *group_opcode, group_start, group_length });
        end.extend_from_slice(bytes);
    }
    let mut footer = Footer {
        summary_start: len + summary_at as u64,
        summary_offset_start: len + end.len() as u64,
        summary_crc: 0,
    };
    end.extend(records(op::SUMMARY_OFFSET, &offsets));
    // The checksum covers everything from the summary on, except its own four bytes.
    let summed = [&end[summary_at..], &records(op::FOOTER, [&footer])].concat();
    footer.summary_crc = crc32fast::hash(&summed[..summed.len() - 4]);
    end.extend(records(op::FOOTER, [&footer]));
    end.extend_from_slice(MAGIC);
    end
}

fn sections(summary: &Summary) -> [(u8, Vec<u8>); 6] {
    let mut schemas: Vec<_> = summary.schemas.values().collect();
    schemas.sort_by_key(|schema| schema.id);
    let mut schema_records = Vec::new();
    for schema in schemas {
        let (name, encoding) = (schema.name.clone(), schema.encoding.clone());
        let header = encode(&SchemaHeader { id: schema.id, name, encoding });
        let len = (schema.data.len() as u32).to_le_bytes();
        frame(&mut schema_records, op::SCHEMA, &[&header, &len[..], &schema.data].concat());
    }
    let mut topics: Vec<_> = summary.channels.values().collect();
    topics.sort_by_key(|topic| topic.id);
    let topics = topics.into_iter().map(|topic| Channel {
        id: topic.id,
        schema_id: topic.schema.as_ref().map_or(0, |schema| schema.id),
        topic: topic.topic.clone(),
        message_encoding: topic.message_encoding.clone(),
        metadata: topic.metadata.clone(),
    });
    let topics: Vec<_> = topics.collect();
    [
        (op::SCHEMA, schema_records),
        (op::CHANNEL, records(op::CHANNEL, &topics)),
        (op::STATISTICS, records(op::STATISTICS, [&statistics(summary)])),
        (op::CHUNK_INDEX, records(op::CHUNK_INDEX, &summary.chunk_indexes)),
        (op::ATTACHMENT_INDEX, records(op::ATTACHMENT_INDEX, &summary.attachment_indexes)),
        (op::METADATA_INDEX, records(op::METADATA_INDEX, &summary.metadata_indexes)),
    ]
}

fn statistics(summary: &Summary) -> Statistics {
    let chunks = &summary.chunk_indexes;
    let mut statistics = Statistics {
        schema_count: u16::try_from(summary.schemas.len()).expect("their numbers are as long"),
        channel_count: summary.channels.len() as u32,
        attachment_count: summary.attachment_indexes.len() as u32,
        metadata_count: summary.metadata_indexes.len() as u32,
        chunk_count: chunks.len() as u32,
        message_start_time: chunks.iter().map(|it| it.message_start_time).min().unwrap_or(0),
        message_end_time: chunks.iter().map(|it| it.message_end_time).max().unwrap_or(0),
        ..Statistics::default()
    };
    for (topic, count) in chunks.iter().flat_map(counts) {
        statistics.message_count += count;
        *statistics.channel_message_counts.entry(topic).or_default() += count;
    }
    statistics
}

/// How many messages of each topic a chunk has: the index has one place for each.
fn counts(chunk: &ChunkIndex) -> Vec<(u16, u64)> {
    let begins = chunk.message_index_offsets.values().copied();
    let end = chunk.chunk_start_offset + chunk.chunk_length + chunk.message_index_length;
    let ends = begins.clone().skip(1).chain([end]);
    let bodies = begins.zip(ends).map(|(begin, end)| end.saturating_sub(begin + FRAME_BYTES));
    let places = bodies.map(|len| len.saturating_sub(PLACES_HEAD_BYTES) / PLACE_BYTES);
    chunk.message_index_offsets.keys().copied().zip(places).collect()
}

/// Records of one kind, one behind the other.
fn records<'a, T>(op: u8, bodies: impl IntoIterator<Item = &'a T>) -> Vec<u8>
where
    T: for<'b> BinWrite<Args<'b> = ()> + 'a,
{
    let mut bytes = Vec::new();
    bodies.into_iter().for_each(|body| frame(&mut bytes, op, &encode(body)));
    bytes
}

fn frame(to: &mut Vec<u8>, op: u8, body: &[u8]) {
    to.push(op);
    to.extend((body.len() as u64).to_le_bytes());
    to.extend_from_slice(body);
}

fn encode(record: &impl for<'a> BinWrite<Args<'a> = ()>) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    bytes.write_le(record).expect("memory takes all, and the types are whole");
    bytes.into_inner()
}

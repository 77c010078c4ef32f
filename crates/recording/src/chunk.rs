//! Messages on their way into a file: a chunk, compressed, and the places of its messages.

use std::io::{self, Write};

use mcap::records::{ChunkHeader, ChunkIndex, MessageHeader, MessageIndex, MessageIndexEntry, op};

use super::index::{ChunkRow, encode, frame};

/// Of a compression, by the name that MCAP gives it.
const LZ4: &str = "lz4";

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of its topic.
    pub topic: u16,
    /// Low half of its cycle's number.
    pub sequence: u32,
    /// Start of its cycle, since 1970.
    pub start_ns: u64,
    /// As above, when that was released.
    pub release_ns: u64,
}

impl Stamp {
    /// As it stands in a file.
    fn header(self) -> MessageHeader {
        MessageHeader {
            channel_id: self.topic,
            sequence: self.sequence,
            log_time: self.start_ns,
            publish_time: self.release_ns,
        }
    }

    /// From a file.
    pub fn of(header: &MessageHeader) -> Stamp {
        Stamp {
            topic: header.channel_id,
            sequence: header.sequence,
            start_ns: header.log_time,
            release_ns: header.publish_time,
        }
    }
}

/// Messages, as they stand in a chunk.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// By topic: time and place of each message.
    places: Vec<Vec<MessageIndexEntry>>,
    times_ns: Option<(u64, u64)>,
}

impl Chunk {
    /// Whether there is no message in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes, before they are compressed.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a message.
    pub fn add(&mut self, stamp: Stamp, data: &[&[u8]]) {
        let (topic, log_time) = (usize::from(stamp.topic), stamp.start_ns);
        if self.places.len() <= topic {
            self.places.resize_with(topic + 1, Vec::new);
        }
        self.places[topic].push(MessageIndexEntry { log_time, offset: self.bytes.len() as u64 });
        let (first, last) = self.times_ns.unwrap_or((log_time, log_time));
        self.times_ns = Some((first.min(log_time), last.max(log_time)));
        let header = encode(&stamp.header());
        let mut parts = vec![header.as_slice()];
        parts.extend(data);
        frame(&mut self.bytes, op::MESSAGE, &parts);
    }

    /// Adds the chunk to `to`, which comes to lie `at` bytes into the file, and the places of its
    /// messages after it.
    pub fn write(&self, at: u64, to: &mut Vec<u8>) -> ChunkRow {
        let begun = to.len();
        let (message_start_time, message_end_time) = self.times_ns.unwrap_or_default();
        let compressed = compress(&self.bytes).expect("memory takes all");
        let header = ChunkHeader {
            message_start_time,
            message_end_time,
            uncompressed_size: self.bytes.len() as u64,
            uncompressed_crc: crc32fast::hash(&self.bytes),
            compression: LZ4.into(),
            compressed_size: compressed.len() as u64,
        };
        frame(to, op::CHUNK, &[&encode(&header), &compressed]);
        let index = ChunkIndex {
            message_start_time,
            message_end_time,
            chunk_start_offset: at,
            chunk_length: (to.len() - begun) as u64,
            message_index_offsets: Default::default(),
            message_index_length: 0,
            compression: header.compression,
            compressed_size: header.compressed_size,
            uncompressed_size: header.uncompressed_size,
        };
        self.write_places(ChunkRow { index, counts: Vec::new() }, to)
    }

    /// Adds the places of the messages of a chunk that ends where `to` begins to grow.
    pub fn write_places(&self, mut row: ChunkRow, to: &mut Vec<u8>) -> ChunkRow {
        let begun = to.len();
        let end = row.index.chunk_start_offset + row.index.chunk_length;
        row.index.message_index_offsets.clear();
        row.counts.clear();
        for (topic, places) in self.places.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
            let topic = topic as u16;
            row.index.message_index_offsets.insert(topic, end + (to.len() - begun) as u64);
            row.counts.push((topic, places.len() as u64));
            let record = MessageIndex { channel_id: topic, records: places.clone() };
            frame(to, op::MESSAGE_INDEX, &[&encode(&record)]);
        }
        row.index.message_index_length = (to.len() - begun) as u64;
        row
    }
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // The chunk has a sum of its own, and some readers stumble over those of blocks.
    let sums = lz4::liblz4::BlockChecksum::NoBlockChecksum;
    let mut encoder = lz4::EncoderBuilder::new().block_checksum(sums).build(Vec::new())?;
    encoder.write_all(bytes)?;
    let (compressed, result) = encoder.finish();
    result.map(|()| compressed)
}

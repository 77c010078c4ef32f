//! Writes a part of a recording. The file is complete at any time, except for what a kill or a full
//! disk may leave at its end.
//!
//! The writer of the `mcap` crate (0.26) makes records, chunks and their entries in the summary, in
//! memory: a failed write would end this writer for good. So the disk gets gaps and messages that
//! came together in one write, and they can be removed again.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{Attachment, Compression, WriteOptions};

use super::disk::{Disk, is_full};
use super::format::{
    ENCODING, GAP, HEAD, LIBRARY, MEDIA_TYPE, PartHead, RecordedGap, SCHEMA_ENCODING,
};
use super::messages::Messages;
use super::summary::{cut, write_end};
use super::topics::TopicHead;

/// Why no call of the crate's writer can fail.
const MEMORY: &str = "memory takes all, and a graph has fewer ports than there are numbers";

/// The beginning of every part of a run.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The description of the part that begins.
    pub head: PartHead,
    /// Name and bytes.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// In the order of their numbers, from 0.
    pub topics: Vec<TopicHead>,
}

/// A part.
pub struct PartWriter<D> {
    disk: D,
    /// Bytes of whole records.
    len: u64,
    /// The value of `len` before each addition.
    before: Vec<u64>,
    writer: mcap::Writer<NoSeek<Pending>>,
    pending: Pending,
    /// They are written in the first chunk: a chunk of their own would have no times, and would
    /// seem to begin in 1970.
    topics: Vec<TopicHead>,
    /// Their numbers in the file.
    numbers: Vec<u16>,
}

impl<D: Disk> PartWriter<D> {
    /// Begins a part, at this time since 1970.
    ///
    /// # Errors
    /// The disk's error.
    pub fn begin(mut disk: D, opening: Opening, time_ns: u64) -> io::Result<PartWriter<D>> {
        let pending = Pending::default();
        let options = WriteOptions::new().library(LIBRARY).compression(Some(Compression::Lz4));
        // A chunk is as long as what is added at once. There is no checksum of the whole file,
        // because it would be wrong after a cut.
        let options = options.chunk_size(None).calculate_data_section_crc(false);
        let file = NoSeek::new(pending.clone());
        let mut writer = options.disable_seeking(true).create(file).expect(MEMORY);
        let Opening { head, attachments, topics } = opening;
        write_metadata(&mut writer, HEAD, head.to_metadata());
        for (name, data) in attachments {
            let (log_time, create_time) = (time_ns, time_ns);
            let (media_type, data) = (MEDIA_TYPE.into(), data.into());
            let attachment = Attachment { log_time, create_time, name, media_type, data };
            writer.attach(&attachment).expect(MEMORY);
        }
        let bytes = pending.take();
        disk.add(&bytes)?;
        let (len, before, numbers) = (bytes.len() as u64, Vec::new(), Vec::new());
        Ok(PartWriter { disk, len, before, writer, pending, topics, numbers })
    }

    /// Whether the file has no name any more, so that nobody finds it.
    pub fn is_nameless(&self) -> bool {
        self.disk.is_nameless()
    }

    /// The length so far.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds gaps, and the messages after them. If this fails, nothing of them remains, and the part
    /// can only be finished.
    ///
    /// # Errors
    /// The disk's error.
    pub fn add(&mut self, gaps: &[RecordedGap], messages: &Messages) -> io::Result<()> {
        for gap in gaps {
            write_metadata(&mut self.writer, GAP, gap.to_metadata());
        }
        if !messages.is_empty() {
            self.number_topics();
        }
        for (stamp, data) in messages.iter() {
            let header = MessageHeader {
                channel_id: self.numbers[usize::from(stamp.topic)],
                sequence: stamp.sequence,
                log_time: stamp.start_ns,
                publish_time: stamp.release_ns,
            };
            self.writer.write_to_known_channel(&header, data).expect(MEMORY);
        }
        self.writer.flush().expect(MEMORY);
        let bytes = self.pending.take();
        if let Err(error) = self.disk.add(&bytes) {
            // If the cut fails too, the file is as after a kill.
            self.disk.cut(self.len)?;
            return Err(error);
        }
        self.before.push(self.len);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Adds schemas and topics, before the first message.
    fn number_topics(&mut self) {
        for TopicHead { name, schema: (schema, text), metadata } in take(&mut self.topics) {
            let schema = self.writer.add_schema(&schema, SCHEMA_ENCODING, text.as_bytes());
            let schema = schema.expect(MEMORY);
            let number = self.writer.add_channel(schema, &name, ENCODING, &metadata);
            self.numbers.push(number.expect(MEMORY));
        }
    }

    /// Writes the end, which readers use as an index. If there is no room for it, the last
    /// additions are removed. Returns the disk, if the end was written, and how many additions were
    /// removed.
    pub fn finish(mut self) -> (io::Result<D>, usize) {
        // This leaves an end in `pending` that also lists what is not on the disk; it is not used.
        let mut summary = self.writer.finish().expect(MEMORY);
        let mut given_up = 0;
        loop {
            cut(&mut summary, self.len);
            let ended = write_end(&mut self.disk, self.len, &summary);
            let Some(before) = self.before.pop().filter(|_| ended.as_ref().is_err_and(is_full))
            else {
                return (ended.map(|()| self.disk), given_up);
            };
            self.len = before;
            given_up += 1;
        }
    }
}

fn write_metadata(
    writer: &mut mcap::Writer<NoSeek<Pending>>,
    name: &str,
    metadata: std::collections::BTreeMap<String, String>,
) {
    writer.write_metadata(&Metadata { name: name.into(), metadata }).expect(MEMORY);
}

/// The file of the crate's writer: bytes that are not on the disk yet. The writer and the part
/// share it.
#[derive(Clone, Debug, Default)]
struct Pending(Arc<Mutex<Vec<u8>>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the bytes out.
    fn take(&self) -> Vec<u8> {
        take(&mut self.lock())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! A part of a recording while it is written. What is in the file is whole at any time, but for
//! what a kill or a full disk may leave at its end.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use mcap::MAGIC;
use mcap::records::{
    AttachmentHeader, AttachmentIndex, Header, Metadata, MetadataIndex, SchemaHeader, op,
};

use super::chunk::Chunk;
use super::format::{GAP, Gap, HEAD, Head, SCHEMA_ENCODING};
use super::index::{self, Index, TOPIC, encode, frame};
use super::topics::Topic;

/// Who wrote a file, by its header.
const LIBRARY: &str = concat!("sinew ", env!("CARGO_PKG_VERSION"));
/// The same, whatever the version.
pub const LIBRARIES: &str = "sinew ";

/// What a part is written to: a file, or what stands in for one.
pub trait Disk {
    /// Writes at the end.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Takes away what is past `len`.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Whether nobody finds it any more.
    fn is_nameless(&self) -> bool;
}

/// Opened to append: after a cut it goes on at the new end.
impl Disk for File {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn is_nameless(&self) -> bool {
        // A file whose state cannot be asked for says so when it is written.
        self.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

/// What every part of a run begins with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Of the part that is to begin.
    pub head: Head,
    /// Name and bytes.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// In the order of their numbers, from 0.
    pub topics: Vec<Topic>,
}

/// The first bytes of every part.
pub fn preamble() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let header = Header { profile: String::new(), library: LIBRARY.into() };
    frame(&mut bytes, op::HEADER, &[&encode(&header)]);
    bytes
}

/// A part.
#[derive(Debug)]
pub struct PartWriter<D> {
    disk: D,
    /// Bytes of whole records.
    len: u64,
    /// How many there were before each addition.
    before: Vec<u64>,
    index: Index,
}

impl<D: Disk> PartWriter<D> {
    /// Goes on with what is there: its first `len` bytes, none of which makes room for an end.
    pub fn resume(disk: D, len: u64, index: Index) -> PartWriter<D> {
        PartWriter { disk, len, before: Vec::new(), index }
    }

    /// Begins one.
    pub fn begin(mut disk: D, opening: &Opening, time_ns: u64) -> io::Result<PartWriter<D>> {
        let (mut bytes, mut index) = (preamble(), Index::default());
        add_metadata(&mut bytes, 0, HEAD, opening.head.to_metadata(), &mut index);
        for (name, data) in &opening.attachments {
            add_attachment(&mut bytes, time_ns, name, data, &mut index);
        }
        let mut schemas: Vec<&(String, String)> = Vec::new();
        for (at, topic) in opening.topics.iter().enumerate() {
            let known = schemas.iter().position(|schema| **schema == topic.schema);
            let schema = known.unwrap_or_else(|| {
                let (name, text) = &topic.schema;
                let encoding = SCHEMA_ENCODING.into();
                let header =
                    SchemaHeader { id: id(schemas.len()) + 1, name: name.clone(), encoding };
                let len = (text.len() as u32).to_le_bytes();
                let body = [&encode(&header), &len[..], text.as_bytes()].concat();
                frame(&mut bytes, op::SCHEMA, &[&body]);
                index.schemas.add(op::SCHEMA, &body);
                schemas.push(&topic.schema);
                schemas.len() - 1
            });
            let body = index::topic(id(at), id(schema) + 1, &topic.name, topic.metadata.clone());
            frame(&mut bytes, TOPIC, &[&body]);
            index.topics.add(TOPIC, &body);
        }
        disk.add(&bytes)?;
        Ok(PartWriter { disk, len: bytes.len() as u64, before: Vec::new(), index })
    }

    /// Whether nobody finds it any more.
    pub fn is_nameless(&self) -> bool {
        self.disk.is_nameless()
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds gaps, and the messages after them. If that fails, nothing of it is there.
    pub fn add(&mut self, gaps: &[Gap], chunk: &Chunk) -> io::Result<()> {
        let (mut bytes, mut index) = (Vec::new(), Index::default());
        for gap in gaps {
            add_metadata(&mut bytes, self.len, GAP, gap.to_metadata(), &mut index);
        }
        if !chunk.is_empty() {
            index.chunks.push(chunk.write(self.len + bytes.len() as u64, &mut bytes));
        }
        if let Err(error) = self.disk.add(&bytes) {
            // Should that fail too, the file is as after a kill.
            self.disk.cut(self.len)?;
            return Err(error);
        }
        self.before.push(self.len);
        self.len += bytes.len() as u64;
        self.index.metadata.append(&mut index.metadata);
        self.index.chunks.append(&mut index.chunks);
        Ok(())
    }

    /// Writes the end, by which readers find their way. Where there is no room for it, the last
    /// additions make room. What it was written to, if it has an end, and how many made room.
    pub fn finish(mut self) -> (io::Result<D>, usize) {
        let mut given_up = 0;
        loop {
            let ended = self.end();
            let Some(before) = self.before.pop().filter(|_| ended.as_ref().is_err_and(is_full))
            else {
                return (ended.map(|()| self.disk), given_up);
            };
            self.len = before;
            self.index.cut(self.len);
            given_up += 1;
        }
    }

    /// Writes the end behind what is whole; if that fails, nothing of it is there.
    fn end(&mut self) -> io::Result<()> {
        self.disk.cut(self.len)?;
        let Err(error) = self.disk.add(&self.index.end(self.len)) else { return Ok(()) };
        self.disk.cut(self.len)?;
        Err(error)
    }
}

/// Whether there is no room for more: on the disk, for this user, in this file.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn id(at: usize) -> u16 {
    u16::try_from(at).expect("a graph has fewer ports")
}

/// Adds metadata to bytes that come to lie `at` bytes into the file.
fn add_metadata(
    to: &mut Vec<u8>,
    at: u64,
    name: &str,
    metadata: std::collections::BTreeMap<String, String>,
    index: &mut Index,
) {
    let begun = to.len();
    frame(to, op::METADATA, &[&encode(&Metadata { name: name.into(), metadata })]);
    let length = (to.len() - begun) as u64;
    index.metadata.push(MetadataIndex { offset: at + begun as u64, length, name: name.into() });
}

fn add_attachment(to: &mut Vec<u8>, time_ns: u64, name: &str, data: &[u8], index: &mut Index) {
    let offset = to.len() as u64;
    let media_type = "application/octet-stream";
    let header = AttachmentHeader {
        log_time: time_ns,
        create_time: time_ns,
        name: name.into(),
        media_type: media_type.into(),
    };
    let data_size = data.len() as u64;
    let body = [&encode(&header), &data_size.to_le_bytes()[..], data].concat();
    let sum = crc32fast::hash(&body).to_le_bytes();
    frame(to, op::ATTACHMENT, &[&body, &sum]);
    index.attachments.push(AttachmentIndex {
        offset,
        length: to.len() as u64 - offset,
        log_time: time_ns,
        create_time: time_ns,
        data_size,
        name: header.name,
        media_type: header.media_type,
    });
}

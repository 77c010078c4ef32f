//! Messages before they are written to a file.

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its topic, by the place among [`topics`](super::topics::topics).
    pub topic: u16,
    /// Low half of its cycle's number.
    pub sequence: u32,
    /// Start of its cycle, since 1970.
    pub start_ns: u64,
    /// Release of its cycle, since 1970.
    pub release_ns: u64,
}

/// Messages, one after another: the content of a chunk.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// For each message its stamp and the end of its bytes.
    rows: Vec<(Stamp, usize)>,
    bytes: Vec<u8>,
}

impl Messages {
    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of data, without the headers of messages.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a message whose data are given in parts.
    pub fn add(&mut self, stamp: Stamp, data: &[&[u8]]) {
        data.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.rows.push((stamp, self.bytes.len()));
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Stamp, &[u8])> {
        let begins = std::iter::once(0).chain(self.rows.iter().map(|(_, end)| *end));
        begins.zip(&self.rows).map(|(begin, &(stamp, end))| (stamp, &self.bytes[begin..end]))
    }
}

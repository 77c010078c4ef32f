//! Names of at most 32 bytes, as they are stored in words.

use core::fmt;

use sinew_link::{Memory, SharedWords};

/// Bytes of a name.
pub(crate) const NAME_BYTES: usize = 32;

/// A name of at most 32 bytes: UTF-8, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name([u8; NAME_BYTES]);

impl Name {
    /// `None` if it is longer, or contains a zero.
    pub fn new(text: &str) -> Option<Name> {
        let mut bytes = [0; NAME_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (!text.as_bytes().contains(&0)).then_some(Name(bytes))
    }

    /// The text. If it is not UTF-8, only the valid part before the first error.
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        match core::str::from_utf8(&self.0[..len]) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&self.0[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8; NAME_BYTES] {
        &self.0
    }

    /// A name of any bytes. Its text ends at the first zero.
    pub(crate) fn of_bytes(bytes: [u8; NAME_BYTES]) -> Name {
        Name(bytes)
    }

    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        write_bytes(words, at, &self.0);
    }

    pub(crate) fn read<M: Memory>(words: &SharedWords<M>, at: usize) -> Name {
        let mut bytes = [0; NAME_BYTES];
        read_bytes(words, at, &mut bytes);
        Name(bytes)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Writes bytes; their count is a multiple of 4.
pub(crate) fn write_bytes<M: Memory>(words: &SharedWords<M>, at: usize, bytes: &[u8]) {
    let (parts, _) = bytes.as_chunks::<4>();
    for (i, part) in parts.iter().enumerate() {
        words.set(at + i * 4, u32::from_le_bytes(*part));
    }
}

/// Reads bytes; their count is a multiple of 4.
pub(crate) fn read_bytes<M: Memory>(words: &SharedWords<M>, at: usize, bytes: &mut [u8]) {
    let (parts, _) = bytes.as_chunks_mut::<4>();
    for (i, part) in parts.iter_mut().enumerate() {
        *part = words.get(at + i * 4).to_le_bytes();
    }
}

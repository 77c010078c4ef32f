//! The records of a file, one after the other, in bounded memory. All calls block; they are for a
//! thread of the pool.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ring::digest;
use rustix::fs::OFlags;
use sinew_flow::{Error, Value};

use crate::framing::{Element, ElementFormat, FilePlace, Framer, NextElement};
use crate::script::library::hex;

/// Most bytes of one read from the file.
const PIECE_LEN: usize = 64 << 10;
/// This many bytes at the beginning of a file are compared to say whether it is the same file.
const HEAD_LEN: usize = 4096;

/// What identifies a file later.
#[derive(Debug)]
pub(super) struct Known {
    /// Relative to the folder of the spec.
    pub(super) name: String,
    /// Its index among the files that are read.
    pub(super) at: usize,
    pub(super) inode: u64,
    /// Its length when it was opened.
    pub(super) len: u64,
    /// Its first bytes at that time.
    head: Vec<u8>,
}

impl Known {
    /// How many of its first bytes identify the file; only bytes before `offset` count.
    pub(super) fn head_len(&self, offset: u64) -> u64 {
        offset.min(self.head.len() as u64)
    }

    /// SHA-256 of its first `len` bytes, if that many are known.
    pub(super) fn head_sha256(&self, len: u64) -> Option<String> {
        self.head.get(..usize::try_from(len).ok()?).map(digest_of)
    }
}

/// An element.
pub(super) struct Record {
    pub(super) file: Arc<Known>,
    /// The line in which it begins, from 1.
    pub(super) number: u64,
    /// Where the next element begins.
    pub(super) next: FilePlace,
    /// The element's bytes in the file, without the end of its line.
    pub(super) raw: Bytes,
    /// The element's value.
    pub(super) value: Result<Value, Error>,
}

/// A file that is read.
pub(super) struct Records {
    file: File,
    pub(super) known: Arc<Known>,
    framer: Framer,
    piece: Vec<u8>,
    /// More may come at its end, so a last record without an end does not count yet.
    follows: bool,
}

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) format: ElementFormat,
    pub(super) size_max: usize,
    pub(super) follows: bool,
}

/// What has happened to a file that is followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Same,
    Grown,
    /// It has fewer bytes than were read of it, or begins differently.
    Cut,
    /// There is another file under its name.
    Moved,
}

impl Records {
    /// Opens the file. `is_ours`: no other flow may open it in this way meanwhile.
    ///
    /// # Errors
    /// It does not exist (404), is not a file, or another flow has it (409).
    pub(super) fn open(
        (path, name, at): (&Path, &str, usize),
        manner: Manner,
        is_ours: bool,
    ) -> Result<Records, Error> {
        let fail = |error: io::Error| {
            let status = if error.kind() == io::ErrorKind::NotFound { 404 } else { 500 };
            Error::new(format_args!("the file '{name}' cannot be read: {error}"))
                .with_status(status)
        };
        // Something that is not a file, such as a pipe, may have nobody at its other end; opening
        // must not wait for that.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut file = File::options().read(true).custom_flags(flags).open(path).map_err(fail)?;
        let state = file.metadata().map_err(fail)?;
        if !state.is_file() {
            let text =
                format!("'{name}' is not a file; name one, or a pattern such as '{name}/*.csv'");
            return Err(Error::new(text).with_status(400));
        }
        if is_ours {
            file.try_lock().map_err(|error| match error {
                TryLockError::Error(error) => fail(error),
                TryLockError::WouldBlock => Error::new(format_args!(
                    "another flow reads '{name}' with a checkpoint; let it end first"
                ))
                .with_status(409),
            })?;
        }
        let mut head = Vec::with_capacity(HEAD_LEN);
        (&mut file).take(HEAD_LEN as u64).read_to_end(&mut head).map_err(fail)?;
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let known = Known { name: name.to_owned(), at, inode: state.ino(), len: state.len(), head };
        let Manner { format, size_max, follows } = manner;
        let framer = Framer::new(format!("file '{name}', "), format, size_max);
        let (known, piece) = (Arc::new(known), vec![0; PIECE_LEN]);
        let mut records = Records { file, known, framer, piece, follows };
        while !records.framer.begin()? && records.fill()? {}
        Ok(records)
    }

    /// Goes on at a place that was reached before.
    pub(super) fn go_to(&mut self, place: FilePlace) -> Result<(), Error> {
        if place == FilePlace::default() {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(place.offset)).map_err(|error| self.broken(&error))?;
        self.framer.go_to(place);
        Ok(())
    }

    /// Goes back to the beginning of a file that was cut, and is another one now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(0)).map_err(|error| self.broken(&error))?;
        self.framer.restart();
        self.know(0)
    }

    /// Takes more bytes of its beginning to identify it, if the file was too short before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn know_more(&mut self) -> Result<(), Error> {
        match self.known.head.len() {
            HEAD_LEN.. => Ok(()),
            len => self.know(len),
        }
    }

    /// Takes the file's present beginning to identify it; the first `from` bytes are known already.
    fn know(&mut self, from: usize) -> Result<(), Error> {
        let broken = |error: io::Error| self.broken(&error);
        let len = self.file.metadata().map_err(broken)?.len();
        let mut head = self.known.head[..from].to_vec();
        head.resize(HEAD_LEN.min(usize::try_from(len).unwrap_or(HEAD_LEN)).max(from), 0);
        self.file.read_exact_at(&mut head[from..], from as u64).map_err(broken)?;
        let Known { name, at, inode, .. } = &*self.known;
        self.known = Arc::new(Known { name: name.clone(), at: *at, inode: *inode, len, head });
        Ok(())
    }

    /// What has happened to the file, which was opened at `path`.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub(super) fn look(&self, path: &Path) -> Result<Look, Error> {
        let broken = |error: io::Error| self.broken(&error);
        let len = self.file.metadata().map_err(broken)?.len();
        let read = (&self.file).stream_position().map_err(broken)?;
        let mut head = vec![0; self.known.head.len()];
        // A file that is shorter than its known beginning counts as cut too.
        let begins = self.file.read_exact_at(&mut head, 0).is_ok() && head == self.known.head;
        let other = fs::metadata(path).is_ok_and(|state| state.ino() != self.known.inode);
        Ok(match len {
            _ if len < read || !begins => Look::Cut,
            _ if len > read => Look::Grown,
            _ if other => Look::Moved,
            _ => Look::Same,
        })
    }

    /// The place of the first byte that belongs to no record yet.
    pub(super) fn place(&self) -> FilePlace {
        self.framer.place()
    }

    /// Says that nothing more comes: the rest is the last record.
    pub(super) fn end(&mut self) {
        self.follows = false;
    }

    /// Whether more may come.
    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// The next record; `None` at the end of the file, or at its present end if more may come.
    ///
    /// # Errors
    /// The file cannot be read, or a record is too long.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        loop {
            match self.framer.next()? {
                NextElement::Element(Element { number, next, raw, value }) => {
                    let file = Arc::clone(&self.known);
                    return Ok(Some(Record { file, number, next, raw, value }));
                }
                NextElement::More if self.fill()? => {}
                NextElement::More | NextElement::End => return Ok(None),
            }
        }
    }

    /// Reads more; `false` if there is no more yet.
    fn fill(&mut self) -> Result<bool, Error> {
        let read = self.file.read(&mut self.piece).map_err(|error| self.broken(&error))?;
        if read > 0 {
            self.framer.give(&self.piece[..read]);
            return Ok(true);
        }
        if self.follows {
            return Ok(false);
        }
        let now = self.file.metadata().map_err(|error| self.broken(&error))?.len();
        let place = self.framer.place();
        if now < place.offset {
            let text = format!("the file has become shorter, {now} bytes, while it was read");
            return Err(self.framer.wrong(place.line, &text));
        }
        self.framer.end();
        Ok(true)
    }

    fn broken(&self, error: &io::Error) -> Error {
        self.framer.wrong(self.framer.place().line + 1, &format!("cannot be read: {error}"))
    }
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

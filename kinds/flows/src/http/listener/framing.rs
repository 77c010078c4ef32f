//! Where a message of HTTP/1 ends, as strictly as RFC 9112 has it: what another reader may read in
//! another way is refused here, before hyper reads it.

use memchr::memchr;
use tokio::io::ReadBuf;

/// Ends a head in place of what is refused in it: no head may have a NUL, so hyper answers 400 when
/// its turn comes, and closes.
const BAD_HEAD: &[u8] = b"\0\r\n\r\n";

/// A length from here on is larger than any body may be. Further digits of it come as spaces: of
/// the largest numbers hyper thinks that the head is too large.
const FAR: u64 = 1_000_000_000_000_000_000;

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";

/// How far the bytes that came are read.
pub(super) struct Framing {
    part: Part,
    /// Bytes of a line that have come, and the last of them.
    line_len: usize,
    last: u8,
    field: Field,
    length: Option<u64>,
    is_chunked: bool,
    /// Bytes of a body or of a chunk that are still to come.
    left: u64,
}

/// What a byte belongs to. Bodies and chunks are counted; all else is lines.
enum Part {
    Request,
    Fields,
    Body,
    Size,
    Chunk,
    ChunkEnd,
    Trailers,
    /// Nothing more passes. This is still to be read, and then the end.
    Refused(&'static [u8]),
}

/// What a byte is in a field, or in the size of a chunk.
#[derive(Clone, Copy)]
enum Field {
    First,
    /// So much of this name has come.
    Name(&'static [u8], usize),
    BeforeDigits,
    Digits,
    AfterDigits,
    /// Nothing that matters, to the end of the line.
    Other,
}

impl Framing {
    /// That of a connection of which nothing has been read.
    pub(super) fn new() -> Framing {
        Framing {
            part: Part::Request,
            line_len: 0,
            last: 0,
            field: Field::First,
            length: None,
            is_chunked: false,
            left: 0,
        }
    }

    /// Whether nothing more is taken from the client.
    pub(super) fn has_refused(&self) -> bool {
        matches!(self.part, Part::Refused(_))
    }

    /// Lets pass what has been read after the first `before` bytes of this.
    pub(super) fn pass(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let good = self.check(&mut buffer.filled_mut()[before..]);
        buffer.set_filled(before + good);
        if let Part::Refused(rest) = &mut self.part {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *rest = later;
        }
    }

    /// How many of these bytes may pass.
    fn check(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = self.plain_lines(bytes);
        while at < bytes.len() {
            match self.step(&mut bytes[at..]) {
                Ok(len) => at += len,
                Err(len) => {
                    self.part = Part::Refused(match self.part {
                        Part::Request | Part::Fields => BAD_HEAD,
                        // A body that ends too early is bad.
                        _ => &[],
                    });
                    return at + len;
                }
            }
        }
        at
    }

    /// Goes on by the whole lines of a head that cannot say how long a body is: nearly all. What it
    /// leaves, `line` reads.
    fn plain_lines(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while self.line_len == 0
            && matches!(self.part, Part::Request | Part::Fields)
            && let Some(end) = memchr(b'\n', &bytes[at..])
        {
            match (&self.part, &bytes[at..at + end]) {
                (Part::Fields, [b'c' | b'C' | b't' | b'T', ..]) => break,
                (Part::Request, [_, .., b'\r']) => {
                    (self.length, self.is_chunked, self.part) = (None, false, Part::Fields);
                }
                (Part::Fields, [_, .., b'\r']) => {}
                (Part::Fields, [b'\r']) => self.part = self.body(),
                _ => break,
            }
            at += end + 1;
        }
        at
    }

    /// Goes on by so many bytes; or, as an error, by those before one that is refused.
    fn step(&mut self, bytes: &mut [u8]) -> Result<usize, usize> {
        let next = match self.part {
            Part::Body => Part::Request,
            Part::Chunk => Part::ChunkEnd,
            _ => return self.line(bytes),
        };
        let len = (bytes.len() as u64).min(self.left);
        self.left -= len;
        if self.left == 0 {
            self.part = next;
        }
        Ok(len as usize)
    }

    fn line(&mut self, bytes: &mut [u8]) -> Result<usize, usize> {
        let end = memchr(b'\n', bytes);
        let len = end.unwrap_or(bytes.len());
        let text = &mut bytes[..len];
        match self.part {
            Part::Fields => self.field(text)?,
            Part::Size => self.size(text)?,
            _ => {}
        }
        self.line_len += len;
        self.last = text.last().copied().unwrap_or(self.last);
        let Some(end) = end else { return Ok(len) };
        // hyper refuses a CR alone, and takes an LF alone for the end of a line.
        if self.line_len == 0 || self.last != b'\r' {
            return Err(end);
        }
        let is_empty = self.line_len == 1;
        (self.line_len, self.field) = (0, Field::First);
        self.part = match self.part {
            Part::Request if !is_empty => {
                (self.length, self.is_chunked) = (None, false);
                Part::Fields
            }
            Part::Fields if is_empty => self.body(),
            Part::Size if self.left == 0 => Part::Trailers,
            Part::Size => Part::Chunk,
            Part::ChunkEnd if is_empty => self.chunk(),
            Part::ChunkEnd => return Err(end),
            Part::Trailers if is_empty => Part::Request,
            // One more of the same: empty lines may stand before a request.
            _ => return Ok(end + 1),
        };
        Ok(end + 1)
    }

    /// What follows a head.
    fn body(&mut self) -> Part {
        self.left = self.length.unwrap_or(0);
        match self.left {
            // Chunks are believed before a length.
            _ if self.is_chunked => self.chunk(),
            0 => Part::Request,
            _ => Part::Body,
        }
    }

    fn chunk(&mut self) -> Part {
        self.left = 0;
        Part::Size
    }

    /// Reads a field that says how long the body is. A transfer coding other than `chunked` is
    /// refused where its request is checked: so is one that comes twice.
    fn field(&mut self, text: &mut [u8]) -> Result<(), usize> {
        for (at, byte) in text.iter_mut().enumerate() {
            self.field = match (self.field, *byte) {
                (Field::Other, _) => break,
                (Field::First, b'c' | b'C') => Field::Name(LENGTH, 1),
                (Field::First, b't' | b'T') => Field::Name(CODING, 1),
                (Field::Name(name, len), byte)
                    if name.get(len) == Some(&byte.to_ascii_lowercase()) =>
                {
                    Field::Name(name, len + 1)
                }
                (Field::Name(name, len), b':') if len == name.len() => match name {
                    LENGTH if self.length.is_some() => return Err(at),
                    LENGTH => Field::BeforeDigits,
                    _ => {
                        self.is_chunked = true;
                        Field::Other
                    }
                },
                (Field::BeforeDigits, b' ' | b'\t') => Field::BeforeDigits,
                (Field::BeforeDigits | Field::Digits, digit @ b'0'..=b'9') => {
                    let length = self.length.unwrap_or(0);
                    if length < FAR {
                        self.length = Some(length * 10 + u64::from(digit - b'0'));
                    } else {
                        *byte = b' ';
                    }
                    Field::Digits
                }
                (Field::Digits | Field::AfterDigits, b' ' | b'\t' | b'\r') => Field::AfterDigits,
                (Field::First | Field::Name(..), _) => Field::Other,
                (Field::BeforeDigits | Field::Digits | Field::AfterDigits, _) => return Err(at),
            };
        }
        Ok(())
    }

    /// Reads the size of a chunk.
    fn size(&mut self, text: &[u8]) -> Result<(), usize> {
        for (at, &byte) in text.iter().enumerate() {
            self.field = match (self.field, char::from(byte).to_digit(16)) {
                (Field::Other, _) => break,
                (_, Some(digit)) => {
                    let left = self.left.checked_mul(16).ok_or(at)?;
                    self.left = left + u64::from(digit);
                    Field::Digits
                }
                (Field::Digits, None) if byte == b';' || byte == b'\r' => Field::Other,
                _ => return Err(at),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

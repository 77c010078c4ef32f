//! Where a message of HTTP/1 ends, as strictly as RFC 9112 says. What another reader may read in
//! another way is refused here, before hyper reads it.

use std::mem::take;

use memchr::memchr;
use tokio::io::ReadBuf;

/// Ends a head in place of the part that is refused. No head may have a NUL, so hyper answers 400
/// when the request's turn comes, and closes.
const BAD_HEAD: &[u8] = b"\0\r\n\r\n";

/// A length from here on is larger than any body may be. Its further digits are replaced by spaces,
/// because hyper takes a head with the largest numbers for one that is too large.
const FAR: u64 = 1_000_000_000_000_000_000;

/// Longest line of a chunk or a trailer that is kept until its end comes; a longer one is refused.
/// The limit for heads is hyper's.
const LINE_LEN_MAX: usize = 16 << 10;

/// How far the bytes that came have been checked.
pub(super) struct Framing {
    part: Part,
    /// The beginning of a line whose end is still to come.
    line: Vec<u8>,
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
    /// Nothing more passes. hyper still reads these bytes, and then the end.
    Refused(&'static [u8]),
}

impl Framing {
    /// The framing of a connection of which nothing has been read.
    pub(super) fn new() -> Framing {
        Framing { part: Part::Request, line: Vec::new(), length: None, is_chunked: false, left: 0 }
    }

    /// Whether nothing more is taken from the client.
    pub(super) fn has_refused(&self) -> bool {
        matches!(self.part, Part::Refused(_))
    }

    /// Checks what has been read after the first `before` bytes of the buffer, and lets only valid
    /// bytes pass.
    pub(super) fn pass(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let good = self.check(&mut buffer.filled_mut()[before..]);
        buffer.set_filled(before + good);
        if let Part::Refused(rest) = &mut self.part {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *rest = later;
        }
    }

    /// How many of these bytes may pass. A line that is refused passes without its end, as hyper
    /// acts on no line before its end.
    fn check(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &mut bytes[at..];
            if matches!(self.part, Part::Body | Part::Chunk) {
                at += self.count(rest.len());
                continue;
            }
            let end = memchr(b'\n', rest);
            let len = end.unwrap_or(rest.len());
            let is_in_head = matches!(self.part, Part::Request | Part::Fields);
            let next = if end.is_some() && self.line.is_empty() {
                self.line(&mut rest[..len])
            } else {
                self.line.extend_from_slice(&rest[..len]);
                match end {
                    Some(_) => {
                        let mut line = take(&mut self.line);
                        self.line(&mut line)
                    }
                    None if is_in_head || self.line.len() <= LINE_LEN_MAX => return bytes.len(),
                    None => None,
                }
            };
            at += len;
            let Some(next) = next else {
                // Without more bytes the body ends too early, which hyper takes for an error.
                self.part = Part::Refused(if is_in_head { BAD_HEAD } else { &[] });
                return at;
            };
            at += 1;
            self.part = next;
        }
        at
    }

    /// How many of `len` bytes belong to the body or chunk.
    fn count(&mut self, len: usize) -> usize {
        let len = self.left.min(len as u64);
        self.left -= len;
        if self.left == 0 {
            let is_chunk = matches!(self.part, Part::Chunk);
            self.part = if is_chunk { Part::ChunkEnd } else { Part::Request };
        }
        len as usize
    }

    /// The part that comes after a line; `None` if the line is refused. hyper itself refuses a CR
    /// alone, but takes an LF alone for the end of a line.
    fn line(&mut self, line: &mut [u8]) -> Option<Part> {
        let (b'\r', text) = line.split_last_mut()? else { return None };
        Some(match self.part {
            Part::Request if !text.is_empty() => {
                (self.length, self.is_chunked) = (None, false);
                Part::Fields
            }
            Part::Fields if text.is_empty() => self.body(),
            Part::Fields => {
                self.field(text)?;
                Part::Fields
            }
            Part::Size => match size(text)? {
                0 => Part::Trailers,
                size => {
                    self.left = size;
                    Part::Chunk
                }
            },
            Part::ChunkEnd if text.is_empty() => Part::Size,
            Part::Trailers if !text.is_empty() => Part::Trailers,
            // Empty lines may come before a request, too.
            Part::Request | Part::Trailers => Part::Request,
            Part::ChunkEnd | Part::Body | Part::Chunk | Part::Refused(_) => return None,
        })
    }

    /// What follows a head.
    fn body(&mut self) -> Part {
        self.left = self.length.unwrap_or(0);
        match self.left {
            // Chunks take precedence over a length.
            _ if self.is_chunked => Part::Size,
            0 => Part::Request,
            _ => Part::Body,
        }
    }

    /// Reads a field; `None` if it gives a length of the body that is not valid. A transfer coding
    /// other than `chunked`, or one that comes twice, is refused where the request is checked.
    fn field(&mut self, text: &mut [u8]) -> Option<()> {
        // Nearly all other fields end here.
        let Some(b'c' | b'C' | b't' | b'T') = text.first() else { return Some(()) };
        // hyper refuses a field without a colon.
        let Some(colon) = memchr(b':', text) else { return Some(()) };
        let name = &text[..colon];
        self.is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding");
        if !name.eq_ignore_ascii_case(b"content-length") {
            return Some(());
        }
        let begin = text.len() - text[colon + 1..].trim_ascii_start().len();
        let digits = text[begin..].trim_ascii_end().len();
        if self.length.is_some() || digits == 0 {
            return None;
        }
        let mut length = 0;
        for digit in &mut text[begin..begin + digits] {
            if !digit.is_ascii_digit() {
                return None;
            }
            if length < FAR {
                length = length * 10 + u64::from(*digit - b'0');
            } else {
                *digit = b' ';
            }
        }
        self.length = Some(length);
        Some(())
    }
}

/// The size of a chunk, if the line says one.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next().filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0_u64, |size, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(size.checked_mul(16)? + u64::from(digit))
    })
}

#[cfg(test)]
mod tests;

//! Bodies that come compressed (RFC 9110, 8.4): a flow sees them decompressed.

use std::io::Write;
use std::mem::take;

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// How a body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    None,
    Gzip,
}

/// How the body of a request is coded; `None`: in a way that is not known here, or several times.
pub(super) fn coding(headers: &HeaderMap) -> Option<Coding> {
    let mut coding = Coding::None;
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.as_bytes().split(|&byte| byte == b',') {
            match name.trim_ascii().to_ascii_lowercase().as_slice() {
                b"identity" | b"" => {}
                b"gzip" | b"x-gzip" if coding == Coding::None => coding = Coding::Gzip,
                _ => return None,
            }
        }
    }
    Some(coding)
}

/// Compressed bytes that are decoded at a time. Each becomes about a thousand bytes at most, so a
/// part stays small, whatever the client sends.
const PIECE: usize = 256;
/// A part is handed on when it has so many bytes, or when there are no more.
const PART: usize = 16 << 10;

/// Decodes what comes.
pub(super) struct Gunzip {
    /// What has come and was not decoded yet.
    packed: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    is_broken: bool,
}

impl Default for Gunzip {
    fn default() -> Gunzip {
        let decoder = MultiGzDecoder::new(Vec::new());
        Gunzip { packed: Bytes::new(), decoder, is_broken: false }
    }
}

impl Gunzip {
    /// The next compressed bytes; those before must have been decoded.
    pub(super) fn take(&mut self, packed: Bytes) {
        self.packed = packed;
    }

    /// Whether all that has come is decoded.
    pub(super) fn is_over(&self) -> bool {
        self.packed.is_empty()
    }

    /// The next part of what has come.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, String>> {
        while !self.packed.is_empty() && self.decoder.get_ref().len() < PART {
            let len = self.packed.len().min(PIECE);
            if self.decoder.write_all(&self.packed[..len]).is_err() {
                return self.broken();
            }
            self.packed.advance(len);
        }
        let part = take(self.decoder.get_mut());
        (!part.is_empty()).then(|| Ok(part.into()))
    }

    /// What is left when nothing more comes.
    pub(super) fn end(&mut self) -> Option<Result<Bytes, String>> {
        if self.is_broken {
            return None;
        }
        if self.decoder.try_finish().is_err() {
            return self.broken();
        }
        let part = take(self.decoder.get_mut());
        (!part.is_empty()).then(|| Ok(part.into()))
    }

    fn broken(&mut self) -> Option<Result<Bytes, String>> {
        (self.is_broken, self.packed) = (true, Bytes::new());
        Some(Err("is not gzip, as its 'content-encoding' says".into()))
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hyper::header::HeaderValue;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    /// The decoded bytes of compressed ones that come in pieces of `len`, and the longest part.
    fn plain(packed: &[u8], len: usize) -> Result<(Vec<u8>, usize), String> {
        let (mut gunzip, mut all, mut longest) = (Gunzip::default(), Vec::new(), 0);
        for piece in packed.chunks(len) {
            gunzip.take(Bytes::copy_from_slice(piece));
            while let Some(part) = gunzip.next() {
                let part = part?;
                longest = longest.max(part.len());
                all.extend_from_slice(&part);
            }
        }
        while let Some(part) = gunzip.end() {
            all.extend_from_slice(&part?);
        }
        Ok((all, longest))
    }

    /// Longest part: what one piece can become, with what the decoder holds.
    const PART_MAX: usize = PART + 1032 * PIECE + (32 << 10);

    #[test]
    fn what_was_packed_comes_out_whatever_the_pieces() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|at| at.to_string().into_bytes()).collect();
        for len in [1, 7, 1000, usize::MAX] {
            let (all, longest) = plain(&packed(&text), len).expect("gzip");
            assert!(all == text && longest <= PART_MAX, "{len}: {longest}");
        }
        let both = [packed(b"one "), packed(b"two")].concat();
        assert_eq!(plain(&both, 5).expect("members").0, b"one two");
    }

    #[test]
    fn a_bomb_comes_in_small_parts() {
        let (all, longest) = plain(&packed(&vec![0; 10 << 20]), usize::MAX).expect("gzip");
        assert!(all.len() == 10 << 20 && longest <= PART_MAX, "{longest}");
    }

    #[test]
    fn what_is_none_or_ends_too_early_is_an_error_told_once() {
        for bad in [&b"plain text"[..], &packed(b"text")[..10], &[packed(b"x"), vec![1]].concat()] {
            let error = plain(bad, 3).expect_err("no gzip");
            assert!(error.contains("not gzip"), "{error}");
        }
        let mut gunzip = Gunzip::default();
        gunzip.take(Bytes::from_static(b"plain text"));
        assert!(gunzip.next().is_some_and(|part| part.is_err()));
        assert!(gunzip.next().is_none() && gunzip.end().is_none());
    }

    #[test]
    fn only_one_coding_is_known() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(value));
            coding(&headers)
        };
        for (value, known) in [
            ("gzip", Some(Coding::Gzip)),
            ("X-GZIP", Some(Coding::Gzip)),
            ("identity", Some(Coding::None)),
            ("identity, gzip", Some(Coding::Gzip)),
            ("gzip, gzip", None),
            ("br", None),
            ("deflate", None),
        ] {
            assert_eq!(of(value), known, "{value}");
        }
    }
}

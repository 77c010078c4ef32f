//! Values as bytes: CBOR (RFC 8949), so that another program can read what is kept or sent.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder, decode, encode};

use crate::{Document, Error, Map, Value};

mod document;

/// If bytes of another process are at most this many, each text among them shares, and so keeps,
/// all of them. Texts of longer ones are copied.
const SHARED_LEN_MAX: usize = 4 << 10;
/// Deepest nesting of a value, because its readers are recursive.
const DEPTH_MAX: usize = 128;

/// A value as bytes.
///
/// # Errors
/// It is longer than `len_max` bytes (413), nested too deep, or contains bytes that are still to
/// come.
pub fn bytes(value: &Value, len_max: usize) -> Result<Bytes, Error> {
    let mut made = Vec::new();
    Writer { to: Encoder::new(&mut made), len_max, sends: false }.write(value, DEPTH_MAX)?;
    Ok(exactly(made))
}

/// Appends a value to `to`, as bytes for [`sent`].
///
/// # Errors
/// As for [`bytes`].
pub(crate) fn send(value: &Value, to: &mut Vec<u8>, len_max: usize) -> Result<(), Error> {
    let len_max = len_max.saturating_add(to.len());
    Writer { to: Encoder::new(to), len_max, sends: true }.write(value, DEPTH_MAX)
}

struct Writer<'a> {
    to: Encoder<&'a mut Vec<u8>>,
    len_max: usize,
    /// Whether documents are written as documents; otherwise they are written as mappings.
    sends: bool,
}

impl Writer<'_> {
    fn write(&mut self, value: &Value, levels: usize) -> Result<(), Error> {
        let (to, len_max) = (&mut self.to, self.len_max);
        let below = || levels.checked_sub(1).ok_or_else(too_deep);
        let written: Result<_, encode::Error<Infallible>> = match value {
            Value::Null => to.null().map(drop),
            Value::Bool(value) => to.bool(*value).map(drop),
            Value::Integer(value) => to.i64(*value).map(drop),
            Value::Number(value) => to.f64(*value).map(drop),
            // Checked first, so that a text that is too long is not copied.
            Value::Text(text) if text.len() > len_max => return Err(too_long(len_max)),
            Value::Text(text) => to.str(text).map(drop),
            Value::Bytes(bytes) if bytes.len() > len_max => return Err(too_long(len_max)),
            Value::Bytes(bytes) => to.bytes(bytes).map(drop),
            Value::List(items) => {
                let (below, begun) = (below()?, to.array(items.len() as u64).map(drop));
                items.iter().try_for_each(|item| self.write(item, below))?;
                begun
            }
            Value::Map(map) => {
                let (below, begun) = (below()?, to.map(map.len() as u64).map(drop));
                for (key, value) in map.iter() {
                    if key.len() > len_max {
                        return Err(too_long(len_max));
                    }
                    self.to.str(key).map_err(Error::new)?;
                    self.write(value, below)?;
                }
                begun
            }
            Value::Document(document) if self.sends => return self.send(&**document, below()?),
            Value::Document(document) => return self.resolve(&**document, below()?),
            Value::Stream(_) => {
                return Err(Error::new(
                    "a stream cannot be kept or sent; let the node before it gather the body",
                ));
            }
        };
        written.map_err(Error::new)?;
        if self.to.writer().len() > len_max { Err(too_long(len_max)) } else { Ok(()) }
    }

    /// Writes a document as a mapping.
    fn resolve(&mut self, document: &dyn Document, levels: usize) -> Result<(), Error> {
        let names = document.names();
        self.to.map(names.len() as u64).map_err(Error::new)?;
        for name in names {
            self.to.str(name).map_err(Error::new)?;
            self.write(&document.field(name)?, levels)?;
        }
        Ok(())
    }
}

/// The value that these bytes encode.
///
/// # Errors
/// The bytes are not a value.
pub fn value(bytes: &[u8]) -> Result<Value, Error> {
    Reader { from: Decoder::new(bytes), sent: None }.all()
}

/// The value that bytes from [`send`] encode. Its texts are parts of short bytes, and keep all of
/// them alive. From longer bytes texts are copied, so that one kept text does not keep all bytes.
///
/// # Errors
/// The bytes are not a value.
pub(crate) fn sent(bytes: &Bytes) -> Result<Value, Error> {
    Reader { from: Decoder::new(bytes), sent: Some(bytes) }.all()
}

struct Reader<'a> {
    from: Decoder<'a>,
    /// All bytes, if another process has sent them; then they may contain documents.
    sent: Option<&'a Bytes>,
}

impl<'a> Reader<'a> {
    fn all(mut self) -> Result<Value, Error> {
        let value = self.read(DEPTH_MAX)?;
        if self.from.position() < self.from.input().len() {
            return Err(broken("more than one value"));
        }
        Ok(value)
    }

    fn read(&mut self, levels: usize) -> Result<Value, Error> {
        let from = &mut self.from;
        Ok(match from.datatype().map_err(wrong)? {
            Type::Null | Type::Undefined => from.skip().map(|()| Value::Null).map_err(wrong)?,
            Type::Bool => Value::Bool(from.bool().map_err(wrong)?),
            Type::F32 | Type::F64 => Value::Number(from.f64().map_err(wrong)?),
            Type::Bytes => {
                let bytes = from.bytes().map_err(wrong)?;
                Value::Bytes(self.part(bytes))
            }
            Type::String => Value::Text(self.text()?),
            Type::Array => {
                let below = levels.checked_sub(1).ok_or_else(too_deep)?;
                let len = from.array().map_err(wrong)?.unwrap_or(0);
                let mut items = Vec::with_capacity(self.room(len));
                for _ in 0..len {
                    items.push(self.read(below)?);
                }
                Value::List(Arc::new(items))
            }
            Type::Map => {
                let below = levels.checked_sub(1).ok_or_else(too_deep)?;
                let len = from.map().map_err(wrong)?.unwrap_or(0);
                let mut map = Map::with_capacity(self.room(len));
                for _ in 0..len {
                    map.insert(self.text()?, self.read(below)?);
                }
                Value::Map(map.into())
            }
            Type::Tag => {
                let below = levels.checked_sub(1).ok_or_else(too_deep)?;
                self.document(below)?
            }
            _ => Value::Integer(from.i64().map_err(wrong)?),
        })
    }

    /// Room for `len` elements. The length may be false: reading ends at the end of the bytes, and
    /// so no more room is made than there are bytes left.
    fn room(&self, len: u64) -> usize {
        const ROOM_MAX: usize = 64;
        let left = self.from.input().len() - self.from.position();
        usize::try_from(len).unwrap_or(usize::MAX).min(left).min(ROOM_MAX)
    }

    fn text(&mut self) -> Result<ByteString, Error> {
        let text = self.from.str().map_err(wrong)?;
        match self.shared() {
            None => Ok(text.into()),
            Some(whole) => whole.slice_ref(text.as_bytes()).try_into().map_err(Error::new),
        }
    }

    fn part(&self, bytes: &'a [u8]) -> Bytes {
        self.shared().map_or_else(|| Bytes::copy_from_slice(bytes), |whole| whole.slice_ref(bytes))
    }

    /// The bytes that texts share.
    fn shared(&self) -> Option<&'a Bytes> {
        self.sent.filter(|bytes| bytes.len() <= SHARED_LEN_MAX)
    }
}

/// The list `before` (`None` is an empty list) with one more element, and without its first
/// elements if it would be longer than `keep`.
///
/// # Errors
/// `before` is not a list (409).
pub fn appended(before: Option<&[u8]>, element: &[u8], keep: u64) -> Result<Bytes, Error> {
    let before = before.unwrap_or(&[0x80]);
    let mut from = Decoder::new(before);
    if from.datatype().map_err(wrong)? != Type::Array {
        return Err(Error::new("the value is not a list, and only to a list can be appended")
            .with_status(409));
    }
    let len = from.array().map_err(wrong)?.unwrap_or(0);
    let dropped = (len + 1).saturating_sub(keep);
    for _ in 0..dropped.min(len) {
        from.skip().map_err(wrong)?;
    }
    let mut to = Encoder::new(Vec::with_capacity(before.len() + element.len() + 9));
    to.array(len + 1 - dropped).map_err(Error::new)?;
    let mut made = to.into_writer();
    made.extend_from_slice(&before[from.position()..]);
    made.extend_from_slice(element);
    Ok(exactly(made))
}

/// The bytes in memory of exactly their length, because memory is counted by length.
fn exactly(bytes: Vec<u8>) -> Bytes {
    bytes.into_boxed_slice().into()
}

fn too_long(len_max: usize) -> Error {
    Error::new(format_args!("the value is longer than {len_max} bytes, the limit; make it shorter"))
        .with_status(413)
}

fn too_deep() -> Error {
    Error::new(format_args!(
        "a value that is kept or sent is nested {DEPTH_MAX} levels deep at most"
    ))
}

fn wrong(error: decode::Error) -> Error {
    broken(&error.to_string())
}

fn broken(reason: &str) -> Error {
    Error::new(format_args!("the bytes are not a value: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 8949, appendix A, that have values here.
    #[test]
    fn values_are_those_of_the_rfc() {
        let texts = |all: &[&'static str]| Value::list(all.iter().map(|text| Value::text(*text)));
        let int = Value::Integer;
        let examples: [(&[u8], Value); 14] = [
            (&[0x00], int(0)),
            (&[0x18, 0x64], int(100)),
            (&[0x1a, 0x00, 0x0f, 0x42, 0x40], int(1_000_000)),
            (&[0x38, 0x63], int(-100)),
            (&[0x39, 0x03, 0xe7], int(-1000)),
            (&[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a], Value::Number(1.1)),
            (&[0xf5], Value::Bool(true)),
            (&[0xf6], Value::Null),
            (&[0x44, 1, 2, 3, 4], Value::Bytes(Bytes::from_static(&[1, 2, 3, 4]))),
            (&[0x62, 0xc3, 0xbc], Value::text("ü")),
            (&[0x80], Value::list([])),
            (
                &[0x83, 0x01, 0x82, 0x02, 0x03, 0x82, 0x04, 0x05],
                Value::list([int(1), Value::list([int(2), int(3)]), Value::list([int(4), int(5)])]),
            ),
            (
                &[0xa2, 0x61, 0x61, 0x01, 0x61, 0x62, 0x82, 0x02, 0x03],
                Value::map([("a", int(1)), ("b", Value::list([int(2), int(3)]))]),
            ),
            (&[0x82, 0x61, 0x61, 0x61, 0x62], texts(&["a", "b"])),
        ];
        for (raw, expected) in examples {
            assert_eq!(value(raw).as_ref(), Ok(&expected));
            assert_eq!(sent(&Bytes::from_static(raw)).as_ref(), Ok(&expected));
            assert_eq!(bytes(&expected, 100).as_deref(), Ok(raw));
        }
    }

    #[test]
    fn a_list_grows_at_its_end_and_is_kept_short() {
        let one = bytes(&Value::Integer(1), 9).expect("short");
        let mut list = None;
        for count in 1..=300_usize {
            list = Some(appended(list.as_deref(), &one, 256).expect("a list"));
            let read = value(list.as_ref().expect("just made")).expect("CBOR");
            assert_eq!(read, Value::list(vec![Value::Integer(1); count.min(256)]));
        }
        let error = appended(Some(&one), &one, 9).expect_err("a number");
        assert_eq!(error.status(), 409);
    }

    #[test]
    fn what_is_broken_or_too_long_is_an_error() {
        for cut in [&[][..], &[0x82, 0x01], &[0x9b, 255, 255, 255, 255, 255, 255, 255, 255, 0]] {
            assert!(value(cut).is_err(), "{cut:?}");
        }
        assert!(value(&[0x81; 4000]).is_err() && value(&[0, 0]).is_err());
        let deep = (0..200).fold(Value::Null, |value, _| Value::list([value]));
        assert!(bytes(&deep, 4000).is_err());
        // A document of another process with a document in it, and so on.
        let deep = b"\xd9\x53\x57\x83\x61a\x00".repeat(3000);
        let document = sent(&[&deep[..], b"\xf6"].concat().into()).expect("the first is read");
        assert!(document.resolve().is_err(), "it must end");
        assert!(sent(&Bytes::from_static(b"\xc1\xf6")).is_err(), "another tag");
        assert!(value(b"\xd9\x53\x57\x80").is_err(), "no value that is kept has documents");
        for long in [Value::text("12345"), Value::list(vec![Value::Null; 5])] {
            assert_eq!(bytes(&long, 5).expect_err("too long").status(), 413);
        }
    }
}

//! Documents as they cross to another process, with what is known of their fields. There each field
//! is read when somebody asks for it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use minicbor::Decoder;
use minicbor::data::Tag;

use super::{Reader, Writer, broken, wrong};
use crate::{Document, Error, Value};

/// Says that a document follows. Each field is its name, what is known of it, and its value.
const DOCUMENT: Tag = Tag::new(0x5357);
/// Number of items of a field.
const ITEMS: u64 = 3;
/// Flag: the field holds what the caller has sent.
const IS_SENT: u8 = 1;
/// Flag: the field cannot be made, and its value is the error.
const IS_BROKEN: u8 = 2;

impl Writer<'_> {
    /// Writes a document with what is known of its fields.
    pub(super) fn send(&mut self, document: &dyn Document, levels: usize) -> Result<(), Error> {
        let names = document.names();
        let begun = self.to.tag(DOCUMENT).and_then(|to| to.array(ITEMS * names.len() as u64));
        begun.map_err(Error::new)?;
        for name in names {
            let is_sent = if document.is_sent(name) { IS_SENT } else { 0 };
            let (is_broken, value) = match document.field(name) {
                Ok(value) => (0, value),
                // Not an error of the document, because perhaps nobody asks for this field.
                Err(error) => (IS_BROKEN, error.to_wire()),
            };
            let begun = self.to.str(name).and_then(|to| to.u8(is_sent | is_broken));
            begun.map_err(Error::new)?;
            self.write(&value, levels)?;
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Reads a document; its fields may have this many levels.
    pub(super) fn document(&mut self, levels: usize) -> Result<Value, Error> {
        let from = &mut self.from;
        let is_document = from.tag().map_err(wrong)? == DOCUMENT;
        let Some(bytes) = self.sent.filter(|_| is_document) else {
            return Err(broken("a tag that is unknown"));
        };
        let len = from.array().map_err(wrong)?.unwrap_or(0) / ITEMS;
        let room = self.room(len);
        let (mut names, mut fields) = (Vec::with_capacity(room), Vec::with_capacity(room));
        for _ in 0..len {
            names.push(self.text()?);
            let known = self.from.u8().map_err(wrong)?;
            fields.push(Field { known, at: self.from.position(), made: OnceLock::new() });
            self.from.skip().map_err(wrong)?;
        }
        let bytes = bytes.clone();
        Ok(Value::Document(Arc::new(SentDocument { bytes, levels, names, fields })))
    }
}

/// A document of another process.
#[derive(Debug)]
struct SentDocument {
    bytes: Bytes,
    /// Levels that its fields may have.
    levels: usize,
    names: Vec<ByteString>,
    /// In the order of `names`.
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    known: u8,
    /// Where its value begins in the bytes.
    at: usize,
    made: OnceLock<Result<Value, Error>>,
}

impl SentDocument {
    fn find(&self, name: &str) -> Option<&Field> {
        let at = self.names.iter().position(|it| *it == *name)?;
        self.fields.get(at)
    }

    fn read(&self, field: &Field) -> Result<Value, Error> {
        let mut from = Decoder::new(&self.bytes);
        from.set_position(field.at);
        let value = Reader { from, sent: Some(&self.bytes) }.read(self.levels)?;
        if field.known & IS_BROKEN == 0 {
            return Ok(value);
        }
        Err(Error::of_wire(&value).unwrap_or_else(|| broken("an error without its parts")))
    }
}

impl Document for SentDocument {
    fn field(&self, name: &str) -> Result<Value, Error> {
        let Some(field) = self.find(name) else { return Ok(Value::Null) };
        field.made.get_or_init(|| self.read(field)).clone()
    }

    fn names(&self) -> &[ByteString] {
        &self.names
    }

    fn is_sent(&self, name: &str) -> bool {
        self.find(name).is_some_and(|field| field.known & IS_SENT != 0)
    }
}

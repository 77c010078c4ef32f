//! The table of kinds in an image: which nodes it can run. So a graph is checked against the very
//! file that will run.
//!
//! It is in the ELF section [`SECTION`]: [`KindRecord`]s one after the other, in C's layout
//! (`repr(C)`, little-endian; no pointers, so the linker has nothing to relocate). Rust makes them
//! with [`KindRecord::new`] and [`port`], C with the structs of `sinew_guest.h`. A table that is
//! read from a file is checked, and the hash of each message is computed again from its fields.

use core::mem::{offset_of, size_of};

use sinew_link::message::{MessageType, Scalar};
use zerocopy::{Immutable, IntoBytes};

use crate::node::{COUNTERS_MAX, VALUES_MAX};

/// The section's name.
pub const SECTION: &str = ".sinew_kinds";
/// First word of every record: "SNWK".
pub const RECORD_MAGIC: u32 = 0x4b57_4e53;
/// Version of this layout of the records.
pub const RECORD_VERSION: u32 = 2;
/// Most ports of a kind.
pub const PORTS_MAX: usize = 8;
/// Most parameters of a kind.
pub const PARAMETERS_MAX: usize = 12;
/// Most fields of a message: some more than a picture has. With more, the image cannot be built.
pub const FIELDS_MAX: usize = 20;
/// Most kinds of an image.
pub const KINDS_MAX: usize = 32;

const NAME: usize = 32;
const SENTENCE: usize = 160;

/// A field of a message.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct FieldRecord {
    /// Its name.
    pub name: [u8; NAME],
    /// Number of the scalar, by [`Scalar::ALL`].
    pub scalar: u32,
    /// Count of elements, for an array.
    pub count: u32,
    /// Bytes from the start of the message.
    pub offset: u32,
}

/// A port.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct PortRecord {
    /// Its name.
    pub name: [u8; NAME],
    /// One sentence.
    pub doc: [u8; SENTENCE],
    /// Name of the message type.
    pub message: [u8; NAME],
    /// 0 in, 1 out.
    pub direction: u32,
    /// 1: it may stay unlinked.
    pub optional: u32,
    /// Bytes of a message.
    pub size: u32,
    /// Alignment of a message.
    pub align: u32,
    /// The message type's hash.
    pub hash: u32,
    /// Count of valid fields.
    pub field_count: u32,
    /// Its fields.
    pub fields: [FieldRecord; FIELDS_MAX],
}

/// A parameter.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct ParameterRecord {
    /// Key in the spec, unit last.
    pub name: [u8; NAME],
    /// One sentence.
    pub doc: [u8; SENTENCE],
    /// Unit, or empty.
    pub unit: [u8; NAME],
    /// Written as in the spec; empty: the spec must give it.
    pub default: [u8; 2 * NAME],
    /// 0 a number, 1 a whole number, 2 true or false, 3 a list of `count` numbers.
    pub ty: u32,
    /// Count of numbers that it takes; 1 except for lists.
    pub count: u32,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

/// A kind of node.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct KindRecord {
    /// [`RECORD_MAGIC`].
    pub magic: u32,
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// Version of the kind's code, for people to read.
    pub code_version: u32,
    /// Stack of a node of this kind, bytes.
    pub stack: u32,
    /// Count of valid ports.
    pub port_count: u32,
    /// Count of valid parameters.
    pub parameter_count: u32,
    /// Count of valid counters.
    pub counter_count: u32,
    /// Always zero.
    pub reserved: u32,
    /// Name after `kind:` in the spec.
    pub name: [u8; NAME],
    /// What it does.
    pub doc: [u8; 2 * SENTENCE],
    /// Names of its counters.
    pub counters: [[u8; NAME]; COUNTERS_MAX],
    /// Its ports, at the indices that its code uses.
    pub ports: [PortRecord; PORTS_MAX],
    /// Its parameters.
    pub parameters: [ParameterRecord; PARAMETERS_MAX],
}

// The layout of a C compiler for 32-bit Arm and for x86-64.
const _: () = assert!(size_of::<FieldRecord>() == 44 && size_of::<PortRecord>() == 1128);
const _: () = assert!(size_of::<ParameterRecord>() == 312 && size_of::<KindRecord>() == 13408);
const _: () = assert!(offset_of!(ParameterRecord, min) == 296);
const _: () = assert!(offset_of!(KindRecord, ports) == 640);

/// A text as it is stored in a record: a shorter one is padded with zeros.
///
/// # Panics
/// It is longer. This happens when a table is made, so the image is not built.
pub const fn text<const N: usize>(text: &str) -> [u8; N] {
    let (from, mut to) = (text.as_bytes(), [0; N]);
    assert!(from.len() <= N, "the text is too long for the table of kinds");
    let mut i = 0;
    while i < from.len() {
        to[i] = from[i];
        i += 1;
    }
    to
}

const NO_FIELD: FieldRecord = FieldRecord { name: [0; NAME], scalar: 0, count: 0, offset: 0 };
const NO_PORT: PortRecord = PortRecord {
    name: [0; NAME],
    doc: [0; SENTENCE],
    message: [0; NAME],
    direction: 0,
    optional: 0,
    size: 0,
    align: 0,
    hash: 0,
    field_count: 0,
    fields: [NO_FIELD; FIELDS_MAX],
};
const NO_PARAMETER: ParameterRecord = ParameterRecord {
    name: [0; NAME],
    doc: [0; SENTENCE],
    unit: [0; NAME],
    default: [0; 2 * NAME],
    ty: 0,
    count: 0,
    min: 0.0,
    max: 0.0,
};

/// A port that must be linked: `direction` 0 reads, 1 writes.
///
/// # Panics
/// A text is too long or the message has too many fields. This happens when a table is made.
pub const fn port(name: &str, doc: &str, direction: u32, message: &MessageType) -> PortRecord {
    let mut fields = [NO_FIELD; FIELDS_MAX];
    let mut i = 0;
    while i < message.fields.len() {
        let field = &message.fields[i];
        let (scalar, count, offset) = (field.scalar as u32, field.count, field.offset);
        fields[i] = FieldRecord { name: text(field.name), scalar, count, offset };
        i += 1;
    }
    PortRecord {
        name: text(name),
        doc: text(doc),
        message: text(message.name),
        direction,
        size: message.size,
        align: message.align,
        hash: message.hash,
        field_count: message.fields.len() as u32,
        fields,
        ..NO_PORT
    }
}

impl PortRecord {
    /// The same port, which may stay unlinked.
    pub const fn optional(mut self) -> PortRecord {
        self.optional = 1;
        self
    }
}

/// A list of `count` numbers in a range, or one number if `count` is 1.
///
/// # Panics
/// A text is too long. This happens when a table is made.
pub const fn numbers(
    name: &str,
    doc: &str,
    unit: &str,
    default: &str,
    count: u32,
    range: (f64, f64),
) -> ParameterRecord {
    ParameterRecord {
        name: text(name),
        doc: text(doc),
        unit: text(unit),
        default: text(default),
        ty: if count == 1 { 0 } else { 3 },
        count,
        min: range.0,
        max: range.1,
    }
}

impl KindRecord {
    /// A kind with these ports, parameters and counters.
    ///
    /// # Panics
    /// There are too many of them or a text is too long. This happens when a table is made.
    pub const fn new(
        name: &str,
        doc: &str,
        stack: u32,
        ports: &[PortRecord],
        parameters: &[ParameterRecord],
        counters: &[&str],
    ) -> KindRecord {
        let mut kind = KindRecord {
            magic: RECORD_MAGIC,
            version: RECORD_VERSION,
            code_version: 1,
            stack,
            port_count: ports.len() as u32,
            parameter_count: parameters.len() as u32,
            counter_count: counters.len() as u32,
            reserved: 0,
            name: text(name),
            doc: text(doc),
            counters: [[0; NAME]; COUNTERS_MAX],
            ports: [NO_PORT; PORTS_MAX],
            parameters: [NO_PARAMETER; PARAMETERS_MAX],
        };
        let mut i = 0;
        while i < ports.len() {
            kind.ports[i] = ports[i];
            i += 1;
        }
        i = 0;
        while i < parameters.len() {
            kind.parameters[i] = parameters[i];
            i += 1;
        }
        i = 0;
        while i < counters.len() {
            kind.counters[i] = text(counters[i]);
            i += 1;
        }
        kind
    }
}

/// Why a table of kinds cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTable {
    /// Its count of bytes is not a whole number of records, or too large.
    Length(usize),
    /// Record `record` does not begin like one of this layout.
    Version {
        /// Index of the record, from 0.
        record: usize,
        /// Its magic and version.
        found: [u32; 2],
    },
    /// Something of record `record` is out of range.
    Range {
        /// Index of the record, from 0.
        record: usize,
        /// Which value.
        what: &'static str,
    },
}

impl core::fmt::Display for BadTable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            BadTable::Length(len) => write!(
                f,
                "its table of kinds has {len} bytes, expected 1 to {KINDS_MAX} records of {}",
                size_of::<KindRecord>()
            ),
            BadTable::Version { record, found: [magic, version] } => write!(
                f,
                "record {record} of its table of kinds begins with {magic:#x} and version \
                 {version}, expected {RECORD_MAGIC:#x} and {RECORD_VERSION}"
            ),
            BadTable::Range { record, what } => {
                write!(f, "record {record} of its table of kinds: {what}")
            }
        }
    }
}

impl core::error::Error for BadTable {}

/// The records of a section, after a check.
///
/// # Errors
/// They are not a table of this version, or a number in them is out of range.
pub fn records(section: &[u8]) -> Result<impl Iterator<Item = ImageKind<'_>> + Clone, BadTable> {
    let (count, rest) =
        (section.len() / size_of::<KindRecord>(), section.len() % size_of::<KindRecord>());
    if rest != 0 || !(1..=KINDS_MAX).contains(&count) {
        return Err(BadTable::Length(section.len()));
    }
    let kinds = section.chunks_exact(size_of::<KindRecord>()).map(|bytes| ImageKind(Bytes(bytes)));
    for (record, kind) in kinds.clone().enumerate() {
        kind.check(record)?;
    }
    Ok(kinds)
}

/// A part of a record.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn word(self, at: usize) -> u32 {
        self.0[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
    }

    fn number(self, at: usize) -> f64 {
        self.0[at..].first_chunk().copied().map_or(f64::NAN, f64::from_le_bytes)
    }

    /// Text of at most `len` bytes; `None` if it is not UTF-8.
    fn text(self, at: usize, len: usize) -> Option<&'a str> {
        let bytes = &self.0[at..at + len];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
        core::str::from_utf8(&bytes[..end]).ok()
    }

    /// The `i`-th of the parts of `len` bytes that begin at `at`.
    fn part(self, at: usize, i: usize, len: usize) -> Bytes<'a> {
        Bytes(&self.0[at + i * len..][..len])
    }
}

/// Writes an accessor of a text, which [`records`] has checked.
macro_rules! texts {
    ($record:ident: $($(#[$doc:meta])* $name:ident[$len:expr]),*) => { $(
        $(#[$doc])*
        pub fn $name(self) -> &'a str {
            self.0.text(offset_of!($record, $name), $len).unwrap_or_default()
        }
    )* };
}

/// A kind of a checked table.
#[derive(Clone, Copy, Debug)]
pub struct ImageKind<'a>(Bytes<'a>);

/// A port of a kind.
#[derive(Clone, Copy, Debug)]
pub struct ImagePort<'a>(Bytes<'a>);

/// A parameter of a kind.
#[derive(Clone, Copy, Debug)]
pub struct ImageParameter<'a>(Bytes<'a>);

/// A field of a port's message.
#[derive(Clone, Copy, Debug)]
pub struct ImageField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its scalar type.
    pub scalar: Scalar,
    /// Count of elements, for an array.
    pub count: u32,
    /// Bytes from the start of the message.
    pub offset: u32,
}

impl<'a> ImageKind<'a> {
    texts! { KindRecord:
        /// Its name.
        name[NAME],
        /// What it does.
        doc[2 * SENTENCE]
    }

    /// Version of its code, for people to read.
    pub fn code_version(self) -> u32 {
        self.0.word(offset_of!(KindRecord, code_version))
    }

    /// Stack of a node of this kind, bytes.
    pub fn stack(self) -> u32 {
        self.0.word(offset_of!(KindRecord, stack))
    }

    /// Its ports.
    pub fn ports(self) -> impl ExactSizeIterator<Item = ImagePort<'a>> {
        let count = self.0.word(offset_of!(KindRecord, port_count)) as usize;
        let len = size_of::<PortRecord>();
        (0..count).map(move |i| ImagePort(self.0.part(offset_of!(KindRecord, ports), i, len)))
    }

    /// Its parameters.
    pub fn parameters(self) -> impl ExactSizeIterator<Item = ImageParameter<'a>> {
        let count = self.0.word(offset_of!(KindRecord, parameter_count)) as usize;
        let len = size_of::<ParameterRecord>();
        let at = offset_of!(KindRecord, parameters);
        (0..count).map(move |i| ImageParameter(self.0.part(at, i, len)))
    }

    /// Names of its counters.
    pub fn counters(self) -> impl ExactSizeIterator<Item = &'a str> {
        let count = self.0.word(offset_of!(KindRecord, counter_count)) as usize;
        let at = offset_of!(KindRecord, counters);
        (0..count).map(move |i| self.0.text(at + i * NAME, NAME).unwrap_or_default())
    }

    fn check(self, record: usize) -> Result<(), BadTable> {
        let found = [self.0.word(0), self.0.word(4)];
        if found != [RECORD_MAGIC, RECORD_VERSION] {
            return Err(BadTable::Version { record, found });
        }
        let word = |at| self.0.word(at) as usize;
        let is_name = |at| self.0.text(at, NAME).is_some_and(|text| !text.is_empty());
        let counters = word(offset_of!(KindRecord, counter_count));
        let counter_at = |i| offset_of!(KindRecord, counters) + i * NAME;
        let rules = [
            (is_name(offset_of!(KindRecord, name)), "a kind without a name"),
            (self.0.text(offset_of!(KindRecord, doc), 2 * SENTENCE).is_some(), "its text"),
            (word(offset_of!(KindRecord, port_count)) <= PORTS_MAX, "too many ports"),
            (
                word(offset_of!(KindRecord, parameter_count)) <= PARAMETERS_MAX,
                "too many parameters",
            ),
            (counters <= COUNTERS_MAX, "too many counters"),
            ((0..counters.min(COUNTERS_MAX)).all(|i| is_name(counter_at(i))), "a counter's name"),
        ];
        let range = |what| BadTable::Range { record, what };
        if let Some((_, what)) = rules.into_iter().find(|(holds, _)| !holds) {
            return Err(range(what));
        }
        self.ports().try_for_each(|port| port.check().map_err(range))?;
        self.parameters().try_for_each(|parameter| parameter.check().map_err(range))?;
        let values: usize = self.parameters().map(|parameter| parameter.count() as usize).sum();
        if values > VALUES_MAX {
            return Err(range("more numbers in parameters than a node can have"));
        }
        Ok(())
    }
}

impl<'a> ImagePort<'a> {
    texts! { PortRecord:
        /// Its name.
        name[NAME],
        /// One sentence.
        doc[SENTENCE],
        /// Name of its message type.
        message[NAME]
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        self.0.word(offset_of!(PortRecord, direction)) == 1
    }

    /// Whether it may stay unlinked.
    pub fn is_optional(self) -> bool {
        self.0.word(offset_of!(PortRecord, optional)) == 1
    }

    /// Bytes of a message.
    pub fn size(self) -> u32 {
        self.0.word(offset_of!(PortRecord, size))
    }

    /// Alignment of a message.
    pub fn align(self) -> u32 {
        self.0.word(offset_of!(PortRecord, align))
    }

    /// Hash of the message type, as the image gives it.
    pub fn hash(self) -> u32 {
        self.0.word(offset_of!(PortRecord, hash))
    }

    /// The message's fields.
    pub fn fields(self) -> impl ExactSizeIterator<Item = ImageField<'a>> {
        let count = self.0.word(offset_of!(PortRecord, field_count)) as usize;
        (0..count).map(move |i| {
            let at = offset_of!(PortRecord, fields);
            let bytes = self.0.part(at, i, size_of::<FieldRecord>());
            let scalar = bytes.word(offset_of!(FieldRecord, scalar)) as usize;
            ImageField {
                name: bytes.text(0, NAME).unwrap_or_default(),
                scalar: Scalar::ALL.get(scalar).copied().unwrap_or(Scalar::U8),
                count: bytes.word(offset_of!(FieldRecord, count)),
                offset: bytes.word(offset_of!(FieldRecord, offset)),
            }
        })
    }

    fn check(self) -> Result<(), &'static str> {
        let bytes = self.0;
        let word = |at| bytes.word(at) as usize;
        let fields = word(offset_of!(PortRecord, field_count));
        let texts = [(offset_of!(PortRecord, name), NAME), (offset_of!(PortRecord, message), NAME)];
        let rules = [
            (
                texts.iter().all(|&(at, len)| bytes.text(at, len).is_some_and(|it| !it.is_empty())),
                "a port or a message without a name",
            ),
            (bytes.text(offset_of!(PortRecord, doc), SENTENCE).is_some(), "a port's text"),
            (word(offset_of!(PortRecord, direction)) <= 1, "a port's direction"),
            (fields <= FIELDS_MAX, "a message with too many fields"),
            ((1..=sinew_link::MESSAGE_SIZE_MAX).contains(&self.size()), "a message's size"),
            ([1, 2, 4, 8].contains(&self.align()), "a message's alignment"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))?;
        for i in 0..fields {
            let at = offset_of!(PortRecord, fields);
            let bytes = bytes.part(at, i, size_of::<FieldRecord>());
            let scalar = Scalar::ALL.get(bytes.word(offset_of!(FieldRecord, scalar)) as usize);
            let scalar = scalar.ok_or("a field's type")?;
            let [count, offset] = [36, 40].map(|at| u64::from(bytes.word(at)));
            if bytes.text(0, NAME).is_none_or(str::is_empty) {
                return Err("a field without a name");
            }
            if offset + count * u64::from(scalar.bytes()) > u64::from(self.size()) {
                return Err("a field that ends behind its message");
            }
        }
        Ok(())
    }
}

impl<'a> ImageParameter<'a> {
    texts! { ParameterRecord:
        /// Its name.
        name[NAME],
        /// One sentence.
        doc[SENTENCE],
        /// Unit, or empty.
        unit[NAME],
        /// As in the spec; empty if the spec must give it.
        default[2 * NAME]
    }

    /// 0 a number, 1 a whole number, 2 true or false, 3 a list of numbers.
    pub fn ty(self) -> u32 {
        self.0.word(offset_of!(ParameterRecord, ty))
    }

    /// Count of numbers that it takes.
    pub fn count(self) -> u32 {
        self.0.word(offset_of!(ParameterRecord, count))
    }

    /// Least and greatest value.
    pub fn range(self) -> (f64, f64) {
        let number = |at| self.0.number(at);
        (number(offset_of!(ParameterRecord, min)), number(offset_of!(ParameterRecord, max)))
    }

    fn check(self) -> Result<(), &'static str> {
        let (min, max) = self.range();
        let text = |at, len| self.0.text(at, len).is_some();
        let rules = [
            (!self.name().is_empty(), "a parameter without a name"),
            (text(offset_of!(ParameterRecord, doc), SENTENCE), "a parameter's text"),
            (text(offset_of!(ParameterRecord, unit), NAME), "a parameter's unit"),
            (text(offset_of!(ParameterRecord, default), 2 * NAME), "a parameter's default"),
            (self.ty() <= 3, "a parameter's type"),
            ((1..=VALUES_MAX as u32).contains(&self.count()), "how many numbers a parameter has"),
            (self.ty() == 3 || self.count() == 1, "a parameter of one value with more"),
            (min.is_finite() && max.is_finite() && min <= max, "the range of a parameter"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }
}

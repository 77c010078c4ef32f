//! What crosses a link, described: fixed-size plain data. Both sides of a link compare the hash of
//! its type, whatever language and operating system each is of.

/// The scalar types a message may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Unsigned, 8 bit.
    U8,
    /// Signed, 8 bit.
    I8,
    /// Unsigned, 16 bit.
    U16,
    /// Signed, 16 bit.
    I16,
    /// Unsigned, 32 bit.
    U32,
    /// Signed, 32 bit.
    I32,
    /// Unsigned, 64 bit.
    U64,
    /// Signed, 64 bit.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Scalar {
    /// All of them, each at the place of its number.
    pub const ALL: [Scalar; 10] = [
        Scalar::U8,
        Scalar::I8,
        Scalar::U16,
        Scalar::I16,
        Scalar::U32,
        Scalar::I32,
        Scalar::U64,
        Scalar::I64,
        Scalar::F32,
        Scalar::F64,
    ];

    /// How many it takes.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::U8 | Scalar::I8 => 1,
            Scalar::U16 | Scalar::I16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }
}

/// One field of a message: `count` scalars that start `offset` bytes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field, unit last.
    pub name: &'static str,
    /// What it is made of.
    pub scalar: Scalar,
    /// How many scalars stand in a row.
    pub count: u32,
    /// Bytes from the start of the message.
    pub offset: u32,
}

/// A fixed-size message type: its layout, and a hash by which two sides agree on it.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageType {
    /// Name as it stands in diagnostics and pictures.
    pub name: &'static str,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// The fields in order of offset.
    pub fields: &'static [Field],
    /// [`type_hash`] of name, size and fields.
    pub hash: u32,
}

/// FNV-1a (32 bit) over a message type's name, size and fields; see
/// <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub const fn type_hash(name: &str, size: u32, fields: &[Field]) -> u32 {
    let mut hash = fold(0x811c_9dc5, name.as_bytes());
    hash = fold(hash, &size.to_le_bytes());
    let mut i = 0;
    while i < fields.len() {
        hash = fold(hash, fields[i].name.as_bytes());
        hash = fold(hash, &[fields[i].scalar as u8]);
        hash = fold(hash, &fields[i].count.to_le_bytes());
        hash = fold(hash, &fields[i].offset.to_le_bytes());
        i += 1;
    }
    hash
}

const fn fold(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}

/// A Rust type that may stand in a message: a scalar or an array of scalars.
pub trait FieldType {
    /// What it is made of.
    const SCALAR: Scalar;
    /// How many of them.
    const COUNT: u32;
}

macro_rules! scalars {
    ($($rust:ty = $scalar:ident),*) => { $(
        impl FieldType for $rust {
            const SCALAR: Scalar = Scalar::$scalar;
            const COUNT: u32 = 1;
        }
        impl<const N: usize> FieldType for [$rust; N] {
            const SCALAR: Scalar = Scalar::$scalar;
            const COUNT: u32 = N as u32;
        }
    )* };
}

scalars!(u8 = U8, i8 = I8, u16 = U16, i16 = I16, u32 = U32, i32 = I32, u64 = U64, i64 = I64);
scalars!(f32 = F32, f64 = F64);

/// The type of a message: a `repr(C)` struct of this name with these fields. For the macros that
/// declare messages, of Linux and of guests, which so give one text one hash.
#[macro_export]
macro_rules! message_type {
    ($name:ident { $($field:ident: $ty:ty,)* }) => {{
        const FIELDS: &[$crate::message::Field] = &[$($crate::message::Field {
            name: stringify!($field),
            scalar: <$ty as $crate::message::FieldType>::SCALAR,
            count: <$ty as $crate::message::FieldType>::COUNT,
            offset: ::core::mem::offset_of!($name, $field) as u32,
        },)*];
        const SIZE: u32 = ::core::mem::size_of::<$name>() as u32;
        &$crate::message::MessageType {
            name: stringify!($name),
            size: SIZE,
            align: ::core::mem::align_of::<$name>() as u32,
            fields: FIELDS,
            hash: $crate::message::type_hash(stringify!($name), SIZE, FIELDS),
        }
    }};
}

//! The description of what crosses a link: fixed-size plain data. Both sides of a link compare the
//! hash of its type, whatever the language and operating system of each side.

use core::marker::PhantomData;

/// The scalar types a message may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// True or false: a byte, where anything but zero is true.
    Bool,
}

impl Scalar {
    /// All scalar types, each at the index of its number.
    pub const ALL: [Scalar; 11] = [
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
        Scalar::Bool,
    ];

    /// How many bytes it takes.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::U8 | Scalar::I8 | Scalar::Bool => 1,
            Scalar::U16 | Scalar::I16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }

    /// The number at the beginning of these bytes, in the byte order of this machine; true is 1.
    /// Whole numbers beyond 2^53 lose their last digits. `None` if there are too few bytes.
    pub fn number(self, bytes: &[u8]) -> Option<f64> {
        macro_rules! number {
            ($ty:ty) => {
                <$ty>::from_ne_bytes(*bytes.first_chunk()?) as f64
            };
        }
        Some(match self {
            Scalar::U8 => number!(u8),
            Scalar::I8 => number!(i8),
            Scalar::U16 => number!(u16),
            Scalar::I16 => number!(i16),
            Scalar::U32 => number!(u32),
            Scalar::I32 => number!(i32),
            Scalar::U64 => number!(u64),
            Scalar::I64 => number!(i64),
            Scalar::F32 => number!(f32),
            Scalar::F64 => number!(f64),
            Scalar::Bool => f64::from(u8::from(*bytes.first()? != 0)),
        })
    }

    /// Puts a number at the beginning of these bytes, as [`Scalar::number`] reads it. An integer
    /// type takes the nearest number that it can hold; as a `Bool`, anything but zero is true.
    ///
    /// # Panics
    /// If there are too few bytes.
    pub fn put(self, number: f64, bytes: &mut [u8]) {
        let mut put = |value: &[u8]| bytes[..value.len()].copy_from_slice(value);
        match self {
            Scalar::U8 => put(&(nearest(number) as u8).to_ne_bytes()),
            Scalar::I8 => put(&(nearest(number) as i8).to_ne_bytes()),
            Scalar::U16 => put(&(nearest(number) as u16).to_ne_bytes()),
            Scalar::I16 => put(&(nearest(number) as i16).to_ne_bytes()),
            Scalar::U32 => put(&(nearest(number) as u32).to_ne_bytes()),
            Scalar::I32 => put(&(nearest(number) as i32).to_ne_bytes()),
            Scalar::U64 => put(&(nearest(number) as u64).to_ne_bytes()),
            Scalar::I64 => put(&(nearest(number) as i64).to_ne_bytes()),
            Scalar::F32 => put(&(number as f32).to_ne_bytes()),
            Scalar::F64 => put(&number.to_ne_bytes()),
            Scalar::Bool => put(&[u8::from(number != 0.0)]),
        }
    }
}

/// The nearest whole number; a half is rounded away from zero. A cast alone cuts, and keeps within
/// the limits of its type. `f64::round` needs the standard library.
fn nearest(number: f64) -> f64 {
    // From 2^52 on every number is whole, and a double cannot hold a half beside it.
    if number.abs() >= (1u64 << 52) as f64 {
        return number;
    }
    let cut = number as i64 as f64;
    // Exact, and less than one.
    match number - cut {
        rest if rest >= 0.5 => cut + 1.0,
        rest if rest <= -0.5 => cut - 1.0,
        _ => cut,
    }
}

/// One field of a message: `count` scalars that start `offset` bytes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field, unit last.
    pub name: &'static str,
    /// What it is made of.
    pub scalar: Scalar,
    /// How many scalars there are in a row.
    pub count: u32,
    /// Bytes from the start of the message.
    pub offset: u32,
    /// If it is an enum, the word of each number, at the index of that number; empty where no value
    /// has the number. Neither labels nor units are part of the hash: not all languages have such
    /// words.
    pub labels: &'static [&'static str],
}

impl Field {
    /// A field that is declared as a `T`.
    pub const fn of<T: FieldType>(name: &'static str, offset: u32) -> Field {
        Field { name, scalar: T::SCALAR, count: T::COUNT, offset, labels: T::LABELS }
    }

    /// The word of a number that the field holds, if it is an enum and a value has that number.
    pub fn label(&self, number: u64) -> Option<&'static str> {
        let at = usize::try_from(number).ok()?;
        self.labels.get(at).copied().filter(|word| !word.is_empty())
    }
}

/// A fixed-size message type: its layout, and a hash by which two sides agree on it.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageType {
    /// Name that diagnostics and drawings show.
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

/// True or false, as a message holds it. With Rust's own `bool` most bytes of a peer would be
/// undefined behaviour; here anything but zero is true.
#[derive(Clone, Copy, Default)]
#[cfg_attr(
    feature = "zerocopy",
    derive(
        zerocopy::FromBytes,
        zerocopy::IntoBytes,
        zerocopy::Immutable,
        zerocopy::KnownLayout,
        zerocopy::Unaligned
    )
)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Its value.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value as u8)
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> bool {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl core::fmt::Debug for Bool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.get().fmt(f)
    }
}

/// An enum that a message holds by its number, as a [`Label`]. `message!` of `sinew-core` declares
/// the enum and implements this trait; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no labels, so a message cannot hold it",
    note = "declare it by `message! {{ pub enum {Self}: u8 {{ Off = 0, On = 1 }} }}`"
)]
pub trait Labels: Copy + Eq + core::fmt::Debug + 'static {
    /// The name of each value, at the index of its number; empty where no value has that number.
    const LABELS: &'static [&'static str];
    /// The value with this number.
    fn of(number: u8) -> Option<Self>;
    /// Its number.
    fn number(self) -> u8;
}

/// A value of an enum as a message holds it: a byte. A peer may write any byte, which in Rust's own
/// enum would be undefined behaviour; here a number that nobody declared is no value.
// Its traits require nothing of `E`. So for a type that is not such an enum the compiler prints one
// error, not 38.
#[cfg_attr(
    feature = "zerocopy",
    derive(
        zerocopy::FromBytes,
        zerocopy::IntoBytes,
        zerocopy::Immutable,
        zerocopy::KnownLayout,
        zerocopy::Unaligned
    )
)]
#[repr(transparent)]
pub struct Label<E>(u8, PhantomData<E>);

impl<E: Labels> Label<E> {
    /// The value; `None` if none has this number.
    pub fn get(self) -> Option<E> {
        E::of(self.0)
    }

    /// The number, whether a value has it or not.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl<E: Labels> From<E> for Label<E> {
    fn from(value: E) -> Label<E> {
        Label(value.number(), PhantomData)
    }
}

impl<E> Clone for Label<E> {
    fn clone(&self) -> Label<E> {
        *self
    }
}

impl<E> Copy for Label<E> {}

impl<E> PartialEq for Label<E> {
    fn eq(&self, other: &Label<E>) -> bool {
        self.0 == other.0
    }
}

impl<E> Eq for Label<E> {}

impl<E> core::fmt::Debug for Label<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Labels> FieldType for Label<E> {
    const SCALAR: Scalar = Scalar::U8;
    const COUNT: u32 = 1;
    const LABELS: &'static [&'static str] = E::LABELS;
}

impl<E: Labels, const N: usize> FieldType for [Label<E>; N] {
    const SCALAR: Scalar = Scalar::U8;
    const COUNT: u32 = N as u32;
    const LABELS: &'static [&'static str] = E::LABELS;
}

/// A Rust type that a message may hold: a scalar or an array of scalars.
pub trait FieldType {
    /// What it is made of.
    const SCALAR: Scalar;
    /// How many of them.
    const COUNT: u32;
    /// The words of its numbers, as [`Field::labels`].
    const LABELS: &'static [&'static str] = &[];
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
scalars!(f32 = F32, f64 = F64, Bool = Bool);

/// The type of a message: a `repr(C)` struct of this name with these fields. For the macros that
/// declare messages, on Linux and on guests: so both give the same text the same hash.
#[macro_export]
macro_rules! message_type {
    ($name:ident { $($field:ident: $ty:ty,)* }) => {{
        const FIELDS: &[$crate::message::Field] = &[$($crate::message::Field::of::<$ty>(
            stringify!($field),
            ::core::mem::offset_of!($name, $field) as u32,
        ),)*];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_takes_the_nearest_that_it_can_hold() {
        let put = |scalar: Scalar, number: f64| {
            let mut bytes = [0; 8];
            scalar.put(number, &mut bytes);
            scalar.number(&bytes)
        };
        let odd = ((1u64 << 52) + 1) as f64;
        let below_half = 0.5_f64.next_down();
        let rows = [
            (Scalar::U8, 2.5, 3.0),
            (Scalar::U8, 300.0, 255.0),
            (Scalar::U8, -1.0, 0.0),
            (Scalar::I8, -2.5, -3.0),
            (Scalar::I16, -40_000.0, -32_768.0),
            (Scalar::I32, below_half, 0.0),
            (Scalar::I32, -below_half, 0.0),
            (Scalar::U64, odd, odd),
            (Scalar::I64, -odd, -odd),
            (Scalar::U64, 1e300, u64::MAX as f64),
            (Scalar::Bool, 0.1, 1.0),
        ];
        for (scalar, number, held) in rows {
            assert_eq!(put(scalar, number), Some(held), "{scalar:?} of {number}");
        }
    }
}

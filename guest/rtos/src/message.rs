//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

use sinew_link::message::{MessageType, Scalar};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A fixed-size plain-data value on a link; [`message!`](crate::message!) implements it.
pub trait Message: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + 'static {
    /// The layout; both sides compare its hash.
    const TYPE: &'static MessageType;
}

/// A type that may stand in a message: a scalar or an array of scalars.
pub trait FieldType {
    /// What it is made of.
    const SCALAR: Scalar;
    /// How many stand in a row.
    const COUNT: u32;
}

macro_rules! field_types {
    ($($ty:ty => $scalar:ident),*) => { $(
        impl FieldType for $ty {
            const SCALAR: Scalar = Scalar::$scalar;
            const COUNT: u32 = 1;
        }
        impl<const N: usize> FieldType for [$ty; N] {
            const SCALAR: Scalar = Scalar::$scalar;
            const COUNT: u32 = N as u32;
        }
    )* };
}

field_types! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f32 => F32, f64 => F64
}

/// Declares messages: as `sinew_core::message!` does, with the same hash for the same text.
#[macro_export]
macro_rules! message {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)*
    })*) => { $(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq,
            $crate::zerocopy::FromBytes, $crate::zerocopy::IntoBytes,
            $crate::zerocopy::Immutable, $crate::zerocopy::KnownLayout,
        )]
        #[zerocopy(crate = "sinew_guest::zerocopy")]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

        impl $crate::Message for $name {
            const TYPE: &'static $crate::MessageType = {
                const FIELDS: &[$crate::Field] = &[$($crate::Field {
                    name: stringify!($field),
                    scalar: <$ty as $crate::FieldType>::SCALAR,
                    count: <$ty as $crate::FieldType>::COUNT,
                    offset: ::core::mem::offset_of!($name, $field) as u32,
                },)*];
                const SIZE: u32 = ::core::mem::size_of::<$name>() as u32;
                &$crate::MessageType {
                    name: stringify!($name),
                    size: SIZE,
                    align: ::core::mem::align_of::<$name>() as u32,
                    fields: FIELDS,
                    hash: $crate::type_hash(stringify!($name), SIZE, FIELDS),
                }
            };
        }
    )* };
}

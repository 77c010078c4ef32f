//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

use sinew_plan::catalogue::{MessageType, Scalar};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A fixed-size plain-data value on a realtime link. Any bytes are a value of it; [`message!`]
/// implements it, by hand it is not implemented.
///
/// [`message!`]: crate::message!
pub trait Message:
    Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Send + Sync + 'static
{
    /// The layout, for the catalogue and for the peers.
    const TYPE: &'static MessageType;
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

/// Declares message types: `repr(C)`, no padding (add a field where the compiler complains), all
/// fields public, scalars or arrays of scalars.
///
/// ```
/// sinew_core::message! {
///     /// Joint positions.
///     pub struct Joints {
///         /// Axis 1 to 6, rad.
///         pub position_rad: [f64; 6],
///     }
/// }
/// use sinew_core::Message;
/// assert_eq!((Joints::TYPE.name, Joints::TYPE.size), ("Joints", 48));
/// assert_eq!(Joints::TYPE.fields[0].count, 6);
/// ```
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
        #[zerocopy(crate = "sinew_core::zerocopy")]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

        impl $crate::Message for $name {
            const TYPE: &'static $crate::catalogue::MessageType = {
                const FIELDS: &[$crate::catalogue::Field] = &[$($crate::catalogue::Field {
                    name: stringify!($field),
                    scalar: <$ty as $crate::message::FieldType>::SCALAR,
                    count: <$ty as $crate::message::FieldType>::COUNT,
                    offset: ::core::mem::offset_of!($name, $field) as u32,
                },)*];
                const SIZE: u32 = ::core::mem::size_of::<$name>() as u32;
                &$crate::catalogue::MessageType {
                    name: stringify!($name),
                    size: SIZE,
                    align: ::core::mem::align_of::<$name>() as u32,
                    fields: FIELDS,
                    hash: $crate::catalogue::type_hash(stringify!($name), SIZE, FIELDS),
                }
            };
        }

        impl Default for $name {
            fn default() -> Self {
                $crate::zerocopy::FromZeros::new_zeroed()
            }
        }
    )* };
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "`message!` declares public types")]
mod tests {
    use super::*;

    message! {
        /// For the tests.
        pub struct Mixed {
            /// Doubles.
            pub doubles: [f64; 2],
            /// Floats.
            pub floats: [f32; 2],
            /// A count.
            pub count: u64,
        }
        /// The same fields under another name.
        pub struct Other {
            /// Doubles.
            pub doubles: [f64; 2],
            /// Floats.
            pub floats: [f32; 2],
            /// A count.
            pub count: u64,
        }
    }

    #[test]
    fn the_hash_tells_types_apart() {
        assert_ne!(Mixed::TYPE.hash, Other::TYPE.hash);
    }
}

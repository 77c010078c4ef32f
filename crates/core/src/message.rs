//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

use sinew_link::message::Bool;
use sinew_plan::catalogue::MessageType;
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
            const TYPE: &'static $crate::catalogue::MessageType =
                $crate::message_type!($name { $($field: $ty,)* });
        }

        impl Default for $name {
            fn default() -> Self {
                $crate::zerocopy::FromZeros::new_zeroed()
            }
        }
    )* };
}

message! {
    /// A number, as it crosses between nodes that do not know what it stands for.
    pub struct Real {
        /// The number.
        pub value: f64,
    }
    /// True or false.
    pub struct Flag {
        /// Which.
        pub value: Bool,
    }
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

//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

#[cfg(doc)]
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
/// fields public, scalars or arrays of scalars. A field that is declared as `bool` is a [`Bool`].
///
/// ```
/// sinew_core::message! {
///     /// Joint positions.
///     pub struct Joints {
///         /// Axis 1 to 6, rad.
///         pub position_rad: [f64; 6],
///         /// Whether each is switched on.
///         pub is_enabled: [bool; 6],
///         /// Nothing.
///         pub reserved: [u8; 2],
///     }
/// }
/// use sinew_core::Message;
/// assert_eq!((Joints::TYPE.name, Joints::TYPE.size), ("Joints", 56));
/// assert_eq!(Joints::TYPE.fields[0].count, 6);
/// assert!(!Joints::default().is_enabled[5].get());
/// ```
///
/// Anything else is one error, which says what a field can be:
///
/// ```compile_fail
/// sinew_core::message! {
///     /// A name.
///     pub struct Name {
///         /// Which.
///         pub name: String,
///     }
/// }
/// ```
#[macro_export]
macro_rules! message {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$fdoc:meta])* pub $field:ident: $ty:tt,)*
    })*) => { $(
        $crate::checked_fields! { [$($field $ty)*]
            $(#[$doc])*
            #[derive(
                Clone, Copy, Debug, PartialEq,
                $crate::zerocopy::FromBytes, $crate::zerocopy::IntoBytes,
                $crate::zerocopy::Immutable, $crate::zerocopy::KnownLayout,
            )]
            #[zerocopy(crate = "sinew_core::zerocopy")]
            #[repr(C)]
            pub struct $name { $($(#[$fdoc])* pub $field: $crate::field_type!($ty),)* }

            impl $crate::Message for $name {
                const TYPE: &'static $crate::catalogue::MessageType =
                    $crate::message_type!($name { $($field: $crate::field_type!($ty),)* });
            }

            impl Default for $name {
                fn default() -> Self {
                    $crate::zerocopy::FromZeros::new_zeroed()
                }
            }
        }
    )* };
}

/// What stands behind the list, if all fields in it have types that a message can hold. Else one
/// error, in place of those of all that the fields are used for.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_fields {
    ([] $($out:tt)*) => { $($out)* };
    ([$field:ident [$scalar:tt; $count:expr] $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$field $scalar $($rest)*] $($out)* }
    };
    ([$field:ident bool $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident u8 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident i8 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident u16 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident i16 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident u32 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident i32 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident u64 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident i64 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident f32 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident f64 $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident $other:tt $($rest:tt)*] $($out:tt)*) => {
        compile_error!(concat!(
            "field '", stringify!($field), "' of a message cannot be '", stringify!($other),
            "'; it is f64, f32, bool, u8 to u64 or i8 to i64, or an array such as [f64; 6]"
        ));
    };
}

/// The type of a field of [`message!`], as it is declared there.
#[doc(hidden)]
#[macro_export]
macro_rules! field_type {
    (bool) => {
        $crate::Bool
    };
    ([bool; $count:expr]) => {
        [$crate::Bool; $count]
    };
    ($scalar:ty) => {
        $scalar
    };
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
        pub value: bool,
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

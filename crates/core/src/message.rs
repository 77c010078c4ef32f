//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

#[cfg(doc)]
use sinew_link::message::{Bool, Label};
use sinew_plan::catalogue::MessageType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A fixed-size plain-data value on a realtime link. Any bytes are a value of it. [`message!`]
/// implements this trait; do not implement it by hand.
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
/// An enum crosses by its number, and a message holds it as a [`Label`]. A peer may write any
/// number: `get` returns `None` for one that no value has.
///
/// ```
/// use sinew_core::{Labels, message};
/// message! {
///     /// What the oven does.
///     pub enum Mode: u8 {
///         /// Nothing.
///         Off = 0,
///         /// It heats.
///         Heat = 1,
///     }
///     /// All of it.
///     pub struct Oven {
///         /// What it does.
///         pub mode: Label<Mode>,
///         /// What it did.
///         pub before: [Label<Mode>; 3],
///     }
/// }
/// let oven = Oven { mode: Mode::Heat.into(), ..Oven::default() };
/// assert_eq!((oven.mode.get(), oven.before[0].get()), (Some(Mode::Heat), Some(Mode::Off)));
/// assert_eq!(Mode::LABELS, ["Off", "Heat"]);
/// ```
#[macro_export]
macro_rules! message {
    ($($(#[$doc:meta])* pub $sort:ident $name:ident $(: $number:ident)? { $($body:tt)* })*) => { $(
        $crate::message_item! { $sort [$(#[$doc])*] $name [$($number)?] $($body)* }
    )* };
}

/// One type of [`message!`].
#[doc(hidden)]
#[macro_export]
macro_rules! message_item {
    (struct [$(#[$doc:meta])*] $name:ident []
        $($(#[$fdoc:meta])* pub $field:ident: $ty:tt $(<$of:path>)?),* $(,)?
    ) => {
        $crate::checked_fields! { [$($field $ty $(<$of>)?)*]
            $(#[$doc])*
            #[derive(
                Clone, Copy, Debug, PartialEq,
                $crate::zerocopy::FromBytes, $crate::zerocopy::IntoBytes,
                $crate::zerocopy::Immutable, $crate::zerocopy::KnownLayout,
            )]
            #[zerocopy(crate = "sinew_core::zerocopy")]
            #[repr(C)]
            pub struct $name { $($(#[$fdoc])* pub $field: $crate::field_type!($ty $(<$of>)?),)* }

            impl $crate::Message for $name {
                const TYPE: &'static $crate::catalogue::MessageType = $crate::message_type!(
                    $name { $($field: $crate::field_type!($ty $(<$of>)?),)* }
                );
            }

            impl Default for $name {
                fn default() -> Self {
                    $crate::zerocopy::FromZeros::new_zeroed()
                }
            }
        }
    };
    (enum [$(#[$doc:meta])*] $name:ident [u8]
        $($(#[$vdoc:meta])* $variant:ident = $value:literal),+ $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)+ }

        impl $crate::Labels for $name {
            const LABELS: &'static [&'static str] = {
                const COUNT: usize = {
                    let mut count = 0;
                    $(if $value + 1 > count { count = $value + 1; })+
                    count
                };
                const WORDS: [&str; COUNT] = {
                    let mut words = [""; COUNT];
                    $(words[$value] = stringify!($variant);)+
                    words
                };
                &WORDS
            };

            fn of(number: u8) -> Option<Self> {
                $(if number == $name::$variant as u8 {
                    return Some($name::$variant);
                })+
                None
            }

            fn number(self) -> u8 {
                self as u8
            }
        }
    };
    (enum $doc:tt $name:ident [u8] $($body:tt)*) => {
        compile_error!(concat!(
            "each value of enum '", stringify!($name), "' needs its number, as in `Off = 0,`"
        ));
    };
    (enum $doc:tt $name:ident $number:tt $($body:tt)*) => {
        compile_error!(concat!(
            "an enum in a message is a byte: `pub enum ", stringify!($name), ": u8`"
        ));
    };
    ($sort:ident $doc:tt $name:ident $number:tt $($body:tt)*) => {
        compile_error!(concat!(
            "'", stringify!($name), "' of a message must be `pub struct ", stringify!($name),
            " { pub field: f64, }` or `pub enum ", stringify!($name), ": u8 { Off = 0, }`"
        ));
    };
}

/// What follows the list, if all fields in it have types that a message can hold. Otherwise one
/// error, in place of one for each use of the fields.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_fields {
    ([] $($out:tt)*) => { $($out)* };
    ([$field:ident [$scalar:tt $(<$of:path>)?; $count:expr] $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$field $scalar $(<$of>)? $($rest)*] $($out)* }
    };
    ([$field:ident Label<$of:path> $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$($rest)*] $($out)* }
    };
    ([$field:ident $other:tt<$of:path> $($rest:tt)*] $($out:tt)*) => {
        $crate::checked_fields! { [$field $other] }
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
            "'; it is f64, f32, bool, u8 to u64, i8 to i64, Label<E> of an enum of `message!`, \
             or an array such as [f64; 6]"
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
    (Label<$of:path>) => {
        $crate::Label<$of>
    };
    ([Label<$of:path>; $count:expr]) => {
        [$crate::Label<$of>; $count]
    };
    ($scalar:ty) => {
        $scalar
    };
}

message! {
    /// A number, as it crosses between nodes that do not know what it means.
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

    message! {
        /// For the tests: not from 0, and with gaps.
        pub enum Gear: u8 {
            /// Backwards.
            Reverse = 255,
            /// Fast.
            Fifth = 5
        }
        /// Holds some.
        pub struct Gears {
            /// The one.
            pub now: Label<Gear>,
            /// The others.
            pub others: [Label<Gear>; 3]
        }
    }

    #[test]
    fn a_number_that_no_value_of_an_enum_has_is_none() {
        let others = &Gears::TYPE.fields[1];
        assert_eq!((Gears::TYPE.size, others.count, others.labels.len()), (4, 3, 256));
        let words = [0, 5, 255, 256].map(|number| others.label(number));
        assert_eq!(words, [None, Some("Fifth"), Some("Reverse"), None]);
        let mut written = Gears { now: Gear::Reverse.into(), ..Gears::default() };
        written.others[1] = Gear::Fifth.into();
        let mut bytes = [0; 4];
        bytes.copy_from_slice(written.as_bytes());
        assert_eq!(Gears::read_from_bytes(&bytes), Ok(written));
        let others = written.others.map(sinew_link::message::Label::get);
        assert_eq!(
            (written.now.get(), others),
            (Some(Gear::Reverse), [None, Some(Gear::Fifth), None])
        );
        // Whatever a peer writes is a message.
        for number in 0..=u8::MAX {
            bytes[0] = number;
            let read = Gears::read_from_bytes(&bytes).expect("any bytes are a value");
            let value = match number {
                255 => Some(Gear::Reverse),
                5 => Some(Gear::Fifth),
                _ => None,
            };
            assert_eq!((read.now.get(), read.now.number()), (value, number));
        }
    }

    #[test]
    fn the_hash_tells_types_apart() {
        assert_ne!(Mixed::TYPE.hash, Other::TYPE.hash);
    }
}

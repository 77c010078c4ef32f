//! Messages: fixed-size plain data, declared once with [`message!`](crate::message!).

use sinew_link::message::MessageType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A fixed-size plain-data value on a link; [`message!`](crate::message!) implements it.
pub trait Message: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + 'static {
    /// The layout; both sides compare its hash.
    const TYPE: &'static MessageType;
}

/// Declares messages like `sinew_core::message!`, with the same hash for the same text.
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
            const TYPE: &'static $crate::MessageType =
                $crate::message_type!($name { $($field: $ty,)* });
        }
    )* };
}

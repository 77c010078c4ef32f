//! Pictures, sound and packets as messages on links, and the clock of a player. It needs no
//! operating system, so a guest beside Linux writes the same pictures into the same places.
//!
//! Large messages are written and read in place, in the memory of the link: a *head* of fixed size,
//! then bytes. The head gives their offsets and lengths. A head comes from a peer and cannot be
//! trusted, so each has a `check`.
//!
//! The message types themselves are declared by [`messages!`], once for Linux and once for a guest,
//! from one text, so that both have the same hash.
#![no_std]

#[cfg(test)]
extern crate std;

mod packet;
mod picture;
mod play;
mod sound;

pub use packet::{CODEC_BYTES, PACKET_BYTES_MAX, PacketHead, flag};
pub use picture::{
    PICTURE_BYTES_MAX, PICTURE_SIDE_MAX, PictureHead, PixelFormat, Plane, PlaneRow, planes_of,
};
pub use play::{Order, PlayState};
pub use sound::{BLOCK_FRAMES_MAX, BlockHead, CHANNELS, RATE_HZ};

/// Why a head is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHead(pub &'static str);

impl core::fmt::Display for BadHead {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

/// Declares [`Packet`], [`Picture`], [`SoundBlock`], [`PlayClock`] and [`PlayOrder`] by a macro
/// that declares messages: `sinew_media::messages!(sinew_core::message);`
///
/// [`Packet`]: PacketHead
/// [`Picture`]: PictureHead
/// [`SoundBlock`]: BlockHead
/// [`PlayClock`]: PlayState
/// [`PlayOrder`]: Order
#[macro_export]
macro_rules! messages {
    ($message:path) => {
        $message! {
            /// A piece of a coded stream; see `PacketHead`.
            pub struct Packet {
                /// `PacketHead::number`.
                pub number: u64,
                /// `PacketHead::position_ns`.
                pub position_ns: u64,
                /// `PacketHead::decoding_ns`.
                pub decoding_ns: u64,
                /// `PacketHead::duration_ns`.
                pub duration_ns: u64,
                /// `PacketHead::film_ns`.
                pub film_ns: u64,
                /// `PacketHead::codec`.
                pub codec: [u8; $crate::CODEC_BYTES],
                /// `PacketHead::serial`.
                pub serial: u32,
                /// `PacketHead::flags`.
                pub flags: u32,
                /// `PacketHead::setup_bytes`.
                pub setup_bytes: u32,
                /// `PacketHead::bytes`.
                pub bytes: u32,
                /// `PacketHead::shape`.
                pub shape: [u32; 2],
                /// `PacketHead::sample`.
                pub sample: [u32; 2],
                /// Set-up of the decoder, then the piece itself.
                pub payload: [u8; $crate::PACKET_BYTES_MAX],
            }

            /// A picture; see `PictureHead`.
            pub struct Picture {
                /// `PictureHead::number`.
                pub number: u64,
                /// `PictureHead::time_ns`.
                pub time_ns: u64,
                /// `PictureHead::position_ns`.
                pub position_ns: u64,
                /// `PictureHead::duration_ns`.
                pub duration_ns: u64,
                /// `PictureHead::decode_ns`.
                pub decode_ns: u64,
                /// `PictureHead::film_ns`.
                pub film_ns: u64,
                /// `PictureHead::serial`.
                pub serial: u32,
                /// `PictureHead::format`.
                pub format: u32,
                /// `PictureHead::width`.
                pub width: u32,
                /// `PictureHead::height`.
                pub height: u32,
                /// `PictureHead::offset`.
                pub offset: [u32; 3],
                /// `PictureHead::stride`.
                pub stride: [u32; 3],
                /// `PictureHead::copies`.
                pub copies: u32,
                /// `PictureHead::waiting`.
                pub waiting: u32,
                /// `PictureHead::skipped`.
                pub skipped: u32,
                /// `PictureHead::broken`.
                pub broken: u32,
                /// Always zero.
                pub reserved: [u32; 6],
                /// The points, plane by plane.
                pub points: [u8; $crate::PICTURE_BYTES_MAX],
            }

            /// A block of sound; see `BlockHead`.
            pub struct SoundBlock {
                /// `BlockHead::position_ns`.
                pub position_ns: u64,
                /// `BlockHead::serial`.
                pub serial: u32,
                /// `BlockHead::frames`.
                pub frames: u32,
                /// `BlockHead::flags`.
                pub flags: u32,
                /// `BlockHead::waiting`.
                pub waiting: u32,
                /// Left, right of each sample in turn.
                pub samples: [i16; $crate::BLOCK_FRAMES_MAX * $crate::CHANNELS],
            }

            /// The place in the film of the sound that is heard now; see `PlayState`.
            pub struct PlayClock {
                /// Place in the film that is heard at `at_ns`, ns.
                pub position_ns: u64,
                /// Time at which `position_ns` is heard, monotonic ns.
                pub at_ns: u64,
                /// Time of the film per time of the clock; 0: it is paused.
                pub speed: f64,
                /// Loudness, left and right: root mean square of the last block, 1 at most.
                pub level: [f64; 2],
                /// Sound that waits to be heard, ns of the film.
                pub buffered_ns: u64,
                /// How often no sound was there although it was due.
                pub underruns: u64,
                /// Total time without due sound, ns.
                pub silent_ns: u64,
                /// The number of the last order that this clock obeys.
                pub serial: u32,
                /// `PlayState`.
                pub state: u32,
                /// 0: a clock alone; 1: a sound device.
                pub device: u32,
                /// Packets of sound that wait to be decoded.
                pub waiting: u32,
            }

            /// An order of the viewer; see `Order`.
            pub struct PlayOrder {
                /// For `seek` the place in the film, ns; for `speed` the speed, thousandths.
                pub value: u64,
                /// Rises by one with every order.
                pub serial: u32,
                /// `Order`.
                pub what: u32,
            }
        }
    };
}

//! The messages of cameras and players, with the hashes that they have on Linux.

sinew_media::messages!(sinew_guest::message);

use core::mem::offset_of;
use sinew_media::{PacketHead, PictureHead};

// A head is the beginning of its message, so the rest follows directly after it.
const _: () = assert!(offset_of!(Packet, payload) == size_of::<PacketHead>());
const _: () = assert!(offset_of!(Picture, points) == size_of::<PictureHead>());

//! The messages of cameras and players.

sinew_media::messages!(sinew_core::message);

use sinew_media::{BlockHead, PacketHead, PictureHead};
use std::mem::offset_of;

// A head is the beginning of its message.
const _: () = assert!(offset_of!(Packet, payload) == size_of::<PacketHead>());
const _: () = assert!(offset_of!(Picture, points) == size_of::<PictureHead>());
const _: () = assert!(offset_of!(SoundBlock, samples) == size_of::<BlockHead>());
// Decoders need addresses that are multiples of this.
const _: () = assert!(size_of::<PictureHead>() == 128 && size_of::<Picture>().is_multiple_of(128));

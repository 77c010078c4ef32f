//! A piece of a coded stream, as who takes a film apart hands it to a decoder.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::BadHead;

/// Most bytes of a packet with its decoder's set-up; a larger one is left out and counted. The
/// largest picture needs three times as much without any coding.
pub const PACKET_BYTES_MAX: usize = (1 << 20) - 128;
/// Bytes of a codec's name.
pub const CODEC_BYTES: usize = 24;

/// What a packet says of itself. Its bytes follow: first those that set its decoder up, which every
/// packet has, so that a decoder that comes back knows all.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PacketHead {
    /// Counts the packets of the stream from 1; those that were left out are gaps.
    pub number: u64,
    /// When it is to be seen or heard, ns from the beginning of the film.
    pub position_ns: u64,
    /// When it is to be decoded, likewise; as `position_ns` where the film does not say it.
    pub decoding_ns: u64,
    /// For how long; 0: not known.
    pub duration_ns: u64,
    /// How long the whole film lasts; 0: not known.
    pub film_ns: u64,
    /// The codec's name as FFmpeg writes it (`mpeg4`, `mjpeg`, `mp3`), the rest zeros.
    pub codec: [u8; CODEC_BYTES],
    /// The number of the last order that it follows.
    pub serial: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Bytes that set the decoder up.
    pub setup_bytes: u32,
    /// Bytes of the packet itself, behind those.
    pub bytes: u32,
    /// Columns and rows, or samples a second and channels; 0: only the stream itself says it.
    pub shape: [u32; 2],
    /// Bits of a sample and bytes of a block, for sound that needs it.
    pub sample: [u32; 2],
}

/// The bits of [`PacketHead::flags`].
pub mod flag {
    /// It can be decoded without those before it.
    pub const KEY: u32 = 1;
    /// Nothing follows: the film is over. The packet has no bytes.
    pub const END: u32 = 2;
    /// No bytes: there is no sound for as long as it lasts.
    pub const SILENCE: u32 = 4;
    /// Packets before it are missing.
    pub const GAP: u32 = 8;
    /// The film says only when it is to be decoded; when it is to be seen, its decoder finds.
    pub const UNPLACED: u32 = 16;
}

impl PacketHead {
    /// The codec's name as a field. What is longer than the field is cut off.
    pub fn codec_of(name: &str) -> [u8; CODEC_BYTES] {
        let mut codec = [0; CODEC_BYTES];
        codec.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        codec
    }

    /// The codec's name; empty if it is no text.
    pub fn codec(&self) -> &str {
        let end = self.codec.iter().position(|&byte| byte == 0).unwrap_or(CODEC_BYTES);
        core::str::from_utf8(&self.codec[..end]).unwrap_or("")
    }

    /// Whether a bit of [`flag`] is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Bytes behind the head.
    ///
    /// # Errors
    /// More than a packet has.
    pub fn payload(&self) -> Result<usize, BadHead> {
        let sum = u64::from(self.setup_bytes) + u64::from(self.bytes);
        match usize::try_from(sum) {
            Ok(sum) if sum <= PACKET_BYTES_MAX => Ok(sum),
            _ => Err(BadHead("a packet's head says that it is longer than a packet can be")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_believed_only_within_the_packet() {
        let head = PacketHead { setup_bytes: 10, bytes: 20, ..PacketHead::default() };
        assert_eq!(head.payload(), Ok(30));
        let most = PacketHead { bytes: PACKET_BYTES_MAX as u32 - 10, ..head };
        assert_eq!(most.payload(), Ok(PACKET_BYTES_MAX));
        assert!(PacketHead { bytes: most.bytes + 1, ..head }.payload().is_err());
        let wraps = PacketHead { setup_bytes: u32::MAX, bytes: 2, ..head };
        assert!(wraps.payload().is_err());
    }

    #[test]
    fn a_codec_is_a_name_or_nothing() {
        for (name, read) in [("mpeg4", "mpeg4"), ("", ""), (&"x".repeat(30), &"x".repeat(24))] {
            let head = PacketHead { codec: PacketHead::codec_of(name), ..PacketHead::default() };
            assert_eq!(head.codec(), read);
        }
        assert_eq!(PacketHead { codec: [0xff; 24], ..PacketHead::default() }.codec(), "");
    }
}

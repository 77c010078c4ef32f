//! A piece of a coded stream, as a demultiplexer hands it to a decoder.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::BadHead;

/// Most bytes of a packet with its decoder's set-up. A larger packet is left out and counted. The
/// largest picture needs three times as much without any coding.
pub const PACKET_BYTES_MAX: usize = (1 << 20) - 128;
/// Bytes of a codec's name.
pub const CODEC_BYTES: usize = 24;

/// The head of a packet. Its bytes follow: first the set-up of its decoder, then the packet itself.
/// Every packet has the set-up, so that a restarted decoder knows all it needs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PacketHead {
    /// Counts the packets of the stream from 1. Packets that were left out are gaps.
    pub number: u64,
    /// When it is to be seen or heard, ns from the beginning of the film.
    pub position_ns: u64,
    /// When it is to be decoded, ns likewise; equal to `position_ns` if the film does not give it.
    pub decoding_ns: u64,
    /// Duration, ns; 0: not known.
    pub duration_ns: u64,
    /// Duration of the whole film, ns; 0: not known.
    pub film_ns: u64,
    /// The codec's name as FFmpeg writes it (`mpeg4`, `mjpeg`, `mp3`), the rest zeros.
    pub codec: [u8; CODEC_BYTES],
    /// The number of the last order that was obeyed before it was sent.
    pub serial: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Count of bytes that set the decoder up.
    pub setup_bytes: u32,
    /// Count of bytes of the packet itself, after the set-up.
    pub bytes: u32,
    /// Columns and rows, or samples a second and channels; 0: only the stream itself has them.
    pub shape: [u32; 2],
    /// Bits of a sample and bytes of a block, for codecs of sound that need them.
    pub sample: [u32; 2],
}

/// The bits of [`PacketHead::flags`].
pub mod flag {
    /// It can be decoded without the packets before it.
    pub const KEY: u32 = 1;
    /// Nothing follows: the film is over. The packet has no bytes.
    pub const END: u32 = 2;
    /// No bytes: there is no sound during this packet.
    pub const SILENCE: u32 = 4;
    /// Packets before it are missing.
    pub const GAP: u32 = 8;
    /// The film gives only the time of decoding. The decoder finds when the picture is to be seen.
    pub const UNPLACED: u32 = 16;
}

impl PacketHead {
    /// The codec's name as a field. A name longer than the field is cut off.
    pub fn codec_of(name: &str) -> [u8; CODEC_BYTES] {
        let mut codec = [0; CODEC_BYTES];
        codec.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        codec
    }

    /// The codec's name; empty if it is not UTF-8.
    pub fn codec(&self) -> &str {
        let end = self.codec.iter().position(|&byte| byte == 0).unwrap_or(CODEC_BYTES);
        core::str::from_utf8(&self.codec[..end]).unwrap_or("")
    }

    /// Whether a bit of [`flag`] is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Count of bytes after the head.
    ///
    /// # Errors
    /// More bytes than a packet can have.
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

//! The bytes in which a host sends its stamps.
//!
//! Under `sinew/<graph>/<host>/@stamp`. Numbers are little-endian.
//!
//! ```text
//!  0  the header of messages, with the stamps of others that it has heard
//!     u64 its own stamp: its monotonic clock, ns
//!     u64 version of the graph's links between hosts
//!     for each echo in the header: u64 how long it had that stamp already, ns
//! ```
//!
//! A host that finds its own stamp in a frame knows a round trip: the time now, less the stamp,
//! less how long the other host had it.

use sinew_hosts::{ECHO_LEN, ECHOES_MAX, HEADER_LEN, Malformed, MessageHeader};

/// Bytes of the two numbers.
const NUMBERS_LEN: usize = 16;
/// Bytes for each echo behind them.
const HELD_LEN: usize = 8;

/// Most bytes of a frame.
pub(crate) const STAMP_LEN_MAX: usize =
    HEADER_LEN + NUMBERS_LEN + ECHOES_MAX * (ECHO_LEN + HELD_LEN);

/// What a host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StampFrame {
    /// Its life, and the stamps that it has heard.
    pub header: MessageHeader,
    /// Its own stamp, ns.
    pub stamp_ns: u64,
    /// Version of the graph's links between hosts.
    pub version: u64,
    /// How long the host had each of the echoes, ns; one for each echo.
    pub held_ns: Vec<u64>,
}

impl StampFrame {
    /// As bytes.
    ///
    /// # Panics
    /// If there are more or fewer `held_ns` than echoes, or too many of them.
    pub fn write(&self) -> Vec<u8> {
        assert_eq!(self.held_ns.len(), self.header.echoes.len(), "one for each echo");
        let words = [self.stamp_ns, self.version].into_iter().chain(self.held_ns.iter().copied());
        let message: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.header.write(&message)
    }

    /// From bytes.
    ///
    /// # Errors
    /// The bytes are not a stamp frame.
    pub fn read(bytes: &[u8]) -> Result<StampFrame, Malformed> {
        let echoes =
            bytes.get(4..6).map_or(0, |it| usize::from(u16::from_le_bytes([it[0], it[1]])));
        let (header, message) = MessageHeader::read(bytes, NUMBERS_LEN + echoes * HELD_LEN)?;
        let (words, _) = message.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or_default();
        let (stamp_ns, version) = (next(), next());
        Ok(StampFrame { header, stamp_ns, version, held_ns: words.collect() })
    }
}

#[cfg(test)]
mod tests {
    use sinew_hosts::Echo;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_stands_where_the_table_says() {
        let echo = Echo { host: 4, life: 5, stamp_ns: 6 };
        let numbers = MessageHeader { host: 11, life: 12, key: 13, ..MessageHeader::default() };
        let header = MessageHeader { sequence: 2, sent_unix_ns: 3, echoes: vec![echo], ..numbers };
        let frame = StampFrame { header, stamp_ns: 7, version: 8, held_ns: vec![9] };
        let bytes = frame.write();
        let mut expected = b"SNW\x02\x01\0\0\0".to_vec();
        [11_u64, 12, 13]
            .into_iter()
            .chain(2..=9)
            .for_each(|word| expected.extend_from_slice(&word.to_le_bytes()));
        assert_eq!(bytes, expected);
        assert_eq!(StampFrame::read(&bytes), Ok(frame));
        for len in 0..bytes.len() {
            assert!(StampFrame::read(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}

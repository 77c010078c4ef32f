//! The header before each message.
//!
//! # The bytes
//!
//! Numbers are little-endian.
//!
//! ```text
//!  0  "SNW" | version: 2
//!  4  u16 echoes | u16 zero
//!  8  u64 the sender: the number of its host
//! 16  u64 its life: another number each time that it starts, never 0
//! 24  u64 the number of the key under which it sends
//! 32  u64 sequence: 1, 2 and so on within a life, of each key by itself
//! 40  u64 when it was sent, ns since 1970 by the clock of the sender: for logs only
//! 48  the echoes, 24 bytes each: u64 host | u64 life | u64 stamp, ns
//!     the message: as many bytes as its type has
//! ```
//!
//! Who sends and under which key stands inside the message, because a transport may deliver it
//! under another key. Numbers are FNV-1a of the name or key: [`number`](crate::number).

use std::fmt;

/// Bytes before the echoes.
pub const HEADER_LEN: usize = 48;
/// Most echoes: hosts that judge the messages of one port.
pub const ECHOES_MAX: usize = 64;

/// Bytes of an echo.
pub const ECHO_LEN: usize = 24;

const MAGIC: [u8; 4] = *b"SNW\x02";

/// The header of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageHeader {
    /// The number of the host that sends.
    pub host: u64,
    /// The sender's life: another number each time that it starts, never 0.
    pub life: u64,
    /// The number of the key under which it sends.
    pub key: u64,
    /// Rises by one with each message of a key within a life.
    pub sequence: u64,
    /// When it was sent, by the sender's clock, ns since 1970. No decision depends on it.
    pub sent_unix_ns: u64,
    /// The last stamp of each host that was heard.
    pub echoes: Vec<Echo>,
}

/// A stamp that returns to the host that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The host that sent the stamp: [`number`](crate::number()) of its name.
    pub host: u64,
    /// The life of that host.
    pub life: u64,
    /// The stamp: a time of that host's own monotonic clock, ns.
    pub stamp_ns: u64,
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is wrong. It is not that of a header with its echoes and a message of `size`
    /// bytes.
    Length {
        /// Bytes that arrived.
        len: usize,
        /// Bytes of a message of the type.
        size: usize,
    },
    /// The bytes do not begin like a header.
    Magic,
    /// The header is of this version, which is another one.
    Version(u8),
    /// More echoes than allowed.
    Echoes(u16),
}

impl MessageHeader {
    /// The stamp in it that a life of a host has sent, if there is one.
    pub fn stamp_of(&self, (host, life): (u64, u64)) -> Option<u64> {
        let is_it = |echo: &&Echo| (echo.host, echo.life) == (host, life);
        self.echoes.iter().find(is_it).map(|echo| echo.stamp_ns)
    }

    /// The header followed by the message, as bytes.
    ///
    /// # Panics
    /// With more than [`ECHOES_MAX`] echoes.
    pub fn write(&self, message: &[u8]) -> Vec<u8> {
        assert!(self.echoes.len() <= ECHOES_MAX, "{} echoes", self.echoes.len());
        let echoes = self.echoes.len();
        let mut bytes = Vec::with_capacity(HEADER_LEN + echoes * ECHO_LEN + message.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(echoes as u16).to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        for word in [self.host, self.life, self.key, self.sequence, self.sent_unix_ns] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for Echo { host, life, stamp_ns } in &self.echoes {
            for word in [host, life, stamp_ns] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes.extend_from_slice(message);
        bytes
    }

    /// The header in front of a message of `size` bytes, and that message.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn read(bytes: &[u8], size: usize) -> Result<(MessageHeader, &[u8]), Malformed> {
        let wrong = Malformed::Length { len: bytes.len(), size };
        let (header, message) = MessageHeader::split(bytes).map_err(|error| match error {
            Malformed::Length { .. } => wrong,
            other => other,
        })?;
        if message.len() == size { Ok((header, message)) } else { Err(wrong) }
    }

    /// The header in front of a message of any length, and that message.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn split(bytes: &[u8]) -> Result<(MessageHeader, &[u8]), Malformed> {
        let wrong = Malformed::Length { len: bytes.len(), size: 0 };
        let (head, rest) = bytes.split_at_checked(HEADER_LEN).ok_or(wrong)?;
        match [head[0], head[1], head[2], head[3]] {
            MAGIC => {}
            [b'S', b'N', b'W', version] => return Err(Malformed::Version(version)),
            _ => return Err(Malformed::Magic),
        }
        let echoes = u16::from_le_bytes([head[4], head[5]]);
        if usize::from(echoes) > ECHOES_MAX {
            return Err(Malformed::Echoes(echoes));
        }
        let at = usize::from(echoes) * ECHO_LEN;
        let (echoes, message) = rest.split_at_checked(at).ok_or(wrong)?;
        let (words, _) = head[8..].as_chunks::<8>();
        let (echoed, _) = echoes.as_chunks::<8>();
        let word = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let echo = |of: &[[u8; 8]]| Echo {
            host: word(&of[0]),
            life: word(&of[1]),
            stamp_ns: word(&of[2]),
        };
        let header = MessageHeader {
            host: word(&words[0]),
            life: word(&words[1]),
            key: word(&words[2]),
            sequence: word(&words[3]),
            sent_unix_ns: word(&words[4]),
            echoes: echoed.chunks_exact(3).map(echo).collect(),
        };
        Ok((header, message))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Length { len, size } => write!(
                f,
                "{len} bytes, expected a header and a message of {size} bytes; the other side uses \
                 another type for this link"
            ),
            Malformed::Magic => {
                f.write_str("the bytes do not begin with 'SNW'; another program writes to this key")
            }
            Malformed::Version(version) => write!(
                f,
                "a header of version {version}, expected {}; run the same version of Sinew on both \
                 hosts",
                MAGIC[3]
            ),
            Malformed::Echoes(count) => write!(f, "{count} echoes, at most {ECHOES_MAX}"),
        }
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(host: u64) -> Echo {
        Echo { host, life: host + 1, stamp_ns: u64::MAX - host }
    }

    #[test]
    fn what_is_written_is_read() {
        for count in [0, 1, 3, ECHOES_MAX as u64] {
            let echoes = (0..count).map(echo).collect();
            let header =
                MessageHeader { host: 8, life: 1, sequence: 2, echoes, ..MessageHeader::default() };
            for message in [&b""[..], b"x", &[7; 256]] {
                let bytes = header.write(message);
                let read = MessageHeader::read(&bytes, message.len());
                assert_eq!(read, Ok((header.clone(), message)));
            }
        }
    }

    /// As docs/hosts.md describes it for other programs.
    #[test]
    fn the_bytes_are_those_of_the_table() {
        let echoes = vec![Echo { host: 6, life: 7, stamp_ns: 8 }];
        let numbers =
            MessageHeader { host: 1, life: 2, key: 3, sequence: 4, ..MessageHeader::default() };
        let bytes = MessageHeader { sent_unix_ns: 5, echoes, ..numbers }.write(b"ab");
        let mut expected = b"SNW\x02\x01\0\0\0".to_vec();
        for word in [1_u64, 2, 3, 4, 5, 6, 7, 8] {
            expected.extend_from_slice(&word.to_le_bytes());
        }
        expected.extend_from_slice(b"ab");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn whatever_comes_is_a_message_or_an_error() {
        let whole =
            MessageHeader { echoes: vec![echo(1)], ..MessageHeader::default() }.write(&[9; 8]);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            bytes.truncate(random.usize(at..=bytes.len()));
            if let Ok((_, message)) = MessageHeader::read(&bytes, 8) {
                assert_eq!(message.len(), 8);
            }
        }
        assert_eq!(MessageHeader::read(b"SNW", 8), Err(Malformed::Length { len: 3, size: 8 }));
        assert_eq!(MessageHeader::read(&[0; 56], 8), Err(Malformed::Magic));
        let mut other = whole.clone();
        other[3] = 1;
        assert_eq!(MessageHeader::read(&other, 8), Err(Malformed::Version(1)));
        let mut many = whole;
        many[4] = 65;
        assert_eq!(MessageHeader::read(&many, 8), Err(Malformed::Echoes(65)));
    }
}

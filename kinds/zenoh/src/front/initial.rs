//! The first datagram of a connection of QUIC, version 1 (RFC 9000, 17.2.2), and how its handshake
//! is ended from outside.
//!
//! The keys of first packets follow from what stands in them in plain (RFC 9001, 5.2). So whoever
//! has carried the first packet can send one more in the name of the client: one that closes the
//! connection.

use rustls::Side;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::Version;

/// Shortest datagram with a first packet of a client.
const DATAGRAM_MIN: usize = 1200;
/// Longest connection id.
const ID_MAX: usize = 20;
/// First byte of a first packet, with a packet number of four bytes.
const FIRST: u8 = 0xc3;
/// A packet number that no client has come to in a handshake.
const NUMBER: u32 = 0x0010_0000;
/// A frame `CONNECTION_CLOSE` without error, cause and text.
const CLOSE: [u8; 4] = [0x1c, 0, 0, 0];
/// Bytes of the seal of a packet.
const SEAL_LEN: usize = 16;

/// The names of a connection, as its client gives them in its first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Initial {
    /// Of the server, until that gives another one.
    to: Vec<u8>,
    /// Of the client.
    from: Vec<u8>,
}

/// Whether a datagram begins with a packet of the connection itself: its handshake is over at the
/// side that has sent it.
pub(super) fn is_established(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 == 0)
}

impl Initial {
    /// What stands in the first datagram of a connection; `None`: it is no such datagram.
    pub(super) fn read(datagram: &[u8]) -> Option<Initial> {
        let (first, rest) = datagram.split_first()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let is_initial = first & 0xf0 == 0xc0 && *version == [0, 0, 0, 1];
        if !is_initial || datagram.len() < DATAGRAM_MIN {
            return None;
        }
        let (to, rest) = id(rest)?;
        let (from, _) = id(rest)?;
        Some(Initial { to, from })
    }

    /// A datagram that ends the handshake, for the server; `None`: this cipher is not there.
    pub(super) fn close(&self) -> Option<Vec<u8>> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        let keys = suite.keys(&self.to, Side::Client, Version::V1).local;
        let mut header = vec![FIRST, 0, 0, 0, 1];
        for id in [&self.to, &self.from] {
            header.push(id.len() as u8);
            header.extend_from_slice(id);
        }
        // No token; then the length of the rest, as a number of two bytes.
        header.push(0);
        let length = DATAGRAM_MIN - header.len() - 2;
        header.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes());
        let at_number = header.len();
        header.extend_from_slice(&NUMBER.to_be_bytes());
        // Zeros are padding.
        let mut payload = vec![0; DATAGRAM_MIN - header.len() - SEAL_LEN];
        payload[..CLOSE.len()].copy_from_slice(&CLOSE);
        let seal = keys.packet.encrypt_in_place(u64::from(NUMBER), &header, &mut payload).ok()?;
        payload.extend_from_slice(seal.as_ref());
        let (names, number) = header.split_at_mut(at_number);
        // The mask of the header comes from the first bytes of what is sealed.
        keys.header.encrypt_in_place(payload.get(..SEAL_LEN)?, &mut names[0], number).ok()?;
        header.extend_from_slice(&payload);
        Some(header)
    }
}

/// A connection id with its length in front, and what comes behind it.
fn id(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (len, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(usize::from(*len))?;
    (id.len() <= ID_MAX).then(|| (id.to_vec(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_datagram_is_told_from_others() {
        let mut first = vec![0xc0, 0, 0, 0, 1, 2, 7, 8, 1, 9];
        first.resize(DATAGRAM_MIN, 0);
        let initial = Initial { to: vec![7, 8], from: vec![9] };
        assert_eq!(Initial::read(&first), Some(initial.clone()));
        assert_eq!(Initial::read(&first[..DATAGRAM_MIN - 1]), None, "too short");
        for (at, byte) in [(0, 0xe0), (0, 0x40), (4, 2), (5, 21)] {
            let mut other = first.clone();
            other[at] = byte;
            assert_eq!(Initial::read(&other), None, "byte {at}");
        }
        for len in 0..12 {
            assert_eq!(Initial::read(&first[..len]), None);
        }
        assert!(is_established(&[0x40]) && !is_established(&[0xc0]) && !is_established(&[]));
        // What closes it looks like a first datagram of the same client.
        let close = initial.close().expect("a datagram");
        assert_eq!((close.len(), Initial::read(&close)), (DATAGRAM_MIN, Some(initial)));
    }
}

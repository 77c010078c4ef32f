//! What crosses the network, as rmw_zenoh_cpp writes it: keys, tokens, attachments and bytes.

use std::time::{SystemTime, UNIX_EPOCH};

use ros2_client::dds::rustdds::no_key::{Decode, DefaultDecoder, SerializerAdapter};
use ros2_client::dds::rustdds::{
    CDRDeserializerAdapter, CDRSerializerAdapter, RepresentationIdentifier,
};
use ros2_client::qos::{Durability, History, QosProfile, Reliability};
use ros2_client::{Name, NodeName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use crate::definition::Definition;

/// Longest message or request that is taken, in bytes. A trajectory of a thousand points of seven
/// joints is a fifth of that.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Bytes of an attachment: two numbers, the length of the gid, the gid.
const ATTACHMENT: usize = 8 + 8 + 1 + 16;
/// The header of a message in little-endian CDR.
const LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];
/// Messages that an end keeps by default. Tokens leave out this number.
const DEPTH: usize = 42;

/// The hash of `std_srvs/srv/Trigger`. Hashes of services are computed only in a test.
pub(super) const TRIGGER: &str =
    "RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f";

/// The topic or service of an end.
pub(super) struct Subject {
    /// Name of the topic or service, with a slash before it.
    pub(super) name: String,
    /// Name of the type as DDS knows it.
    pub(super) type_name: String,
    /// Hash of the type.
    pub(super) hash: String,
}

impl Subject {
    /// The subject of a topic.
    pub(super) fn of(name: &Name, definition: &Definition) -> Subject {
        let (type_name, hash) = (definition.dds_name(), definition.hash());
        Subject { name: name.to_string(), type_name, hash }
    }

    /// The subject of a service.
    pub(super) fn of_service(name: &Name, package: &str, ty: &str, hash: &str) -> Subject {
        let type_name = format!("{package}::srv::dds_::{ty}_");
        Subject { name: name.to_string(), type_name, hash: hash.to_owned() }
    }

    /// The key at which its messages or requests cross.
    pub(super) fn key(&self, domain: u16) -> String {
        let Subject { name, type_name, hash } = self;
        format!("{domain}/{}/{type_name}/{hash}", name.trim_matches('/'))
    }

    /// The keys of all messages of a topic with this name, of whatever type.
    pub(super) fn key_of_all(&self, domain: u16) -> String {
        format!("{domain}/{}/*/*", self.name.trim_matches('/'))
    }
}

/// What is declared to hear what is sent under a key, or keys. Zenoh replaces a beginning without
/// wildcards by a number, and after a short outage it may take the number of one topic for that of
/// another. A pattern that has a wildcard in its first part gets no number. It also stands for
/// domains whose numbers begin like this one: see [`is_in`].
pub(super) fn heard(key: &str) -> String {
    key.replacen('/', "$*/", 1)
}

/// Whether a key is in a domain.
pub(super) fn is_in(domain: u16, key: &str) -> bool {
    key.split_once('/').is_some_and(|(first, _)| first == domain.to_string())
}

/// The token by which others see a node, or an end of it. It holds this session's `zid`, the node,
/// and the number of the end; the node itself is end 0.
pub(super) fn token(
    domain: u16,
    zid: &str,
    end: u64,
    sort: &str,
    node: &NodeName,
    about: Option<(&Subject, String)>,
) -> String {
    let space = format!("%{}", node.namespace().trim_matches('/').replace('/', "%"));
    let node = node.base_name();
    // This node has no enclave of its own, so it is in the root enclave.
    let token = format!("@ros2_lv/{domain}/{zid}/0/{end}/{sort}/%/{space}/{node}");
    match about {
        None => token,
        Some((Subject { name, type_name, hash }, qos)) => {
            format!("{token}/{}/{type_name}/{hash}/{qos}", name.replace('/', "%"))
        }
    }
}

/// The settings in `qos` as a token has them: reliability, durability, history and depth, and three
/// that always have their defaults here. A default is written as nothing.
pub(super) fn qos_text(qos: &QosProfile) -> String {
    let reliability = match qos.reliability {
        Reliability::Reliable { .. } => "",
        Reliability::BestEffort => "2",
    };
    let durability = if qos.durability == Durability::TransientLocal { "1" } else { "" };
    let (history, depth) = match qos.history {
        History::KeepLast { depth } => ("", depth),
        History::KeepAll => ("2", DEPTH),
    };
    let depth = if depth == DEPTH { String::new() } else { depth.to_string() };
    format!("{reliability}:{durability}:{history},{depth}:,:,:,,")
}

/// The number of an end among the nodes of ROS.
pub(super) fn gid(token: &str) -> [u8; 16] {
    xxh3_128(token.as_bytes()).to_le_bytes()
}

/// What goes with each message, request and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    /// Counted by the sender: a gap is a loss.
    pub(super) number: i64,
    /// Time of sending by the sender's clock. It does not tell how long ago that was.
    pub(super) sent_unix_ns: i64,
    /// Gid of the sender; in an answer, of the caller.
    pub(super) gid: [u8; 16],
}

impl Attachment {
    /// An attachment that is sent now.
    pub(super) fn now(number: i64, gid: [u8; 16]) -> Attachment {
        Attachment { number, sent_unix_ns: unix_ns(), gid }
    }

    /// As bytes, in the way of zenoh's own serialisation for two numbers and a list of 16 bytes.
    pub(super) fn write(self) -> Vec<u8> {
        let Attachment { number, sent_unix_ns, gid } = self;
        [&number.to_le_bytes()[..], &sent_unix_ns.to_le_bytes(), &[16], &gid].concat()
    }

    /// `None`: the bytes are not an attachment. Bytes that follow it are ignored.
    pub(super) fn read(bytes: &[u8]) -> Option<Attachment> {
        let (number, rest) = bytes.get(..ATTACHMENT)?.split_first_chunk()?;
        let (sent, rest) = rest.split_first_chunk()?;
        let gid = rest.strip_prefix(&[16])?.try_into().ok()?;
        let (number, sent_unix_ns) = (i64::from_le_bytes(*number), i64::from_le_bytes(*sent));
        (number >= 0).then_some(Attachment { number, sent_unix_ns, gid })
    }
}

/// The time by the wall clock.
pub(super) fn unix_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// A message in CDR. `None`: it is too long for that.
pub(super) fn bytes_of<M: Serialize>(message: &M) -> Option<Vec<u8>> {
    let bytes = <CDRSerializerAdapter<M> as SerializerAdapter<M>>::to_bytes(message).ok()?;
    Some([&LITTLE_ENDIAN, &bytes[..]].concat())
}

/// Decodes a message. `None`: the bytes are not one.
pub(super) fn message_of<M: DeserializeOwned>(bytes: &[u8]) -> Option<M> {
    let (head, body) = bytes.split_first_chunk::<4>()?;
    let order = match head {
        [0, 1, ..] => RepresentationIdentifier::CDR_LE,
        [0, 0, ..] => RepresentationIdentifier::CDR_BE,
        _ => return None,
    };
    <CDRDeserializerAdapter<M> as DefaultDecoder<M>>::DECODER.decode_bytes(body, order).ok()
}

#[cfg(test)]
mod tests;

//! What crosses, as rmw_zenoh_cpp writes it: keys, tokens, attachments and bytes.

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

/// Most bytes of a message or a request that is taken. A trajectory of a thousand points of seven
/// joints has a fifth of it.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Bytes of an attachment: two numbers, how long the third is, the third.
const ATTACHMENT: usize = 8 + 8 + 1 + 16;
/// What stands before bytes in CDR, the least byte first.
const LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];
/// Messages that an end keeps if nobody says how many; it is not written then.
const DEPTH: usize = 42;

/// The hash of `std_srvs/srv/Trigger`. Those of services are not computed here: a test does it.
pub(super) const TRIGGER: &str =
    "RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f";

/// What an end is about.
pub(super) struct Subject {
    /// Of the topic or service, with a slash before it.
    pub(super) name: String,
    /// As DDS knows it.
    pub(super) type_name: String,
    /// Of the type.
    pub(super) hash: String,
}

impl Subject {
    /// Of a topic.
    pub(super) fn of(name: &Name, definition: &Definition) -> Subject {
        let (type_name, hash) = (definition.dds_name(), definition.hash());
        Subject { name: name.to_string(), type_name, hash }
    }

    /// Of a service.
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

/// The token by which others see a node, or an end of it: this session's `zid`, the node, which is
/// its end 0, and the number of the end.
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
    // Without an enclave of its own: the root.
    let token = format!("@ros2_lv/{domain}/{zid}/0/{end}/{sort}/%/{space}/{node}");
    match about {
        None => token,
        Some((Subject { name, type_name, hash }, qos)) => {
            format!("{token}/{}/{type_name}/{hash}/{qos}", name.replace('/', "%"))
        }
    }
}

/// What of it is not usual: reliability, durability, history and depth, and three that are always
/// usual here.
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
    /// Counted by who sends: a gap is a loss.
    pub(super) number: i64,
    /// By the sender's clock: how long ago that is, nobody knows.
    pub(super) sent_unix_ns: i64,
    /// Of who sends; in an answer, of who has asked.
    pub(super) gid: [u8; 16],
}

impl Attachment {
    /// One that is sent now.
    pub(super) fn now(number: i64, gid: [u8; 16]) -> Attachment {
        Attachment { number, sent_unix_ns: unix_ns(), gid }
    }

    /// As zenoh's own serialisation writes two numbers and a list of 16 bytes.
    pub(super) fn write(self) -> Vec<u8> {
        let Attachment { number, sent_unix_ns, gid } = self;
        [&number.to_le_bytes()[..], &sent_unix_ns.to_le_bytes(), &[16], &gid].concat()
    }

    /// `None`: it is none. What follows is for others.
    pub(super) fn read(bytes: &[u8]) -> Option<Attachment> {
        let (number, rest) = bytes.get(..ATTACHMENT)?.split_first_chunk()?;
        let (sent, rest) = rest.split_first_chunk()?;
        let gid = rest.strip_prefix(&[16])?.try_into().ok()?;
        let (number, sent_unix_ns) = (i64::from_le_bytes(*number), i64::from_le_bytes(*sent));
        (number >= 0).then_some(Attachment { number, sent_unix_ns, gid })
    }
}

/// By the clock on the wall.
pub(super) fn unix_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// A message in CDR. `None`: it is too long for that.
pub(super) fn bytes_of<M: Serialize>(message: &M) -> Option<Vec<u8>> {
    let bytes = <CDRSerializerAdapter<M> as SerializerAdapter<M>>::to_bytes(message).ok()?;
    Some([&LITTLE_ENDIAN, &bytes[..]].concat())
}

/// The message that these bytes are. `None`: they are none.
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

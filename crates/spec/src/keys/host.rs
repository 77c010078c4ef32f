//! The keys of hosts, and of links between them.

use sinew_plan::catalogue::ParameterType;

use super::Shape::{self, Fields};
use super::{Key, Table, duration, optional, required};

/// Most hosts of a graph: a report about all the others must fit into a request to the supervisor.
pub const HOSTS_MAX: usize = 24;

/// A host.
pub(crate) static HOST: Table = Table {
    what: "a host",
    keys: &[
        optional(
            "address",
            Shape::Value(ParameterType::Text),
            "Where the other hosts reach it: NAME:PORT. Of two hosts with links between them, one \
             needs an address, or both need a 'router'.",
        ),
        optional(
            "listen",
            Shape::Value(ParameterType::Text),
            "Where it listens: ADDRESS:PORT. Default: at all its addresses, at the port of \
             'address'.",
        ),
        optional(
            "router",
            Shape::Value(ParameterType::Text),
            "A router of Zenoh that it connects to: NAME:PORT. Two hosts that both name one are \
             connected through it.",
        ),
        optional(
            "tls",
            Fields(&TLS),
            "Its certificate, and how it checks those of the other hosts. Default: no encryption, \
             and everyone who reaches the port is trusted.",
        ),
        optional(
            "key",
            Shape::Value(ParameterType::Path),
            "A file with a secret of 32 to 4096 bytes, the same on all hosts. With it each host \
             seals what it sends, and takes nothing that is not sealed. Default: no seal.",
        ),
    ],
};

/// The certificate of a host.
static TLS: Table = Table {
    what: "tls",
    keys: &[
        required(
            "ca",
            Shape::Value(ParameterType::Path),
            "A PEM file with the authorities that sign the certificates of the other hosts.",
        ),
        required(
            "certificate",
            Shape::Value(ParameterType::Path),
            "A PEM file with its own certificate. The CN is the host's name (with a router \
             GRAPH@HOST), and the certificate names the 'address', too.",
        ),
        required(
            "key",
            Shape::Value(ParameterType::Path),
            "A PEM file with the private key of its certificate.",
        ),
    ],
};

/// The age at which a message from another host is dropped.
pub(super) const AFTER: Key = optional(
    "after",
    duration(AFTER_NS_MIN, 10_000_000_000),
    "On a link from another host into the core: a message that is older is dropped. \
             Default: 100ms.",
);

/// Least age at which a message from another host may be dropped, ns.
const AFTER_NS_MIN: u64 = 5_000_000;
/// The age at which it is dropped if the link does not give one, ns.
pub(crate) const AFTER_NS: u64 = 100_000_000;

//! What is measured: every link that the runtime has, in every size.

use sinew_core::transport::{LinkShape, TRANSPORTS, row};
use sinew_spec::plan::{Delivery, Sync, Transport, Wait};

use crate::harness::{Access, Placement, What};
use crate::report::{Axis, Row};

/// Bytes of a message.
pub(super) const SIZES: [u32; 8] = [8, 48, 64, 256, 1024, 8192, 65536, 1_048_576];

/// The axes of the rows. `token` and `pair` are the references. There is an axis `cpus` if some
/// CPUs are farther apart than others, and `value` for the reads.
pub(super) const AXES: &[Axis] = &[
    Axis {
        name: "transport",
        values: &["token", "pair", "in_process", "shared_memory", "pipe", "unix", "tcp"],
    },
    Axis { name: "sync", values: &["lock_free", "mutex"] },
    Axis { name: "delivery", values: &["queue", "latest", "broadcast"] },
    Axis { name: "wait", values: &["spin", "yield", "park", "spin_then_park"] },
    Axis { name: "placement", values: &["one_thread", "threads", "processes"] },
    Axis { name: "access", values: &["copied", "in_place"] },
    Axis { name: "value", values: &["old", "new", "written_meanwhile"] },
    Axis { name: "bytes", values: &["8", "48", "64", "256", "1024", "8192", "65536", "1048576"] },
    Axis { name: "cpus", values: &["near", "far"] },
];

/// A link and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario) struct Case {
    pub(in crate::scenario) transport: Transport,
    pub(in crate::scenario) sync: Sync,
    pub(in crate::scenario) delivery: Delivery,
    pub(in crate::scenario) wait: Wait,
    pub(in crate::scenario) placement: Placement,
    pub(in crate::scenario) access: Access,
    pub(in crate::scenario) bytes: u32,
}

/// What [`Case::shape`] decides, in words for readers.
pub(super) const CAPACITIES: &str = "links hold 8 messages for round trips, 2 if larger than 8 \
    KiB; for throughput 1024, or as many as fit into 1 MiB, at least 2";

/// Bytes of all messages that a link holds for throughput; more would not fit into the caches.
const HELD_BYTES: u32 = 1 << 20;

impl Case {
    /// Its row; the row's id is all that the far side's process needs to know.
    pub(super) fn row(&self) -> Row {
        Row::of(&[
            ("transport", self.transport.word()),
            ("sync", self.sync.word()),
            ("delivery", self.delivery.word()),
            ("wait", self.wait.word()),
            ("placement", self.placement.word()),
            ("access", self.access.word()),
            ("bytes", &self.bytes.to_string()),
        ])
    }

    /// The case of a row with this id; `None` if it is anything else.
    pub(super) fn parse(id: &str) -> Option<Case> {
        let words: Vec<_> = id.split('/').collect();
        let [transport, sync, delivery, wait, placement, access, bytes] = words[..] else {
            return None;
        };
        Some(Case {
            transport: by_word(Transport::ALL, transport)?,
            sync: by_word(Sync::ALL, sync)?,
            delivery: by_word(Delivery::ALL, delivery)?,
            wait: by_word(Wait::ALL, wait)?,
            placement: placement.parse().ok()?,
            access: access.parse().ok()?,
            bytes: bytes.parse().ok()?,
        })
    }

    /// The shape of its links.
    pub(in crate::scenario) fn shape(&self, what: What) -> LinkShape {
        let capacity = match what {
            // As a graph would have it. For the largest messages, only as many as fit into a cache.
            What::RoundTrip if self.bytes <= 8192 => 8,
            What::RoundTrip => 2,
            What::PerMessage => (HELD_BYTES / self.bytes).clamp(2, 1024),
        };
        LinkShape {
            message_size: self.bytes,
            type_hash: 0,
            capacity,
            sync: self.sync,
            delivery: self.delivery,
            wait: self.wait,
            tuning: None,
        }
    }

    /// Whether a message crosses in a byte stream of the kernel.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.transport, Transport::Pipe | Transport::Unix | Transport::Tcp)
    }

    /// Whether its sides poll and nothing else.
    pub(super) fn polls(&self) -> bool {
        self.wait == Wait::Spin
    }

    /// What is measured: throughput only if no message can be lost.
    pub(super) fn measures(&self) -> &'static [What] {
        match self.delivery {
            Delivery::Queue => What::ALL,
            Delivery::Latest | Delivery::Broadcast => &[What::RoundTrip],
        }
    }
}

/// All cases.
pub(super) fn all() -> Vec<Case> {
    let mut cases = vec![];
    // A link to a guest needs a guest: the scenario `guest` has it.
    let ours = TRANSPORTS.iter().filter(|row| row.transport != Transport::CarveOut);
    for transport in ours {
        for &sync in transport.syncs {
            for &(delivery, _) in Delivery::ALL {
                for &(wait, _) in Wait::ALL {
                    for &placement in Placement::ALL {
                        let case =
                            Case { sync, delivery, wait, placement, ..copied(transport.transport) };
                        cases.extend(sizes(case, &SIZES));
                    }
                }
            }
        }
    }
    for transport in [Transport::InProcess, Transport::SharedMemory] {
        for &placement in Placement::ALL {
            let case = Case { placement, access: Access::InPlace, ..copied(transport) };
            cases.extend(sizes(case, &SIZES));
        }
    }
    cases.retain(exists);
    cases
}

/// The short form: the fast links in all sizes, and enough of the others to see what they cost.
pub(super) fn quick() -> Vec<Case> {
    let mut cases = vec![];
    let mut add = |case, bytes: &[u32]| {
        let placed = Placement::ALL.iter().map(|&placement| Case { placement, ..case });
        cases.extend(placed.flat_map(|case| sizes(case, bytes)));
    };
    for transport in [Transport::InProcess, Transport::SharedMemory] {
        let queue = copied(transport);
        add(queue, &SIZES);
        add(Case { access: Access::InPlace, ..queue }, &[65536, 1_048_576]);
        add(Case { delivery: Delivery::Latest, ..queue }, &[48]);
        add(Case { sync: Sync::Mutex, wait: Wait::Park, ..queue }, &[8, 256, 65536]);
    }
    // The cost of the mutex and the cost of sleeping, each alone.
    add(Case { sync: Sync::Mutex, ..copied(Transport::InProcess) }, &[8]);
    add(Case { wait: Wait::Park, ..copied(Transport::InProcess) }, &[8]);
    for transport in [Transport::Pipe, Transport::Unix, Transport::Tcp] {
        add(Case { wait: Wait::Park, ..copied(transport) }, &[8, 256, 65536]);
    }
    cases.retain(exists);
    cases
}

/// A queue that polls, of 8 bytes, between threads.
pub(super) fn copied(transport: Transport) -> Case {
    Case {
        transport,
        sync: Sync::LockFree,
        delivery: Delivery::Queue,
        wait: Wait::Spin,
        placement: Placement::Threads,
        access: Access::Copied,
        bytes: 8,
    }
}

fn sizes(case: Case, bytes: &[u32]) -> impl Iterator<Item = Case> {
    bytes.iter().map(move |&bytes| Case { bytes, ..case })
}

fn exists(case: &Case) -> bool {
    case.placement == Placement::Threads || row(case.transport).crosses_processes
}

fn by_word<T: Copy>(table: &[(T, &str)], word: &str) -> Option<T> {
    table.iter().find(|row| row.1 == word).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_there_once_and_survives_the_way_to_another_process() {
        let all = all();
        // 144 combinations that copy and 3 that work in place, in 8 sizes each.
        assert_eq!(all.len(), (144 + 3) * SIZES.len());
        let ids: BTreeSet<_> = all.iter().map(|case| case.row().id()).collect();
        assert_eq!(ids.len(), all.len());
        for case in &all {
            assert_eq!(Case::parse(&case.row().id()), Some(*case));
        }
        assert!(quick().iter().all(|case| all.contains(case)));
    }

    #[test]
    fn every_axis_of_a_row_can_be_asked_for() {
        for (name, value) in all().iter().flat_map(|case| case.row().axes) {
            let axis = AXES.iter().find(|axis| axis.name == name).expect("it is listed");
            assert!(axis.values.contains(&value.as_str()), "{name}={value}");
        }
    }

    #[test]
    fn anything_else_is_no_case() {
        for id in ["", "pipe", "pipe/lock_free/queue/park/threads/copied/x", "a/b/c/d/e/f/8"] {
            assert_eq!(Case::parse(id), None, "{id}");
        }
    }
}

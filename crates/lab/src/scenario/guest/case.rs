//! What is measured: how a payload crosses and over what, how both sides wait, and where they run.

use crate::report::{Axis, Row};
use crate::scenario::jung_kim::SIZE_WORDS;
use crate::words::words;

/// The sizes of the short form; the bars need 8 B, 64 B and 1 MiB.
pub(super) const QUICK_SIZES: [usize; 5] = [8, 64, 1024, 65_536, 1_048_576];

/// The axes of the rows; `start` is the row for how soon the guest is up.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "access", values: &["descriptor", "read", "copied", "start"] },
    Axis { name: "over", values: Over::WORDS },
    Axis { name: "wait", values: Waiting::WORDS },
    Axis { name: "cpus", values: &["one", "two"] },
    Axis { name: "bytes", values: &SIZE_WORDS },
];

words! {
    /// How a payload crosses.
    pub(super) enum Carriage {
        /// A message says where the payload is, and nobody reads it.
        Descriptor = "descriptor",
        /// A message says where the payload is, and the guest adds up its words.
        Read = "read",
        /// The payload is the message.
        Copied = "copied",
    }
}

words! {
    /// What the payload crosses.
    pub(super) enum Over {
        /// A link.
        Link = "link",
        /// A raw ring, with the same cache operations as a link.
        Ring = "ring",
        /// A link without the guest's ports, which leaves caches to the hardware.
        BareLink = "bare_link",
        /// A raw ring that also leaves caches to the hardware.
        BareRing = "bare_ring",
    }
}

words! {
    /// How both sides wait.
    pub(super) enum Waiting {
        /// They poll.
        Polling = "polling",
        /// They sleep until the bell rings.
        Doorbell = "doorbell",
        /// They poll for a while, then sleep.
        SpinThenDoorbell = "spin_then_doorbell",
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuestCase {
    pub(super) crossing: Carriage,
    pub(super) over: Over,
    pub(super) wait: Waiting,
    /// Whether each side has a CPU of its own.
    pub(super) on_two: bool,
    pub(super) bytes: usize,
}

/// What is measured for each size.
const OF_EACH_SIZE: [(Carriage, Over, Waiting, bool); 9] = [
    (Carriage::Descriptor, Over::Link, Waiting::Polling, true),
    (Carriage::Read, Over::Link, Waiting::Polling, true),
    (Carriage::Copied, Over::Ring, Waiting::Polling, true),
    (Carriage::Copied, Over::Link, Waiting::Polling, true),
    (Carriage::Copied, Over::BareRing, Waiting::Polling, true),
    (Carriage::Copied, Over::BareLink, Waiting::Polling, true),
    (Carriage::Copied, Over::Link, Waiting::SpinThenDoorbell, true),
    (Carriage::Copied, Over::Link, Waiting::Doorbell, true),
    (Carriage::Copied, Over::Link, Waiting::Doorbell, false),
];

impl GuestCase {
    /// All rows of these sizes. Rows of one size are next to each other: they share a guest.
    pub(super) fn all(sizes: &[usize]) -> Vec<GuestCase> {
        let of = |&bytes: &usize| {
            OF_EACH_SIZE.map(|(crossing, over, wait, on_two)| GuestCase {
                crossing,
                over,
                wait,
                on_two,
                bytes,
            })
        };
        sizes.iter().flat_map(of).collect()
    }

    /// Its row in the report.
    pub(super) fn row(&self) -> Row {
        Row::of(&[
            ("access", self.crossing.word()),
            ("over", self.over.word()),
            ("wait", self.wait.word()),
            ("cpus", if self.on_two { "two" } else { "one" }),
            ("bytes", &self.bytes.to_string()),
        ])
    }

    /// Whether neither side ever sleeps.
    pub(super) fn polls(&self) -> bool {
        self.wait == Waiting::Polling
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::jung_kim::SIZES;

    #[test]
    fn every_row_stands_on_the_axes_and_none_twice() {
        let rows: Vec<_> = GuestCase::all(&SIZES).iter().map(GuestCase::row).collect();
        for row in &rows {
            for (name, value) in &row.axes {
                let axis = AXES.iter().find(|axis| axis.name == name).expect("an axis");
                assert!(axis.values.contains(&value.as_str()), "{name}={value}");
            }
            assert_eq!(rows.iter().filter(|other| other.axes == row.axes).count(), 1);
        }
        assert!(QUICK_SIZES.iter().all(|size| SIZES.contains(size)));
    }
}

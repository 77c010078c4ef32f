//! Doors between service domains, through which packets cross: pairs of sockets that outlive the
//! processes of both sides. A connection that nobody has taken yet waits in the door for the next
//! process.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use sinew_core::sys::Region;
use sinew_spec::plan::Plan;

/// A link or a domain, and the number of a descriptor.
pub(super) type Numbers = Vec<(usize, RawFd)>;

/// The number of a region's descriptor; -1 if it has none.
pub(super) fn number(region: &Region) -> RawFd {
    region.file().map_or(-1, |file: BorrowedFd<'_>| file.as_raw_fd())
}

/// By calling and called domain: the end of each.
#[derive(Default)]
pub(super) struct Doors(BTreeMap<(usize, usize), (UnixDatagram, UnixDatagram)>);

impl Doors {
    /// The doors of a plan.
    pub(super) fn open(plan: &Plan) -> io::Result<Doors> {
        let open = |pair| Ok((pair, UnixDatagram::pair()?));
        plan.doors().into_iter().map(open).collect::<io::Result<_>>().map(Doors)
    }

    /// The domains that `domain` calls, each with the descriptor of its door.
    pub(super) fn calls_of(&self, domain: usize) -> Numbers {
        let doors = self.0.iter().filter(|((from, _), _)| *from == domain);
        doors.map(|((_, to), (end, _))| (*to, end.as_raw_fd())).collect()
    }

    /// The domains that call `domain`.
    pub(super) fn called_of(&self, domain: usize) -> Numbers {
        let doors = self.0.iter().filter(|((_, to), _)| *to == domain);
        doors.map(|((from, _), (_, end))| (*from, end.as_raw_fd())).collect()
    }
}

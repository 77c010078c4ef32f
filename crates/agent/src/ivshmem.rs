//! Memory and bells for an emulator: the server's half of QEMU's ivshmem protocol
//! (docs/specs/ivshmem-spec in QEMU), with all messages sent in advance.
//!
//! Each message is a number of 8 bytes, little-endian, and may carry a descriptor. All messages of
//! a server to a single client fit into the socket. So there is no server, only our end, which
//! stays open as long as the emulator lives.
//!
//! ```text
//! 0            version of the protocol
//! 1            which peer the guest is
//! 0 + eventfd  for each bell of Linux, peer 0: how the guest rings it
//! -1 + memfd   the memory
//! 1 + eventfd  for each bell of the guest: how it hears it
//! ```
//! The specification has the memory third, but says that a client must not depend on it. QEMU
//! handles messages before the memory while it creates its devices, and messages after it while the
//! guest already runs; a ring without a descriptor is lost. So the bells of Linux come before the
//! memory. The bells of the guest must come after it, as QEMU creates the interrupts only then.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use sinew_carve_out::RegionRow;
use sinew_core::bell::Bell;
use sinew_core::transport::Doorbell;

/// The bells of one life, as many in each direction. The first is the keeper's. The others wake
/// sides that sleep at a link.
#[derive(Debug)]
pub struct GuestBells {
    /// The guest rings, Linux hears.
    pub of_linux: Vec<Bell>,
    /// Linux rings, the guest hears.
    pub of_guest: Vec<Bell>,
}

impl GuestBells {
    /// The keeper's bell, and the bells of these rows.
    ///
    /// # Errors
    /// What eventfd says.
    pub fn of(rows: &[RegionRow]) -> io::Result<GuestBells> {
        let last = rows.iter().map(|row| row.link.bell).max().unwrap_or(0);
        let all = || (0..=last).map(|_| Bell::create()).collect::<io::Result<_>>();
        Ok(GuestBells { of_linux: all()?, of_guest: all()? })
    }

    /// Count of bells in each direction.
    pub fn count(&self) -> usize {
        self.of_linux.len()
    }

    /// The bell with this number, in both directions. The number for a link is in its row.
    ///
    /// # Errors
    /// There are too many descriptors.
    ///
    /// # Panics
    /// There is no such bell.
    pub fn doorbell(&self, number: usize) -> io::Result<Doorbell> {
        let [hears, rings] = [&self.of_linux, &self.of_guest].map(|all| all[number].try_clone());
        Ok(Doorbell { hears: hears?, rings: rings? })
    }
}

/// A connection on which all messages have been sent.
#[derive(Debug)]
pub struct Served {
    /// Must be kept as long as the emulator lives.
    pub ours: OwnedFd,
    /// The emulator's end.
    pub emulators: OwnedFd,
}

const VERSION: i64 = 0;
const LINUX: i64 = 0;
const GUEST: i64 = 1;
const MEMORY: i64 = -1;

/// Makes a connection from which an emulator gets this memory and these bells. Never waits.
///
/// # Errors
/// The error of socketpair or sendmsg. sendmsg fails if this user has too many descriptors in
/// transit (`RLIMIT_NOFILE`).
pub fn serve(memory: BorrowedFd<'_>, bells: &GuestBells) -> io::Result<Served> {
    let (unix, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let (ours, emulators) = socketpair(unix, SocketType::STREAM, flags, None)?;
    say(&ours, VERSION, None)?;
    say(&ours, GUEST, None)?;
    for bell in &bells.of_linux {
        say(&ours, LINUX, Some(bell.as_fd()))?;
    }
    say(&ours, MEMORY, Some(memory))?;
    for bell in &bells.of_guest {
        say(&ours, GUEST, Some(bell.as_fd()))?;
    }
    Ok(Served { ours, emulators })
}

fn say(socket: &OwnedFd, number: i64, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        let has_room = with.push(SendAncillaryMessage::ScmRights(&descriptors));
        assert!(has_room, "the space is for one descriptor");
    }
    let (word, flags) = (number.to_le_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    match sendmsg(socket, &[IoSlice::new(&word)], &mut with, flags)? {
        8 => Ok(()),
        sent => Err(io::Error::other(format!("the socket took {sent} of 8 bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use rustix::time::Timespec;
    use sinew_core::sys::Region;

    use super::*;

    /// Count of bells in each direction.
    const COUNT: usize = 8;

    fn bells() -> GuestBells {
        let all = || (0..COUNT).map(|_| Bell::create()).collect::<io::Result<_>>().expect("bells");
        GuestBells { of_linux: all(), of_guest: all() }
    }

    /// The next message, as QEMU reads it.
    fn hear(socket: &OwnedFd) -> Option<(i64, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0; 8];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let heard = recvmsg(socket, &mut [IoSliceMut::new(&mut word)], &mut with, flags).ok()?;
        assert_eq!(heard.bytes, 8, "a message is 8 bytes");
        let mut descriptors = Vec::new();
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        assert!(descriptors.len() <= 1, "one descriptor at most");
        Some((i64::from_le_bytes(word), descriptors.pop()))
    }

    /// Indices of the bells that ring.
    fn ringing(bells: &[Bell]) -> Vec<usize> {
        let rings = |bell: &Bell| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&now)).expect("poll") == 1
        };
        (0..bells.len()).filter(|&at| rings(&bells[at])).collect()
    }

    #[test]
    fn an_emulator_hears_all_that_it_needs_before_it_asks() {
        let memory = Region::shared("test", 65_536).expect("memfd");
        let bells = bells();
        let served = serve(memory.file().expect("a descriptor"), &bells).expect("served");
        let heard: Vec<_> = std::iter::from_fn(|| hear(&served.emulators)).collect();
        let numbers: Vec<_> =
            heard.iter().map(|(number, with)| (*number, with.is_some())).collect();
        let mut expected = vec![(0, false), (1, false)];
        expected.extend([(0, true); COUNT]);
        expected.push((-1, true));
        expected.extend([(1, true); COUNT]);
        assert_eq!(numbers, expected);
        let mut descriptors = heard.into_iter().filter_map(|(_, with)| with);
        for (at, linux) in descriptors.by_ref().take(COUNT).enumerate() {
            Bell::adopt(linux).ring();
            assert_eq!(ringing(&bells.of_linux), [at]);
            bells.of_linux[at].hush();
        }
        let seen = Region::map(descriptors.next().expect("the memory")).expect("it is a region");
        let (word, relaxed) = (0xfeed, std::sync::atomic::Ordering::Relaxed);
        memory.words()[7].store(word, relaxed);
        assert_eq!(seen.words()[7].load(relaxed), word);
        for (at, guest) in descriptors.enumerate() {
            let hears = Bell::adopt(guest);
            bells.of_guest[at].ring();
            assert_eq!(ringing(&bells.of_guest), [at]);
            hears.hush();
            assert_eq!(ringing(&bells.of_guest), [0; 0]);
        }
    }
}

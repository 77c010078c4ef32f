//! The keeper: starts an emulator for one life of a guest, and watches both.
//!
//! The guest may write anything at any time, so what it wrote is copied, then checked, then used.
//! Nothing here waits for the guest.

mod console;
mod emulator;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use sinew_carve_out::{
    BELLS_MAX, BadCarveOut, CarveOut, GuestFault, GuestState, NODES_MAX, NodeRow, NodeTally, Order,
    ROWS_MAX, RegionRow, SideState,
};
use sinew_core::clock::{now_ns, timespec};
use sinew_core::sys::Region;

use self::emulator::Emulator;
use crate::boards::{BoardRow, EmulatorStart};
use crate::desk::Desk;
use crate::ivshmem::{self, GuestBells};

/// Number of the bell with which keeper and guest wake each other.
const KEEPERS: usize = 0;
/// Least time from the end of one wait to the next ring or line that can end a wait. A thousand
/// looks a second are enough for any use.
pub const PAUSE_NS: u64 = 1_000_000;

/// The inputs of a life.
#[derive(Debug)]
pub struct GuestSetup<'a> {
    /// The ELF file to run.
    pub image: &'a Path,
    /// The board to run it on.
    pub board: &'a BoardRow,
    /// The memory that both sides see, with a descriptor. It may hold what an earlier life has
    /// left. Others create the links in it.
    pub carve_out: Region,
    /// The nodes that it is to run.
    pub nodes: &'a [NodeRow],
    /// The regions in the memory.
    pub rows: &'a [RegionRow],
    /// The keeper's bell, and the bells of the rows.
    pub bells: GuestBells,
}

/// The progress of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestProgress {
    /// It boots, or makes its nodes.
    Starting,
    /// It waits for the order to run its nodes.
    Ready,
    /// Its nodes run.
    Running,
    /// It has stopped as it was told to.
    Stopped,
    /// It could not go on, and recorded why. The process may also have ended.
    Faulted(GuestFault),
    /// The emulator has ended, and the guest has recorded no fault. [`Keeper::state`] tells whether
    /// it had stopped before.
    Ended(ExitStatus),
    /// It wrote something that no correct guest writes.
    Nonsense(&'static str),
}

/// A guest in one of its lives. Dropping it kills the emulator, which takes a moment.
#[derive(Debug)]
pub struct Keeper {
    carve_out: CarveOut<Region>,
    epoch: u32,
    /// The highest state that it has reached.
    furthest: GuestState,
    /// The named things in the memory, and the guest's requests.
    pub desk: Desk,
    bells: GuestBells,
    emulator: Emulator,
    /// When the last wait ended.
    waited_ns: Cell<u64>,
    /// Our end of the connection through which the emulator got memory and bells.
    _server: OwnedFd,
}

impl Keeper {
    /// Begins a new life: writes nodes and rows into the carve-out, and starts the emulator.
    ///
    /// # Errors
    /// The setup does not fit the board or the carve-out, or the kernel's error: most often that
    /// there is no emulator.
    pub fn start(setup: GuestSetup<'_>) -> io::Result<Keeper> {
        check(&setup).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let GuestSetup { image, board, carve_out, nodes, rows, bells } = setup;
        let (carve_out, before) = open(carve_out).map_err(io::Error::other)?;
        let epoch = before.wrapping_add(1).max(1);
        carve_out.begin(epoch, nodes, rows);
        // The guest does not run yet, so this reads what was just written.
        let (_, header) = CarveOut::open(carve_out.memory().clone()).map_err(io::Error::other)?;
        let desk = Desk::open(&carve_out, &header).map_err(io::Error::other)?;
        let memory = carve_out.memory().file();
        let memory = memory.ok_or_else(|| io::Error::other("the carve-out has no descriptor"))?;
        let served = ivshmem::serve(memory, &bells)?;
        let given = served.emulators.as_raw_fd();
        let command =
            (board.command)(&EmulatorStart { image, bells: given, vectors: bells.count() });
        let emulator =
            Emulator::start(command, given).map_err(|error| match (board.missing)() {
                Some(missing) if error.kind() == io::ErrorKind::NotFound => {
                    io::Error::new(error.kind(), missing)
                }
                _ => error,
            })?;
        Ok(Keeper {
            carve_out,
            epoch,
            furthest: GuestState::Absent,
            desk,
            bells,
            emulator,
            waited_ns: Cell::new(0),
            _server: served.ours,
        })
    }

    /// Gives the guest an order, and wakes it up.
    pub fn order(&self, order: Order) {
        self.carve_out.order(order);
        self.bells.of_guest[KEEPERS].ring();
    }

    /// Rings the guest this many times.
    pub fn ring(&self, times: u32) {
        (0..times).for_each(|_| self.bells.of_guest[KEEPERS].ring());
    }

    /// The memory that both sides see.
    pub fn memory(&self) -> &Region {
        self.carve_out.memory()
    }

    /// Beats the heart of Linux, answers some of the guest's requests, hands lines of the console
    /// to `print`, and returns the progress of the guest. Never waits. If a guest prints without
    /// end, its output is read in portions. A recorded fault is returned before the end of the
    /// process.
    pub fn look(&mut self, print: &mut dyn FnMut(&str)) -> GuestProgress {
        self.carve_out.beat_of_linux();
        if self.desk.serve() {
            self.ring(1);
        }
        // This comes first, so that anything the guest did before it ended is seen below.
        let ended = self.emulator.reap();
        self.emulator.console.read(print);
        if let Some(fault) = self.carve_out.fault() {
            return GuestProgress::Faulted(fault);
        }
        if let Some(status) = ended {
            return GuestProgress::Ended(status);
        }
        let Some(state) = self.state() else {
            return GuestProgress::Nonsense("the guest's state is a number without a meaning");
        };
        if (state as u32) < self.furthest as u32 {
            return GuestProgress::Nonsense("the guest's state changed backwards");
        }
        self.furthest = state;
        match state {
            GuestState::Absent | GuestState::Starting => GuestProgress::Starting,
            GuestState::Ready => GuestProgress::Ready,
            GuestState::Running => GuestProgress::Running,
            GuestState::Stopped => GuestProgress::Stopped,
            GuestState::Faulted => GuestProgress::Nonsense("the guest has a fault without a text"),
        }
    }

    /// Waits until there is something to [`Keeper::look`] at, up to `timeout`: the guest has rung,
    /// printed or ended. A ring or a line within [`PAUSE_NS`] of the last wait's end is handled
    /// only after that time. So a guest that rings or prints without end costs a bounded part of a
    /// CPU.
    pub fn wait(&self, timeout: Duration) {
        if self.emulator.has_ended() {
            return;
        }
        let until_ns =
            now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let end = PollFd::new(&self.emulator, PollFlags::IN);
        if !wait_for(&mut [end.clone()], until_ns.min(self.waited_ns.get() + PAUSE_NS)) {
            let bell = PollFd::new(&self.bells.of_linux[KEEPERS], PollFlags::IN);
            let console = self.emulator.console.source();
            let console = console.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN));
            let mut ends: Vec<_> = [end, bell].into_iter().chain(console).collect();
            wait_for(&mut ends, until_ns);
        }
        // Before the caller looks: a ring from now on is heard by the next wait.
        self.bells.of_linux[KEEPERS].hush();
        self.waited_ns.set(now_ns());
    }

    /// The state of the guest as it wrote it; `None` if that is nonsense.
    pub fn state(&self) -> Option<GuestState> {
        self.carve_out.state(self.epoch)
    }

    /// Which life this is, from 1.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How often the guest has said that it is alive, modulo 2^32.
    pub fn beats_of_guest(&self) -> u32 {
        self.carve_out.beats_of_guest()
    }

    /// What node `node` has done so far.
    ///
    /// # Panics
    /// A guest cannot have so many nodes.
    pub fn tally(&self, node: usize) -> NodeTally {
        self.carve_out.tally(node)
    }

    /// The guest's state of row `row`; `None` if it wrote nonsense.
    ///
    /// # Panics
    /// A carve-out cannot have so many rows.
    pub fn side(&self, row: usize) -> Option<SideState> {
        self.carve_out.side(row)
    }

    /// The bells of this life, for links with sleeping readers. The first is the keeper's.
    pub fn bells(&self) -> &GuestBells {
        &self.bells
    }

    /// Number of the emulator's process.
    pub fn process(&self) -> u32 {
        self.emulator.id()
    }

    /// Sends a signal to the emulator, for a drill.
    pub fn signal(&self, signal: Signal) {
        self.emulator.signal(signal);
    }
}

/// Whether one of these becomes ready before `until_ns` of the monotonic clock.
fn wait_for(ends: &mut [PollFd<'_>], until_ns: u64) -> bool {
    let left = timespec(until_ns.saturating_sub(now_ns()));
    // A signal ends the wait early; the caller looks.
    poll(ends, Some(&left)).is_ok_and(|ready| ready > 0)
}

/// Says what is not possible in a setup.
fn check(setup: &GuestSetup<'_>) -> Result<(), String> {
    let GuestSetup { board, carve_out, nodes, rows, bells, .. } = setup;
    let size = carve_out.size();
    if let Some(why) = board.refuses_memory(size) {
        return Err(why);
    }
    let counts = [
        ("nodes", nodes.len(), NODES_MAX),
        ("rows", rows.len(), ROWS_MAX),
        ("bells", bells.count(), BELLS_MAX),
    ];
    for (what, found, most) in counts {
        if found > most {
            return Err(format!("the guest has {found} {what}, at most {most}"));
        }
    }
    for row in *rows {
        let (name, bell) = (row.name, row.link.bell);
        if !row.lies_in(size) {
            let (offset, len) = (row.offset, row.size);
            return Err(format!(
                "row '{name}' has {len} bytes from {offset:#x}, which is not behind the tables in \
                 {size} bytes, from the start of a page"
            ));
        }
        if bell as usize >= bells.count() {
            return Err(format!(
                "row '{name}' has bell {bell}, expected 0 to {}",
                bells.count() - 1
            ));
        }
        if row.link.node as usize >= nodes.len() {
            return Err(format!(
                "row '{name}' is for node {}, which does not exist",
                row.link.node
            ));
        }
    }
    Ok(())
}

/// The carve-out, and the epoch of the life before.
fn open(region: Region) -> Result<(CarveOut<Region>, u32), BadCarveOut> {
    match CarveOut::open(region.clone()) {
        Ok((carve_out, header)) => Ok((carve_out, header.epoch)),
        // A guest can write anywhere in it. A carve-out that one life has spoilt must not keep the
        // next one from starting. A wrong size is still an error.
        Err(_) => Ok((CarveOut::create(region)?, 0)),
    }
}

impl fmt::Display for GuestProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestProgress::Starting => f.write_str("the guest starts"),
            GuestProgress::Ready => f.write_str("the guest is ready"),
            GuestProgress::Running => f.write_str("the guest runs"),
            GuestProgress::Stopped => f.write_str("the guest has stopped"),
            GuestProgress::Faulted(fault) => write!(f, "{fault}"),
            GuestProgress::Ended(status) => write!(f, "the guest's emulator ended: {status}"),
            GuestProgress::Nonsense(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests;

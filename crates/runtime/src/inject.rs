//! Faults on purpose, for `sinew drill`: what is to happen, to whom and when. The process of a
//! domain makes it happen.

use std::mem;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGKILL, SIGSEGV, SIGSTOP};
use signal_hook::low_level::{emulate_default_handler, raise};
use sinew_carve_out::Trial;
use sinew_core::fault::{Cause, Fault};
use sinew_core::sys::Region;
use sinew_spec::catalogue::{MessageType, Scalar};

/// A fault that is to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The node or link that it happens to.
    pub target: Target,
    /// When: the number of the cycle of the node's thread, for a link that of its writer's thread,
    /// for a service that of its heartbeat.
    pub at_cycle: u64,
    /// What happens.
    pub what: InjectedFault,
}

/// To whom a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node: index into [`Plan::nodes`](sinew_spec::plan::Plan::nodes).
    Node(usize),
    /// A link between threads or processes, at its writing end: index into
    /// [`Plan::links`](sinew_spec::plan::Plan::links).
    Link(usize),
}

/// What happens. The first ten and the last one happen to nodes, the other three to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InjectedFault {
    /// It panics instead of its update.
    Panic,
    /// It returns an error instead of its update.
    Error,
    /// It raises SIGSEGV with the default action. (A raised one: this crate has no wild pointer to
    /// follow. The kernel ends the process in the same way.)
    Segv,
    /// It sends SIGKILL to its own process, in the middle of a cycle.
    Kill,
    /// It sends SIGSTOP to its own process, in the middle of a cycle.
    Stop,
    /// Its processor meets an undefined instruction. Only in a guest.
    Undefined,
    /// It never comes back from its update; it sleeps.
    Hang,
    /// After its update there is a NaN in each output that holds numbers.
    NotFinite,
    /// It is busy for some periods before its update.
    Late {
        /// Periods; for a service, tenths of a second, because it beats that often as it waits.
        cycles: u32,
    },
    /// It refuses to start.
    FailStart,
    /// The writing end is closed; what is written afterwards goes nowhere, and the writer is told
    /// that it went well.
    PeerGone,
    /// Some messages are held back and lost; the writer is told that they went well.
    Stalled {
        /// How many.
        messages: u64,
    },
    /// Garbage is written to all words of the region, new garbage in each of ten cycles; nothing
    /// else is sent any more. (A byte stream has no region: it stalls.)
    Hostile,
    /// No fault: a stand-in runs in place of the node, which never starts. The stand-in is busy for
    /// `busy_ns` in each cycle, and sends a message of zeros from every output.
    StandIn {
        /// ns.
        busy_ns: u64,
    },
}

impl Injection {
    /// The injections that happen to `target`, if any do.
    pub(crate) fn of(injections: &[Injection], target: Target) -> Option<Vec<Injection>> {
        let its = injections.iter().filter(|injection| injection.target == target);
        Some(its.cloned().collect::<Vec<_>>()).filter(|its| !its.is_empty())
    }

    /// A node that is only imitated, from the start of a run.
    pub fn stand_in(node: usize, busy_ns: u64) -> Injection {
        let what = InjectedFault::StandIn { busy_ns };
        Injection { target: Target::Node(node), at_cycle: 0, what }
    }

    /// How long the node's stand-in is busy, if it has one.
    pub(crate) fn stands_in(&self) -> Option<u64> {
        match self.what {
            InjectedFault::StandIn { busy_ns } => Some(busy_ns),
            _ => None,
        }
    }

    /// Fails if one of the injections keeps the target from starting.
    pub(crate) fn start(injections: &[Injection], text: &str) -> Result<(), Fault> {
        let fails = injections.iter().any(|injection| injection.what == InjectedFault::FailStart);
        if fails { Err(error(text)) } else { Ok(()) }
    }

    /// What is due at this number.
    pub(crate) fn due(injections: &[Injection], number: u64) -> Option<InjectedFault> {
        injections.iter().find(|injection| injection.at_cycle == number).map(|it| it.what)
    }
}

/// What goes wrong on purpose in a node of a guest, and before which cycle of this life; `beats`
/// were in earlier lives, so nothing happens twice.
pub(crate) fn trial(injections: &[Injection], node: usize, beats: u64) -> (Trial, u32) {
    let due = |injection: &Injection| {
        let trial = match injection.what {
            InjectedFault::Panic => Trial::Panic,
            InjectedFault::Error => Trial::Error,
            InjectedFault::Segv => Trial::DataAbort,
            InjectedFault::Undefined => Trial::Undefined,
            InjectedFault::Hang => Trial::Loop,
            InjectedFault::FailStart => return Some((Trial::FailStart, 0)),
            InjectedFault::Hostile => Trial::Garbage,
            _ => return None,
        };
        Some((trial, u32::try_from(injection.at_cycle.checked_sub(beats)?).ok()?))
    };
    of_guest(injections, node).find_map(due).unwrap_or((Trial::None, 0))
}

/// The same for a signal that its emulator is sent.
pub(crate) fn signal(injections: &[Injection], node: usize, beats: u64) -> Option<(Signal, u64)> {
    of_guest(injections, node).find_map(|injection| {
        let signal = match injection.what {
            InjectedFault::Kill => Signal::KILL,
            InjectedFault::Stop => Signal::STOP,
            _ => return None,
        };
        Some((signal, injection.at_cycle.checked_sub(beats)?))
    })
}

fn of_guest(injections: &[Injection], node: usize) -> impl Iterator<Item = &Injection> {
    injections.iter().filter(move |injection| injection.target == Target::Node(node))
}

/// Writes garbage into all words of a region.
pub(crate) fn spoil(region: &Region, random: &mut Rng) {
    for word in region.words() {
        // Relaxed: garbage is ordered after nothing.
        word.store(random.u32(..), Ordering::Relaxed);
    }
}

/// What happens to a service at its heartbeats: the only calls that every service makes.
pub(crate) struct Heartbeats {
    injections: Vec<Injection>,
    /// Whether the service is to end with an error; until then it believes that the graph stops.
    pub(crate) failed: bool,
    /// Whether the next message is spoiled.
    spoils: bool,
}

impl Heartbeats {
    pub(crate) fn new(injections: Vec<Injection>) -> Heartbeats {
        Heartbeats { injections, failed: false, spoils: false }
    }

    /// Heartbeat `number`, counted over all lives of the service: so nothing happens twice.
    pub(crate) fn beat(&mut self, number: u64) {
        match Injection::due(&self.injections, number) {
            Some(InjectedFault::Error) => self.failed = true,
            Some(InjectedFault::NotFinite) => self.spoils = true,
            Some(InjectedFault::Late { cycles }) => {
                sleep(Duration::from_millis(100 * u64::from(cycles)));
            }
            what => what.into_iter().for_each(strike),
        }
    }

    /// The message as it goes out, if something happens to it.
    pub(crate) fn spoiled(&mut self, message: &[u8], ty: &MessageType) -> Option<Vec<u8>> {
        mem::take(&mut self.spoils).then(|| {
            let mut spoiled = message.to_vec();
            write_nan(&mut spoiled, ty);
            spoiled
        })
    }
}

/// The fault of [`InjectedFault::Error`] and [`InjectedFault::FailStart`].
pub(crate) fn error(text: &str) -> Fault {
    Fault::new(Cause::Error, format_args!("injected by a drill: {text}"))
}

/// Puts a NaN in the place of the first number of a message; without effect if it has none.
pub(crate) fn write_nan(message: &mut [u8], ty: &MessageType) {
    for field in ty.fields {
        let at = field.offset as usize;
        match field.scalar {
            Scalar::F64 => return message[at..at + 8].copy_from_slice(&f64::NAN.to_ne_bytes()),
            Scalar::F32 => return message[at..at + 4].copy_from_slice(&f32::NAN.to_ne_bytes()),
            _ => {}
        }
    }
}

/// Carries out a fault that hits this thread or its whole process, whatever runs on it. Returns
/// after a [`InjectedFault::Stop`] once somebody continues the process, and at once for any other
/// sort of fault.
pub(crate) fn strike(what: InjectedFault) {
    // Nothing can be done if the kernel refuses: the party that injected the fault looks whether it
    // happened.
    let _ = match what {
        InjectedFault::Panic => panic!("injected by a drill"),
        InjectedFault::Segv => {
            leave_no_core_file();
            // With the standard library's own handler the process would survive a raised signal.
            emulate_default_handler(SIGSEGV)
        }
        InjectedFault::Kill => raise(SIGKILL),
        InjectedFault::Stop => raise(SIGSTOP),
        InjectedFault::Hang => loop {
            std::thread::park();
        },
        _ => Ok(()),
    };
}

/// A drill leaves no file behind, and a death that writes a core file takes too long.
fn leave_no_core_file() {
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    // If it is refused, there is a file.
    let _ = setrlimit(Resource::Core, limit);
}

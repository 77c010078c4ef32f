//! What is examined: one row of [`FINDINGS`] for each fact. To add one, write a reader and its row.
//!
//! A reader is a pure function of the files below a root, so that tests can give it machines of
//! their own.

mod advice;
mod cgroups;
mod interrupts;
mod kernel;
mod options;
mod others;
mod processors;
mod rights;
mod surroundings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use self::others::Stolen;
pub(crate) use self::processors::{isolated_cpus, online};
use crate::root::{Root, Unread};

/// What the machine is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    /// The CPUs that the graph would use, in order.
    pub(crate) cpus: Vec<u32>,
    /// How often it would run.
    pub(crate) period_ns: u64,
}

/// The priority that realtime threads get if the spec names none.
pub(crate) const PRIORITY: u8 = 80;

/// How good something is for a realtime thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// It alone may spoil the graph.
    Bad,
    /// It adds to the latency, or may.
    Better,
    /// It could not be read.
    Unknown,
    /// Nothing is to be done.
    Good,
}

impl Grade {
    /// All of them, worst first.
    pub(crate) const ALL: [Grade; 4] = [Grade::Bad, Grade::Better, Grade::Unknown, Grade::Good];

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Grade::Bad => "bad",
            Grade::Better => "could be better",
            Grade::Unknown => "unknown",
            Grade::Good => "good",
        }
    }
}

/// Two commands, to be run as root.
#[derive(Debug)]
pub(crate) struct Remedy {
    /// The command that makes it better.
    pub(crate) mend: String,
    /// The command that restores the present state.
    pub(crate) undo: String,
}

/// What a reader found.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) grade: Grade,
    /// What was read, in words.
    pub(crate) read: String,
    /// The files it was read from.
    pub(crate) from: Vec<String>,
    /// What mends it. `None` if nothing needs to be mended, or if nothing on this machine can mend
    /// it.
    pub(crate) remedy: Option<Remedy>,
    /// A command that shows more than we could see.
    pub(crate) show: Option<String>,
    /// What the commands do not say: from when they have effect, where they have none, and what to
    /// do where no command of root helps.
    pub(crate) note: Option<String>,
}

impl Finding {
    fn new(grade: Grade, read: impl Into<String>, from: &[&str]) -> Finding {
        let from = from.iter().map(|&path| path.into()).collect();
        Finding { grade, read: read.into(), from, remedy: None, show: None, note: None }
    }

    fn mended(self, mend: impl Into<String>, undo: impl Into<String>) -> Finding {
        let remedy = Some(Remedy { mend: mend.into(), undo: undo.into() });
        Finding { remedy, ..self }
    }

    fn shown(self, command: impl Into<String>) -> Finding {
        Finding { show: Some(command.into()), ..self }
    }

    fn noted(self, note: impl Into<String>) -> Finding {
        Finding { note: Some(note.into()), ..self }
    }

    /// A finding for a fact that is not known.
    fn unknown(why: &Unread) -> Finding {
        let finding = Finding::new(Grade::Unknown, why.to_string(), &[why.path()]);
        match why {
            Unread::Missing(_) => finding,
            _ => finding.shown(format!("sudo cat {}", why.path())),
        }
    }
}

/// The command that writes each value to the file of its number; `$i` in `path` stands for the
/// number.
fn write_each(values: impl Iterator<Item = (u32, String)>, path: &str) -> String {
    let mut by_value: BTreeMap<String, Vec<String>> = BTreeMap::new();
    values.for_each(|(number, value)| {
        by_value.entry(value).or_default().push(number.to_string());
    });
    let command = |(value, numbers): (String, Vec<String>)| match numbers.as_slice() {
        [number] => format!("echo {value} > {}", path.replace("$i", number)),
        _ => format!("for i in {}; do echo {value} > {path}; done", numbers.join(" ")),
    };
    by_value.into_iter().map(command).collect::<Vec<_>>().join("; ")
}

/// What is examined, and how.
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// Why it matters.
    pub(crate) why: &'static str,
    /// Reads it.
    read: fn(&Root, &Aim) -> Result<Finding, Unread>,
}

/// All rows: the system, the kernel, its processors, what is allowed to us, and what else runs
/// there.
pub(crate) const FINDINGS: &[Row] = &[
    Row {
        name: "system",
        why: "where things are set, and by which commands, differs from system to system",
        read: surroundings::system,
    },
    Row {
        name: "container",
        why: "in a container the kernel's settings are those of the machine, and the rights are \
              given where it is started",
        read: surroundings::container,
    },
    Row {
        name: "preemption",
        why: "a woken thread waits while another one is in the kernel: with PREEMPT_RT almost \
              never, with 'full' until the next spinlock is released, with 'none' until the \
              kernel has finished",
        read: kernel::preemption,
    },
    Row {
        name: "timers",
        why: "with high resolution timers a wake-up comes at its time, without them at the next \
              interrupt of HZ",
        read: kernel::timers,
    },
    Row {
        name: "timer migration",
        why: "the kernel may put the timer of an idle CPU on another one, whose work then delays \
              the wake-up",
        read: kernel::timer_migration,
    },
    Row {
        name: "clock source",
        why: "the counter of the CPU is read in nanoseconds; a timer chip takes a microsecond or \
              more, each time, and a hypervisor's clock has to be computed",
        read: kernel::clock_source,
    },
    Row {
        name: "RT throttling",
        why: "realtime threads that never sleep lose the rest of each period of the limit; without \
              it one that hangs takes its CPU for good",
        read: kernel::throttling,
    },
    Row {
        name: "fair server",
        why: "since Linux 6.12 it takes a CPU from realtime threads that leave nothing to others, \
              50 ms of every second",
        read: kernel::fair_server,
    },
    Row {
        name: "isolated CPUs",
        why: "on an isolated CPU the scheduler puts no other threads next to the graph's",
        read: processors::isolated,
    },
    Row {
        name: "nohz_full",
        why: "a CPU with one thread to run is interrupted HZ times a second, unless it is listed \
              there",
        read: processors::nohz_full,
    },
    Row {
        name: "rcu_nocbs",
        why: "the kernel frees memory in callbacks on the CPU that asked for it, unless they are \
              moved away",
        read: processors::rcu_nocbs,
    },
    Row {
        name: "governor",
        why: "a CPU whose frequency follows its load is slow when a cycle begins",
        read: processors::governor,
    },
    Row {
        name: "idle states",
        why: "out of a deep sleep a CPU needs as long as the state says, before the first \
              instruction of a cycle",
        read: processors::idle_states,
    },
    Row {
        name: "cpu_dma_latency",
        why: "whoever holds it at 0 keeps all CPUs out of sleep; on one virtual machine that \
              halved the activation jitter of the arm",
        read: processors::dma_latency,
    },
    Row {
        name: "SMT",
        why: "two hardware threads share one core, so what runs on the other one makes this one \
              slower, cycle by cycle differently",
        read: processors::smt,
    },
    Row {
        name: "IRQ affinity",
        why: "an interrupt takes the CPU from any thread, of whatever priority",
        read: interrupts::affinity,
    },
    Row {
        name: "irqbalance",
        why: "it moves interrupts between CPUs every few seconds, also onto those of the graph",
        read: interrupts::balancer,
    },
    Row {
        name: "rtprio",
        why: "without SCHED_FIFO every program on the machine competes with the graph",
        read: rights::rtprio,
    },
    Row {
        name: "memlock",
        why: "memory that is not locked can be taken away, and a page fault in a cycle takes as \
              long as the disk",
        read: rights::memlock,
    },
    Row {
        name: "cgroup CPU limit",
        why: "it stops the services of the graph, and its realtime threads too where SCHED_FIFO is \
              refused, once their share is used up",
        read: cgroups::cpu_limit,
    },
    Row {
        name: "cgroup RT share",
        why: "where the kernel shares realtime time among cgroups, one without a share cannot have \
              SCHED_FIFO at all",
        read: cgroups::rt_share,
    },
    Row {
        name: "cgroup delegation",
        why: "limits of a service (memory, cpu, processes) need a separate cgroup below the \
              graph's; without it they are shown as not enforced",
        read: cgroups::delegation,
    },
    Row {
        name: "seccomp",
        why: "a filter of system calls can refuse what the limits allow",
        read: rights::seccomp,
    },
    Row {
        name: "virtual machine",
        why: "the host may take a CPU away at any time and for any time, and the guest cannot see \
              when",
        read: others::virtual_machine,
    },
    Row {
        name: "steal",
        why: "that is time in which the host ran somebody else on our CPUs",
        read: others::steal,
    },
    Row {
        name: "swap",
        why: "a page that was swapped out comes back in milliseconds; locked memory stays, that of \
              the services does not",
        read: others::swap,
    },
    Row {
        name: "huge pages",
        why: "with 'always' the kernel joins pages of running programs, and they fault meanwhile",
        read: others::huge_pages,
    },
    Row {
        name: "FIFO threads",
        why: "a realtime thread of the same or a higher priority keeps the graph waiting for as \
              long as it likes",
        read: others::fifo_threads,
    },
    Row {
        name: "load",
        why: "the wake-ups below hold for what the machine does now: other programs fill caches, \
              and hold locks of the kernel",
        read: others::load,
    },
];

/// A row and what was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    pub(crate) finding: Finding,
}

/// Examines everything.
pub(crate) fn examine(root: &Root, aim: &Aim) -> Vec<Found> {
    let found = |row: &Row| {
        let finding = (row.read)(root, aim).unwrap_or_else(|why| Finding::unknown(&why));
        Found { name: row.name, why: row.why, finding }
    };
    FINDINGS.iter().map(found).collect()
}

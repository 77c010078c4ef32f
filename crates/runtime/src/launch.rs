//! What the parent tells a domain's process: the spec's text (the file may change meanwhile), what
//! it was compiled with, and the numbers of the descriptors left open. It travels in a sealed
//! memfd.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde::{Deserialize, Serialize};
use sinew_control::Spec;
use sinew_core::pace::Pace;

use crate::inject::Injection;

/// How a [`Pace`] is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Pace")]
enum WrittenPace {
    AsPlanned,
    Free { cycles: u64 },
}

/// The description of one domain's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) spec: Spec,
    pub(crate) domain: usize,
    /// Bits of the clock's rate.
    pub(crate) rate: u64,
    pub(crate) strict: bool,
    #[serde(with = "WrittenPace")]
    pub(crate) pace: Pace,
    /// How often the core was restarted before.
    pub(crate) life: u32,
    pub(crate) parent: u32,
    /// The mark in the environment of the domain's processes.
    pub(crate) marker: String,
    pub(crate) injections: Vec<Injection>,
    /// Known only to this run and to those that may command it.
    pub(crate) secret: String,
    pub(crate) open: Open,
}

/// Numbers of the descriptors that the process is to find open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) board: RawFd,
    pub(crate) bell: RawFd,
    /// One for each thread of a realtime domain.
    pub(crate) traces: Vec<RawFd>,
    /// One for each thread of a realtime domain: where its nodes log.
    pub(crate) lines: Vec<RawFd>,
    /// One for each node of a service domain.
    pub(crate) counters: Vec<RawFd>,
    /// Of a service that observes: domain, thread and descriptor of each trace, for reading only.
    pub(crate) observed: Vec<(usize, usize, RawFd)>,
    /// Of a service that observes or has flows: a connection to the supervisor.
    pub(crate) supervisor: Option<RawFd>,
    /// Where its CPU profile goes, and how many samples are taken in a second of CPU time.
    pub(crate) profile: Option<(RawFd, u32)>,
    /// Of a guest: the memory that it and the core see.
    pub(crate) carve_out: Option<RawFd>,
    /// Of a guest, and of services with links to one: the link, the bell that Linux hears, the one
    /// that the guest hears.
    pub(crate) bells: Vec<(usize, RawFd, RawFd)>,
    /// Domain that packets go to, and the door to it.
    pub(crate) calls: Vec<(usize, RawFd)>,
    /// Domain that packets come from, and the door from it.
    pub(crate) called: Vec<(usize, RawFd)>,
    /// Node that can be tuned, and descriptor of where its new values come from.
    pub(crate) tunings: Vec<(usize, RawFd)>,
    /// Link and descriptor of its writing end.
    pub(crate) writers: Vec<(usize, RawFd)>,
    /// Link and descriptor of its reading end.
    pub(crate) readers: Vec<(usize, RawFd)>,
}

impl Launch {
    /// Writes the description into a descriptor of its own.
    pub(crate) fn seal(&self) -> io::Result<OwnedFd> {
        let text = serde_json::to_string(self)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("sinew-launch", flags)?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes())?;
        file.rewind()?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
        Ok(file.into())
    }

    /// Reads what [`Launch::seal`] wrote. `None` if it is anything else.
    pub(crate) fn open(file: OwnedFd) -> Option<Launch> {
        serde_json::from_str(&io::read_to_string(File::from(file)).ok()?).ok()
    }
}

impl Open {
    pub(crate) fn all(&self) -> Vec<RawFd> {
        let mut all = vec![self.board, self.bell];
        all.extend(self.traces.iter().chain(&self.lines).chain(&self.counters));
        all.extend(self.supervisor);
        all.extend(self.observed.iter().map(|&(_, _, number)| number));
        all.extend(self.profile.map(|(file, _)| file));
        all.extend(self.carve_out);
        all.extend(self.bells.iter().flat_map(|&(_, linux, guest)| [linux, guest]));
        let ends = [&self.calls, &self.called, &self.tunings, &self.writers, &self.readers];
        let ends = ends.into_iter().flatten();
        all.extend(ends.map(|&(_, number)| number));
        all
    }
}

#[cfg(test)]
mod tests {
    use sinew_spec::plan::{Board, LinkProfile, LinkTuning, SlotLayout, TargetMachine, TunedPair};
    use sinew_spec::{Brought, GuestImage, Wanted};

    use super::*;
    use crate::inject::{InjectedFault, Target};

    /// A machine on which links were measured.
    fn machine() -> TargetMachine {
        let layout = SlotLayout::Sequence;
        let tuning = |gap_ns| LinkTuning {
            layout,
            eager_polls: 2,
            gap_ns,
            fetches_ahead: true,
            hands_over: false,
        };
        let suited = [None, Some(tuning(50)), Some(tuning(250))];
        let pair = TunedPair { cpus: [0, 3], distance_changed: true, suited };
        let (file, time) = ("machine.json".into(), "today".into());
        TargetMachine {
            cpus: vec![0, 3],
            profile: LinkProfile::Measured { file, time, pairs: vec![pair] },
        }
    }

    #[test]
    fn a_launch_arrives_as_it_was_sent() {
        let spec = Spec {
            file: "a \"b\".yaml".into(),
            text: "name: ü\n- x".into(),
            base: "/some/where".into(),
            overrides: vec![("planner.laps".into(), "0".into())],
            images: vec![GuestImage {
                image: "guard.elf".into(),
                board: Board::Virt,
                table: Ok(vec![1, 255]),
            }],
            outside: vec![
                Brought { wanted: Wanted::Variable("A".into()), value: Ok("\"ü\n".into()) },
                Brought { wanted: Wanted::File("a b".into()), value: Err("why; what".into()) },
            ],
            host: Some("cell".into()),
            observe: true,
            machine: machine(),
        };
        let injection = |what| Injection { target: Target::Node(1), at_cycle: 42, what };
        let launch = Launch {
            spec,
            domain: 1,
            rate: 0.384_615_f64.to_bits(),
            strict: true,
            pace: Pace::Free { cycles: 7 },
            life: 3,
            parent: 77,
            marker: "77.1".into(),
            injections: vec![
                injection(InjectedFault::Segv),
                injection(InjectedFault::Late { cycles: 7 }),
            ],
            secret: "5ec3e7".into(),
            open: Open {
                board: 5,
                bell: 11,
                traces: vec![6, 7],
                lines: vec![21, 22],
                counters: vec![12],
                observed: vec![(0, 1, 13)],
                supervisor: Some(14),
                profile: Some((15, 99)),
                carve_out: Some(16),
                bells: vec![(5, 17, 18)],
                calls: vec![(2, 19)],
                called: vec![(3, 20)],
                tunings: vec![(4, 21)],
                writers: vec![(0, 8)],
                readers: vec![(1, 9), (2, 10)],
            },
        };
        let sealed = launch.seal().expect("memfd");
        let error = rustix::io::write(&sealed, b"{}").expect_err("it is sealed");
        assert_eq!(error, rustix::io::Errno::PERM);
        assert_eq!(Launch::open(sealed), Some(launch));
    }
}

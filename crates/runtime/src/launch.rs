//! What the parent tells a domain's process: the spec's text (the file may change meanwhile), what
//! it was compiled with, and the numbers of the descriptors left open. It travels in a sealed
//! memfd.

use std::io::{self, Read, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde_json::{Value, json};

use crate::inject::Injection;

/// How fast a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// By the periods of the plan.
    #[default]
    AsPlanned,
    /// As fast as it goes: to measure what a cycle costs, and later to replay a run.
    ///
    /// A timer-released thread begins its next cycle as soon as the feedback of the last one is
    /// back; the other threads wait for their input without napping. Nodes are told the planned
    /// period. Nothing is late, but feedback that stays away for a second is a fault. The trace
    /// holds every cycle, so nobody has to read it meanwhile. The stop is at the planned pace.
    Free {
        /// After so many the run finishes, as if a node had said so; 1 to
        /// [`Pace::FREE_CYCLES_MAX`].
        cycles: u64,
    },
}

impl Pace {
    /// Most cycles of a free run. All their records are kept in locked memory: some 20 MiB for each
    /// thread. Who wants more starts the graph again.
    pub const FREE_CYCLES_MAX: u64 = 100_000;

    fn free_cycles(self) -> Option<u64> {
        match self {
            Pace::AsPlanned => None,
            Pace::Free { cycles } => Some(cycles),
        }
    }
}

/// The description of one domain's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) base: PathBuf,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) cpus: Vec<u32>,
    pub(crate) domain: usize,
    /// Bits of the clock's rate.
    pub(crate) rate: u64,
    pub(crate) strict: bool,
    pub(crate) pace: Pace,
    /// How often the core was started anew before.
    pub(crate) life: u32,
    pub(crate) parent: u32,
    /// What the environment of the domain's processes says of them.
    pub(crate) marker: String,
    pub(crate) injections: Vec<Injection>,
    pub(crate) board: RawFd,
    pub(crate) bell: RawFd,
    /// One for each thread of a realtime domain.
    pub(crate) traces: Vec<RawFd>,
    /// One for each node of a service domain.
    pub(crate) counters: Vec<RawFd>,
    /// Of a service that observes: domain, thread and descriptor of each trace, for reading only.
    pub(crate) observed: Vec<(usize, usize, RawFd)>,
    /// Of a service that observes: a connection to the supervisor; else -1.
    pub(crate) supervisor: RawFd,
    /// Where its CPU profile goes, and how often in a second of CPU time it is looked.
    pub(crate) profile: Option<(RawFd, u32)>,
    /// What only this run and whoever may command it know.
    pub(crate) secret: String,
    /// Link and descriptor of its writing end.
    pub(crate) writers: Vec<(usize, RawFd)>,
    /// Link and descriptor of its reading end.
    pub(crate) readers: Vec<(usize, RawFd)>,
}

impl Launch {
    /// Writes the description into a descriptor of its own.
    pub(crate) fn seal(&self) -> io::Result<OwnedFd> {
        let text = json!({
            "file": self.file,
            "text": self.text,
            "base": self.base.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))?,
            "overrides": self.overrides,
            "cpus": self.cpus,
            "domain": self.domain,
            "rate": self.rate,
            "strict": self.strict,
            "free_cycles": self.pace.free_cycles(),
            "life": self.life,
            "parent": self.parent,
            "marker": self.marker,
            "injections": self.injections,
            "board": self.board,
            "bell": self.bell,
            "traces": self.traces,
            "counters": self.counters,
            "observed": self.observed,
            "supervisor": self.supervisor,
            "profile": self.profile,
            "secret": self.secret,
            "writers": self.writers,
            "readers": self.readers,
        });
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("sinew-launch", flags)?;
        let mut file = std::fs::File::from(file);
        file.write_all(text.to_string().as_bytes())?;
        file.rewind()?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
        Ok(file.into())
    }

    /// Reads what [`Launch::seal`] wrote. `None` if it is anything else.
    pub(crate) fn open(file: OwnedFd) -> Option<Launch> {
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let text = |key: &str| value[key].as_str().map(String::from);
        let list = |key: &str| value[key].as_array().cloned();
        let descriptor = |value: &Value| RawFd::try_from(value.as_i64()?).ok();
        let pairs = |key: &str| {
            let pair = |pair: Value| {
                Some((usize::try_from(pair[0].as_u64()?).ok()?, descriptor(&pair[1])?))
            };
            list(key)?.into_iter().map(pair).collect::<Option<Vec<_>>>()
        };
        let place = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let trace = |row: Value| Some((place(&row[0])?, place(&row[1])?, descriptor(&row[2])?));
        let set = |pair: Value| Some((pair[0].as_str()?.into(), pair[1].as_str()?.into()));
        Some(Launch {
            file: text("file")?,
            text: text("text")?,
            base: text("base")?.into(),
            overrides: list("overrides")?.into_iter().map(set).collect::<Option<_>>()?,
            cpus: list("cpus")?
                .iter()
                .map(|cpu| cpu.as_u64()?.try_into().ok())
                .collect::<Option<_>>()?,
            domain: usize::try_from(value["domain"].as_u64()?).ok()?,
            rate: value["rate"].as_u64()?,
            strict: value["strict"].as_bool()?,
            pace: match &value["free_cycles"] {
                Value::Null => Pace::AsPlanned,
                cycles => Pace::Free { cycles: cycles.as_u64()? },
            },
            life: value["life"].as_u64()?.try_into().ok()?,
            parent: value["parent"].as_u64()?.try_into().ok()?,
            marker: text("marker")?,
            injections: serde_json::from_value(value["injections"].clone()).ok()?,
            board: descriptor(&value["board"])?,
            bell: descriptor(&value["bell"])?,
            traces: list("traces")?.iter().map(descriptor).collect::<Option<_>>()?,
            counters: list("counters")?.iter().map(descriptor).collect::<Option<_>>()?,
            observed: list("observed")?.into_iter().map(trace).collect::<Option<_>>()?,
            supervisor: descriptor(&value["supervisor"])?,
            profile: serde_json::from_value(value["profile"].clone()).ok()?,
            secret: text("secret")?,
            writers: pairs("writers")?,
            readers: pairs("readers")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_arrives_as_it_was_sent() {
        let launch = Launch {
            file: "a \"b\".yaml".into(),
            text: "name: ü\n- x".into(),
            base: "/some/where".into(),
            overrides: vec![("planner.laps".into(), "0".into())],
            cpus: vec![0, 3],
            domain: 1,
            rate: 0.384_615_f64.to_bits(),
            strict: true,
            pace: Pace::Free { cycles: 7 },
            life: 3,
            parent: 77,
            marker: "77.1".into(),
            injections: vec![],
            board: 5,
            bell: 11,
            traces: vec![6, 7],
            counters: vec![12],
            observed: vec![(0, 1, 13)],
            supervisor: 14,
            profile: Some((15, 99)),
            secret: "5ec3e7".into(),
            writers: vec![(0, 8)],
            readers: vec![(1, 9), (2, 10)],
        };
        let sealed = launch.seal().expect("memfd");
        let error = rustix::io::write(&sealed, b"{}").expect_err("it is sealed");
        assert_eq!(error, rustix::io::Errno::PERM);
        assert_eq!(Launch::open(sealed), Some(launch));
    }
}

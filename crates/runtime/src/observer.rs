//! What the kernel did to realtime threads, read from outside the core: the counters that it keeps
//! for every thread, and the time that the host took from every CPU.
//!
//! A baseline is read now and then. A caller that learns that a cycle was late reads again, and
//! gets what was counted since the last reading before that cycle: an upper bound for what can have
//! made it late.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use sinew_core::clock::now_ns;
use sinew_core::trace::ThreadId;

/// Least time between readings: short, so that the window of a late cycle is short.
const SPACING_NS_MIN: u64 = 100_000_000;
/// Greatest time between readings, however expensive one is: what happened in these ten seconds
/// still says something.
const SPACING_NS_MAX: u64 = 10_000_000_000;
/// Readings take at most this share of a CPU, 0.03 %: where one is expensive (many threads, many
/// CPUs, a virtual machine) they come less often. On a shared 2-CPU virtual machine those of two
/// threads took 14 us in a loop, but 120 us every 100 ms, when nothing is in a cache any more.
const SPACINGS_PER_COST: u64 = 3_333;
/// Readings that are kept of a thread: at the least spacing, those of three seconds. A cycle that
/// is late by more than two seconds is a fault.
const KEPT: usize = 32;
/// The longest file that is read: /proc/stat of some 300 CPUs. With more CPUs, the rest have no
/// steal time.
const FILE_LEN_MAX: usize = 32 << 10;
/// The kernel shows CPU time in units of 1/100 s, whatever its own clock is (USER_HZ).
const USER_HZ_NS: u64 = 10_000_000;

/// Counters of a thread; `None` where the kernel does not show them to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time on a CPU, as of the last switch or the kernel's last look. From schedstat.
    pub cpu_ns: Option<u64>,
    /// Time that it was runnable and waited for its CPU. From schedstat.
    pub run_delay_ns: Option<u64>,
    /// Page faults that needed no disk. From stat.
    pub minor_faults: Option<u64>,
    /// Page faults that needed the disk. From stat.
    pub major_faults: Option<u64>,
    /// How often its CPU was taken from it. From status.
    pub involuntary_switches: Option<u64>,
    /// Time that the host took from the CPU that the thread was last on, in steps of 10 ms; `None`
    /// also if that was another one before. From /proc/stat.
    pub steal_ns: Option<u64>,
}

impl Counters {
    /// Combines both, counter by counter, where both are known.
    fn zip(&self, other: &Counters, of: impl Fn(u64, u64) -> u64) -> Counters {
        let each = |get: fn(&Counters) -> Option<u64>| Some(of(get(self)?, get(other)?));
        Counters {
            cpu_ns: each(|counters| counters.cpu_ns),
            run_delay_ns: each(|counters| counters.run_delay_ns),
            minor_faults: each(|counters| counters.minor_faults),
            major_faults: each(|counters| counters.major_faults),
            involuntary_switches: each(|counters| counters.involuntary_switches),
            steal_ns: each(|counters| counters.steal_ns),
        }
    }
}

/// What the kernel counted around a late cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meanwhile {
    /// Between the two readings.
    pub window_ns: u64,
    /// Whether the first reading came only after the cycle was already late: then more may have
    /// happened than was counted.
    pub is_cut: bool,
    /// Whether the thread slept at the second reading: then its CPU time is complete, else the last
    /// turn may be missing.
    pub is_asleep: bool,
    /// What was counted between them.
    pub counted: Counters,
    /// What was counted before, in as much time on average; zero without readings before.
    pub usual: Counters,
}

impl Meanwhile {
    /// What was counted beyond the usual, where both are known.
    pub fn beyond_usual(&self) -> Counters {
        self.counted.zip(&self.usual, u64::saturating_sub)
    }
}

/// Reads what the kernel counts.
pub struct Observer {
    proc: PathBuf,
    stat: Source,
    threads: Vec<Watched>,
    /// Steal of each CPU, as last read.
    steal_ns: Vec<(u32, u64)>,
    buffer: Vec<u8>,
    due_ns: u64,
}

impl Default for Observer {
    fn default() -> Observer {
        Observer::within(Path::new("/proc"))
    }
}

impl Observer {
    fn within(proc: &Path) -> Observer {
        Observer {
            stat: Source::open(proc.join("stat")),
            proc: proc.into(),
            threads: vec![],
            steal_ns: vec![],
            buffer: vec![0; FILE_LEN_MAX],
            due_ns: 0,
        }
    }

    /// Watches a thread from now on: `thread` of `process`, by their numbers in the kernel. What
    /// cannot be opened is told by [`Observer::meanwhile`].
    pub fn watch(&mut self, id: ThreadId, process: u32, thread: u32) {
        let folder = self.proc.join(format!("{process}/task/{thread}"));
        let [schedstat, stat, status] =
            ["schedstat", "stat", "status"].map(|name| Source::open(folder.join(name)));
        let (readings, blind) = (VecDeque::with_capacity(KEPT), None);
        self.threads.push(Watched { id, schedstat, stat, status, readings, blind });
        self.due_ns = 0;
    }

    /// Whether a thread is watched.
    pub fn is_watching(&self, id: ThreadId) -> bool {
        self.threads.iter().any(|thread| thread.id == id)
    }

    /// Reads the baseline if it is time for it.
    pub fn read_if_due(&mut self) {
        let now_ns = now_ns();
        if now_ns < self.due_ns || self.threads.is_empty() {
            return;
        }
        let before_ns = spent_ns();
        self.read();
        let cost_ns = spent_ns() - before_ns;
        self.due_ns = now_ns + (cost_ns * SPACINGS_PER_COST).clamp(SPACING_NS_MIN, SPACING_NS_MAX);
    }

    /// Reads all threads now, three files of each; allocates nothing except for an error.
    pub fn read(&mut self) {
        self.steal_ns.clear();
        // Without it only the steal is unknown.
        if let Ok(text) = self.stat.read(&mut self.buffer) {
            self.steal_ns.extend(text.lines().filter_map(steal_ns));
        }
        for thread in &mut self.threads {
            thread.read(&mut self.buffer, &self.steal_ns);
        }
    }

    /// What was counted for a thread from the newest reading before `since_ns` (monotonic) to the
    /// newest of all, which is to be younger than the cycle in question.
    ///
    /// # Errors
    /// Why nothing can be known, in words.
    pub fn meanwhile(&self, id: ThreadId, since_ns: u64) -> Result<Meanwhile, String> {
        let thread = self.threads.iter().find(|thread| thread.id == id);
        let thread = thread.ok_or("its thread was not watched yet")?;
        match &thread.blind {
            Some(why) => Err(why.clone()),
            None => thread.meanwhile(since_ns).ok_or("nothing was read before it".into()),
        }
    }
}

/// The files of a thread, open since it was first seen: so no file is read of another thread that
/// got the same number later.
struct Watched {
    id: ThreadId,
    schedstat: Source,
    stat: Source,
    status: Source,
    /// Oldest first.
    readings: VecDeque<Reading>,
    /// Why the last reading got nothing.
    blind: Option<String>,
}

/// One reading of a thread.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// When it was complete.
    at_ns: u64,
    counters: Counters,
    /// The CPU that the thread was last on.
    cpu: Option<u32>,
    is_asleep: bool,
}

impl Watched {
    fn read(&mut self, buffer: &mut [u8], steal_ns: &[(u32, u64)]) {
        let (mut counters, mut cpu, mut is_asleep) = (Counters::default(), None, false);
        // Whether it sleeps is read first, so that the files read after it contain all that was
        // counted until then.
        let stat = self.stat.read(buffer).map(|text| {
            let number = |at| stat_field(text, at).and_then(|field| field.parse().ok());
            (counters.minor_faults, counters.major_faults) = (number(10), number(12));
            cpu = number(39).and_then(|cpu| u32::try_from(cpu).ok());
            is_asleep = stat_field(text, 3) == Some("S");
        });
        let schedstat = self.schedstat.read(buffer).map(|text| {
            (counters.cpu_ns, counters.run_delay_ns) = run_times_ns(text).unzip();
        });
        let status = self.status.read(buffer).map(|text| {
            counters.involuntary_switches = involuntary_switches(text);
        });
        self.blind = stat.or(schedstat).or(status).err();
        if self.blind.is_some() {
            return;
        }
        let steal = steal_ns.iter().find(|row| Some(row.0) == cpu);
        counters.steal_ns = steal.map(|row| row.1);
        if self.readings.len() == KEPT {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { at_ns: now_ns(), counters, cpu, is_asleep });
    }

    fn meanwhile(&self, since_ns: u64) -> Option<Meanwhile> {
        let newest = self.readings.len().checked_sub(1)?;
        let earlier = || self.readings.range(..newest);
        let before = earlier().rev().find(|reading| reading.at_ns <= since_ns);
        let oldest = self.readings.front()?;
        let before = before.or(earlier().next())?;
        let after = &self.readings[newest];
        let (window_ns, counted) = after.since(before);
        let (history_ns, past) = before.since(oldest);
        let share = window_ns as f64 / history_ns.max(1) as f64;
        let usual = past.zip(&past, |n, _| (n as f64 * share) as u64);
        let (is_cut, is_asleep) = (before.at_ns > since_ns, after.is_asleep);
        Some(Meanwhile { window_ns, is_cut, is_asleep, counted, usual })
    }
}

impl Reading {
    /// Time and what was counted since an earlier one.
    fn since(&self, before: &Reading) -> (u64, Counters) {
        let mut counted = self.counters.zip(&before.counters, u64::saturating_sub);
        if self.cpu != before.cpu {
            counted.steal_ns = None;
        }
        (self.at_ns - before.at_ns, counted)
    }
}

struct Source {
    path: PathBuf,
    file: io::Result<File>,
}

impl Source {
    fn open(path: PathBuf) -> Source {
        Source { file: File::open(&path), path }
    }

    /// Its whole lines now, as far as `buffer` takes them; or why there are none.
    fn read<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a str, String> {
        let why = |error: &io::Error| {
            let path = self.path.display();
            match error.raw_os_error() {
                code if code == Some(Errno::SRCH.raw_os_error()) => {
                    format!("the thread has ended ({path})")
                }
                _ => format!("cannot read {path}: {error}"),
            }
        };
        let file = self.file.as_ref().map_err(why)?;
        let len = file.read_at(buffer, 0).map_err(|error| why(&error))?;
        let lines = buffer[..len].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        str::from_utf8(&buffer[..lines]).map_err(|error| why(&io::Error::other(error)))
    }
}

fn spent_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time on a CPU and time of waiting for one: `schedstat` is these and the count of turns, all zero
/// where the kernel does not count them.
fn run_times_ns(schedstat: &str) -> Option<(u64, u64)> {
    let mut numbers = schedstat.split_whitespace().map(|number| number.parse().ok());
    let (cpu_ns, run_delay_ns, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (turns > 0).then_some((cpu_ns, run_delay_ns))
}

/// Field `at` of `stat`, counted from 1 as in proc_pid_stat(5). The second one, the name, may
/// hold anything, but the last `)` ends it.
fn stat_field(stat: &str, at: usize) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(at - 3)
}

fn involuntary_switches(status: &str) -> Option<u64> {
    let line = |line: &str| line.strip_prefix("nonvoluntary_ctxt_switches:")?.trim().parse().ok();
    status.lines().find_map(line)
}

/// A CPU and its steal, from a line `cpu1 user nice system idle iowait irq softirq steal ...`.
fn steal_ns(line: &str) -> Option<(u32, u64)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let steal: u64 = words.nth(7)?.parse().ok()?;
    Some((cpu, steal * USER_HZ_NS))
}

#[cfg(test)]
mod tests;

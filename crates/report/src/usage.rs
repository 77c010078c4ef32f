//! Memory and CPU time of the domains' processes, read from time to time: after a process has
//! ended, the kernel does not give them any more.

use sinew_figures::process::{cpu, resident_kib};

/// Seconds between two readings, shorter at the beginning of a run. The kernel keeps the peak of
/// the memory, so only what came after the last reading is not seen.
const SPACING_S_MIN: f64 = 1.0;
const SPACING_S_MAX: f64 = 10.0;

/// A domain's process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// The process id; for a service: of its last process.
    pub pid: u32,
    /// `VmHWM`; `None` if the process ended before it was read.
    pub resident_kib_max: Option<u64>,
    /// CPU time used between two readings of the same process, summed up.
    cpu_s: f64,
    /// Time of the run between these readings, summed up.
    over_s: f64,
    /// The last reading of this process: time of the run and CPU time, in seconds.
    last: Option<(f64, f64)>,
}

impl ProcessUsage {
    /// A process with this much memory.
    #[cfg(test)]
    pub(crate) fn of(pid: u32, resident_kib: u64) -> ProcessUsage {
        ProcessUsage { pid, resident_kib_max: Some(resident_kib), ..ProcessUsage::default() }
    }

    /// CPU time between its readings, in percent of one CPU. `None` with fewer than two readings.
    pub fn cpu_percent(&self) -> Option<f64> {
        (self.over_s > 0.0).then(|| self.cpu_s / self.over_s * 100.0)
    }

    fn read(&mut self, elapsed_s: f64, pid: Option<u32>) {
        if pid.is_some_and(|pid| pid != self.pid) {
            self.last = None;
        }
        self.pid = pid.unwrap_or(self.pid);
        let peak = resident_kib(self.pid).ok().map(|(_, most)| most);
        self.resident_kib_max = self.resident_kib_max.max(peak);
        let now = cpu(self.pid).ok().map(|used| (elapsed_s, used.as_secs_f64()));
        if let (Some((before_s, before)), Some((now_s, now))) = (self.last, now) {
            self.cpu_s += (now - before).max(0.0);
            self.over_s += now_s - before_s;
        }
        self.last = now;
    }
}

/// The resources that each domain's process uses.
pub struct Usage {
    /// One entry for each domain.
    pub processes: Vec<ProcessUsage>,
    next_s: f64,
}

impl Usage {
    /// For this many domains.
    pub fn new(domains: usize) -> Usage {
        Usage { processes: vec![ProcessUsage::default(); domains], next_s: 0.0 }
    }

    /// Reads, if it is time. `pids` returns the current process of each domain.
    pub fn read(&mut self, elapsed_s: f64, pids: impl FnOnce() -> Vec<Option<u32>>) {
        if elapsed_s >= self.next_s {
            self.read_now(elapsed_s, pids());
        }
    }

    /// Reads again, before the processes end.
    pub fn read_now(&mut self, elapsed_s: f64, pids: Vec<Option<u32>>) {
        self.next_s = elapsed_s + elapsed_s.clamp(SPACING_S_MIN, SPACING_S_MAX);
        for (process, pid) in self.processes.iter_mut().zip(pids) {
            process.read(elapsed_s, pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_keeps_its_last_figure() {
        let mut usage = Usage::new(1);
        usage.read(0.0, || vec![Some(std::process::id())]);
        let seen = usage.processes[0].resident_kib_max;
        assert!(seen.is_some_and(|kib| kib > 0));
        usage.read(1.0, || vec![Some(u32::MAX)]);
        assert_eq!(usage.processes[0].resident_kib_max, seen);
    }

    #[test]
    fn cpu_time_needs_two_readings_of_one_process() {
        let own = || vec![Some(std::process::id())];
        let mut usage = Usage::new(1);
        usage.read_now(0.0, own());
        assert_eq!(usage.processes[0].cpu_percent(), None);
        usage.read_now(0.5, vec![Some(u32::MAX)]);
        usage.read_now(1.0, own());
        assert_eq!(usage.processes[0].cpu_percent(), None, "another process was between them");
        usage.read_now(1.5, own());
        assert!(usage.processes[0].cpu_percent().is_some_and(|percent| percent >= 0.0));
    }
}

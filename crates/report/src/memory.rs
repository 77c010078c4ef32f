//! The memory of the domains' processes, read from time to time: once a process has ended, the
//! kernel does not say any more.

use sinew_figures::process::resident_kib;

/// Seconds between two readings, the fewer the younger the run is; the kernel keeps the peak, so
/// that only what came after the last one is not seen.
const SPACING_S_MIN: f64 = 1.0;
const SPACING_S_MAX: f64 = 10.0;

/// A domain's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Of a service: the last one.
    pub pid: u32,
    /// `VmHWM`; `None` if the process ended before it was read.
    pub resident_kib_max: Option<u64>,
}

/// Most memory of each domain's process.
pub struct Memory {
    /// One for each domain.
    pub processes: Vec<ProcessMemory>,
    next_s: f64,
}

impl Memory {
    /// For so many domains.
    pub fn new(domains: usize) -> Memory {
        Memory { processes: vec![ProcessMemory::default(); domains], next_s: 0.0 }
    }

    /// Reads, if it is time for it; `pids` says who stands for each domain now.
    pub fn read(&mut self, elapsed_s: f64, pids: impl FnOnce() -> Vec<Option<u32>>) {
        if elapsed_s < self.next_s {
            return;
        }
        self.next_s = elapsed_s + elapsed_s.clamp(SPACING_S_MIN, SPACING_S_MAX);
        for (process, pid) in self.processes.iter_mut().zip(pids()) {
            process.pid = pid.unwrap_or(process.pid);
            let peak = resident_kib(process.pid).ok().map(|(_, most)| most);
            process.resident_kib_max = process.resident_kib_max.max(peak);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_keeps_its_last_figure() {
        let mut memory = Memory::new(1);
        memory.read(0.0, || vec![Some(std::process::id())]);
        let seen = memory.processes[0].resident_kib_max;
        assert!(seen.is_some_and(|kib| kib > 0));
        memory.read(1.0, || vec![Some(u32::MAX)]);
        assert_eq!(memory.processes[0].resident_kib_max, seen);
    }
}

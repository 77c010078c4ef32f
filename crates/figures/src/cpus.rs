//! How much of the time CPUs had nothing to do, from /proc/stat.

use std::fs;
use std::io;
use std::time::Duration;

/// The unit of /proc/stat: a hundredth of a second on every Linux of today.
const UNIT_MS: u64 = 10;

/// Time in which these CPUs had nothing to do since the machine's start, added up. Waiting for a
/// disk is such time too; what a host took away is not.
///
/// # Errors
/// Why /proc does not say.
pub fn idle(cpus: &[u32]) -> io::Result<Duration> {
    const PATH: &str = "/proc/stat";
    let text = fs::read_to_string(PATH)
        .map_err(|error| io::Error::new(error.kind(), format!("{PATH}: {error}")))?;
    let lines = cpus.iter().map(|&cpu| idle_units(&text, cpu));
    let units: Option<u64> = lines.sum();
    let units = units.ok_or_else(|| io::Error::other(format!("{PATH} lacks a CPU")))?;
    Ok(Duration::from_millis(units * UNIT_MS))
}

/// The fourth and fifth figure of a CPU's line: idle, and waiting for a disk.
fn idle_units(stat: &str, cpu: u32) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    let mut figures = line.split_whitespace().skip(3).map(|units| units.parse::<u64>().ok());
    Some(figures.next()?? + figures.next()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_read_of_the_cpus_that_are_asked_for() {
        let stat = "cpu  9 9 9 9 9\ncpu0 1 2 3 40 5 6\ncpu1 1 2 3 70 8 6\ncpu10 0 0 0 1000 0\n";
        assert_eq!(idle_units(stat, 0), Some(45));
        assert_eq!(idle_units(stat, 1), Some(78));
        assert_eq!(idle_units(stat, 2), None);
        assert!(idle(&[]).expect("/proc/stat") == Duration::ZERO);
        assert!(idle(&[u32::MAX]).is_err());
    }
}

//! How long CPUs were idle, from /proc/stat.

use std::fs;
use std::io;
use std::time::Duration;

/// The unit of /proc/stat: a hundredth of a second on every current Linux.
const UNIT_MS: u64 = 10;

/// Time in which these CPUs were idle since the machine's start, in total. Waiting for a disk
/// counts as idle; time that a host took away does not. A CPU that does not exist counts nothing.
///
/// # Errors
/// Why /proc cannot be read, or that none of these CPUs exists.
pub fn idle(cpus: &[u32]) -> io::Result<Duration> {
    const PATH: &str = "/proc/stat";
    let text = fs::read_to_string(PATH)
        .map_err(|error| io::Error::new(error.kind(), format!("{PATH}: {error}")))?;
    let units = idle_units(&text, cpus);
    let units = units.ok_or_else(|| io::Error::other(format!("{PATH}: none of these CPUs")))?;
    Ok(Duration::from_millis(units * UNIT_MS))
}

/// The fourth and fifth figure of the CPUs' lines: idle, and waiting for a disk. The CPUs are
/// ascending.
fn idle_units(stat: &str, cpus: &[u32]) -> Option<u64> {
    let of_line = |line: &str| {
        let (cpu, figures) = line.strip_prefix("cpu")?.split_once(' ')?;
        cpus.binary_search(&cpu.parse().ok()?).ok()?;
        let mut figures = figures.split_whitespace().skip(3).map(|units| units.parse::<u64>().ok());
        Some(figures.next()?? + figures.next()??)
    };
    let lines = stat.lines().take_while(|line| line.starts_with("cpu"));
    lines.filter_map(of_line).reduce(|one, other| one + other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_read_of_the_cpus_that_are_asked_for() {
        let stat = "cpu  9 9 9 9 9\ncpu0 1 2 3 40 5 6\ncpu1 1 2 3 70 8 6\ncpu10 0 0 0 1000 0\n";
        assert_eq!(idle_units(stat, &[0]), Some(45));
        assert_eq!(idle_units(stat, &[0, 1, 7]), Some(123));
        assert_eq!(idle_units(stat, &[2]), None);
        assert!(idle(&[0]).expect("/proc/stat") > Duration::ZERO);
        assert!(idle(&[]).is_err() && idle(&[u32::MAX]).is_err());
    }
}

//! What the kernel counts of processes and threads, from /proc.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What a thread has taken since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Time on a CPU.
    pub cpu: Duration,
    /// Time in which it could have run, but others had the CPUs.
    pub waited: Duration,
}

impl Taken {
    /// Of the calling thread.
    ///
    /// # Errors
    /// Why /proc does not say.
    pub fn by_this_thread() -> io::Result<Taken> {
        taken("/proc/thread-self/schedstat".as_ref())
    }
}

/// CPU time of all threads of a process that live; one that ends meanwhile is not counted.
///
/// # Errors
/// Why /proc does not say.
pub fn cpu(process: u32) -> io::Result<Duration> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|error| at(folder.as_ref(), error))?;
    let taken = threads.flatten().filter_map(|it| taken(&it.path().join("schedstat")).ok());
    Ok(taken.map(|taken| taken.cpu).sum())
}

/// Resident memory of a process, KiB: now, and the most that it ever had.
///
/// # Errors
/// Why /proc does not say.
pub fn resident_kib(process: u32) -> io::Result<(u64, u64)> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|error| at(path.as_ref(), error))?;
    resident(&status).ok_or_else(|| io::Error::other(format!("{path} does not say VmRSS")))
}

/// One that has ended, but was not waited for, has none.
fn resident(status: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    field("VmRSS:").zip(field("VmHWM:"))
}

/// How often the calling thread has lost its CPU to another one: because it waited, and because it
/// was made to or gave it away.
///
/// # Errors
/// Why /proc does not say.
pub fn switches_of_this_thread() -> io::Result<u64> {
    const PATH: &str = "/proc/thread-self/status";
    let status = fs::read_to_string(PATH).map_err(|error| at(PATH.as_ref(), error))?;
    switches(&status).ok_or_else(|| io::Error::other(format!("{PATH} counts no switches")))
}

fn switches(status: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some(field("voluntary_ctxt_switches:")? + field("nonvoluntary_ctxt_switches:")?)
}

fn taken(path: &Path) -> io::Result<Taken> {
    let text = fs::read_to_string(path).map_err(|error| at(path, error))?;
    let mut times = text.split_whitespace().map(|ns| ns.parse().map(Duration::from_nanos));
    match (times.next(), times.next()) {
        (Some(Ok(cpu)), Some(Ok(waited))) => Ok(Taken { cpu, waited }),
        _ => Err(io::Error::other(format!("{}: no times in '{text}'", path.display()))),
    }
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_a_cpu_and_memory() {
        let own = std::process::id();
        assert!(cpu(own).expect("it lives") >= Taken::by_this_thread().expect("it runs").cpu / 2);
        let (now, most) = resident_kib(own).expect("it lives");
        assert!(0 < now && now <= most, "{now} of {most}");
        let gone = cpu(u32::MAX).expect_err("there is none").to_string();
        assert!(gone.starts_with("/proc/4294967295/task: "), "{gone}");
    }

    #[test]
    fn a_thread_that_sleeps_loses_its_cpu() {
        let before = switches_of_this_thread().expect("it lives");
        std::thread::sleep(Duration::from_millis(1));
        assert!(switches_of_this_thread().expect("it lives") > before);
        let status = "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t45\n";
        assert_eq!(switches(status), Some(195));
        assert_eq!(switches("Name:\tx\n"), None);
    }

    #[test]
    fn a_process_that_ended_has_no_memory() {
        let status = "Name:\tx\nVmHWM:\t    3456 kB\nVmRSS:\t 12 kB\n";
        assert_eq!(resident(status), Some((12, 3456)));
        assert_eq!(resident("Name:\tx\nState:\tZ (zombie)\n"), None);
    }
}

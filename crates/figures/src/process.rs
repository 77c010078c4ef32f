//! What the kernel counts for processes and threads, from /proc.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The time that a thread has taken since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Time on a CPU.
    pub cpu: Duration,
    /// Time in which it could have run, but others had the CPUs.
    pub waited: Duration,
}

impl Taken {
    /// The time of the calling thread.
    ///
    /// # Errors
    /// Why /proc cannot be read.
    pub fn by_this_thread() -> io::Result<Taken> {
        taken("/proc/thread-self/schedstat".as_ref())
    }
}

/// CPU time of all living threads of a process. A thread that ends meanwhile is not counted.
///
/// # Errors
/// Why /proc cannot be read.
pub fn cpu(process: u32) -> io::Result<Duration> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|error| at(folder.as_ref(), error))?;
    let taken = threads.flatten().filter_map(|it| taken(&it.path().join("schedstat")).ok());
    Ok(taken.map(|taken| taken.cpu).sum())
}

/// The kernel counts the time of processes in hundredths of a second (proc(5), USER_HZ).
const HUNDREDTH: Duration = Duration::from_millis(10);

/// CPU time of a process, in hundredths of a second: in its own code, and in the kernel for it.
/// Threads that have ended are included.
///
/// # Errors
/// Why /proc cannot be read.
pub fn user_and_system(process: u32) -> io::Result<(Duration, Duration)> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).map_err(|error| at(path.as_ref(), error))?;
    let counts = stat_number(&stat, UTIME).zip(stat_number(&stat, STIME));
    let (user, system) = counts.ok_or_else(|| io::Error::other(format!("{path}: '{stat}'")))?;
    Ok((HUNDREDTH * user, HUNDREDTH * system))
}

/// The living processes that a process has started. One that starts meanwhile may be missed.
///
/// # Errors
/// /proc cannot be read.
pub fn children(process: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").map_err(|error| at("/proc".as_ref(), error))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| stat_number(&stat, PARENT) == Some(process))
    };
    Ok(entries.flatten().filter_map(number).filter(is_child).collect())
}

/// How many threads of a process have this name.
///
/// # Errors
/// Why /proc cannot be read.
pub fn threads_named(process: u32, name: &str) -> io::Result<usize> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|error| at(folder.as_ref(), error))?;
    let has_name = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    Ok(threads.flatten().filter(has_name).count())
}

/// How often the threads of a process left a CPU, or went to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Because they waited for something.
    pub voluntary: u64,
    /// Because other threads were to run.
    pub involuntary: u64,
    /// They continued on another CPU. `None` if the kernel does not count that.
    pub migrations: Option<u64>,
}

impl Switches {
    /// For all living threads of a process. A thread that ends meanwhile is not counted.
    ///
    /// # Errors
    /// Why /proc cannot be read.
    pub fn of(process: u32) -> io::Result<Switches> {
        let folder = format!("/proc/{process}/task");
        let threads = fs::read_dir(&folder).map_err(|error| at(folder.as_ref(), error))?;
        let mut all = Switches::default();
        for thread in threads.flatten() {
            let text = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let (status, scheduling) = (text("status"), text("sched"));
            let count = |text: &str, name| field(text, name).and_then(|it| it.parse().ok());
            all.voluntary += count(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            all.involuntary += count(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
            let migrations = count(&scheduling, "se.nr_migrations");
            all.migrations =
                migrations.map_or(all.migrations, |more| Some(all.migrations.unwrap_or(0) + more));
        }
        Ok(all)
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(self, before: Switches) -> Switches {
        let migrations = self.migrations.zip(before.migrations);
        Switches {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            migrations: migrations.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// Positions in /proc/PID/stat after the name, counted from 0. The name may contain anything.
const PARENT: usize = 1;
const UTIME: usize = 11;
const STIME: usize = 12;

fn stat_number(stat: &str, place: usize) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

/// The value on the line that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start_matches([' ', ':', '\t']).trim_end())
}

/// Resident memory of a process, KiB: now, and the most so far.
///
/// # Errors
/// Why /proc cannot be read.
pub fn resident_kib(process: u32) -> io::Result<(u64, u64)> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|error| at(path.as_ref(), error))?;
    resident(&status).ok_or_else(|| io::Error::other(format!("{path} does not say VmRSS")))
}

/// `None` for a process that has ended but was not waited for.
fn resident(status: &str) -> Option<(u64, u64)> {
    let kib = |name: &str| field(status, name)?.strip_suffix("kB")?.trim().parse().ok();
    kib("VmRSS:").zip(kib("VmHWM:"))
}

/// How often the calling thread has left its CPU: because it waited, or because it was made to or
/// yielded.
///
/// # Errors
/// Why /proc cannot be read.
pub fn switches_of_this_thread() -> io::Result<u64> {
    const PATH: &str = "/proc/thread-self/status";
    let status = fs::read_to_string(PATH).map_err(|error| at(PATH.as_ref(), error))?;
    switches(&status).ok_or_else(|| io::Error::other(format!("{PATH} counts no switches")))
}

fn switches(status: &str) -> Option<u64> {
    let count = |name: &str| field(status, name)?.parse::<u64>().ok();
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
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
    fn the_kernel_tells_what_a_process_and_its_threads_did() {
        let own = std::process::id();
        let before = Switches::of(own).expect("it lives");
        std::thread::sleep(Duration::from_millis(1));
        let waited = Switches::of(own).expect("it lives").since(before);
        assert!(waited.voluntary > 0, "{waited:?}");
        assert_eq!(threads_named(own, "nobody has this").expect("it lives"), 0);
        let living = cpu(own).expect("it lives");
        let (user, system) = user_and_system(own).expect("it lives");
        // Both are rounded.
        assert!(user + system + 2 * HUNDREDTH >= living, "{user:?} {system:?} {living:?}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let found = children(own).expect("/proc");
        child.kill().expect("it is ours");
        child.wait().expect("it was killed");
        assert!(found.contains(&child.id()), "{found:?}");
    }

    #[test]
    fn a_name_with_brackets_hides_no_number() {
        let stat = "7 (a) b) c) S 5 7 7 0 -1 4194560 1 0 0 0 12 34 0 0 20 0 1 0 9";
        assert_eq!([PARENT, UTIME, STIME].map(|it| stat_number(stat, it)), [5, 12, 34].map(Some));
    }

    #[test]
    fn a_process_that_ended_has_no_memory() {
        let status = "Name:\tx\nVmHWM:\t    3456 kB\nVmRSS:\t 12 kB\n";
        assert_eq!(resident(status), Some((12, 3456)));
        assert_eq!(resident("Name:\tx\nState:\tZ (zombie)\n"), None);
    }
}

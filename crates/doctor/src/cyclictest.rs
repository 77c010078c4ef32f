//! The same wake-ups as measured by cyclictest, the well-known program of rt-tests. It is asked to
//! do what our threads do.

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sinew_figures::Distribution;

use crate::findings::PRIORITY;
use crate::place::System;
use crate::wakeups::Round;

const PROGRAM: &str = "cyclictest";
/// How far the histogram of cyclictest reaches, us. A wake-up beyond it is counted as late as the
/// latest one.
const HISTOGRAM_US: usize = 10_000;
/// cyclictest ends by itself. If it takes this much longer than its wake-ups, it hangs and is
/// killed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first line that cyclictest prints about itself: `cyclictest V 2.40`. As in all functions
/// here, the error says why there is nothing to compare with.
pub(crate) fn version(system: System) -> Result<String, String> {
    let install = match system {
        System::Debian => "apt-get install rt-tests",
        System::Fedora => "dnf install realtime-tests",
        System::Other => "it is part of rt-tests",
    };
    let asked = Command::new(PROGRAM).arg("--help").stdin(Stdio::null()).output();
    let output = asked.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("cyclictest is not installed, so these figures have no comparison: {install}")
        }
        // Also if a folder in PATH may not be entered by this user.
        _ => format!("cyclictest cannot be started ({error}); is it installed? {install}"),
    })?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains(PROGRAM)).unwrap_or(PROGRAM);
    Ok(line.trim().into())
}

/// Lets cyclictest measure all these CPUs at once; returns a distribution of each.
pub(crate) fn measure(
    cpus: &[u32],
    round: Round,
    locked: bool,
) -> Result<Vec<Distribution>, String> {
    let text = run(&arguments(cpus, round, locked), round)?;
    let found = parse(&text).filter(|found| found.len() == cpus.len());
    found.ok_or_else(|| "cyclictest's answer has no histogram of each CPU".into())
}

fn arguments(cpus: &[u32], round: Round, locked: bool) -> Vec<String> {
    let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
    let mut arguments: Vec<String> = vec![
        "--quiet".into(),
        // Otherwise cyclictest would hold /dev/cpu_dma_latency at 0, and so measure a machine in a
        // state that it has at no other time.
        "--default-system".into(),
        format!("--affinity={}", cpus.join(",")),
        format!("--threads={}", cpus.len()),
        format!("--priority={PRIORITY}"),
        format!("--interval={}", round.period_ns / 1000),
        format!("--loops={}", round.count),
        format!("--histogram={HISTOGRAM_US}"),
    ];
    arguments.extend(locked.then(|| "--mlockall".into()));
    arguments
}

/// The output of cyclictest, if it ended in time.
fn run(arguments: &[String], round: Round) -> Result<String, String> {
    let said = |what: &str, error: &dyn std::fmt::Display| format!("cyclictest {what}: {error}");
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| said("cannot be started", &error))?;
    let limit = PATIENCE + Duration::from_nanos(round.period_ns * 2) * round.count as u32;
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
        .map_err(|error| said("cannot be waited for", &error))?;
    let (sender, ended) = mpsc::channel();
    // Reads all that cyclictest writes, so that it never blocks. The receiver may be gone when it
    // ends.
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(limit) else {
        // This fails only if cyclictest has ended just now.
        let _ = pidfd_send_signal(&process, Signal::KILL);
        return Err(said("was ended", &format!("no answer in {limit:?}")));
    };
    let output = output.map_err(|error| said("cannot be waited for", &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into());
    }
    let err = String::from_utf8_lossy(&output.stderr);
    let first = err.lines().find(|line| !line.starts_with("WARN")).unwrap_or("without a word");
    Err(said("refused", &first))
}

/// Reads histograms: a line for each microsecond, a column for each thread, and then lines with
/// the maxima and with how many are beyond the histogram.
fn parse(text: &str) -> Option<Vec<Distribution>> {
    let summary = |name: &str| -> Option<Vec<u64>> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    let latest = summary("# Max Latencies")?;
    let beyond = summary("# Histogram Overflows")?;
    let mut all = vec![Distribution::new(); latest.len()];
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let figures: Option<Vec<u64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        let figures = figures.filter(|figures| figures.len() == all.len() + 1)?;
        for (one, count) in all.iter_mut().zip(&figures[1..]) {
            (0..*count).for_each(|_| one.add(figures[0] * 1000));
        }
    }
    if beyond.len() != all.len() {
        return None;
    }
    for (one, (late, count)) in all.iter_mut().zip(latest.into_iter().zip(beyond)) {
        (0..count).for_each(|_| one.add(late * 1000));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "# Histogram
000000 000000\t000000
000001 000002\t000000
000002 000001\t000003
# Total: 000000003 000000003
# Min Latencies: 00001 00002
# Avg Latencies: 00001 00002
# Max Latencies: 00002 00617
# Histogram Overflows: 00000 00001
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1: 00004
";

    #[test]
    fn a_histogram_is_read_for_each_thread_and_what_is_beyond_it_is_not_lost() {
        let found = parse(ANSWER).expect("as cyclictest writes it");
        let seen = |at: usize| (found[at].n(), found[at].min(), found[at].max());
        assert_eq!(seen(0), (3, Some(1000), Some(2000)));
        assert_eq!(seen(1), (4, Some(2000), Some(617_000)));
    }

    #[test]
    fn what_is_no_histogram_is_not_taken_for_one() {
        let halves = ANSWER.lines().map(|line| ANSWER.split(line).next().unwrap_or_default());
        assert!(halves.take(8).all(|half| parse(half).is_none()));
        for (from, to) in [("000003\n#", "x\n#"), ("000002 000001\t", "000002 "), ("00617", "-1")] {
            assert!(parse(&ANSWER.replacen(from, to, 1)).is_none(), "{to}");
        }
        assert!(parse("").is_none() && parse("Usage: cyclictest").is_none());
    }

    #[test]
    fn it_is_asked_for_the_same_wake_ups_and_to_leave_the_machine_as_it_is() {
        let round = Round { period_ns: 500_000, count: 2000 };
        let asked = arguments(&[1, 3], round, false).join(" ");
        for part in ["--affinity=1,3", "--threads=2", "--interval=500", "--loops=2000"] {
            assert!(asked.contains(part), "{asked}");
        }
        assert!(asked.contains("--default-system") && !asked.contains("mlockall"), "{asked}");
    }
}

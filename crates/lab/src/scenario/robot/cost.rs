//! What the services used: CPU time, and how many cycles the recorder has in its files.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sinew_control::status::Status;
use sinew_recording::recording::counted;
use sinew_runtime::run::Run;

use super::setup::SERVICES;

/// The kernel counts in hundredths of a second (proc(5), USER_HZ), rounded from what the scheduler
/// has measured, not sampled by a timer.
const UNIT: Duration = Duration::from_millis(10);

/// The topic of the core's cycles in a recording.
const CYCLES: &str = "/control/0/cycle";

/// CPU time of the services' processes at a moment.
pub(super) struct Used {
    at: Instant,
    processes: Vec<Process>,
}

struct Process {
    pid: u32,
    cpu: Duration,
    /// Why the process before it ended.
    last_reason: Option<String>,
}

impl Used {
    /// The CPU time that they have used by now, in the order of [`SERVICES`].
    pub(super) fn read(run: &Run) -> Result<Used, String> {
        let status = run.status();
        let process = |name: &&str| process(&status, name);
        let processes = SERVICES.iter().map(process).collect::<Result<_, String>>()?;
        Ok(Used { at: Instant::now(), processes })
    }

    /// The time since `before`, and the CPU time that was used in it.
    pub(super) fn since(&self, before: &Used) -> Result<(Duration, Vec<Duration>), String> {
        let mut used = Vec::new();
        for (at, (now, before)) in self.processes.iter().zip(&before.processes).enumerate() {
            if now.pid != before.pid {
                let reason = now.last_reason.as_deref().unwrap_or("no reason is known");
                return Err(format!(
                    "'{}' was restarted while it was measured: {reason}",
                    SERVICES[at]
                ));
            }
            used.push(now.cpu.saturating_sub(before.cpu));
        }
        Ok((self.at - before.at, used))
    }
}

fn process(status: &Status, name: &str) -> Result<Process, String> {
    let domain = status.domains.iter().find(|domain| domain.name == name);
    let last_reason = domain.and_then(|domain| domain.last_reason.clone());
    let Some(pid) = domain.and_then(|domain| domain.pid) else {
        let reason = last_reason.as_deref().unwrap_or("it was not started");
        return Err(format!("'{name}' does not run: {reason}"));
    };
    Ok(Process { pid, cpu: cpu_time(pid)?, last_reason })
}

fn cpu_time(pid: u32) -> Result<Duration, String> {
    let file = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    // The name, in brackets, may hold anything. The state follows it; user and system time are
    // eleven and twelve fields after the state.
    let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
    let field = |at: usize| fields.as_ref()?.get(at)?.parse::<u32>().ok();
    let units = field(11).zip(field(12)).map(|(user, system)| user + system);
    units.map(|units| UNIT * units).ok_or_else(|| format!("{file}: '{text}' is not as expected"))
}

/// Cycles of the core in all files of a folder, counted by reading the files as another program
/// would.
pub(super) fn recorded(folder: &Path) -> Result<u64, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", folder.display());
    let mut cycles = 0;
    for entry in fs::read_dir(folder).map_err(|error| wrong(&error))? {
        let file = entry.map_err(|error| wrong(&error))?.path();
        let counted = counted(&file, CYCLES).map_err(|error| wrong(&error))?;
        cycles += counted.ok_or_else(|| wrong(&"a recording was not finished"))?;
    }
    Ok(cycles)
}

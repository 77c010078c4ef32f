//! What the supervisor itself costs while nothing happens: CPU time and memory.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_figures::process::{self, Taken};
use sinew_runtime::run::{self, Run};

use super::setup::logged;
use crate::graph::folder;
use crate::harness::process::Killed;
use crate::report::{Figure, Row};
use crate::rounds::Contender;

/// Longest sleep of a supervisor without a live view, as in `sinew run`.
const LOOK: Duration = Duration::from_secs(1);
/// Time after a start before anything counts: work that is done once is not part of the cost.
const SETTLES: Duration = Duration::from_millis(1500);
/// A program that was told to stop is killed if it has not stopped within this time.
const STOPS_WITHIN: Duration = Duration::from_secs(15);

/// A row.
pub(super) struct Idle {
    /// The graph of idle services without a core: the supervisor is then a thread of this process.
    /// If it is `None`, the supervisor is `sinew run --json` as a user starts it, with the arm and
    /// its log.
    services: Option<run::RunRequest>,
    share: Duration,
    cpu_ns: u64,
    wall_ns: u64,
    resident_kib_max: u64,
}

impl Idle {
    pub(super) fn new(services: Option<run::RunRequest>, share: Duration) -> Idle {
        Idle { services, share, cpu_ns: 0, wall_ns: 0, resident_kib_max: 0 }
    }

    /// Adds CPU time, and the wall time since `since`.
    fn count(&mut self, cpu: Duration, since: Instant) {
        self.cpu_ns += cpu.as_nanos() as u64;
        self.wall_ns += since.elapsed().as_nanos() as u64;
    }

    fn services(&mut self, request: run::RunRequest) -> Result<(), String> {
        let cpu = || Taken::by_this_thread().map(|taken| taken.cpu).map_err(|why| why.to_string());
        let run = Run::start(request);
        let mut run = run.map_err(|error| format!("the graph cannot be started: {error}"))?;
        poll_for(&mut run, SETTLES)?;
        let (before, since) = (cpu()?, Instant::now());
        poll_for(&mut run, self.share)?;
        self.count(cpu()? - before, since);
        run.stop();
        while run.poll(LOOK, &mut |_, _| ()) {}
        Ok(())
    }

    fn program(&mut self) -> Result<(), String> {
        let file = folder().join("logged.yaml");
        let cannot = |error: io::Error| format!("cannot start 'sinew run': {error}");
        fs::write(&file, logged()).map_err(cannot)?;
        let mut program = Program::start(file).map_err(cannot)?;
        sleep(SETTLES);
        let (before, since) = (program.cpu()?, Instant::now());
        sleep(self.share);
        self.count(program.cpu()? - before, since);
        self.resident_kib_max = self.resident_kib_max.max(program.resident_kib()?);
        program.stop()
    }
}

impl Contender for Idle {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        match &self.services {
            Some(request) => self.services(request.clone())?,
            None => self.program()?,
        }
        let share = self.cpu_ns as f64 / self.wall_ns.max(1) as f64 * 100.0;
        row.figures = vec![
            Figure::of("supervisor_cpu", "%", share),
            Figure::of("measured_for", "s", self.wall_ns as f64 * 1e-9),
        ];
        if self.services.is_none() {
            let resident = self.resident_kib_max as f64;
            row.figures.push(Figure::of("supervisor_resident", "KiB", resident));
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        SETTLES + self.share
    }
}

fn poll_for(run: &mut Run, time: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if !run.poll(LOOK.min(time - begun.elapsed().min(time)), &mut |_, _| ()) {
            return Err("the services have ended by themselves".into());
        }
    }
    Ok(())
}

/// This program, started again to run a graph.
struct Program(Killed);

impl Program {
    fn start(file: PathBuf) -> io::Result<Program> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--json", "--profile-machine", "none"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(|child| Program(Killed(child)))
    }

    /// CPU time of all its threads, without the domains, which are separate processes.
    fn cpu(&mut self) -> Result<Duration, String> {
        if let Ok(Some(status)) = self.0.0.try_wait() {
            return Err(format!("'sinew run' has ended by itself, {status}"));
        }
        process::cpu(self.0.0.id()).map_err(|why| why.to_string())
    }

    fn resident_kib(&self) -> Result<u64, String> {
        process::resident_kib(self.0.0.id()).map(|(now, _)| now).map_err(|why| why.to_string())
    }

    fn stop(mut self) -> Result<(), String> {
        let process = Pid::from_child(&self.0.0);
        kill_process(process, Signal::TERM).map_err(|error| format!("cannot stop: {error}"))?;
        let begun = Instant::now();
        while begun.elapsed() < STOPS_WITHIN {
            match self.0.0.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("'sinew run' ended with {status}")),
                _ => sleep(Duration::from_millis(10)),
            }
        }
        Err(format!("'sinew run' did not stop within {STOPS_WITHIN:?}"))
    }
}

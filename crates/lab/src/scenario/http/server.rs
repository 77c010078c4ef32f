//! The servers: ours, started as `sinew run` starts a graph, and bare ones, which are programs of
//! their own beside this one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use sinew_core::catalogue::Kind;
use sinew_runtime::run::{Outcome, Run};

use super::row::{Load, Server, Shape};
use crate::graph::compiled;
use crate::harness::process::Killed;
use crate::harness::{Gone, on_thread};

/// The program of the bare servers.
const PROGRAM: &str = "sinew-rivals-http";
/// The name that a spec of the lab has in messages.
const FILE: &str = "lab http";
/// Longest sleep of the supervisor.
const LOOK: Duration = Duration::from_millis(20);
/// Who does not listen by then never will.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// A server that answers.
pub(super) struct Serving {
    pub(super) address: SocketAddr,
    /// Its process.
    pub(super) process: u32,
}

/// A row that can be run.
pub(super) struct ServerRun<'a> {
    /// Set when the user wants no more. Not the session itself: the load has a thread of its own.
    pub(super) stop: &'a AtomicBool,
    pub(super) share: Duration,
    pub(super) server: Server,
    pub(super) graph: Shape,
    pub(super) load: Load,
    pub(super) cpus: &'a [u32],
    pub(super) kinds: &'a [&'static Kind],
}

impl ServerRun<'_> {
    /// Those that the server may use.
    fn server_cpus(&self) -> &[u32] {
        match self.load {
            Load::Ping => &self.cpus[..1],
            _ => self.cpus,
        }
    }

    fn workers(&self) -> usize {
        match self.load {
            Load::Ping | Load::OneWorker => 1,
            Load::Source | Load::TwoWorkers => 2,
        }
    }

    /// Runs the server as long as `work` takes.
    pub(super) fn serve<T: Send>(
        &self,
        work: impl FnOnce(&Serving) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        match self.server {
            Server::Sinew => self.serve_graph(address, work),
            rival => self.serve_rival(rival, address, work),
        }
    }

    fn serve_graph<T: Send>(
        &self,
        address: SocketAddr,
        work: impl FnOnce(&Serving) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let text = self.graph.text(address.port(), self.workers());
        let graph = compiled(FILE, text, Vec::new(), self.kinds, self.server_cpus())?;
        let mut run = Run::start(graph).map_err(|error| format!("cannot be started: {error}"))?;
        let begun = Instant::now();
        let poll = |run: &mut Run| run.poll(LOOK, &mut |_, _| ());
        while TcpStream::connect(address).is_err() {
            if !poll(&mut run) || begun.elapsed() > LISTENS_WITHIN {
                return Err(format!("does not listen on {address}: {}", last_words(&run)));
            }
        }
        let process = run.status().domains[0].pid.ok_or("it has no process")?;
        let worked = thread::scope(|scope| {
            let work = scope.spawn(|| work(&Serving { address, process }));
            while !work.is_finished() && poll(&mut run) {}
            work.join().unwrap_or_else(|_| Err("the load panicked".into()))
        });
        run.stop();
        while poll(&mut run) {}
        match run.outcome() {
            Outcome::Faulted => Err(format!("the graph faulted: {}", last_words(&run))),
            _ => worked,
        }
    }

    fn serve_rival<T: Send>(
        &self,
        rival: Server,
        address: SocketAddr,
        work: impl FnOnce(&Serving) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let mut command = Command::new(program()?);
        command.args(rival.arguments()).args(["--port", &address.port().to_string()]);
        command.args(["--workers", &self.workers().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut start = || command.spawn().map_err(|error| Gone(format!("cannot start: {error}")));
        // A process begins on the CPUs of the thread that starts it.
        let child = match *self.server_cpus() {
            [cpu] => on_thread(cpu, start),
            _ => start(),
        };
        let child = Killed(child.map_err(|Gone(why)| why)?);
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > LISTENS_WITHIN {
                return Err(format!("does not listen on {address}"));
            }
            thread::sleep(LOOK);
        }
        work(&Serving { address, process: child.0.id() })
    }
}

/// Why a run has ended, or its last event.
pub(in crate::scenario) fn last_words(run: &Run) -> String {
    let faults: Vec<_> = run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
    if !faults.is_empty() {
        return faults.join("; ");
    }
    run.events().after(0).last().map_or("no reason known".into(), |event| event.text.clone())
}

/// Where the bare servers are: beside this program.
pub(super) fn program() -> Result<PathBuf, String> {
    let found = env::current_exe().map(|path| path.with_file_name(PROGRAM));
    found.ok().filter(|path| path.exists()).ok_or_else(|| {
        format!(
            "'{PROGRAM}' is not beside this program; build it: cargo build --release \
             --manifest-path rivals/http/Cargo.toml --target-dir target"
        )
    })
}

/// An address of this machine that nobody uses at this moment.
pub(in crate::scenario) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

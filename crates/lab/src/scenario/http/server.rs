//! The servers: ours, started as `sinew run` starts a graph, and bare ones, which are separate
//! programs beside this one.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{env, thread};

use sinew_core::catalogue::Kind;

use super::row::{Load, Server, Shape};
use crate::graph::compiled;
use crate::harness::process::Killed;
use crate::harness::{Gone, on_thread};
use crate::scenario::serving::{LISTENS_WITHIN, LOOK, Serving, free_address, serve_graph};

/// The program of the bare servers.
const PROGRAM: &str = "sinew-rivals-http";
/// The file name of the lab's spec in messages.
const FILE: &str = "lab http";

/// A row that can be run.
pub(super) struct ServerRun<'a> {
    /// Set when the user wants to stop. Not the session itself: the load has a thread of its own.
    pub(super) stop: &'a AtomicBool,
    pub(super) share: Duration,
    pub(super) server: Server,
    pub(super) graph: Shape,
    pub(super) load: Load,
    pub(super) cpus: &'a [u32],
    pub(super) kinds: &'a [&'static Kind],
    /// The address of the database, or why there is none.
    pub(super) database: Option<Result<String, String>>,
}

impl ServerRun<'_> {
    /// The CPUs that the server may use.
    fn server_cpus(&self) -> &[u32] {
        match self.load {
            Load::Ping | Load::Elements => &self.cpus[..1],
            _ => self.cpus,
        }
    }

    fn workers(&self) -> usize {
        match self.load {
            Load::Source | Load::TwoWorkers => 2,
            _ => 1,
        }
    }

    fn database(&self) -> Result<Option<&str>, String> {
        self.database.as_ref().map(|url| url.as_deref().map_err(String::clone)).transpose()
    }

    /// Runs the server while `work` runs.
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
        let database = self.database()?;
        let text = self.graph.text(address.port(), self.workers(), database);
        let graph = compiled(FILE, text, Vec::new(), self.kinds, self.server_cpus())?;
        serve_graph(graph, address, &mut |_| (), work)
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
        command.args(self.database()?.map(|url| ["--database", url]).into_iter().flatten());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut start = || command.spawn().map_err(|error| Gone(format!("cannot start: {error}")));
        // A process starts on the CPUs of the thread that starts it.
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

/// Where the bare servers are: beside this program.
pub(super) fn program() -> Result<PathBuf, String> {
    let found = env::current_exe().map(|path| path.with_file_name(PROGRAM));
    found.ok().filter(|path| path.exists()).ok_or_else(|| {
        format!(
            "'{PROGRAM}' is not in this program's folder; build it: cargo build --release \
             --manifest-path rivals/http/Cargo.toml --target-dir target"
        )
    })
}

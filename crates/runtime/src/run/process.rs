//! The process of a domain, as the supervisor holds it: started, killed, waited for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use signal_hook::consts::SIGCHLD;
use sinew_core::board::Board;
use sinew_core::clock::now_ns;

use super::doors::number;
use super::links::Links;
use super::{DOMAIN_COMMAND, Origin, RunRequest};
use crate::confine::{Confinement, MARKER, Strays, await_end, kill_strays};
use crate::launch::{Launch, Open};

/// How long a dropped run waits for the end of a process that it has killed. Only a process that
/// the kernel holds (a broken disk or driver) takes longer, and is left behind.
const GONE_NS_MAX: u64 = 5_000_000_000;

/// Status of a process that somebody else in this program has waited for: neither an exit nor a
/// signal, and so no success.
const STATUS_UNKNOWN: i32 = 0xffff;

/// Makes the kernel keep how a process has ended until we ask. It does not keep that if our own
/// parent had SIGCHLD ignored: then a killed service would look like one that ended in order.
pub(super) fn keep_endings() -> io::Result<()> {
    // Any handler will do; a process that is waited for by its descriptor needs none.
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// What every process of the run is started from.
pub(super) struct Spawner<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) origin: &'a Origin,
    pub(super) links: &'a Links,
    /// How often the core was restarted before.
    pub(super) life: u32,
    /// Domain, thread and descriptor of each trace of the core, for reading only: for services that
    /// observe.
    pub(super) observed: &'a [(usize, usize, RawFd)],
}

impl Spawner<'_> {
    /// Starts the process of domain `at`, with a board of its own, so that nothing left of the
    /// process before is heard. The process gets what is in `open`, and its links.
    pub(super) fn spawn(
        &self,
        at: usize,
        confinement: &Confinement,
        open: Open,
        output: [Stdio; 2],
    ) -> io::Result<Process> {
        let Spawner { request, origin, .. } = self;
        let domain = &request.plan.domains[at];
        let board = Board::create()?;
        let (writers, readers) = self.links.ends_of(&request.plan, at);
        let mut nodes = domain.service().into_iter().flat_map(|service| &service.nodes);
        let observes = nodes.any(|&node| request.plan.observes(node));
        let observed = if observes { self.observed.to_vec() } else { Vec::new() };
        let launch = Launch {
            spec: request.spec.clone(),
            domain: at,
            rate: origin.clock.rate().to_bits(),
            strict: request.strict,
            pace: request.pace,
            life: self.life,
            parent: std::process::id(),
            marker: format!("{}-{at}", origin.name),
            injections: request.injections.clone(),
            secret: open.supervisor.map_or(String::new(), |_| origin.secret.clone()),
            open: Open {
                board: number(board.region()),
                observed,
                carve_out: self.links.carve_out(at),
                bells: self.links.bells_of(&request.plan, at),
                calls: self.links.doors.calls_of(at),
                called: self.links.doors.called_of(at),
                tunings: self.links.tunings.of_domain(&request.plan, at),
                writers,
                readers,
                ..open
            },
        };
        Process::spawn(&domain.name, &launch, board, confinement, output)
    }
}

/// A process that is ours. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pidfd: OwnedFd,
    /// The mark in the environment of all its descendants.
    marker: String,
    ended: Option<ExitStatus>,
    pub(super) started_ns: u64,
    /// The page that it shares with us.
    pub(super) board: Board,
}

impl Process {
    /// This program again, with nothing left open for it but what `launch` names.
    fn spawn(
        name: &str,
        launch: &Launch,
        board: Board,
        confinement: &Confinement,
        output: [Stdio; 2],
    ) -> io::Result<Process> {
        let sealed = launch.seal()?;
        let mut open = launch.open.all();
        open.push(sealed.as_raw_fd());
        let mut command = Command::new("/proc/self/exe");
        // So that `ps` tells one domain from another.
        command.arg0(format!("sinew: {name}"));
        command.arg(DOMAIN_COMMAND).arg(sealed.as_raw_fd().to_string());
        command.env(MARKER, &launch.marker);
        // A group of its own: what the terminal sends to the parent is passed on by the parent, in
        // order; and a service's children can be killed with it.
        let [out, error] = output;
        command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(error);
        sinew_core::sys::keep_open(&mut command, open);
        confinement.apply(&mut command);
        let mut child = command.spawn()?;
        // A domain outside its bounds runs anyway, and its status says so.
        let _ = confinement.entered(child.id());
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let pidfd = pidfd.inspect_err(|_| end(&mut child))?;
        let (marker, started_ns) = (launch.marker.clone(), now_ns());
        Ok(Process { child, pidfd, marker, ended: None, started_ns, board })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn ended(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Looks whether it has ended; `true` when it just has. The other processes of its group die
    /// with it.
    pub(super) fn reap(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::PidFd(self.pidfd.as_fd()), look) {
            Ok(None) => return false,
            // This happens before its number is free for another process. It is fine if nobody is
            // left in the group.
            Ok(Some(_)) => {
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            }
            // It has ended, and its number may be that of another process by now.
            Err(_) => {}
        }
        self.ended = Some(self.child.wait().unwrap_or(ExitStatus::from_raw(STATUS_UNKNOWN)));
        true
    }

    /// Kills it with all that it has started. It may end by itself meanwhile; then there is nothing
    /// to kill.
    pub(super) fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
        }
    }

    /// Has the processes that it has started killed, wherever they went.
    pub(super) fn seek_strays(&self) -> Strays {
        Strays::seek(&self.marker)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let until_ns = now_ns() + GONE_NS_MAX;
            while !self.reap() && now_ns() < until_ns {
                await_end(&self.pidfd, until_ns);
            }
            kill_strays(&self.marker);
        }
    }
}

fn end(child: &mut Child) {
    // Either may fail only because the child has ended.
    let _ = child.kill();
    let _ = child.wait();
}

pub(super) fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process was ended by signal {signal}"),
        (None, Some(code)) => format!("its process ended with status {code}"),
        (None, None) => "its process ended".into(),
    }
}

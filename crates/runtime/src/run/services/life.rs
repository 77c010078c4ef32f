//! A life of a service: one process of it, from its start until nothing of what it has started is
//! left.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use sinew_core::bell::Bell;
use sinew_core::board::BoardState;
use sinew_core::clock::now_ns;
use sinew_spec::plan::Plan;

use crate::confine::{Confinement, Strays};
use crate::launch::Open;
use crate::run::output::Pipe;
use crate::run::process::{Process, Spawner, ending};

/// A process, and what it leaves behind.
pub(super) struct Life {
    pub(super) process: Process,
    pub(super) progress: Progress,
    /// Rung until it is ready. Each life has its own, so that an old one is not heard.
    bell: Bell,
    pub(super) printed: Pipe,
    /// Our end of its connection to the supervisor, until the control server takes it.
    pub(super) connection: Option<UnixStream>,
    born: Vec<Born>,
    /// Whether it ever was ready: until then the user looks into the spec for what keeps it from
    /// being ready.
    pub(super) was_ready: bool,
    /// What the supervisor charges it with, kept until the kill has taken effect.
    charge: Option<String>,
    /// Processes that the kernel had killed for their memory before this life.
    memory_kills: u64,
}

pub(super) enum Progress {
    /// It makes its nodes.
    Starting { since_ns: u64 },
    /// It runs.
    Running,
    /// It was told to stop, or killed.
    Stopping { since_ns: u64, killed: bool },
    /// Its process has ended; what the process has started is ended too, before anything else.
    Gone(Strays),
}

/// A node as its process was started.
struct Born {
    /// Index in the plan of that time.
    index: usize,
    name: String,
    /// Line of the spec.
    line: u32,
}

impl Life {
    /// Starts the process of service domain `at`; `profile` is where its CPU profile goes and how
    /// many samples are taken in a second, if one is asked for.
    pub(super) fn start(
        at: usize,
        confinement: &Confinement,
        counters: Vec<RawFd>,
        profile: Option<(RawFd, u32)>,
        spawner: &Spawner<'_>,
    ) -> io::Result<Life> {
        let plan = &spawner.request.plan;
        let nodes = plan.domains[at].service().map_or(&[][..], |service| &service.nodes);
        let (bell, (printed, output)) = (Bell::create()?, Pipe::open()?);
        let talks = nodes
            .iter()
            .any(|&node| plan.observes(node) || plan.is_flow(node) || plan.is_of_hosts(node));
        let pair = if talks { Some(UnixStream::pair()?) } else { None };
        let (connection, theirs) = pair.unzip();
        let memory_kills = confinement.memory_kills();
        let open = Open {
            bell: bell.as_fd().as_raw_fd(),
            counters,
            supervisor: theirs.as_ref().map(AsRawFd::as_raw_fd),
            profile,
            ..Open::default()
        };
        let process = spawner.spawn(at, confinement, open, output)?;
        Ok(Life {
            process,
            progress: Progress::Starting { since_ns: now_ns() },
            bell,
            printed,
            connection,
            born: nodes.iter().map(|&index| Born::of(plan, index)).collect(),
            was_ready: false,
            charge: None,
            memory_kills,
        })
    }

    /// Adds what there is to wait for: its end, and until it is ready its bell. After that the bell
    /// is not heard, so a service that rings without end disturbs nobody.
    pub(super) fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        match &self.progress {
            Progress::Gone(strays) => {
                waits.extend(strays.over().map(|it| PollFd::new(it, PollFlags::IN)));
            }
            _ => waits.push(PollFd::new(&self.process, PollFlags::IN)),
        }
        if matches!(self.progress, Progress::Starting { .. }) {
            waits.push(PollFd::new(&self.bell, PollFlags::IN));
        }
    }

    /// Call it after a wait, before anything is looked at.
    pub(super) fn hush(&self) {
        if matches!(self.progress, Progress::Starting { .. }) {
            self.bell.hush();
        }
    }

    /// Once its process has ended, has the processes that it has started killed. Looking through
    /// all processes may take a while, and the other services must be watched meanwhile.
    pub(super) fn reap(&mut self, confinement: &Confinement) {
        if self.process.reap() {
            // Both ways are used: the cgroup kills what it knows at once, and the others are looked
            // for.
            let _ = confinement.kill();
            self.progress = Progress::Gone(self.process.seek_strays());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(&self.progress, Progress::Gone(strays) if strays.are_gone())
    }

    /// How far it is, as it reports itself.
    pub(super) fn state(&self) -> BoardState {
        self.process.board.state()
    }

    /// It is ready, and may run.
    pub(super) fn run(&mut self, now_ns: u64) {
        self.process.board.order_run(now_ns);
        (self.progress, self.was_ready) = (Progress::Running, true);
    }

    pub(super) fn order_stop(&mut self) {
        self.process.board.order_stop();
        self.progress = Progress::Stopping { since_ns: now_ns(), killed: false };
    }

    /// Kills it for a reason that its own process does not know.
    pub(super) fn kill(&mut self, charge: String, now_ns: u64) {
        self.charge.get_or_insert(charge);
        self.process.kill();
        self.progress = Progress::Stopping { since_ns: now_ns, killed: true };
    }

    /// Nothing is left of it: returns whether it has ended in order, and why it has ended. If it
    /// was never ready, the user looks into `file`.
    pub(super) fn end(self, file: &str, confinement: &Confinement) -> (bool, String) {
        let status = self.process.ended().unwrap_or_default();
        let fault =
            self.process.board.fault().map(|at| match at.node.and_then(|it| self.born(it)) {
                Some(Born { name, .. }) if self.was_ready => {
                    format!("in node '{name}': {}", at.fault)
                }
                Some(Born { name, line, .. }) => {
                    format!("in node '{name}': {} ({file}:{line})", at.fault)
                }
                None => at.fault.to_string(),
            });
        let in_order = status.success() && self.charge.is_none() && fault.is_none();
        let mut reason = match (fault, self.charge) {
            (Some(fault), _) => fault,
            (None, Some(charge)) => charge,
            (None, None) if status.success() => "has ended in order".into(),
            (None, None) => ending(status),
        };
        if confinement.memory_kills() > self.memory_kills {
            reason += "; it reached its memory limit: see 'memory' in its limits";
        }
        let strays = match self.progress {
            Progress::Gone(strays) => strays.count(),
            _ => 0,
        };
        if strays > 0 {
            reason += &format!("; {strays} processes that it had started were killed");
        }
        (in_order, reason)
    }

    /// The node with this index in the plan that its process was started with. A service may write
    /// anything.
    fn born(&self, index: usize) -> Option<&Born> {
        self.born.iter().find(|born| born.index == index)
    }
}

impl Born {
    fn of(plan: &Plan, index: usize) -> Born {
        let node = &plan.nodes[index];
        Born { index, name: node.name.clone(), line: node.line }
    }
}

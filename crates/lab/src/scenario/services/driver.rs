//! Runs a row: the core with what stands beside it, and what comes of its cycles.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::status::{DomainState, EventKind};
use sinew_core::clock::now_ns;
use sinew_core::pace::Pace;
use sinew_figures::Distribution;
use sinew_runtime::Kinds;
use sinew_runtime::run::{self, Run};

use super::Shared;
use super::setup::{BACKOFF_MS, Beside};
use crate::graph::Graph;
use crate::report::{Figure, Row};
use crate::rounds::Contender;
use crate::scenario::beside::{Seen, figure};
use crate::scenario::table;

/// The name that a spec of the lab has in messages.
const FILE: &str = "lab services";
/// Longest sleep of the supervisor: so exactly a row ends in time.
const LOOK: Duration = Duration::from_millis(100);
/// Cycles after each start that do not count: the drives' own start among them.
const WARM_UP: u64 = 200;
/// What starting and stopping a graph takes, about.
const START: Duration = Duration::from_millis(500);

/// The request for a graph of the lab.
///
/// # Errors
/// What is wrong with its text.
pub(super) fn request(text: &str, shared: &Shared<'_>) -> Result<run::Request, String> {
    let (text, kinds) = (text.to_owned(), table(&Kinds::default()).catalogue());
    let graph = Graph::compile(FILE, text, Vec::new(), &kinds, &shared.cpus)?;
    Ok(graph.request(Pace::AsPlanned, Vec::new()))
}

/// A row that can be run.
pub(super) struct Driver<'a> {
    shared: &'a Shared<'a>,
    beside: Beside,
    request: run::Request,
    all: Seen,
    services: Services,
}

/// What services did.
#[derive(Default)]
struct Services {
    restarts: u64,
    /// Sent to the core, or tried to.
    messages: u64,
    ready_again: Distribution,
}

impl<'a> Driver<'a> {
    /// Compiles the row's graph.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(shared: &'a Shared<'a>, beside: Beside) -> Result<Driver<'a>, String> {
        let request = request(&beside.text(), shared)?;
        let (all, services) = (Seen::new(WARM_UP), Services::default());
        Ok(Driver { shared, beside, request, all, services })
    }

    fn run(&self) -> Result<(Seen, Services), String> {
        let mut run = Run::start(self.request.clone())
            .map_err(|error| format!("the graph cannot be started: {error}"))?;
        let (clock, mut seen) = (run.clock(), Seen::new(WARM_UP));
        let mut kills = (self.beside == Beside::Killed).then(|| Kills::new(self.shared.kills));
        let mut until_ns = u64::MAX;
        let mut messages = 0;
        while run.poll(LOOK, &mut |id, record| seen.take(id, record, clock)) {
            if until_ns == u64::MAX && run.started_ns() != u64::MAX {
                let warm_up_ns = WARM_UP * 1_000_000;
                until_ns = run.started_ns() + warm_up_ns + self.shared.share.as_nanos() as u64;
                seen.begin();
            }
            if until_ns != u64::MAX {
                kills.as_mut().map_or(Ok(()), |kills| kills.go_on(&run))?;
            }
            let is_over = now_ns() >= until_ns && kills.as_ref().is_none_or(Kills::is_done);
            if !seen.is_over() && (is_over || self.shared.session.is_stopped()) {
                messages = sent(&run);
                seen.end();
                run.stop();
            }
        }
        seen.check(&run)?;
        let restarts = run.status().domains.iter().map(|it| u64::from(it.restarts)).sum();
        let ready_again = kills.map_or_else(Distribution::new, |kills| kills.ready_again);
        Ok((seen, Services { restarts, messages, ready_again }))
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = self.all.figures();
        figures.push(figure("restarts", "", self.services.restarts as f64));
        figures.push(figure("messages_to_core", "", self.services.messages as f64));
        figures
    }
}

impl Contender for Driver<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let (round, services) = self.run()?;
        if services.ready_again.n() > 0 {
            let median = services.ready_again.mean().unwrap_or_default();
            row.measure_mut("ready_again").add_round(&services.ready_again, median, None);
        }
        let measured = round.measured(row);
        self.shared.rounds.borrow_mut().entry(self.beside.word()).or_default().push(measured);
        self.all.merge(&round);
        self.services.restarts += services.restarts;
        self.services.messages += services.messages;
        row.figures = self.figures();
        Ok(())
    }

    fn takes(&self) -> Duration {
        START + Duration::from_millis(WARM_UP) + self.shared.share
    }
}

/// Kills services from outside, one after the other, and measures until each is ready again.
struct Kills {
    left: u32,
    /// Number of the newest event that was looked at.
    looked: u64,
    /// The one that was killed, and when.
    killed: Option<(String, u64)>,
    /// From the kill to the supervisor's word that it is ready, without the policy's pause.
    ready_again: Distribution,
}

impl Kills {
    fn new(left: u32) -> Kills {
        Kills { left, looked: 0, killed: None, ready_again: Distribution::new() }
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn go_on(&mut self, run: &Run) -> Result<(), String> {
        if let Some((name, killed_ns)) = &self.killed {
            let mut events = run.events().after(self.looked);
            let mut events = events.by_ref().filter(|event| event.domain.as_ref() == Some(name));
            let landed = events.find(|event| event.what == EventKind::Faulted);
            let Some(ready) = landed.and_then(|landed| {
                let ready = events.find(|event| event.what == EventKind::Ready)?;
                Some((landed.text.contains("signal 9"), ready.time_ns))
            }) else {
                return Ok(());
            };
            if !ready.0 {
                return Err(format!("'{name}' did not end by the kill"));
            }
            let pause_ns = BACKOFF_MS * 1_000_000;
            self.ready_again.add(ready.1.saturating_sub(killed_ns + pause_ns));
            (self.killed, self.left) = (None, self.left - 1);
        }
        if self.left == 0 {
            return Ok(());
        }
        let status = run.status();
        let running = status.domains.iter().filter(|domain| domain.threads.is_empty());
        let running: Vec<_> = running.filter(|it| it.state == DomainState::Running).collect();
        let chosen = running.get(self.left as usize % running.len().max(1));
        let process = chosen.and_then(|it| Some((it.name.clone(), pid(it.pid?)?)));
        let Some((name, process)) = process else { return Ok(()) };
        self.looked = run.events().newest();
        let killed_ns = now_ns();
        kill_process(process, Signal::KILL).map_err(|error| format!("cannot kill: {error}"))?;
        self.killed = Some((name, killed_ns));
        Ok(())
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Messages that services have sent, or tried to.
fn sent(run: &Run) -> u64 {
    let status = run.status();
    let nodes = status.domains.iter().flat_map(|domain| &domain.nodes);
    nodes.map(|node| node.sent + node.dropped).sum()
}

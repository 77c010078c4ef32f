//! Runs a row: the core with what stands beside it, and what comes of its cycles.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sinew_runtime::clock::{Clock, now_ns};
use sinew_runtime::run::{self, Outcome, Pace, Run, ThreadId};
use sinew_runtime::status::{DomainState, EventKind};
use sinew_runtime::trace::Record;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile};

use super::setup::{BACKOFF_MS, Beside};
use super::{LEADER, Round, Shared};
use crate::distribution::Distribution;
use crate::report::{Figure, Row};
use crate::rounds::Contender;
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
    let kinds: Vec<_> = table(&[]).iter().map(|row| row.kind).collect();
    let source = Source { file: FILE, text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: shared.cpus.clone() });
    let plan = plan
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    Ok(run::Request {
        file: FILE.into(),
        text: text.into(),
        base: shared.base.clone(),
        overrides: Vec::new(),
        cpus: shared.cpus.clone(),
        plan,
        strict: false,
        pace: Pace::AsPlanned,
        injections: Vec::new(),
    })
}

/// A row that can be run.
pub(super) struct Driver<'a> {
    shared: &'a Shared<'a>,
    beside: Beside,
    request: run::Request,
    all: Seen,
}

impl<'a> Driver<'a> {
    /// Compiles the row's graph.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(shared: &'a Shared<'a>, beside: Beside) -> Result<Driver<'a>, String> {
        let request = request(&beside.text(), shared)?;
        Ok(Driver { shared, beside, request, all: Seen::new() })
    }

    fn run(&self) -> Result<Seen, String> {
        let mut run = Run::start(self.request.clone())
            .map_err(|error| format!("the graph cannot be started: {error}"))?;
        let (clock, mut seen) = (run.clock(), Seen::new());
        let mut kills = (self.beside == Beside::Killed).then(|| Kills::new(self.shared.kills));
        let mut until_ns = u64::MAX;
        let (mut stolen_before, mut messages) = (None, 0);
        while run.poll(LOOK, &mut |id, record| seen.take(id, record, clock)) {
            if until_ns == u64::MAX && run.started_ns() != u64::MAX {
                let warm_up_ns = WARM_UP * 1_000_000;
                until_ns = run.started_ns() + warm_up_ns + self.shared.share.as_nanos() as u64;
                stolen_before = stolen_ns();
            }
            if until_ns != u64::MAX {
                kills.as_mut().map_or(Ok(()), |kills| kills.go_on(&run))?;
            }
            let is_over = now_ns() >= until_ns && kills.as_ref().is_none_or(Kills::is_done);
            if !seen.is_over && (is_over || self.shared.session.is_stopped()) {
                (seen.is_over, messages) = (true, sent(&run));
                run.stop();
            }
        }
        if run.outcome() == Outcome::Faulted {
            let faults: Vec<_> = run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
            return Err(format!("the graph faulted: {}", faults.join("; ")));
        }
        if run.records_lost() > 0 {
            return Err(format!("{} records were not read in time", run.records_lost()));
        }
        seen.restarts = run.status().domains.iter().map(|it| u64::from(it.restarts)).sum();
        seen.messages = messages;
        let stolen = stolen_ns().zip(stolen_before);
        seen.stolen_ns = stolen.map_or(0, |(now, before)| now.saturating_sub(before));
        seen.ready_again = kills.map_or_else(Distribution::new, |kills| kills.ready_again);
        Ok(seen)
    }
}

impl Contender for Driver<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let round = self.run()?;
        let mut measure = |name, distribution: &Distribution| {
            if let Some(median) = distribution.quantile(0.5) {
                row.measure_mut(name).add_round(distribution, median as f64, None);
            }
        };
        measure("cycle_latency", &round.latency);
        measure("activation_jitter", &round.jitter);
        if round.ready_again.n() > 0 {
            let median = round.ready_again.mean().unwrap_or_default();
            row.measure_mut("ready_again").add_round(&round.ready_again, median, None);
        }
        self.shared.rounds.borrow_mut().entry(self.beside.word()).or_default().push(Round {
            latency_p99_ns: round.latency.quantile(0.99),
            jitter_p99_ns: round.jitter.quantile(0.99),
            overruns: round.overruns,
        });
        self.all.merge(&round);
        row.figures = self.all.figures();
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

/// What the host has taken from all CPUs so far, if the kernel says it.
fn stolen_ns() -> Option<u64> {
    /// The kernel counts in hundredths of a second (proc(5), USER_HZ).
    const UNIT_NS: u64 = 10_000_000;
    let text = fs::read_to_string("/proc/stat").ok()?;
    let steal = text.lines().next()?.split_whitespace().nth(8)?;
    Some(steal.parse::<u64>().ok()? * UNIT_NS)
}

/// What was seen of a row.
struct Seen {
    latency: Distribution,
    jitter: Distribution,
    ready_again: Distribution,
    overruns: u64,
    skipped: u64,
    restarts: u64,
    messages: u64,
    stolen_ns: u64,
    /// What comes now does not count.
    is_over: bool,
}

impl Seen {
    fn new() -> Seen {
        Seen {
            latency: Distribution::new(),
            jitter: Distribution::new(),
            ready_again: Distribution::new(),
            overruns: 0,
            skipped: 0,
            restarts: 0,
            messages: 0,
            stolen_ns: 0,
            is_over: false,
        }
    }

    fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        let counts = id == LEADER && record.number() >= WARM_UP && !record.is_stopping();
        if !counts || self.is_over {
            return;
        }
        self.latency.add(clock.ns(record.latency_ticks()));
        self.jitter.add(record.start_ns().saturating_sub(record.release_ns()));
        self.overruns += u64::from(record.is_overrun()) + record.skipped();
        self.skipped += record.skipped();
    }

    fn merge(&mut self, other: &Seen) {
        self.latency.merge(&other.latency);
        self.jitter.merge(&other.jitter);
        self.overruns += other.overruns;
        self.skipped += other.skipped;
        self.restarts += other.restarts;
        self.messages += other.messages;
        self.stolen_ns += other.stolen_ns;
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name: &str, unit: &str, value: f64| Figure {
            name: name.into(),
            unit: unit.into(),
            value,
        };
        vec![
            figure("overruns", "", self.overruns as f64),
            figure("skipped", "", self.skipped as f64),
            figure("restarts", "", self.restarts as f64),
            figure("messages_to_core", "", self.messages as f64),
            figure("stolen_by_host", "ms", self.stolen_ns as f64 * 1e-6),
        ]
    }
}

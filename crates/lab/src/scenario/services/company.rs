//! The services beside a core: what they did, and kills from outside.

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::status::{DomainState, EventKind};
use sinew_core::clock::now_ns;
use sinew_figures::Distribution;
use sinew_runtime::run::Run;

use super::setup::BACKOFF_MS;
use crate::report::{Figure, Row};
use crate::scenario::beside::Beside;

/// What services do, over all rounds.
#[derive(Default)]
pub(super) struct PlainServices {
    /// Kills in each round.
    kills_max: u32,
    kills: Kills,
    restarts: u64,
    /// Messages that were sent to the core, or that a service tried to send.
    messages: u64,
}

impl PlainServices {
    /// Services of which this many are killed in each round.
    pub(super) fn new(kills_max: u32) -> PlainServices {
        PlainServices { kills_max, ..PlainServices::default() }
    }
}

impl Beside for PlainServices {
    fn begin(&mut self) {
        self.kills = Kills { left: self.kills_max, ..Kills::default() };
    }

    fn look(&mut self, run: &Run, counts: bool) -> Result<bool, String> {
        if counts {
            self.kills.go_on(run)?;
        }
        Ok(self.kills.left == 0)
    }

    fn end(&mut self, run: &Run) -> Result<(), String> {
        let status = run.status();
        let nodes = status.domains.iter().flat_map(|domain| &domain.nodes);
        self.messages += nodes.map(|node| node.sent + node.dropped).sum::<u64>();
        Ok(())
    }

    fn add_to(&mut self, row: &mut Row, run: &Run, _: u64) -> Result<(), String> {
        self.restarts += run.status().domains.iter().map(|it| u64::from(it.restarts)).sum::<u64>();
        let ready_again = &self.kills.ready_again;
        if let Some(mean) = ready_again.mean() {
            row.measure_mut("ready_again").add_round(ready_again, mean, None);
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::of("restarts", "", self.restarts as f64),
            Figure::of("messages_to_core", "", self.messages as f64),
        ]
    }
}

/// Kills services from outside, one after the other, and measures how long it takes until each is
/// ready again.
#[derive(Default)]
struct Kills {
    left: u32,
    /// Number of the newest event that was read.
    looked: u64,
    /// The service that was killed, and when.
    killed: Option<(String, u64)>,
    /// From the kill until the supervisor says that the service is ready, without the pause of the
    /// restart policy.
    ready_again: Distribution,
}

impl Kills {
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

//! Runs a row: the core with what stands beside it, and who looks on.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sinew_core::catalogue::Kind;
use sinew_core::clock::now_ns;
use sinew_core::pace::Pace;
use sinew_runtime::run::{self, Run};

use super::Shared;
use super::cost::{Used, recorded};
use super::setup::{Beside, RECORDINGS, SERVICES};
use super::viewers::Viewers;
use crate::graph::{Graph, folder};
use crate::report::{Figure, Row};
use crate::rounds::Contender;
use crate::scenario::beside::{Seen, figure};

/// The name that a spec of the lab has in messages.
const FILE: &str = "lab robot";
/// Longest sleep of the supervisor: so exactly a row ends in time.
const LOOK: Duration = Duration::from_millis(100);
/// Cycles after each start that do not count: the drives' own start, and the viewers', among them.
const WARM_UP: u64 = 1500;
/// What starting and stopping a graph takes, about.
const START: Duration = Duration::from_millis(1000);
/// A dashboard that has no address by then will have none.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(10);

/// A row that can be run.
pub(super) struct Driver<'a> {
    shared: &'a Shared<'a>,
    beside: Beside,
    request: run::Request,
    all: Seen,
    services: Services,
}

/// What services did, over all rounds.
#[derive(Default)]
struct Services {
    measured_for: Duration,
    /// In the order of [`SERVICES`].
    cpu: [Duration; SERVICES.len()],
    /// Motions a second that the viewer got who got the fewest, in the worst round.
    frames_hz: Option<f64>,
    cycles: u64,
    recorded: u64,
}

/// What stands beside the core while it is measured.
struct Watched {
    viewers: Viewers,
    /// When it began to count: CPU time, and motions of each viewer.
    before: Option<(Used, Vec<u64>)>,
}

impl<'a> Driver<'a> {
    /// Compiles the row's graph.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        beside: Beside,
        kinds: &[&'static Kind],
    ) -> Result<Driver<'a>, String> {
        let graph = Graph::compile(FILE, beside.text(), Vec::new(), kinds, &shared.cpus)?;
        let request = graph.request(Pace::AsPlanned, Vec::new());
        let (all, services) = (Seen::new(WARM_UP), Services::default());
        Ok(Driver { shared, beside, request, all, services })
    }

    /// Runs it once; what was seen of the core.
    fn run(&mut self) -> Result<Seen, String> {
        let mut run = Run::start(self.request.clone())
            .map_err(|error| format!("the graph cannot be started: {error}"))?;
        let (clock, mut seen, begun) = (run.clock(), Seen::new(WARM_UP), Instant::now());
        let (mut watched, mut failed) = (None, None);
        let mut starts_ns = u64::MAX;
        let share_ns = self.shared.share.as_nanos() as u64;
        while run.poll(LOOK, &mut |id, record| seen.take(id, record, clock)) {
            if starts_ns == u64::MAX && run.started_ns() != u64::MAX {
                starts_ns = run.started_ns() + WARM_UP * 1_000_000;
                seen.begin();
            }
            if seen.is_over() {
                continue;
            }
            let looked = self.look_beside(&run, &mut watched, now_ns() >= starts_ns, begun);
            failed = looked.err();
            let is_over = starts_ns != u64::MAX && now_ns() >= starts_ns + share_ns;
            if is_over || failed.is_some() || self.shared.session.is_stopped() {
                seen.end();
                let taken =
                    watched.take().map_or(Ok(()), |watched| self.services.take(&run, watched));
                failed = failed.or(taken.err());
                run.stop();
            }
        }
        seen.check(&run)?;
        failed.map_or(Ok(seen), Err)
    }

    /// Lets viewers come once there is a page, and begins to count with the core.
    fn look_beside(
        &self,
        run: &Run,
        watched: &mut Option<Watched>,
        counts: bool,
        begun: Instant,
    ) -> Result<(), String> {
        if self.beside == Beside::Nothing {
            return Ok(());
        }
        match watched {
            None => match address(run) {
                Some(address) => {
                    let viewers = Viewers::start(&address, self.beside.viewers())?;
                    *watched = Some(Watched { viewers, before: None });
                }
                None if begun.elapsed() < ANNOUNCED_WITHIN => {}
                None => return Err("the dashboard announces no address".into()),
            },
            Some(watched) if counts && watched.before.is_none() => {
                watched.before = Some((Used::read(run)?, watched.viewers.frames()));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = self.all.figures();
        if self.beside == Beside::Nothing {
            return figures;
        }
        let services = &self.services;
        let seconds = services.measured_for.as_secs_f64();
        for (name, cpu) in SERVICES.iter().zip(services.cpu) {
            figures.push(figure(&format!("{name}_cpu"), "%", cpu.as_secs_f64() / seconds * 100.0));
        }
        figures.extend(services.frames_hz.map(|hz| figure("frames_least", "Hz", hz)));
        figures.push(figure("cycles", "", services.cycles as f64));
        figures.push(figure("cycles_recorded", "", services.recorded as f64));
        figures
    }
}

impl Services {
    /// Takes what was used and seen since it counts.
    fn take(&mut self, run: &Run, watched: Watched) -> Result<(), String> {
        let Watched { viewers, before } = watched;
        let Some((used, frames)) = before else { return viewers.end() };
        let (time, cpu) = Used::read(run)?.since(&used)?;
        let got = viewers.frames().into_iter().zip(frames).map(|(now, before)| now - before);
        let least = got.min().map(|count| count as f64 / time.as_secs_f64());
        self.frames_hz = [self.frames_hz, least].into_iter().flatten().reduce(f64::min);
        self.measured_for += time;
        self.cpu.iter_mut().zip(cpu).for_each(|(all, cpu)| *all += cpu);
        viewers.end()
    }
}

impl Contender for Driver<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let recordings = Recordings::new();
        let seen = self.run()?;
        if self.beside != Beside::Nothing && !self.shared.session.is_stopped() {
            self.services.cycles += seen.cycles;
            self.services.recorded += recorded(&recordings.0)?;
        }
        let measured = seen.measured(row);
        self.shared.rounds.borrow_mut().entry(self.beside.word()).or_default().push(measured);
        self.all.merge(&seen);
        row.figures = self.figures();
        Ok(())
    }

    fn takes(&self) -> Duration {
        START + Duration::from_millis(WARM_UP) + self.shared.share
    }
}

/// The folder of a round's recordings, removed when the round is over.
struct Recordings(PathBuf);

impl Recordings {
    fn new() -> Recordings {
        Recordings(folder().join(RECORDINGS))
    }
}

impl Drop for Recordings {
    fn drop(&mut self) {
        // What cannot be removed goes with the scenario's folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where the page is, once the dashboard has said it.
fn address(run: &Run) -> Option<String> {
    let status = run.status();
    let dashboard = status.domains.into_iter().find(|domain| domain.name == "dashboard");
    dashboard?.address
}

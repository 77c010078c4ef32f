//! The services beside a core, the viewers, and what all of that takes.

use std::fs;
use std::time::{Duration, Instant};

use sinew_runtime::run::Run;

use super::cost::{Used, recorded};
use super::setup::{Audience, RECORDINGS, SERVICES};
use super::viewers::Viewers;
use crate::graph::folder;
use crate::report::{Figure, Row};
use crate::rounds::Session;
use crate::scenario::beside::Beside;

/// A dashboard that has no address within this time will never have one.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(10);

/// What services did, over all rounds.
pub(super) struct WatchedServices<'a> {
    session: &'a Session<'a>,
    audience: Audience,
    begun: Instant,
    watched: Option<Watched>,
    measured_for: Duration,
    /// In the order of [`SERVICES`].
    cpu: [Duration; SERVICES.len()],
    /// Motions a second of the viewer that got the fewest, in the worst round.
    frames_hz: Option<f64>,
    cycles: u64,
    recorded: u64,
}

/// What runs beside the core while it is measured.
struct Watched {
    viewers: Viewers,
    /// CPU time, and motions of each viewer, when they began to count.
    before: Option<(Used, Vec<u64>)>,
}

impl<'a> WatchedServices<'a> {
    /// Nothing is counted yet.
    pub(super) fn new(session: &'a Session<'a>, audience: Audience) -> WatchedServices<'a> {
        WatchedServices {
            session,
            audience,
            begun: Instant::now(),
            watched: None,
            measured_for: Duration::ZERO,
            cpu: Default::default(),
            frames_hz: None,
            cycles: 0,
            recorded: 0,
        }
    }
}

impl Beside for WatchedServices<'_> {
    fn begin(&mut self) {
        (self.begun, self.watched) = (Instant::now(), None);
        // The recordings of the round before have been counted. Files that cannot be removed would
        // show as too many cycles.
        let _ = fs::remove_dir_all(folder().join(RECORDINGS));
    }

    /// Starts the viewers as soon as there is a page, and begins to count when the core's cycles
    /// count.
    fn look(&mut self, run: &Run, counts: bool) -> Result<bool, String> {
        if self.audience == Audience::Nothing {
            return Ok(true);
        }
        match &mut self.watched {
            None => match address(run) {
                Some(address) => {
                    let viewers = Viewers::start(&address, self.audience.viewers())?;
                    self.watched = Some(Watched { viewers, before: None });
                }
                None if self.begun.elapsed() < ANNOUNCED_WITHIN => {}
                None => return Err("the dashboard announces no address".into()),
            },
            Some(watched) if counts && watched.before.is_none() => {
                watched.before = Some((Used::read(run)?, watched.viewers.frames()));
            }
            Some(_) => {}
        }
        Ok(true)
    }

    /// Takes what was used and seen since the count began.
    fn end(&mut self, run: &Run) -> Result<(), String> {
        let Some(Watched { viewers, before }) = self.watched.take() else { return Ok(()) };
        let Some((used, frames)) = before else { return viewers.end() };
        let (time, cpu) = Used::read(run)?.since(&used)?;
        let got = viewers.frames().into_iter().zip(frames).map(|(now, before)| now - before);
        let least = got.min().map(|count| count as f64 / time.as_secs_f64());
        self.frames_hz = [self.frames_hz, least].into_iter().flatten().reduce(f64::min);
        self.measured_for += time;
        self.cpu.iter_mut().zip(cpu).for_each(|(all, cpu)| *all += cpu);
        viewers.end()
    }

    fn add_to(&mut self, _: &mut Row, _: &Run, cycles: u64) -> Result<(), String> {
        if self.audience != Audience::Nothing && !self.session.is_stopped() {
            self.cycles += cycles;
            self.recorded += recorded(&folder().join(RECORDINGS))?;
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        if self.audience == Audience::Nothing {
            return vec![];
        }
        let seconds = self.measured_for.as_secs_f64();
        let share = |(name, cpu): (&&str, Duration)| {
            Figure::of(&format!("{name}_cpu"), "%", cpu.as_secs_f64() / seconds * 100.0)
        };
        let mut figures: Vec<_> = SERVICES.iter().zip(self.cpu).map(share).collect();
        figures.extend(self.frames_hz.map(|hz| Figure::of("frames_least", "Hz", hz)));
        figures.push(Figure::of("cycles", "", self.cycles as f64));
        figures.push(Figure::of("cycles_recorded", "", self.recorded as f64));
        figures
    }
}

/// The address of the page, as soon as the dashboard has announced it.
fn address(run: &Run) -> Option<String> {
    let status = run.status();
    let dashboard = status.domains.into_iter().find(|domain| domain.name == "dashboard");
    dashboard?.address
}

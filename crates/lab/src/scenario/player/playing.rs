//! Plays a row once a round, and collects what was seen and heard.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_figures::Distribution;
use sinew_runtime::run::{Outcome, Run};

use super::busy::Busy;
use super::case::{CpuLoad, Decoder, PlayerCase};
use super::page::{Page, PageState};
use super::script::{Given, Script};
use super::setup::{self, PlayerSetup};
use super::shown::{self, ShownPicture, in_step_after};
use crate::report::{Figure, Row};
use crate::rounds::{Contender, Session};
use crate::scenario::serving::{free_address, last_words};

/// Time between two looks at the page, by which an order may also be late.
const LOOK: Duration = Duration::from_millis(50);
/// About how long starting and stopping a graph takes.
const START: Duration = Duration::from_millis(500);

/// What all rows share.
pub(super) struct PlayerBench<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) setup: PlayerSetup<'a>,
    pub(super) pause: Duration,
}

/// A row.
pub(super) struct Playing<'a> {
    bench: &'a PlayerBench<'a>,
    case: PlayerCase,
    /// How long it plays in a round, without pauses.
    share: Duration,
    all: Counts,
}

/// What was counted, in all rounds.
#[derive(Default)]
struct Counts {
    shown: u64,
    late: u64,
    dropped: u64,
    repeated: u64,
    skipped: u64,
    broken: u64,
    copies: u64,
    underruns: u64,
    silent_ms: f64,
    never_in_step: u64,
}

/// What was seen and heard in a round.
struct Played {
    begun_ns: u64,
    shown: Vec<ShownPicture>,
    given: Given,
    state: PageState,
}

impl<'a> Playing<'a> {
    /// A row without anything counted yet.
    pub(super) fn new(
        bench: &'a PlayerBench<'a>,
        case: PlayerCase,
        share: Duration,
    ) -> Playing<'a> {
        Playing { bench, case, share, all: Counts::default() }
    }

    /// The CPU that has the load.
    fn loaded_cpu(&self) -> Option<u32> {
        let cpus = self.bench.setup.cpus;
        match (self.case.load, self.case.decoder) {
            (CpuLoad::None, _) => None,
            (CpuLoad::Sound, _) | (CpuLoad::Decoder, Decoder::OneCpu) => Some(cpus.near),
            (CpuLoad::Decoder, _) => Some(cpus.far),
        }
    }

    /// Plays it once; `None` if the user wants to stop.
    fn play(&self) -> Result<Option<Played>, String> {
        match fs::remove_file(setup::log()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("cannot remove the screen's last log: {error}"));
            }
            _ => {}
        }
        let load = self.loaded_cpu().map(Busy::on);
        let played = self.run();
        load.map_or(Ok(()), Busy::end)?;
        let Some((begun_ns, given, state)) = played? else { return Ok(None) };
        let text = fs::read_to_string(setup::log());
        let text = text.map_err(|error| format!("cannot read the screen's log: {error}"))?;
        Ok(Some(Played { begun_ns, shown: shown::read(&text)?, given, state }))
    }

    /// Runs the graph until all orders were given. Returns when they began, and the state at the
    /// end.
    fn run(&self) -> Result<Option<(u64, Given, PageState)>, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let graph = self.bench.setup.graph(self.case.decoder, address)?;
        let begun_ns = now_ns();
        let mut run =
            Run::start(graph).map_err(|error| format!("the graph cannot be started: {error}"))?;
        let mut script = Script::new(Page(address), self.share, self.bench.pause);
        let (mut ended, mut is_over) = (None, false);
        while run.poll(LOOK, &mut |_, _| ()) {
            if is_over {
                continue;
            }
            look_for_faults(&run)?;
            ended = script.go_on().map_err(|why| format!("{why}; {}", last_words(&run)))?;
            is_over = ended.is_some() || self.bench.session.is_stopped();
            if is_over {
                run.stop();
            }
        }
        match ended {
            _ if run.outcome() == Outcome::Faulted => {
                Err(format!("the graph faulted: {}", last_words(&run)))
            }
            None if !is_over => Err(format!("it ended by itself: {}", last_words(&run))),
            ended => Ok(ended.map(|(given, state)| (begun_ns, given, state))),
        }
    }
}

/// A domain that fails comes back; the measurement would then show its restart.
fn look_for_faults(run: &Run) -> Result<(), String> {
    let plan = run.plan();
    match run.services().into_iter().find(|it| it.last_reason.is_some()) {
        Some(ended) => {
            let name = &plan.domains[ended.domain].name;
            let reason = ended.last_reason.unwrap_or_default();
            Err(format!("domain '{name}' ended while it was measured: {reason}"))
        }
        None => Ok(()),
    }
}

impl Contender for Playing<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Some(played) = self.play()? else { return Ok(()) };
        let first = played.shown.first().ok_or("the screen's log has no picture")?;
        let differences: Vec<_> = played.shown.iter().filter_map(ShownPicture::apart_ns).collect();
        let decoded: Vec<_> = played.shown.iter().map(|it| it.decode_ns).collect();
        let seeks = (1..).zip(&played.given.seeks_ns);
        let last = played.given.seeks_ns.len() as u32;
        let step = |serial, from_ns: u64| in_step_after(&played.shown, serial, from_ns);
        let after_start = vec![step(0, first.shown_ns)];
        let after_seek: Vec<_> = seeks.map(|(serial, &at_ns)| step(serial, at_ns)).collect();
        let after_pause = played.given.plays_ns.iter().map(|&at_ns| step(last, at_ns)).collect();
        add(row, "av_difference", &differences);
        add(row, "av_difference_p95", p95(&differences).as_slice());
        add(row, "decode", &decoded);
        add(row, "first_picture", &[first.shown_ns.saturating_sub(played.begun_ns)]);
        for (name, steps) in [
            ("step_after_start", after_start),
            ("step_after_seek", after_seek),
            ("step_after_pause", after_pause),
        ] {
            let found: Vec<u64> = steps.iter().flatten().copied().collect();
            self.all.never_in_step += (steps.len() - found.len()) as u64;
            add(row, name, &found);
        }
        self.all.add(&played);
        row.figures = self.all.figures();
        Ok(())
    }

    fn takes(&self) -> Duration {
        START + self.share + self.bench.pause
    }
}

fn distribution(values: &[u64]) -> Distribution {
    let mut all = Distribution::new();
    values.iter().for_each(|&ns| all.add(ns));
    all
}

/// The 95th percentile, if enough values are beyond it.
fn p95(values: &[u64]) -> Option<u64> {
    distribution(values).quantile(0.95)
}

/// Adds a round, if it has any values.
fn add(row: &mut Row, name: &str, values: &[u64]) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return };
    let all = distribution(&sorted);
    let median = u64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]);
    row.measure_mut(name).add_round(&all, median as f64, None);
}

impl Counts {
    fn add(&mut self, Played { shown, state, .. }: &Played) {
        self.shown += shown.len() as u64;
        self.late += shown.iter().filter(|it| it.is_late).count() as u64;
        self.copies += shown.iter().map(|it| it.copies).sum::<u64>();
        // The log has totals of the run, so the last line is enough.
        self.dropped += shown.last().map_or(0, |it| it.dropped);
        self.repeated += shown.last().map_or(0, |it| it.repeated);
        self.skipped += state.skipped;
        self.broken += state.broken;
        self.underruns += state.sound.underruns;
        self.silent_ms += state.sound.silent_ms;
    }

    fn figures(&self) -> Vec<Figure> {
        let counts = [
            ("shown", self.shown),
            ("late", self.late),
            ("dropped", self.dropped),
            ("repeated", self.repeated),
            ("skipped", self.skipped),
            ("broken", self.broken),
            ("copies", self.copies),
            ("never_in_step", self.never_in_step),
            ("underruns", self.underruns),
        ];
        let mut figures = counts.map(|(name, count)| Figure::of(name, "", count as f64)).to_vec();
        figures.push(Figure::of("silent", "ms", self.silent_ms));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_runs_are_added_and_those_within_a_run_are_not() {
        let picture = |is_late, dropped, repeated, copies| ShownPicture {
            is_late,
            dropped,
            repeated,
            copies,
            ..ShownPicture::default()
        };
        let played = Played {
            begun_ns: 0,
            shown: vec![picture(false, 1, 0, 0), picture(true, 1, 2, 1), picture(true, 3, 2, 1)],
            given: Given::default(),
            state: PageState { skipped: 5, ..PageState::default() },
        };
        let mut counts = Counts::default();
        counts.add(&played);
        counts.add(&played);
        let Counts { shown, late, dropped, repeated, skipped, copies, .. } = counts;
        assert_eq!((shown, late, dropped, repeated), (6, 4, 6, 4));
        assert_eq!((skipped, copies), (10, 4));
    }
}

//! A replay at a pace that people can follow: shows the recorded cycles in the view of `sinew run`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_recording::replay::RecordedThread;
use sinew_report::{Observed, Stats};
use sinew_spec::plan::Plan;
use sinew_view::{Scene, View};

/// How long it sleeps at most. The view may change as often.
const NAP: Duration = Duration::from_millis(20);
/// Pictures that come faster than this are left out.
const SPACING: Duration = Duration::from_millis(100);

/// Waits for the time of each cycle and shows what was recorded.
pub(crate) struct Pace {
    speed: f64,
    graph: String,
    stats: Stats,
    observed: Observed,
    /// An empty record of each thread.
    records: Vec<Record>,
    view: View,
    /// The start of the first cycle on the recording's clock, and when we got it on ours.
    begun: Option<(u64, Instant)>,
    shown: Option<Instant>,
}

impl Pace {
    /// Shows the cycles of a plan, `speed` times as fast as they were.
    pub(crate) fn new(plan: &Plan, threads: &[RecordedThread], speed: f64, json: bool) -> Pace {
        let stats = Stats::new(plan);
        Pace {
            speed,
            graph: format!("{} (recorded)", plan.name),
            view: View::open(json, &stats),
            stats,
            observed: Observed::default(),
            records: threads.iter().map(|it| Record::of(plan, it.id.nodes(plan))).collect(),
            begun: None,
            shown: None,
        }
    }

    /// Waits until the cycle that thread `at` has put together is due, and shows it. `Ok(false)` if
    /// it was stopped meanwhile.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub(crate) fn follow(
        &mut self,
        at: usize,
        thread: &RecordedThread,
        stop: &AtomicBool,
    ) -> io::Result<bool> {
        let record = &mut self.records[at];
        thread.restore(record);
        // The recording's timer counts are nanoseconds.
        self.observed.read(record, record.nodes(), Clock::from_rate(1.0));
        let (first_ns, begun) = *self.begun.get_or_insert((record.start_ns(), Instant::now()));
        let elapsed_s = record.start_ns().saturating_sub(first_ns) as f64 * 1e-9;
        let due = Duration::try_from_secs_f64(elapsed_s / self.speed).unwrap_or(Duration::MAX);
        // Relaxed: the flag orders nothing.
        while let Some(left) = due.checked_sub(begun.elapsed())
            && !left.is_zero()
        {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            sleep(left.min(NAP));
        }
        self.stats.add(thread.id, &self.observed);
        self.view.observe(thread.id, &self.observed);
        self.show(elapsed_s)?;
        Ok(true)
    }

    fn show(&mut self, elapsed_s: f64) -> io::Result<()> {
        let is_early = self.shown.is_some_and(|shown| shown.elapsed() < SPACING);
        if !self.view.is_due(elapsed_s) || self.view.is_live() && is_early {
            return Ok(());
        }
        self.shown = Some(Instant::now());
        self.view.show(&Scene { elapsed_s, ..Scene::of(&self.graph, &self.stats) })
    }
}

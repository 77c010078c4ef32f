//! The scope itself: keeps the last cycles of its traces, watches the trigger, makes captures.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use sinew_control::traces::RunLayout;
use sinew_core::trace::{Record, ThreadId};

use crate::series::{Capture, Captured, Missing, Times};
use crate::settings::{POINTS_MAX, ScopeSettings, Sweep};
use crate::trace::Trace;
use crate::trigger::Watched;

/// How much longer than its window a capture waits for a thread without cycles; then it is finished
/// without them. Measured by the time of the trigger's thread.
const LAG_NS: u64 = 300_000_000;

/// A core without cycles for this long, and for ten periods, has stopped or hangs.
const SILENT_NS: u64 = 700_000_000;

/// The least time that [`Sweep::Auto`] waits for a trigger.
const AUTO_NS: u64 = 300_000_000;

/// The state of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It shows the newest window.
    Rolling,
    /// It waits for the trigger.
    Waiting,
    /// The trigger came. Its window is not over yet.
    Filling,
    /// It has its one capture, see [`Scope::arm`].
    Done,
    /// It shows what it had when it was frozen.
    Frozen,
}

/// A scope. Its memory is bounded by [`TRACES_MAX`](crate::settings::TRACES_MAX) and
/// [`POINTS_MAX`]. Nothing here blocks.
pub struct Scope {
    settings: ScopeSettings,
    traces: Vec<Trace>,
    /// Each thread once, in the order of the traces.
    threads: Vec<Kept>,
    watched: Watched,
    state: State,
    /// The newest capture of a sweep with a trigger.
    newest: Option<Arc<Capture>>,
    frozen: Option<Arc<Capture>>,
    captures: u64,
    period_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a trigger after this time of the trigger's thread.
    Waiting {
        since_ns: u64,
    },
    Filling {
        zero_ns: u64,
    },
    Done,
}

/// The last cycles of a thread.
struct Kept {
    id: ThreadId,
    period_ns: u64,
    /// Indices of its traces.
    traces: Vec<usize>,
    starts_ns: VecDeque<u64>,
    slots: VecDeque<u64>,
    lives: VecDeque<u32>,
    values: Vec<VecDeque<f64>>,
    /// The current value of each trace.
    held: Vec<f64>,
    /// Number of the first cycle that is kept, counted from when the scope began.
    first: u64,
    /// Missing cycles, by such numbers.
    missing: VecDeque<(u64, u64)>,
    /// Life and number of the last cycle.
    last: Option<(u32, u64)>,
    lost: u64,
}

impl Scope {
    /// A scope for these traces of a run.
    ///
    /// # Errors
    /// As for [`ScopeSettings::check`], or a trace is of another run.
    pub fn new(
        layout: &RunLayout,
        traces: Vec<Trace>,
        settings: ScopeSettings,
    ) -> Result<Scope, String> {
        let mut threads: Vec<Kept> = Vec::new();
        for (at, trace) in traces.iter().enumerate() {
            let known = threads.iter().position(|thread| thread.id == trace.thread);
            let place = match known {
                Some(place) => place,
                None => {
                    let thread = layout.threads.iter().find(|it| it.id() == trace.thread);
                    let thread =
                        thread.ok_or_else(|| format!("'{}' is of another run", trace.name))?;
                    threads.push(Kept::new(trace.thread, thread.period_ns));
                    threads.len() - 1
                }
            };
            threads[place].add(at);
        }
        let period_ns = threads.iter().map(|thread| thread.period_ns).min().unwrap_or(1);
        settings.check(traces.len(), period_ns)?;
        Ok(Scope {
            settings,
            traces,
            threads,
            watched: Watched::new(settings.trigger),
            state: State::Waiting { since_ns: 0 },
            newest: None,
            frozen: None,
            captures: 0,
            period_ns,
        })
    }

    /// The traces that it shows.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Its settings.
    pub fn settings(&self) -> &ScopeSettings {
        &self.settings
    }

    /// The shortest nominal period of its threads, ns.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Changes the settings; the kept cycles stay. If the settings are the same as before, a
    /// capture under way goes on.
    ///
    /// # Errors
    /// As for [`ScopeSettings::check`]; then nothing has changed.
    pub fn set(&mut self, settings: ScopeSettings) -> Result<(), String> {
        if settings == self.settings {
            return Ok(());
        }
        settings.check(self.traces.len(), self.period_ns)?;
        if settings.trigger != self.settings.trigger {
            self.watched = Watched::new(settings.trigger);
        }
        let since_ns = self.timer().newest_ns().unwrap_or(0);
        let is_kept = settings.sweep == Sweep::Single && self.settings.sweep == Sweep::Single;
        if !(is_kept && self.state == State::Done) {
            self.state = State::Waiting { since_ns };
        }
        if settings.sweep == Sweep::Single && !is_kept {
            self.newest = None;
        }
        self.settings = settings;
        Ok(())
    }

    /// Waits for the next trigger, after the capture of [`Sweep::Single`].
    pub fn arm(&mut self) {
        self.state = State::Waiting { since_ns: self.timer().newest_ns().unwrap_or(0) };
        self.newest = None;
        self.frozen = None;
    }

    /// Freezes what it shows, or shows new captures again. It takes cycles in both cases.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen.then(|| self.capture());
    }

    /// Its state.
    pub fn doing(&self) -> Doing {
        match (self.frozen.is_some(), self.settings.sweep, self.state) {
            (true, ..) => Doing::Frozen,
            (_, Sweep::Roll, _) => Doing::Rolling,
            (_, _, State::Waiting { .. }) => Doing::Waiting,
            (_, _, State::Filling { .. }) => Doing::Filling,
            (_, _, State::Done) => Doing::Done,
        }
    }

    /// Cycles that were overwritten before they were read, of all threads, as far as is known.
    pub fn lost(&self) -> u64 {
        self.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.lost))
    }

    /// How many times the core had been restarted, according to the last record of the first
    /// trace's thread.
    pub fn life(&self) -> u32 {
        self.threads.first().and_then(|thread| thread.last).map_or(0, |(life, _)| life)
    }

    /// Takes the next cycle of a thread. Cycles of threads without a trace are ignored.
    ///
    /// # Panics
    /// If the record is not of the thread's layout.
    pub fn take(&mut self, id: ThreadId, record: &Record) {
        let Some(at) = self.threads.iter().position(|thread| thread.id == id) else { return };
        let is_whole = self.threads[at].take(&self.traces, record);
        if self.settings.sweep == Sweep::Roll {
            return;
        }
        let trigger = self.settings.trigger.trace;
        if self.traces[trigger].thread == id {
            if !is_whole {
                self.watched.forget();
            }
            let thread = &self.threads[at];
            let place = thread.traces.iter().position(|trace| *trace == trigger);
            let value = place.map_or(f64::NAN, |place| thread.held[place]);
            let fires = self.watched.takes(value);
            self.go_on(fires, record.start_ns());
        }
        self.look_whether_full(false);
    }

    /// What it shows: the newest window or the newest capture. Before the first capture, an empty
    /// one.
    pub fn capture(&self) -> Arc<Capture> {
        if let Some(frozen) = &self.frozen {
            return Arc::clone(frozen);
        }
        if self.settings.sweep != Sweep::Roll {
            return self.newest.clone().unwrap_or_else(|| Arc::new(self.cut(0, 0, false)));
        }
        let newest = self.threads.iter().filter_map(Kept::newest_ns).max().unwrap_or(0);
        let begin = (newest + 1).saturating_sub(self.settings.window_ns);
        Arc::new(self.cut(begin, begin, false))
    }

    /// The window that begins at a time on the machine's monotonic clock, as far as it is kept.
    pub fn window(&self, begin_ns: u64) -> Capture {
        self.cut(begin_ns, begin_ns, false)
    }

    /// To be called when no cycle has come for `silent_ns`. Returns whether this is longer than a
    /// running core would take. A capture whose window is over by then is finished as it is.
    pub fn idle(&mut self, silent_ns: u64) -> bool {
        let is_silent = silent_ns > SILENT_NS.max(self.period_ns.saturating_mul(10));
        if is_silent && let State::Filling { zero_ns } = self.state {
            let newest = self.threads.iter().filter_map(Kept::newest_ns).max().unwrap_or(0);
            let end_ns = self.window_of(zero_ns).end;
            self.look_whether_full(newest.saturating_add(silent_ns) >= end_ns);
        }
        is_silent
    }

    /// No more cycles come. A capture that is not full is finished as it is.
    pub fn end(&mut self) {
        self.look_whether_full(true);
    }

    /// The thread whose time decides about the trigger and the window.
    fn timer(&self) -> &Kept {
        let id = self.traces[self.settings.trigger.trace.min(self.traces.len() - 1)].thread;
        let found = self.threads.iter().find(|thread| thread.id == id);
        found.expect("a bug: a trace without its thread")
    }

    fn go_on(&mut self, fires: bool, now_ns: u64) {
        let State::Waiting { since_ns } = self.state else { return };
        let (before_ns, window_ns) = (self.settings.before_ns(), self.settings.window_ns);
        let first_ns = self.timer().starts_ns.front().copied().unwrap_or(now_ns);
        // The cycles before the trigger must be there.
        let has_before = now_ns.saturating_sub(first_ns) >= before_ns;
        if fires && has_before && now_ns > since_ns {
            self.state = State::Filling { zero_ns: now_ns };
        } else if self.settings.sweep == Sweep::Auto
            && now_ns.saturating_sub(since_ns.max(first_ns)) >= window_ns.max(AUTO_NS)
        {
            let begin = (now_ns + 1).saturating_sub(window_ns);
            self.keep(self.cut(begin, begin, false));
            self.state = State::Waiting { since_ns: now_ns };
        }
    }

    /// Makes the capture once all threads have reached its end.
    fn look_whether_full(&mut self, is_end: bool) {
        let State::Filling { zero_ns } = self.state else { return };
        let Range { start: begin, end } = self.window_of(zero_ns);
        let is_past = |thread: &Kept, end| thread.newest_ns().is_some_and(|newest| newest >= end);
        let timer = self.timer();
        let is_full = is_end
            || is_past(timer, end.saturating_add(LAG_NS))
            || self.threads.iter().all(|thread| is_past(thread, end));
        if is_full {
            self.keep(self.cut(begin, zero_ns, true));
            self.state = match self.settings.sweep {
                Sweep::Single => State::Done,
                _ => State::Waiting { since_ns: end },
            };
        }
    }

    /// The time range of a capture whose trigger is at `zero_ns`.
    fn window_of(&self, zero_ns: u64) -> Range<u64> {
        let begin = zero_ns.saturating_sub(self.settings.before_ns());
        begin..begin.saturating_add(self.settings.window_ns)
    }

    fn keep(&mut self, capture: Capture) {
        self.captures += 1;
        self.newest = Some(Arc::new(capture));
    }

    /// The capture of the window that starts at `begin_ns`.
    fn cut(&self, begin_ns: u64, zero_ns: u64, triggered: bool) -> Capture {
        let end_ns = begin_ns.saturating_add(self.settings.window_ns);
        let mut traces: Vec<Option<Captured>> = vec![None; self.traces.len()];
        for thread in &self.threads {
            let from = thread.starts_ns.partition_point(|start| *start < begin_ns);
            let until = thread.starts_ns.partition_point(|start| *start < end_ns);
            let times = Arc::new(thread.times(from, until, zero_ns));
            for (values, &at) in thread.values.iter().zip(&thread.traces) {
                traces[at] = Some(Captured {
                    trace: self.traces[at].clone(),
                    times: Arc::clone(&times),
                    values: values.range(from..until).copied().collect(),
                });
            }
        }
        Capture {
            number: self.captures,
            zero_ns,
            triggered,
            from_s: after_s(begin_ns, zero_ns),
            until_s: after_s(end_ns, zero_ns),
            traces: traces.into_iter().flatten().collect(),
        }
    }
}

impl Kept {
    fn new(id: ThreadId, period_ns: u64) -> Kept {
        Kept {
            id,
            period_ns,
            traces: Vec::new(),
            starts_ns: VecDeque::new(),
            slots: VecDeque::new(),
            lives: VecDeque::new(),
            values: Vec::new(),
            held: Vec::new(),
            first: 0,
            missing: VecDeque::new(),
            last: None,
            lost: 0,
        }
    }

    fn add(&mut self, trace: usize) {
        self.traces.push(trace);
        self.values.push(VecDeque::new());
        self.held.push(f64::NAN);
    }

    fn newest_ns(&self) -> Option<u64> {
        self.starts_ns.back().copied()
    }

    /// Takes a cycle. Returns whether no cycle was missing before it.
    fn take(&mut self, traces: &[Trace], record: &Record) -> bool {
        let missing = self.missing_before(record);
        // Removed before another one is added: otherwise the buffer would double.
        if self.starts_ns.len() == POINTS_MAX {
            self.drop_first();
        }
        if self.newest_ns().is_some_and(|newest| record.start_ns() < newest) {
            // This start time or the last is wrong, and the kept times must be in order.
            self.forget();
        }
        if let Some(cycles) = missing {
            self.lost = self.lost.saturating_add(cycles);
            self.missing.push_back((self.first + self.starts_ns.len() as u64, cycles));
        }
        let slot = self.slots.back().map_or(0, |slot| slot.saturating_add(1));
        self.slots.push_back(slot.saturating_add(record.skipped()));
        self.starts_ns.push_back(record.start_ns());
        self.lives.push_back(record.life());
        for (at, &trace) in self.traces.iter().enumerate() {
            if let Some(value) = traces[trace].value(record) {
                self.held[at] = value;
            }
            self.values[at].push_back(self.held[at]);
        }
        self.last = Some((record.life(), record.number()));
        missing.is_none()
    }

    /// How many cycles are missing before this one, if any. In that case the held values are
    /// outdated.
    fn missing_before(&mut self, record: &Record) -> Option<u64> {
        let (life, number) = self.last?;
        if record.life() != life {
            self.held.fill(f64::NAN);
            // Each life counts its cycles from 0.
            return Some(record.number());
        }
        match record.number().checked_sub(number.saturating_add(1)) {
            Some(0) => None,
            Some(cycles) => Some(cycles),
            None => Some(0),
        }
    }

    fn drop_first(&mut self) {
        self.starts_ns.pop_front();
        self.slots.pop_front();
        self.lives.pop_front();
        for values in &mut self.values {
            values.pop_front();
        }
        self.first += 1;
        while self.missing.front().is_some_and(|(before, _)| *before < self.first) {
            self.missing.pop_front();
        }
    }

    fn forget(&mut self) {
        self.first += self.starts_ns.len() as u64;
        self.starts_ns.clear();
        self.slots.clear();
        self.lives.clear();
        self.values.iter_mut().for_each(VecDeque::clear);
        self.missing.clear();
    }

    fn times(&self, from: usize, until: usize, zero_ns: u64) -> Times {
        let range = self.first + from as u64..self.first + until as u64;
        let missing = self.missing.iter().filter(|(before, _)| range.contains(before));
        let missing = missing
            .map(|&(before, cycles)| Missing { before: (before - range.start) as usize, cycles });
        Times {
            at_s: self.starts_ns.range(from..until).map(|ns| after_s(*ns, zero_ns)).collect(),
            slots: self.slots.range(from..until).copied().collect(),
            lives: self.lives.range(from..until).copied().collect(),
            period_s: self.period_ns as f64 / 1e9,
            missing: missing.collect(),
        }
    }
}

fn after_s(ns: u64, zero_ns: u64) -> f64 {
    ns.wrapping_sub(zero_ns) as i64 as f64 / 1e9
}

//! A recorded run as one file that a browser opens from disk: the page with the messages that the
//! dashboard would have sent to it, and their times.
//!
//! The page finds a JSON object in its element `recording` and plays it instead of using a socket:
//!
//! ```text
//! {"made_by":"0.1.0", "machine":"...", "recorded_unix_ms":..., "length_ms":20000,
//!  "cut":null, "frames":"...", "traces":[{"name":"pid.out","unit":"V","labels":[]}],
//!  "cycles":"..."}
//! ```
//!
//! `frames` and `cycles` are compressed with gzip and written in base64. `frames` has for each
//! message of the [protocol](super::protocol) u32 ms since the first cycle, u32 bytes, and the
//! bytes; texts begin with `{`. `cycles` has for each trace u32 values, and for each of them u32 us
//! since the first cycle and f32. All numbers are little endian.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sinew_control::status::{LinkStatus, Phase, Status};
use sinew_control::traces::RunLayout;
use sinew_core::clock::Clock;
use sinew_core::pace::Pace;
use sinew_core::trace::{Record, ThreadId};
use sinew_scope::{Trace, find_one};
use sinew_spec::catalogue::ParameterValue;
use sinew_spec::plan::{Link, Plan};

use super::cycles::Cycles;
use super::figures::Rates;
use super::frame::{self, Motion};
use super::protocol::scope::SCOPE_TRACES_MAX;
use super::protocol::{Arm, CycleCosts, Hello, Text};
use super::{arm, document, hello};

/// Interval between two frames: 30 Hz, as live.
const MOTION_NS: u64 = 1_000_000_000 / 30;
/// Every third frame has the values of ports: 10 Hz, as live.
const VALUES_EVERY: u32 = 3;
/// Every fifteenth frame comes with figures: twice a second, as live.
const FIGURES_EVERY: u32 = 15;
/// Threads follow each other in a recording, each with less than this time.
const APART_NS: u64 = 2_000_000_000;
/// Most bytes that are kept of a run, before compression. The file has about a third of that.
pub const KEPT_BYTES_MAX: usize = 16 << 20;
/// A pause without cycles is played in full up to this time; a longer pause is cut to it.
const PAUSE_NS_MAX: u64 = 3_000_000_000;

/// A page of a recorded run: it takes the cycles, and is written at the end.
pub struct RecordedPage {
    plan: Plan,
    hello: Hello,
    machine: String,
    clock_offset_ns: i64,
    cycles: Cycles,
    rates: Rates,
    /// The counts of each thread in this life of the core: cycles, overruns, periods lost.
    counts: Vec<[u64; 3]>,
    /// Number of the last cycle of each thread.
    numbers: Vec<Option<u64>>,
    threads: Vec<ThreadId>,
    /// Cycles that wait for earlier ones of other threads.
    waiting: BTreeMap<(u64, u64), (usize, Record)>,
    /// Number of cycles so far.
    taken: u64,
    newest_ns: u64,
    /// Start of the first cycle, moved by the pauses that are left out.
    first_ns: Option<u64>,
    begun_ns: u64,
    last_ns: u64,
    due_ns: u64,
    number: u32,
    is_stopping: bool,
    frames: Vec<u8>,
    traces: Vec<(Trace, Vec<u8>, u32)>,
    /// Why it ends before the recording does.
    cut: Option<String>,
}

impl RecordedPage {
    /// A page of the run of a plan made from `file`, on `machine`; the files that nodes name are
    /// under `base`. `traces` are shown on the scope cycle by cycle, everything else only as often
    /// as it is drawn. `clock_offset_ns` is added to a monotonic time to get one since 1970.
    ///
    /// # Errors
    /// In words: a trace that does not exist, or too many; or this program has no page.
    pub fn new(
        plan: &Plan,
        file: &str,
        base: &Path,
        (machine, clock_offset_ns): (&str, i64),
        traces: &[String],
    ) -> Result<RecordedPage, String> {
        document::is_there()?;
        if traces.len() > SCOPE_TRACES_MAX {
            let count = traces.len();
            return Err(format!("{count} traces; a scope has {SCOPE_TRACES_MAX} at most"));
        }
        let layout = RunLayout::of(plan, Pace::AsPlanned);
        let traces = traces.iter().map(|name| Ok((find_one(&layout, name)?, Vec::new(), 0)));
        let traces = traces.collect::<Result<_, String>>()?;
        let hello = hello::hello(plan, file, arm_of(plan, base), "");
        let threads: Vec<_> = ThreadId::all(plan).collect();
        Ok(RecordedPage {
            cycles: Cycles::new(plan, clock(), 0, &hello),
            plan: plan.clone(),
            hello,
            machine: machine.to_owned(),
            clock_offset_ns,
            rates: Rates::default(),
            counts: vec![[0; 3]; threads.len()],
            numbers: vec![None; threads.len()],
            threads,
            waiting: BTreeMap::new(),
            taken: 0,
            newest_ns: 0,
            first_ns: None,
            begun_ns: 0,
            last_ns: 0,
            due_ns: 0,
            number: 0,
            is_stopping: false,
            frames: Vec::new(),
            traces,
            cut: None,
        })
    }

    /// Takes a cycle of a thread, given by its index in the plan. The threads may follow each
    /// other, as in a recording. Returns whether there is room for more.
    pub fn take(&mut self, thread: usize, record: &Record) -> bool {
        let start_ns = record.start_ns();
        self.newest_ns = self.newest_ns.max(start_ns);
        self.taken += 1;
        self.waiting.insert((start_ns, self.taken), (thread, record.clone()));
        while let Some(row) = self.waiting.first_entry()
            && row.key().0.saturating_add(APART_NS) <= self.newest_ns
        {
            let (thread, record) = row.remove();
            self.play(thread, &record);
        }
        self.cut.is_none()
    }

    /// The page as HTML, after all cycles were taken; and why it ends before they do, if so.
    ///
    /// # Errors
    /// There was no cycle.
    pub fn finish(mut self) -> Result<(String, Option<String>), String> {
        for (thread, record) in std::mem::take(&mut self.waiting).into_values() {
            self.play(thread, &record);
        }
        let Some(first_ns) = self.first_ns else {
            return Err("no cycle of the core is in the recording: there is nothing to show".into());
        };
        self.look(self.last_ns, true);
        let length_ms = ms(self.last_ns - first_ns);
        let names = self.traces.iter().map(
            |(trace, ..)| json!({"name": trace.name, "unit": trace.unit, "labels": trace.labels}),
        );
        let of_trace = |(_, values, count): &(Trace, Vec<u8>, u32)| {
            [&count.to_le_bytes()[..], values].concat()
        };
        let cycles: Vec<u8> = self.traces.iter().flat_map(of_trace).collect();
        let recording = json!({
            "made_by": env!("CARGO_PKG_VERSION"),
            "machine": self.machine,
            "recorded_unix_ms": (self.begun_ns as i64 + self.clock_offset_ns) / 1_000_000,
            "length_ms": length_ms,
            "cut": self.cut,
            "traces": names.collect::<Vec<_>>(),
            "frames": packed(&self.frames),
            "cycles": packed(&cycles),
        });
        Ok((document::html(&recording)?, self.cut))
    }

    /// Plays a cycle whose time has come.
    fn play(&mut self, at: usize, record: &Record) {
        if self.cut.is_some() {
            return;
        }
        let start_ns = record.start_ns();
        match &mut self.first_ns {
            None => self.begin(start_ns),
            Some(first_ns) => {
                let pause_ns = start_ns.saturating_sub(self.last_ns);
                if pause_ns > PAUSE_NS_MAX {
                    *first_ns += pause_ns - PAUSE_NS_MAX;
                    self.due_ns = start_ns;
                }
            }
        }
        while self.due_ns <= start_ns {
            self.look(self.due_ns, false);
            self.due_ns += MOTION_NS;
        }
        self.last_ns = self.last_ns.max(start_ns);
        if self.numbers[at].is_some_and(|number| record.number() <= number) {
            self.begin_life();
        }
        self.numbers[at] = Some(record.number());
        let is_of_loop = !(record.is_stopping() || record.is_failed());
        let is_overrun = record.is_overrun() || record.is_feedback_missing();
        let [cycles, overruns, skipped] = &mut self.counts[at];
        *cycles += u64::from(is_of_loop);
        *overruns += u64::from(is_of_loop && is_overrun);
        *skipped += record.skipped();
        self.is_stopping = record.is_stopping();
        let id = self.threads[at];
        self.cycles.take(id, record);
        let us = (start_ns - self.first_ns.unwrap_or(start_ns)) / 1000;
        for (trace, values, count) in self.traces.iter_mut().filter(|row| row.0.thread == id) {
            let Some(value) = trace.value(record) else { continue };
            values.extend((us as u32).to_le_bytes());
            values.extend((value as f32).to_le_bytes());
            *count += 1;
        }
        let kept = self.traces.iter().map(|row| row.1.len()).sum::<usize>() + self.frames.len();
        if kept > KEPT_BYTES_MAX {
            let (s, limit) = (us as f64 / 1e6, KEPT_BYTES_MAX >> 20);
            self.cut = Some(format!(
                "it ends after {s:.1} s: more than {limit} MiB are not kept for a page"
            ));
        }
    }

    fn begin(&mut self, start_ns: u64) {
        (self.first_ns, self.begun_ns, self.last_ns) = (Some(start_ns), start_ns, start_ns);
        self.due_ns = start_ns + MOTION_NS;
        self.hello.now_ms = start_ns as f64 / 1e6;
        let text = Text::Hello(&self.hello).json();
        self.say(start_ns, text.as_bytes());
    }

    /// The core was started again: its figures begin again.
    fn begin_life(&mut self) {
        self.cycles = Cycles::new(&self.plan, clock(), 0, &self.hello);
        self.rates = Rates::default();
        self.counts.fill([0; 3]);
        self.numbers.fill(None);
    }

    /// What the page is shown at a moment, as live.
    fn look(&mut self, now_ns: u64, is_last: bool) {
        self.number += 1;
        let (mut threads, path) = self.cycles.take_motion(|_| 0);
        for (motion, [_, overruns, skipped]) in threads.iter_mut().zip(&self.counts) {
            (motion.overruns, motion.skipped) = (*overruns as u32, *skipped as u32);
        }
        let now_ms = now_ns as f64 / 1e6;
        let motion = frame::motion(&Motion {
            sequence: self.number,
            now_ms,
            threads: &threads,
            signals: &self.cycles.signals,
            path: &path,
        });
        self.say(now_ns, &motion);
        if is_last || self.number.is_multiple_of(VALUES_EVERY) {
            let values = frame::values(self.number, now_ms, &self.cycles.ports.take());
            self.say(now_ns, &values);
        }
        if is_last || self.number == 1 || self.number.is_multiple_of(FIGURES_EVERY) {
            self.show_figures(now_ns);
        }
    }

    fn show_figures(&mut self, now_ns: u64) {
        let status = self.status(now_ns);
        let mut threads = self.cycles.figures(|_| 0);
        for (figures, counts) in threads.iter_mut().zip(&self.counts) {
            [figures.cycles, figures.overruns, figures.skipped] = *counts;
        }
        let costs = CycleCosts {
            threads,
            nodes: self.cycles.nodes(&self.plan),
            links: self.rates.figures(now_ns, &status.links, &self.cycles.written),
            viewers: 0,
        };
        let texts = [Text::Status { status: &status }.json(), Text::Figures(&costs).json()];
        texts.iter().for_each(|text| self.say(now_ns, text.as_bytes()));
    }

    /// The part of the status that a recording knows: no processes and no services.
    fn status(&self, now_ns: u64) -> Status {
        let link = |link: &Link| LinkStatus {
            from: self.plan.end_name(link.from),
            to: self.plan.end_name(link.to),
            transport: if link.fused { "fused".into() } else { link.transport.word().into() },
            delivery: link.delivery.word().into(),
            capacity: link.capacity,
            fill: None,
            written: None,
            lost: None,
            dropped: None,
            broken: false,
        };
        Status {
            graph: self.hello.graph.clone(),
            file: self.hello.file.clone(),
            phase: if self.is_stopping { Phase::Stopping } else { Phase::Running },
            elapsed_ms: u64::from(ms(now_ns - self.begun_ns)),
            links: self.plan.links.iter().map(link).collect(),
            ..Status::default()
        }
    }

    /// Adds a message to those that are played.
    fn say(&mut self, now_ns: u64, message: &[u8]) {
        let at_ms = ms(now_ns.saturating_sub(self.first_ns.unwrap_or(now_ns)));
        self.frames.extend(at_ms.to_le_bytes());
        self.frames.extend((message.len() as u32).to_le_bytes());
        self.frames.extend(message);
    }
}

/// The ticks of a recording are nanoseconds.
fn clock() -> Clock {
    Clock::from_rate(1.0)
}

fn ms(ns: u64) -> u32 {
    u32::try_from(ns / 1_000_000).unwrap_or(u32::MAX)
}

fn packed(bytes: &[u8]) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let never = "memory takes all";
    gzip.write_all(bytes).expect(never);
    STANDARD.encode(gzip.finish().expect(never))
}

/// The arm that a node of the plan names, if its file exists and describes one: recordings have the
/// files of the core's nodes, and the dashboard's arm is one of these.
fn arm_of(plan: &Plan, base: &Path) -> Option<Arm> {
    let rows = plan.nodes.iter().flat_map(|node| node.kind.parameters.iter().zip(&node.values));
    let files = rows.filter_map(|(parameter, value)| match value {
        ParameterValue::Text(file) if parameter.name == "arm" && !file.is_empty() => Some(file),
        _ => None,
    });
    files.filter_map(|file| arm::read(&base.join(file)).ok()).next()
}

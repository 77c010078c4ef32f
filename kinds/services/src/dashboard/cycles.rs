//! The cycles of the core, as they come: what moved since the last frame, what they cost, when the
//! brakes closed.

use std::ops::Range;

use sinew_control::status::StopStatus;
use sinew_core::catalogue::Direction;
use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_runtime::watch::Watch;
use sinew_spec::plan::{Plan, Release};

use super::figures::{ThreadCosts, jitter_ns, latency_ns};
use super::frame::ThreadMotion;
use super::protocol::{
    FLAG_FAILED, FLAG_FEEDBACK_MISSING, FLAG_FRESH, FLAG_OVERRUN, FLAG_STOPPING,
    FLAG_WITHOUT_INPUT, Hello, Stop, ThreadFigures, Times,
};

/// The signal that says of each axis whether its brake is closed, and the word that says so.
const BRAKE: (&str, &str) = ("brake", "closed");

/// Points of the path between two frames; more come only to a service that was held up, and then
/// the oldest are of no use.
const POINTS_MAX: usize = 4096;

/// All threads of the core.
pub(super) struct Cycles {
    clock: Clock,
    threads: Vec<Thread>,
    /// The signals of each thread as they were last.
    signals: Vec<Vec<f64>>,
    /// Where the traced place stands: thread, and elements of its signals.
    path: Option<(usize, Range<usize>)>,
    points: Vec<[f64; 3]>,
    brakes: Vec<Brake>,
    /// For each link the messages that the records of its writer showed; `None` for the others.
    written: Vec<Option<u64>>,
}

struct Thread {
    id: ThreadId,
    nodes: usize,
    /// Whether the clock releases it.
    timed: bool,
    /// Whose figures these are: how often the core had been started anew.
    life: u32,
    /// Number of the last cycle, before the first `None`.
    last: Option<u64>,
    costs: ThreadCosts,
    latency_ns: u64,
    jitter_ns: u64,
    flags: u32,
    /// For each tap the links that its port writes.
    links: Vec<Vec<usize>>,
}

/// A signal that says whether brakes are closed.
struct Brake {
    thread: usize,
    elements: Range<usize>,
    closed: f64,
    /// Start of the first cycle that found all of them closed, and since then none did not;
    /// monotonic ns.
    closed_ns: Option<u64>,
}

impl Cycles {
    /// None yet.
    pub(super) fn new(watch: &Watch, hello: &Hello) -> Cycles {
        let plan = watch.plan();
        let threads: Vec<_> = watch.threads().map(|id| Thread::new(watch, id)).collect();
        let starts = starts(hello, threads.len());
        let elements = |at: usize| {
            let signal = &hello.signals[at];
            let first = signal.offset - starts[signal.thread];
            (signal.thread, first..first + signal.count)
        };
        let brake = |at: usize| {
            let signal = &hello.signals[at];
            let closed = signal.labels.iter().position(|&label| label == BRAKE.1)?;
            let (thread, elements) = elements(at);
            let closed = closed as f64;
            (signal.name == BRAKE.0).then_some(Brake { thread, elements, closed, closed_ns: None })
        };
        let in_core = |at: usize| (!plan.is_service(plan.links[at].from.node)).then_some(0);
        let counts = starts.iter().zip(&starts[1..]).map(|(start, end)| end - start);
        Cycles {
            clock: watch.clock(),
            signals: counts.map(|count| vec![0.0; count]).collect(),
            threads,
            path: hello.path_signal.map(elements),
            points: Vec::new(),
            brakes: (0..hello.signals.len()).filter_map(brake).collect(),
            written: (0..plan.links.len()).map(in_core).collect(),
        }
    }

    /// Takes all cycles since the last call.
    pub(super) fn read(&mut self, watch: &mut Watch) {
        watch.read(&mut |id, record| {
            if let Some(at) = self.threads.iter().position(|thread| thread.id == id) {
                self.add(at, record);
            }
        });
        let spare = self.points.len().saturating_sub(POINTS_MAX);
        self.points.drain(..spare);
    }

    fn add(&mut self, at: usize, record: &Record) {
        let thread = &mut self.threads[at];
        thread.add(record, self.clock);
        for (tap, _) in record.messages() {
            for &link in &thread.links[tap] {
                self.written[link] = self.written[link].map(|count| count + 1);
            }
        }
        let signals = &mut self.signals[at];
        signals.clear();
        signals.extend(record.signals());
        if let Some((_, elements)) = self.path.as_ref().filter(|(thread, _)| *thread == at) {
            let point = &signals[elements.clone()];
            self.points.push([point[0], point[1], point[2]]);
        }
        for brake in self.brakes.iter_mut().filter(|brake| brake.thread == at) {
            brake.add(record, &self.signals[at]);
        }
    }

    /// What moved since the last call, for each thread; the signals; the points of the path.
    pub(super) fn take_motion(&mut self, watch: &Watch) -> (Vec<ThreadMotion>, Vec<[f64; 3]>) {
        let motion = self.threads.iter_mut().map(|thread| thread.take(watch.lost(thread.id)));
        (motion.collect(), std::mem::take(&mut self.points))
    }

    /// The signals of each thread, as they were last.
    pub(super) fn signals(&self) -> &[Vec<f64>] {
        &self.signals
    }

    /// Whether a cycle since the last [`Cycles::take_motion`] ran with safe outputs.
    pub(super) fn is_stopping(&self) -> bool {
        self.threads.iter().any(|thread| thread.flags & FLAG_STOPPING != 0)
    }

    /// The figures of each thread.
    pub(super) fn figures(&self, watch: &Watch) -> Vec<ThreadFigures> {
        self.threads.iter().map(|thread| thread.costs.figures(watch.lost(thread.id))).collect()
    }

    /// Execution times of each node of the plan; `None` for a service.
    pub(super) fn nodes(&self, plan: &Plan) -> Vec<Option<Times>> {
        let times = |node: usize| {
            let (domain, thread) = (plan.nodes[node].domain, plan.nodes[node].thread);
            let home = self.threads.iter().find(|it| it.id == ThreadId { domain, thread })?;
            let nodes = &plan.domains[domain].threads()[thread].nodes;
            Some(home.costs.node(nodes.iter().position(|&it| it == node)?))
        };
        (0..plan.nodes.len()).map(times).collect()
    }

    /// Messages that were seen on each link whose writer is in the core.
    pub(super) fn written(&self) -> &[Option<u64>] {
        &self.written
    }

    /// A stop that the supervisor has measured, with the time when the last brake closed.
    pub(super) fn stop(&self, stop: &StopStatus) -> Stop {
        let closed: Option<Vec<u64>> = self.brakes.iter().map(|brake| brake.closed_ns).collect();
        let closed_ns = closed.and_then(|all| all.into_iter().max());
        let after_us = |ns: u64| (ns as f64 - stop.asked_ns as f64) / 1000.0;
        Stop {
            reason: stop.reason.clone(),
            asked_ms: stop.asked_ns as f64 / 1e6,
            safe_output_us: stop.safe_output_us.map(|us| us as f64),
            brakes_closed_us: closed_ns.map(after_us),
            at_rest_us: stop.at_rest_us.map(|us| us as f64),
        }
    }
}

/// Where the signals of each thread start among those of all, and the end.
fn starts(hello: &Hello, threads: usize) -> Vec<usize> {
    let count = |thread: usize| {
        let of = hello.signals.iter().filter(move |signal| signal.thread == thread);
        of.map(|signal| signal.count).sum::<usize>()
    };
    let mut starts = vec![0];
    for thread in 0..threads {
        starts.push(starts[thread] + count(thread));
    }
    starts
}

impl Thread {
    fn new(watch: &Watch, id: ThreadId) -> Thread {
        let plan = watch.plan();
        let writes = |end| (0..plan.links.len()).filter(move |&at| plan.links[at].from == end);
        let taps = watch.taps(id).iter().map(|tap| match tap.direction {
            Direction::Out => writes(tap.end).collect(),
            Direction::In => Vec::new(),
        });
        let thread = &plan.domains[id.domain].threads()[id.thread];
        let (nodes, timed) = (thread.nodes.len(), thread.release == Release::Timer);
        Thread {
            id,
            nodes,
            life: watch.life(),
            last: None,
            costs: ThreadCosts::new(nodes, timed),
            timed,
            latency_ns: 0,
            jitter_ns: 0,
            flags: 0,
            links: taps.collect(),
        }
    }

    fn add(&mut self, record: &Record, clock: Clock) {
        // With each life of the core its figures begin again.
        if record.life() != self.life {
            self.life = record.life();
            self.costs = ThreadCosts::new(self.nodes, self.timed);
        }
        self.last = Some(record.number());
        self.costs.add(record, clock);
        self.latency_ns = self.latency_ns.max(latency_ns(record, clock));
        self.jitter_ns = self.jitter_ns.max(jitter_ns(record));
        self.flags |= flags(record);
    }

    /// What came of it since the last call.
    fn take(&mut self, lost: u64) -> ThreadMotion {
        let us = |ns: u64| (ns as f64 / 1000.0) as f32;
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let motion = ThreadMotion {
            cycle: self.last.map_or(-1.0, |last| last as f64),
            latency_us: us(self.latency_ns),
            jitter_us: us(self.jitter_ns),
            overruns: count(self.costs.overruns()),
            skipped: count(self.costs.skipped()),
            lost: count(lost),
            flags: self.flags,
        };
        (self.latency_ns, self.jitter_ns, self.flags) = (0, 0, 0);
        motion
    }
}

impl Brake {
    fn add(&mut self, record: &Record, signals: &[f64]) {
        let are_closed = signals[self.elements.clone()].iter().all(|&state| state == self.closed);
        self.closed_ns = are_closed.then(|| self.closed_ns.unwrap_or_else(|| record.start_ns()));
    }
}

fn flags(record: &Record) -> u32 {
    let flags = [
        (FLAG_FRESH, true),
        (FLAG_OVERRUN, record.is_overrun()),
        (FLAG_FEEDBACK_MISSING, record.is_feedback_missing()),
        (FLAG_STOPPING, record.is_stopping()),
        (FLAG_FAILED, record.is_failed()),
        (FLAG_WITHOUT_INPUT, record.is_without_input()),
    ];
    flags.iter().filter(|flag| flag.1).map(|flag| flag.0).sum()
}

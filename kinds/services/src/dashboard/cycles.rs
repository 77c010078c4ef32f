//! The cycles of the core, as they come: what moved since the last frame, what the cycles cost, and
//! when the brakes closed.

use std::ops::Range;

use sinew_control::status::StopStatus;
use sinew_core::catalogue::Direction;
use sinew_core::clock::Clock;
use sinew_core::trace::{Record, ThreadId, taps};
use sinew_runtime::watch::Watch;
use sinew_spec::plan::{Plan, Release};

use super::figures::{ThreadCosts, jitter_ns, latency_ns};
use super::frame::ThreadMotion;
use super::ports::Ports;
use super::protocol::{
    FLAG_FAILED, FLAG_FEEDBACK_MISSING, FLAG_FRESH, FLAG_OVERRUN, FLAG_STOPPING,
    FLAG_WITHOUT_INPUT, Hello, StopTimes, ThreadFigures, TimeFigures,
};

/// The signal that says of each axis whether its brake is closed, and the word for closed.
const BRAKE: (&str, &str) = ("brake", "closed");

/// Most points of the path between two frames; more come only to a service that was delayed, and
/// then the oldest are of no use.
const POINTS_MAX: usize = 4096;

/// All threads of the core.
pub(super) struct Cycles {
    clock: Clock,
    threads: Vec<Thread>,
    /// The last signals of all threads.
    pub(super) signals: Vec<f64>,
    /// The signals of the traced place: the thread, and the elements.
    path: Option<(usize, Range<usize>)>,
    points: Vec<[f64; 3]>,
    brakes: Vec<Brake>,
    /// For each link the messages that the records of its writer showed; `None` for other links.
    pub(super) written: Vec<Option<u64>>,
    pub(super) ports: Ports,
}

struct Thread {
    id: ThreadId,
    nodes: usize,
    /// Whether the clock releases it.
    timed: bool,
    /// Its part of the signals.
    signals: Range<usize>,
    /// The life of the core that the figures belong to: how often it had been started again.
    life: u32,
    costs: ThreadCosts,
    /// The thread's motion since the last frame.
    motion: ThreadMotion,
    /// For each tap the links to which its port writes.
    links: Vec<Vec<usize>>,
}

/// A signal that says whether brakes are closed.
struct Brake {
    thread: usize,
    elements: Range<usize>,
    closed: f64,
    /// Start of the first cycle since which all of them are closed; monotonic ns.
    closed_ns: Option<u64>,
}

impl Cycles {
    /// No cycles yet; the core had been started again `life` times.
    pub(super) fn new(plan: &Plan, clock: Clock, life: u32, hello: &Hello) -> Cycles {
        let thread = |(at, id)| Thread::new(plan, id, life, signals_of(hello, at));
        let elements = |at: usize| {
            let signal = &hello.signals[at];
            (signal.thread, signal.offset..signal.offset + signal.count)
        };
        let brake = |at: usize| {
            let signal = &hello.signals[at];
            let closed = signal.labels.iter().position(|&label| label == BRAKE.1)?;
            let (thread, elements) = elements(at);
            let closed = closed as f64;
            (signal.name == BRAKE.0).then_some(Brake { thread, elements, closed, closed_ns: None })
        };
        let in_core = |at: usize| (!plan.is_service(plan.links[at].from.node)).then_some(0);
        Cycles {
            clock,
            signals: vec![0.0; hello.signals.iter().map(|signal| signal.count).sum()],
            threads: ThreadId::all(plan).enumerate().map(thread).collect(),
            path: hello.path_signal.map(elements),
            points: Vec::new(),
            brakes: (0..hello.signals.len()).filter_map(brake).collect(),
            written: (0..plan.links.len()).map(in_core).collect(),
            ports: Ports::new(plan, life, &hello.ports),
        }
    }

    /// Takes all cycles since the last call, and passes them on.
    pub(super) fn read(&mut self, watch: &mut Watch, mut hand_on: impl FnMut(ThreadId, &Record)) {
        watch.read(&mut |id, record| {
            hand_on(id, record);
            self.take(id, record);
        });
        let spare = self.points.len().saturating_sub(POINTS_MAX);
        self.points.drain(..spare);
    }

    /// Takes a cycle.
    pub(super) fn take(&mut self, id: ThreadId, record: &Record) {
        if let Some(at) = self.threads.iter().position(|thread| thread.id == id) {
            self.add(at, record);
        }
    }

    fn add(&mut self, at: usize, record: &Record) {
        let thread = &mut self.threads[at];
        thread.add(record, self.clock);
        for (tap, _) in record.messages() {
            for &link in &thread.links[tap] {
                self.written[link] = self.written[link].map(|count| count + 1);
            }
        }
        self.ports.add(at, record);
        let signals = &mut self.signals[thread.signals.clone()];
        signals.iter_mut().zip(record.signals()).for_each(|(to, value)| *to = value);
        if let Some((_, elements)) = self.path.as_ref().filter(|(thread, _)| *thread == at) {
            let point = &self.signals[elements.clone()];
            self.points.push([point[0], point[1], point[2]]);
        }
        for brake in self.brakes.iter_mut().filter(|brake| brake.thread == at) {
            brake.add(record, &self.signals);
        }
    }

    /// What moved since the last call, for each thread, and the points of the path. `lost` gives
    /// the number of cycles of a thread that were not seen.
    pub(super) fn take_motion(
        &mut self,
        lost: impl Fn(ThreadId) -> u64,
    ) -> (Vec<ThreadMotion>, Vec<[f64; 3]>) {
        let motion = self.threads.iter_mut().map(|thread| thread.take(lost(thread.id)));
        (motion.collect(), std::mem::take(&mut self.points))
    }

    /// Whether a cycle since the last [`Cycles::take_motion`] ran with safe outputs.
    pub(super) fn is_stopping(&self) -> bool {
        self.threads.iter().any(|thread| thread.motion.flags & FLAG_STOPPING != 0)
    }

    /// The figures of each thread; `lost` as for [`Cycles::take_motion`].
    pub(super) fn figures(&self, lost: impl Fn(ThreadId) -> u64) -> Vec<ThreadFigures> {
        self.threads.iter().map(|thread| thread.costs.figures(lost(thread.id))).collect()
    }

    /// Execution times of each node of the plan; `None` for a service.
    pub(super) fn nodes(&self, plan: &Plan) -> Vec<Option<TimeFigures>> {
        let times = |node: usize| {
            let (domain, thread) = (plan.nodes[node].domain, plan.nodes[node].thread);
            let home = self.threads.iter().find(|it| it.id == ThreadId { domain, thread })?;
            let nodes = &plan.domains[domain].threads()[thread].nodes;
            Some(home.costs.node(nodes.iter().position(|&it| it == node)?))
        };
        (0..plan.nodes.len()).map(times).collect()
    }

    /// A stop that the supervisor has measured, with the time at which the last brake closed.
    pub(super) fn stop(&self, stop: &StopStatus) -> StopTimes {
        let closed: Option<Vec<u64>> = self.brakes.iter().map(|brake| brake.closed_ns).collect();
        let closed_ns = closed.and_then(|all| all.into_iter().max());
        let after_us = |ns: u64| (ns as f64 - stop.asked_ns as f64) / 1000.0;
        StopTimes {
            reason: stop.reason.clone(),
            asked_ms: stop.asked_ns as f64 / 1e6,
            safe_output_us: stop.safe_output_us.map(|us| us as f64),
            brakes_closed_us: closed_ns.map(after_us),
            at_rest_us: stop.at_rest_us.map(|us| us as f64),
        }
    }
}

/// The range of a thread's elements among all signals.
fn signals_of(hello: &Hello, thread: usize) -> Range<usize> {
    let of_thread = hello.signals.iter().filter(|signal| signal.thread == thread);
    let first = of_thread.clone().next().map_or(0, |signal| signal.offset);
    first..first + of_thread.map(|signal| signal.count).sum::<usize>()
}

impl Thread {
    fn new(plan: &Plan, id: ThreadId, life: u32, signals: Range<usize>) -> Thread {
        let writes = |end| (0..plan.links.len()).filter(move |&at| plan.links[at].from == end);
        let taps = taps(plan, id.nodes(plan));
        let links = taps.iter().map(|tap| match tap.direction {
            Direction::Out => writes(tap.end).collect(),
            Direction::In => Vec::new(),
        });
        let thread = &plan.domains[id.domain].threads()[id.thread];
        let (nodes, timed) = (thread.nodes.len(), thread.release == Release::Timer);
        Thread {
            id,
            nodes,
            timed,
            signals,
            life,
            costs: ThreadCosts::new(nodes, timed),
            motion: ThreadMotion { cycle: -1.0, ..ThreadMotion::default() },
            links: links.collect(),
        }
    }

    fn add(&mut self, record: &Record, clock: Clock) {
        // Each life of the core begins with new figures.
        if record.life() != self.life {
            self.life = record.life();
            self.costs = ThreadCosts::new(self.nodes, self.timed);
        }
        self.costs.add(record, clock);
        let us = |ns: u64| (ns as f64 / 1000.0) as f32;
        let motion = &mut self.motion;
        motion.cycle = record.number() as f64;
        motion.latency_us = motion.latency_us.max(us(latency_ns(record, clock)));
        motion.jitter_us = motion.jitter_us.max(us(jitter_ns(record)));
        motion.flags |= flags(record);
    }

    /// The motion since the last call.
    fn take(&mut self, lost: u64) -> ThreadMotion {
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let next = ThreadMotion { cycle: self.motion.cycle, ..ThreadMotion::default() };
        let totals = self.costs.totals;
        ThreadMotion {
            overruns: count(totals.overruns),
            skipped: count(totals.skipped),
            lost: count(lost),
            ..std::mem::replace(&mut self.motion, next)
        }
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

//! What a cycle leaves behind: one record each, written into a broadcast that never makes the cycle
//! wait. Records are read outside the core, to make the report, the view or the CSV. If somebody
//! observes the run, a record also holds the messages of its cycle.

mod totals;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use sinew_link::{RegionError, Shape, broadcast, create};
use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{End, Node, Plan};
use zerocopy::{IntoBytes, transmute_mut, transmute_ref};

pub use self::totals::{Tally, Totals};
use crate::ends::link_ends;
use crate::fault::Cause;
use crate::pace::Pace;
use crate::sys::Region;

const NUMBER: usize = 0;
const RELEASE: usize = 1;
const START: usize = 2;
const TICKS: usize = 3;
const FLAGS: usize = 4;
const SKIPPED: usize = 5;
const LIFE: usize = 6;
/// [`Totals`], word by word.
const TOTALS: usize = 7;
const SAFE_SINCE: usize = 15;
const REST_SINCE: usize = 16;
const NODES: usize = 17;

/// Whether records say how often nodes allocate in their updates: in a debug build, as far as the
/// program has [`Counting`](crate::sys::Counting) as its allocator.
pub const COUNTS_ALLOCATIONS: bool = cfg!(debug_assertions);

/// Why the totals can always be read.
const WHOLE: &str = "a bug: a record without its first words";

/// Words of a node: begin, end, and its allocations if they are counted.
const NODE_WORDS: usize = if COUNTS_ALLOCATIONS { 3 } else { 2 };

const FLAG_FEEDBACK_MISSING: u64 = 1;
const FLAG_OVERRUN: u64 = 2;
const FLAG_STOPPING: u64 = 4;
const FLAG_NO_INPUT: u64 = 8;
const FLAG_FAILED: u64 = 16;
const FLAG_FALLEN_BACK: u64 = 32;
const FLAG_IN_LINK: u64 = 64;

/// Above the flags, of a cycle that failed: the cause, eight bits of it, and the node's place plus
/// one, sixteen bits of it.
const CAUSE_SHIFT: u32 = 8;
const PLACE_SHIFT: u32 = 16;

/// Above the place, and no part of [`Record::flags`]: what the actuator ports of the thread hold.
const HELD_SAFE: u64 = 1 << 32;
const HELD_COMMAND: u64 = 1 << 33;

/// Set in a link's word of the record once the service at its other end has broken it.
const BROKEN: u64 = 1 << 63;

/// In the first word of a tap: its message was new in this cycle.
const TAP_NEW: u64 = 1;
/// In the first word of a tap: the link's other end is gone.
const TAP_CLOSED: u64 = 2;

/// A thread of the run: its domain, its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// Index into the domain's threads.
    pub thread: usize,
}

impl ThreadId {
    /// The thread of a node of the core.
    pub fn of(node: &Node) -> ThreadId {
        ThreadId { domain: node.domain, thread: node.thread }
    }

    /// All threads of the core, in the order of the plan.
    pub fn all(plan: &Plan) -> impl Iterator<Item = ThreadId> {
        (0..plan.domains.len()).flat_map(|domain| ThreadId::all_of(plan, domain))
    }

    /// Those of one domain.
    pub fn all_of(plan: &Plan, domain: usize) -> impl Iterator<Item = ThreadId> + use<> {
        (0..plan.domains[domain].threads().len()).map(move |thread| ThreadId { domain, thread })
    }

    /// Its nodes, in order.
    pub fn nodes(self, plan: &Plan) -> &[usize] {
        &plan.domains[self.domain].threads()[self.thread].nodes
    }
}

/// Where and why a cycle failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What sort of fault.
    pub cause: Cause,
    /// Place of the node in its thread. `None` at the feedback.
    pub place: Option<usize>,
    /// Whether it was a link of that node, and not its work.
    pub in_link: bool,
}

impl Failed {
    /// The same as bits of the flags.
    fn bits(self) -> u64 {
        // The compiler puts no more nodes on a thread than a u16 counts.
        let place = self.place.map_or(0, |place| u16::try_from(place + 1).unwrap_or(0));
        let in_link = if self.in_link { FLAG_IN_LINK } else { 0 };
        in_link | (self.cause as u64) << CAUSE_SHIFT | u64::from(place) << PLACE_SHIFT
    }
}

/// What an actuator port holds. The greatest value is the least safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActuatorHolds {
    /// No command, or the safe value that its guard put there.
    #[default]
    Nothing,
    /// A command that is the same as its safe value.
    Safe,
    /// Any other command.
    Command,
}

/// What a recording keeps of a cycle besides its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// [`Record::number`].
    pub number: u64,
    /// [`Record::release_ns`].
    pub release_ns: u64,
    /// [`Record::start_ns`].
    pub start_ns: u64,
    /// [`Record::latency_ticks`].
    pub latency_ticks: u64,
    /// [`Record::skipped`].
    pub skipped: u64,
    /// [`Totals::messages_lost`].
    pub lost_total: u64,
    /// [`Totals::messages_dropped`].
    pub dropped_total: u64,
    /// [`Record::flags`].
    pub flags: u32,
    /// [`Record::execution_ticks`] of each node.
    pub execution_ticks: Vec<u64>,
    /// [`Record::signals`].
    pub signals: Vec<f64>,
}

impl Past {
    /// Whether the thread was stopping in this cycle, or the cycle failed: then it may be the last
    /// one.
    pub fn is_of_stop(&self) -> bool {
        u64::from(self.flags) & (FLAG_STOPPING | FLAG_FAILED | FLAG_FALLEN_BACK) != 0
    }
}

/// A port whose messages are in the records of an observed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The port.
    pub end: End,
    /// `In` for what came from elsewhere, `Out` for what a node of the thread wrote.
    pub direction: Direction,
    /// Bytes of a message.
    pub size: u32,
}

/// The taps of a thread with these nodes, in the order in which its records hold them: for each
/// node the inputs that come from another thread or a service and the outputs that are linked, in
/// the order of its ports, then where it is tuned. None if nobody observes the run. A fused link
/// needs no tap at its reader: it brings what its other end wrote.
pub fn taps(plan: &Plan, nodes: &[usize]) -> Vec<Tap> {
    if plan.is_observed() { linked_ports(plan, nodes) } else { Vec::new() }
}

/// As [`taps`], whether anybody observes the run or not.
pub(crate) fn linked_ports(plan: &Plan, nodes: &[usize]) -> Vec<Tap> {
    let mut taps = Vec::new();
    for &node in nodes {
        for (port, row) in plan.nodes[node].kind.ports.iter().enumerate() {
            let end = End { node, port };
            let is_tapped = plan.links.iter().any(|link| match row.direction {
                Direction::In => link.to == end && !link.fused,
                Direction::Out => link.from == end,
            });
            if is_tapped {
                taps.push(Tap { end, direction: row.direction, size: row.message.size });
            }
        }
        taps.extend(plan.tuning(node).map(|(end, port)| Tap {
            end,
            direction: Direction::In,
            size: port.message.size,
        }));
    }
    taps
}

/// The record of one cycle: 17 words, then two for each node (its begin and its end, in ticks of
/// the counter; in a debug build a third, its allocations so far), then one for each signal, then
/// one for each end of a link to elsewhere, then for each tap one with its flags, and its message.
#[derive(Clone, Debug)]
pub struct Record {
    words: Vec<u64>,
    nodes: usize,
    signals: Range<usize>,
    links: Range<usize>,
    /// Words and bytes of each tap.
    taps: Arc<[(Range<usize>, usize)]>,
}

impl Record {
    /// An empty record of a thread with these nodes.
    pub fn of(plan: &Plan, nodes: &[usize]) -> Record {
        Record::with_taps(plan, nodes, &taps(plan, nodes))
    }

    /// As [`Record::of`], with the messages of these ports.
    pub(crate) fn with_taps(plan: &Plan, nodes: &[usize], taps: &[Tap]) -> Record {
        let signals =
            |&node: &usize| plan.nodes[node].kind.signals.iter().map(|signal| signal.count);
        let signals = nodes.iter().flat_map(signals).sum();
        let taps: Vec<u32> = taps.iter().map(|tap| tap.size).collect();
        Record::new(nodes.len(), signals, link_ends(plan, nodes).len(), &taps)
    }

    /// A record for a thread with this many nodes, signals in all and ends of links; `taps` are the
    /// bytes of each tap.
    pub fn new(nodes: usize, signals: usize, links: usize, taps: &[u32]) -> Record {
        let first = NODES + NODE_WORDS * nodes;
        let signals = first..first + signals;
        let links = signals.end..signals.end + links;
        let mut end = links.end;
        let tap = |&size: &u32| {
            let start = end;
            end += 1 + size.div_ceil(8) as usize;
            (start..end, size as usize)
        };
        let taps = taps.iter().map(tap).collect();
        Record { words: vec![0; end], nodes, signals, links, taps }
    }

    /// The message at each tap, by its place in [`taps`], that was new in this cycle.
    pub fn messages(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (0..self.taps.len()).filter_map(|at| Some((at, self.message(at)?)))
    }

    /// The message at tap `at`, if it was new in this cycle.
    pub fn message(&self, at: usize) -> Option<&[u8]> {
        let (words, len) = self.tap(at);
        (words[0] & TAP_NEW != 0).then(|| &words[1..].as_bytes()[..len])
    }

    /// Whether the other end of the link at tap `at` was gone.
    pub fn is_closed(&self, at: usize) -> bool {
        self.tap(at).0[0] & TAP_CLOSED != 0
    }

    fn tap(&self, at: usize) -> (&[u64], usize) {
        let (words, len) = &self.taps[at];
        (&self.words[words.clone()], *len)
    }

    /// Makes this the record of a cycle of the past; its messages are put in one by one, see
    /// [`Record::restore_message`]. It does not hold what each link has lost, nor the life and what
    /// was counted in it, except for messages.
    ///
    /// # Panics
    /// If it is of a thread with another number of nodes or signals.
    pub fn restore(&mut self, past: &Past) {
        assert_eq!(
            (past.execution_ticks.len(), past.signals.len()),
            (self.nodes, self.signals.len())
        );
        self.words.fill(0);
        self.words[NUMBER] = past.number;
        self.words[RELEASE] = past.release_ns;
        self.words[START] = past.start_ns;
        self.words[TICKS] = past.latency_ticks;
        self.words[SKIPPED] = past.skipped;
        let (messages_lost, messages_dropped) = (past.lost_total, past.dropped_total);
        *self.totals_mut() = Totals { messages_lost, messages_dropped, ..Totals::default() };
        self.words[FLAGS] = u64::from(past.flags);
        for (at, &ticks) in past.execution_ticks.iter().enumerate() {
            self.executed(at, 0, ticks);
        }
        for (word, value) in self.words[self.signals.clone()].iter_mut().zip(&past.signals) {
            *word = value.to_bits();
        }
    }

    /// Puts in what is known of tap `at`: its message, if there was a new one, and whether the
    /// other end of its link was gone.
    ///
    /// # Panics
    /// If the message is not of the tap's size.
    pub fn restore_message(&mut self, at: usize, message: Option<&[u8]>, closed: bool) {
        let (words, len) = self.taps[at].clone();
        let words = &mut self.words[words];
        words.fill(0);
        words[0] = if closed { TAP_CLOSED } else { 0 };
        if let Some(message) = message {
            words[0] |= TAP_NEW;
            words[1..].as_mut_bytes()[..len].copy_from_slice(message);
        }
    }

    /// Fills in tap `at`.
    #[inline]
    pub(crate) fn tapped(&mut self, at: usize, message: Option<&[u64]>, closed: bool) {
        let words = &mut self.words[self.taps[at].0.clone()];
        words[0] = if closed { TAP_CLOSED } else { 0 };
        if let Some(message) = message {
            words[0] |= TAP_NEW;
            words[1..].copy_from_slice(message);
        }
    }

    /// Number of the cycle.
    pub fn number(&self) -> u64 {
        self.words[NUMBER]
    }

    /// How often the core had been restarted before: its cycles count from 0 in each of its lives.
    pub fn life(&self) -> u32 {
        // A domain may write anything there, but no life has a greater number.
        u32::try_from(self.words[LIFE]).unwrap_or(u32::MAX)
    }

    /// Planned start, monotonic ns. For an input-released thread: its actual start.
    pub fn release_ns(&self) -> u64 {
        self.words[RELEASE]
    }

    /// Actual start, monotonic ns.
    pub fn start_ns(&self) -> u64 {
        self.words[START]
    }

    /// From the first node's start until the last feedback is back, in ticks.
    pub fn latency_ticks(&self) -> u64 {
        self.words[TICKS]
    }

    /// Execution time of node `at`, in ticks.
    pub fn execution_ticks(&self, at: usize) -> u64 {
        let (begin, end) = self.node_ticks(at);
        end.saturating_sub(begin)
    }

    /// When the update of node `at` began and ended, in ticks of the counter that all threads of
    /// the machine share; 0 in a record of the past.
    pub fn node_ticks(&self, at: usize) -> (u64, u64) {
        let words = &self.words[NODES + NODE_WORDS * at..][..2];
        (words[0], words[1])
    }

    /// How often node `at` has allocated in its updates so far; `None` where nobody counts.
    pub fn allocations(&self, at: usize) -> Option<u64> {
        COUNTS_ALLOCATIONS.then(|| self.words[NODES + NODE_WORDS * at + 2])
    }

    #[inline]
    pub(crate) fn allocated(&mut self, at: usize, count: u64) {
        if COUNTS_ALLOCATIONS {
            self.words[NODES + NODE_WORDS * at + 2] += count;
        }
    }

    /// Whole periods lost before this cycle.
    pub fn skipped(&self) -> u64 {
        self.words[SKIPPED]
    }

    /// What the thread has counted in this life, this cycle included.
    pub fn totals(&self) -> Totals {
        let words: &[u64; SAFE_SINCE - TOTALS] = self.words[TOTALS..].first_chunk().expect(WHOLE);
        *transmute_ref!(words)
    }

    #[inline]
    fn totals_mut(&mut self) -> &mut Totals {
        let words: &mut [u64; SAFE_SINCE - TOTALS] =
            self.words[TOTALS..].first_chunk_mut().expect(WHOLE);
        transmute_mut!(words)
    }

    /// Since when all actuators of this thread have had their safe values without a break: start of
    /// the first such cycle, monotonic ns. `None` if one actuator does not have it, or there is
    /// none.
    pub fn safe_since_ns(&self) -> Option<u64> {
        Some(self.words[SAFE_SINCE]).filter(|&ns| ns > 0)
    }

    /// Since when they have had them and all nodes of the thread are at rest: end of the first such
    /// cycle.
    pub fn at_rest_since_ns(&self) -> Option<u64> {
        Some(self.words[REST_SINCE]).filter(|&ns| ns > 0)
    }

    /// Whether the cycle ended after its deadline.
    pub fn is_overrun(&self) -> bool {
        self.words[FLAGS] & FLAG_OVERRUN != 0
    }

    /// Whether feedback stayed away.
    pub fn is_feedback_missing(&self) -> bool {
        self.words[FLAGS] & FLAG_FEEDBACK_MISSING != 0
    }

    /// Whether the cycle failed, or the graph was stopping and ran with safe values: it is no cycle
    /// of the control loop.
    pub fn is_stopping(&self) -> bool {
        self.words[FLAGS] & (FLAG_STOPPING | FLAG_FAILED) != 0
    }

    /// Whether the graph was stopping, so that actuators got safe values; a cycle that failed
    /// before that had begun as any other.
    pub fn is_told_to_stop(&self) -> bool {
        self.words[FLAGS] & FLAG_STOPPING != 0
    }

    /// Whether the cycle failed: the record holds what it had done until then.
    pub fn is_failed(&self) -> bool {
        self.words[FLAGS] & FLAG_FAILED != 0
    }

    /// Where and why the cycle failed, if it did.
    pub fn failed(&self) -> Option<Failed> {
        let flags = self.words[FLAGS];
        let place = (flags >> PLACE_SHIFT) as u16;
        Some(Failed {
            cause: Cause::from_number((flags >> CAUSE_SHIFT) as u32 & 0xff)?,
            place: usize::from(place).checked_sub(1),
            in_link: flags & FLAG_IN_LINK != 0,
        })
    }

    /// Whether only nodes with actuators ran, because this or another thread of the domain had
    /// faulted before the cycle.
    pub fn is_fallen_back(&self) -> bool {
        self.words[FLAGS] & FLAG_FALLEN_BACK != 0
    }

    /// Whether an actuator port of this thread holds a command, so that its guard has not acted.
    pub fn is_commanded(&self) -> bool {
        self.words[FLAGS] & (HELD_SAFE | HELD_COMMAND) != 0
    }

    /// Whether such a command differs from the port's safe value.
    pub fn is_obeying(&self) -> bool {
        self.words[FLAGS] & HELD_COMMAND != 0
    }

    /// The answers to the questions above about the cycle, as one word: a recording keeps it, and
    /// [`Past`] takes it.
    pub fn flags(&self) -> u32 {
        self.words[FLAGS] as u32
    }

    /// Whether an input-released thread ran because its input stayed away.
    pub fn is_without_input(&self) -> bool {
        self.words[FLAGS] & FLAG_NO_INPUT != 0
    }

    /// How many nodes the thread has.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The signals of all nodes, in the order of the nodes.
    pub fn signals(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.words[self.signals.clone()].iter().map(|&bits| f64::from_bits(bits))
    }

    /// For each end of a link, in the order of `assemble::link_ends`: messages lost on their way in
    /// or dropped on their way out since the start, and whether a service has broken the link.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        let words = &self.words[self.links.clone()];
        words.iter().map(|word| (word & !BROKEN, word & BROKEN != 0))
    }

    /// Notes when the update of node `at` began and ended.
    #[inline]
    pub fn executed(&mut self, at: usize, begin_ticks: u64, end_ticks: u64) {
        let words = &mut self.words[NODES + NODE_WORDS * at..][..2];
        (words[0], words[1]) = (begin_ticks, end_ticks);
    }

    #[inline]
    /// Notes the latency of the cycle, in ticks.
    pub fn ended(&mut self, latency_ticks: u64) {
        self.words[TICKS] = latency_ticks;
    }

    #[inline]
    pub(crate) fn lost(&mut self, end: usize, count: u32) {
        self.totals_mut().messages_lost += u64::from(count);
        *self.link(end) += u64::from(count);
    }

    #[inline]
    pub(crate) fn dropped(&mut self, end: usize) {
        self.totals_mut().messages_dropped += 1;
        *self.link(end) += 1;
    }

    /// From now on the link counts as broken.
    pub(crate) fn broken(&mut self, end: usize) {
        *self.link(end) |= BROKEN;
    }

    #[inline]
    fn link(&mut self, end: usize) -> &mut u64 {
        &mut self.words[self.links.start + end]
    }

    /// Forgets the times, for a cycle that failed and for those after it.
    pub(crate) fn clear(&mut self) {
        self.words[TICKS] = 0;
        (0..self.nodes).for_each(|at| self.executed(at, 0, 0));
    }

    /// From now on its cycles are of this life of the core.
    pub fn begin_life(&mut self, life: u32) {
        self.words[LIFE] = u64::from(life);
    }

    #[inline]
    /// Notes what the thread knows, and the signals.
    pub fn head(&mut self, head: &CycleHead, values: &[f64]) {
        self.words[NUMBER] = head.number;
        self.words[RELEASE] = head.release_ns;
        self.words[START] = head.start_ns;
        self.words[SKIPPED] = head.skipped;
        let flags = [
            (FLAG_FEEDBACK_MISSING, head.feedback_missing),
            (FLAG_OVERRUN, head.overrun),
            (FLAG_STOPPING, head.stopping),
            (FLAG_NO_INPUT, head.no_input),
            (FLAG_FAILED, head.failed.is_some()),
            (FLAG_FALLEN_BACK, head.fallen_back),
        ];
        let flags: u64 = flags.iter().filter(|flag| flag.1).map(|flag| flag.0).sum();
        let held = match head.holds {
            None | Some(ActuatorHolds::Nothing) => 0,
            Some(ActuatorHolds::Safe) => HELD_SAFE,
            Some(ActuatorHolds::Command) => HELD_COMMAND,
        };
        let is_safe = head.holds.is_some_and(|holds| holds != ActuatorHolds::Command);
        self.words[FLAGS] = flags | held | head.failed.map_or(0, Failed::bits);
        self.count(head);
        self.lasts(SAFE_SINCE, is_safe, head.start_ns);
        let at_rest_ns = head.at_rest_ns.filter(|_| is_safe);
        self.lasts(REST_SINCE, at_rest_ns.is_some(), at_rest_ns.unwrap_or(0));
        for (word, value) in self.words[self.signals.clone()].iter_mut().zip(values) {
            *word = value.to_bits();
        }
    }

    #[inline]
    fn count(&mut self, head: &CycleHead) {
        let totals = self.totals_mut();
        if head.stopping || head.failed.is_some() {
            totals.stopping_cycles += 1;
            return;
        }
        totals.cycles += 1;
        totals.overruns += u64::from(head.overrun);
        totals.skipped += head.skipped;
        totals.without_input += u64::from(head.no_input);
        totals.without_feedback += u64::from(head.feedback_missing);
    }

    /// Word `at` says since when something holds.
    #[inline]
    fn lasts(&mut self, at: usize, holds: bool, since_ns: u64) {
        match (holds, self.words[at]) {
            (false, _) => self.words[at] = 0,
            (true, 0) => self.words[at] = since_ns,
            (true, _) => {}
        }
    }
}

/// What the thread, not the executor, knows of a cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct CycleHead {
    /// Number of the cycle.
    pub number: u64,
    /// Planned start, monotonic ns.
    pub release_ns: u64,
    /// Actual start, monotonic ns.
    pub start_ns: u64,
    /// Whole periods lost before it.
    pub skipped: u64,
    /// Feedback stayed away.
    pub feedback_missing: bool,
    /// It ended after its deadline.
    pub overrun: bool,
    /// The graph is stopping.
    pub stopping: bool,
    /// No message released it.
    pub no_input: bool,
    /// Where and why it failed.
    pub failed: Option<Failed>,
    /// Only nodes with actuators ran.
    pub fallen_back: bool,
    /// What the actuator ports of the thread hold; `None` if it has none.
    pub holds: Option<ActuatorHolds>,
    /// When the cycle ended, if all nodes were at rest then.
    pub at_rest_ns: Option<u64>,
}

/// How much a trace holds: one to two seconds of cycles, but no more than [`BYTES_MAX`]. The memory
/// is locked, so many nodes or large messages mean fewer records. A reader that comes less often,
/// see [`Reader::capacity`], loses cycles, and learns how many.
const HELD_NS: u64 = 2_000_000_000;
const RECORDS_MIN: u64 = 256;
const RECORDS_MAX: u64 = 65_536;
const BYTES_MAX: u64 = 4 << 20;

/// Records of the stop, besides those of a free run: actuators may take two seconds to come to
/// rest.
const STOP_RECORDS: u64 = 4096;

/// Tells the region of a trace from other regions.
const TYPE_HASH: u32 = u32::from_le_bytes(*b"trac");

fn shape(record: &Record, period_ns: u64, pace: Pace) -> Shape {
    let size = record.words.len() as u64 * 8;
    let records = match pace {
        Pace::AsPlanned => {
            let fitting = (BYTES_MAX / size).clamp(RECORDS_MIN, RECORDS_MAX);
            let records = (HELD_NS / period_ns.max(1)).clamp(RECORDS_MIN, fitting);
            // The power of two below what fits, so that it does fit.
            1 << records.ilog2()
        }
        Pace::Free { cycles } => {
            let records = cycles.min(Pace::FREE_CYCLES_MAX) + STOP_RECORDS;
            records.next_power_of_two() as u32
        }
    };
    Shape::broadcast(size as u32, TYPE_HASH, records)
}

/// Makes the region of a trace and reads it from its beginning.
///
/// # Errors
/// The kernel refuses a region of that size.
pub fn open(record: &Record, period_ns: u64, pace: Pace) -> io::Result<(Region, Reader)> {
    let shape = shape(record, period_ns, pace);
    let region = Region::shared("sinew-trace", shape.region_len())?;
    create(&region, &shape).map_err(|error| io::Error::other(error.to_string()))?;
    let reader = Reader::attach(region.clone(), record, period_ns, pace);
    let reader = reader.map_err(|error| io::Error::other(error.to_string()))?;
    Ok((region, reader))
}

/// The executor's end.
pub struct Writer(broadcast::Writer<Region>);

impl Writer {
    /// Attaches to what [`open`] made for the same thread.
    ///
    /// # Errors
    /// It was made for another thread.
    pub fn attach(
        region: Region,
        like: &Record,
        period_ns: u64,
        pace: Pace,
    ) -> Result<Writer, RegionError> {
        broadcast::Writer::attach(region, &shape(like, period_ns, pace)).map(Writer)
    }

    /// Leaves a record; never waits.
    #[inline]
    pub fn write(&mut self, record: &Record) {
        self.0.send(record.words.as_bytes());
    }
}

/// The observer's end.
pub struct Reader {
    reader: broadcast::Reader<Region>,
    record: Record,
    lost: u64,
    capacity: u32,
}

impl Reader {
    /// Attaches to what [`open`] made for a thread with records like this one, and begins with the
    /// oldest that is there. It writes nothing: the region may be mapped for reading only.
    ///
    /// # Errors
    /// If it was made for another thread.
    pub fn attach(
        region: Region,
        like: &Record,
        period_ns: u64,
        pace: Pace,
    ) -> Result<Reader, RegionError> {
        let shape = shape(like, period_ns, pace);
        let reader = broadcast::Reader::attach(region, &shape)?;
        Ok(Reader { reader, record: like.clone(), lost: 0, capacity: shape.capacity })
    }

    /// The next record, if there is one.
    pub fn read(&mut self) -> Option<&Record> {
        // A domain that overwrites its trace with nonsense only spoils its own figures.
        let received = self.reader.receive(self.record.words.as_mut_bytes()).ok()??;
        self.lost += u64::from(received.lost);
        Some(&self.record)
    }

    /// How many records fit into the trace.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Records that were overwritten before this reader came to them.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const PERIOD_NS: u64 = 10_000_000;

    #[test]
    fn a_reader_that_comes_late_learns_how_much_it_lost() {
        let mut record = Record::new(2, 3, 1, &[]);
        let (region, mut reader) = open(&record, PERIOD_NS, Pace::AsPlanned).expect("memfd");
        let mut writer =
            Writer::attach(region, &record, PERIOD_NS, Pace::AsPlanned).expect("the same shape");
        for number in 0..1000 {
            record.head(&CycleHead { number, ..CycleHead::default() }, &[number as f64; 3]);
            writer.write(&record);
        }
        let (mut numbers, mut seen) = (Vec::new(), 0);
        while let Some(record) = reader.read() {
            assert!(record.signals().all(|signal| signal == record.number() as f64));
            numbers.push(record.number());
            seen += 1;
        }
        assert_eq!((seen, reader.lost()), (RECORDS_MIN, 1000 - RECORDS_MIN));
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1) && numbers.ends_with(&[999]));
    }

    #[test]
    fn a_trace_full_of_garbage_is_only_garbage() {
        for value in [1, 2, u32::MAX / 2, u32::MAX] {
            let record = Record::new(1, 1, 0, &[]);
            let (region, mut reader) = open(&record, PERIOD_NS, Pace::AsPlanned).expect("memfd");
            for word in region.words() {
                word.store(value, Ordering::Relaxed);
            }
            for _ in 0..10_000 {
                if let Some(record) = reader.read() {
                    let _ = (record.execution_ticks(0), record.signals().count());
                }
            }
        }
    }
}

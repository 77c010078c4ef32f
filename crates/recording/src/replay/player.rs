//! From the records of all parts to cycles that are replayed: which message belongs to which
//! thread, where a life of the core begins, where the replay must end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use mcap::records::{Channel, MessageHeader, Record};
use sinew_core::trace::ThreadId;
use sinew_runtime::Kinds;
use sinew_spec::plan::Release;

use super::ends::{Gaps, ThreadEnd, after_reset, of_life};
use super::graphs::Graphs;
use super::thread::RecordedThread;
use super::{Onlooker, Until};
use crate::format::{self, GAP, RecordedGap};
use crate::read::{self, Extent};
use crate::recording::{Part, Recording};
use crate::topics::{Topic, TopicContent, is_beside, topics};

/// Most unknown topics that are named.
const UNKNOWN_MAX: usize = 8;

/// Why reading a part ends early.
enum Wrong {
    /// This program cannot replay this recording at all.
    Refused(String),
    /// The part contains something that its writer cannot have written.
    Damaged(String),
}

/// Replays a recording.
pub struct Player<'a> {
    pub(super) recording: &'a Recording,
    pub(super) graphs: &'a Graphs,
    table: &'a Kinds,
    pub(super) threads: Vec<RecordedThread>,
    /// The topics that a recording of this graph has.
    topics: Vec<Topic>,
    onlooker: Option<Onlooker<'a>>,
    until: Option<Until>,
    /// Cycles that started later are left out.
    limit_ns: Option<u64>,
    /// Threads that have reached the limit.
    past_limit: BTreeSet<usize>,
    /// Set when the user wants to stop.
    stop: &'a AtomicBool,
    life: Option<u32>,
    /// Start of the first and of the last cycle in this life, monotonic.
    span_ns: Option<(u64, u64)>,
    first_ns: Option<u64>,
    /// For the part that is being read: schemas and topics by their numbers.
    schemas: BTreeMap<u16, Vec<u8>>,
    channels: BTreeMap<u16, usize>,
    gaps: Gaps,
    /// The ends of threads in the recording. Empty if not all of it was read.
    pub(super) ends: Vec<ThreadEnd>,
    unknown: BTreeSet<String>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Where less was replayed than the recording should hold, and why.
    pub(super) stops: Vec<String>,
    /// Time that the replayed cycles took when they were recorded.
    pub(super) recorded_ns: u64,
    /// Whether the user stopped it.
    pub(super) interrupted: bool,
}

impl<'a> Player<'a> {
    /// Plays `recording` until it ends, or `until`, or until `stop` is set.
    ///
    /// # Errors
    /// If the graph has no core.
    pub fn new(
        recording: &'a Recording,
        graphs: &'a Graphs,
        table: &'a Kinds,
        until: Option<Until>,
        stop: &'a AtomicBool,
    ) -> Result<Player<'a>, String> {
        let plan = &graphs.recorded;
        let threads: Vec<_> = ThreadId::all(plan).map(|id| RecordedThread::new(plan, id)).collect();
        if threads.is_empty() {
            let name = &plan.name;
            return Err(format!(
                "graph '{name}' is one of services: there is no core to be replayed"
            ));
        }
        Ok(Player {
            recording,
            graphs,
            table,
            topics: topics(plan),
            threads,
            onlooker: None,
            until,
            limit_ns: None,
            past_limit: BTreeSet::new(),
            stop,
            life: None,
            span_ns: None,
            first_ns: None,
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            gaps: Gaps::default(),
            ends: Vec::new(),
            unknown: BTreeSet::new(),
            notes: [&recording.notes[..], &graphs.notes].concat(),
            stops: Vec::from_iter(recording.what_is_missing()),
            recorded_ns: 0,
            interrupted: false,
        })
    }

    /// Shows the recording to an observer.
    pub fn show(&mut self, onlooker: Onlooker<'a>) {
        self.onlooker = Some(onlooker);
    }

    /// The threads of the recorded core.
    pub fn threads(&self) -> &[RecordedThread] {
        &self.threads
    }

    /// Plays all parts.
    ///
    /// # Errors
    /// Why this program cannot replay this recording, in words.
    pub fn play(&mut self) -> Result<(), String> {
        let result = self.recording.parts.iter().try_for_each(|part| match self.is_over() {
            true => Ok(()),
            false => self.play_part(part),
        });
        self.end_life();
        self.end_recording();
        // Releases the terminal before anything is printed.
        self.onlooker = None;
        if !self.unknown.is_empty() {
            let names: Vec<_> = self.unknown.iter().take(UNKNOWN_MAX).cloned().collect();
            let names = names.join("', '");
            self.notes
                .push(format!("topics that do not belong to this graph are left out: '{names}'"));
        }
        result
    }

    /// Whether there is no need to read on.
    fn is_over(&self) -> bool {
        self.interrupted || self.limit_ns.is_some() && self.past_limit.len() == self.threads.len()
    }

    fn play_part(&mut self, part: &Part) -> Result<(), String> {
        if self.life != Some(part.head.life) {
            self.end_life();
            self.miss_lives(part.head.life);
            self.begin_life(part.head.life)?;
        }
        self.schemas.clear();
        self.channels.clear();
        let mut taken = Ok(());
        let end = read::read(&part.path, &mut |record| {
            taken = self.take(record);
            match taken.is_err() || self.is_over() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        let end = match taken {
            Err(Wrong::Refused(text)) => {
                return Err(format!("'{}': {text}", part.path.display()));
            }
            Err(Wrong::Damaged(text)) => Extent::Damaged(text),
            Ok(()) => end,
        };
        let is_last =
            self.recording.parts.last().is_some_and(|last| last.head.part == part.head.part);
        let number = part.head.part;
        match end {
            Extent::Complete | Extent::Stopped => {}
            Extent::Cut => self.notes.push(match is_last {
                true => format!("part {number} has no end: it was replayed as far as it goes"),
                false => format!("part {number} has no end, though others follow"),
            }),
            Extent::Foreign => self.damaged(number, "it is no longer an MCAP file"),
            Extent::Damaged(text) => self.damaged(number, &text),
        }
        Ok(())
    }

    /// Drops the unfinished cycles: they may be incomplete.
    fn damaged(&mut self, number: u32, text: &str) {
        self.threads.iter_mut().for_each(RecordedThread::forget);
        self.stops.push(format!("part {number} is damaged: {text}; it was replayed up to there"));
    }

    /// Reports which lives of the core before this one are missing.
    fn miss_lives(&mut self, life: u32) {
        let next = self.life.map_or(0, |life| life.saturating_add(1));
        if life > next {
            let lives = match life - next {
                1 => named(next),
                _ => format!("{} to {}", named(next), named(life - 1)),
            };
            self.stops.push(format!("the core {lives} is not in the recording"));
        }
    }

    /// Starts all nodes again.
    fn begin_life(&mut self, life: u32) -> Result<(), String> {
        let Player { graphs, table, threads, notes, .. } = self;
        // Notes of a later life are the same as those of the first.
        let mut said = Vec::new();
        for thread in threads {
            thread.begin_life(graphs, table, &mut said)?;
        }
        if self.life.is_none() {
            notes.append(&mut said);
        }
        self.life = Some(life);
        Ok(())
    }

    /// Replays the cycles that are complete, and reports which threads ended early.
    fn end_life(&mut self) {
        for at in 0..self.threads.len() {
            self.finish(at);
        }
        for thread in &mut self.threads {
            let Some(text) = thread.ended.take() else { continue };
            let life = after_reset(self.life.unwrap_or(0));
            self.stops
                .push(format!("thread {}{life}: {text}; no more of it was replayed", thread.name));
        }
        if let Some(life) = self.life {
            let threads = self.threads.iter().map(|thread| (thread.name.as_str(), thread.seen));
            self.ends.extend(of_life(life, threads));
        }
        if let Some((first, last)) = self.span_ns.take() {
            self.recorded_ns += last.saturating_sub(first);
        }
    }

    /// Reports what is known to be missing at the ends of threads: a gap may be in a later life.
    fn end_recording(&mut self) {
        if self.limit_ns.is_some() || self.interrupted {
            self.ends.clear();
        }
        self.stops.extend(self.ends.iter().filter_map(|end| self.gaps.tail(end)));
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), Wrong> {
        match record {
            Record::Schema { header, data } => {
                self.schemas.insert(header.id, data.to_vec());
            }
            Record::Channel(channel) => self.add_topic(channel)?,
            Record::Metadata(row) if row.name == GAP => {
                self.gaps.add(RecordedGap::from_metadata(&row.metadata).map_err(Wrong::Damaged)?);
            }
            Record::Message { header, data } => self.take_message(header, data)?,
            _ => {}
        }
        // Relaxed: the flag protects no other data.
        self.interrupted |= self.stop.load(Ordering::Relaxed);
        Ok(())
    }

    /// Adds a topic. Its messages must match those of this program's kinds.
    fn add_topic(&mut self, channel: &Channel) -> Result<(), Wrong> {
        let name = &channel.topic;
        let Some(at) = self.topics.iter().position(|topic| topic.head.name == *name) else {
            if !is_beside(name) && self.unknown.len() <= UNKNOWN_MAX {
                self.unknown.insert(name.clone());
            }
            return Ok(());
        };
        let schema = self.schemas.get(&channel.schema_id).map(Vec::as_slice);
        let (_, expected) = &self.topics[at].head.schema;
        if schema != Some(expected.as_bytes()) || channel.message_encoding != format::ENCODING {
            return Err(Wrong::Refused(format!(
                "the messages of topic '{name}' have other fields than those of this program; \
                 replay it with the kinds that it was recorded with"
            )));
        }
        self.channels.insert(channel.id, at);
        Ok(())
    }

    fn take_message(&mut self, header: &MessageHeader, data: &[u8]) -> Result<(), Wrong> {
        let Some(&at) = self.channels.get(&header.channel_id) else { return Ok(()) };
        if self.channels.len() < self.topics.len() {
            let is_missing = |at: &usize| !self.channels.values().any(|other| other == at);
            let missing = (0..self.topics.len()).find(is_missing);
            return Err(Wrong::Refused(format!(
                "topic '{}' is missing; a replay needs every topic of the core",
                missing.map_or("", |at| &self.topics[at].head.name)
            )));
        }
        let Topic { thread, what, .. } = self.topics[at];
        if self.threads[thread].begins(header.sequence) {
            self.finish(thread);
        }
        let message = match what {
            TopicContent::Cycle => data,
            TopicContent::Tap(_) => format::message(data).ok_or_else(|| {
                let name = &self.topics[at].head.name;
                Wrong::Damaged(format!("a message of topic '{name}' is not in CDR, little endian"))
            })?,
        };
        let taken = self.threads[thread].take(what, header.sequence, message);
        let name = &self.topics[at].head.name;
        taken.map_err(|text| Wrong::Damaged(format!("topic '{name}': {text}")))
    }

    /// Replays the cycle that thread `at` has put together, if there is one.
    fn finish(&mut self, at: usize) {
        let Some(cycle) = self.threads[at].gathered() else {
            self.threads[at].forget();
            return;
        };
        let (number, start_ns) = (cycle.past.number, cycle.past.start_ns);
        self.threads[at].see();
        let first_ns = *self.first_ns.get_or_insert(start_ns);
        if let Some(Until::Time(time)) = self.until {
            let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.limit_ns.get_or_insert(first_ns.saturating_add(time_ns));
        }
        if self.limit_ns.is_some_and(|limit_ns| start_ns > limit_ns) {
            self.past_limit.insert(at);
        } else if !self.interrupted {
            self.carry_out(at, start_ns);
        }
        if self.until == Some(Until::Cycle(number)) && Some(at) == self.control() {
            self.limit_ns.get_or_insert(start_ns);
        }
        self.threads[at].forget();
    }

    fn carry_out(&mut self, at: usize, start_ns: u64) {
        if let Some(onlooker) = &mut self.onlooker {
            match onlooker(at, &self.threads[at]) {
                Ok(true) => {}
                Ok(false) => {
                    self.interrupted = true;
                    return;
                }
                Err(error) => {
                    self.onlooker = None;
                    self.notes.push(format!("cannot go on showing it: {error}"));
                }
            }
        }
        let thread = &mut self.threads[at];
        let next = thread.next();
        let (had_ended, cycles) = (thread.ended.is_some(), thread.tally.cycles);
        thread.carry_out(&self.graphs.now);
        if thread.tally.cycles > cycles {
            let (first, last) = self.span_ns.unwrap_or((start_ns, start_ns));
            self.span_ns = Some((first.min(start_ns), last.max(start_ns)));
        }
        if let Some(ended) = thread.ended.as_mut().filter(|_| !had_ended)
            && let Some(life) = self.life
            && let Some(reason) = self.gaps.reason(life, &thread.name, next)
        {
            ended.push_str(&format!(" ({reason})"));
        }
    }

    /// The first thread that the clock releases.
    fn control(&self) -> Option<usize> {
        let domains = &self.graphs.recorded.domains;
        let release = |id: ThreadId| domains[id.domain].threads()[id.thread].release;
        self.threads.iter().position(|thread| release(thread.id) == Release::Timer)
    }
}

/// A life of the core, in words for the user.
fn named(life: u32) -> String {
    if life == 0 { "before its first reset".into() } else { format!("after reset {life}") }
}

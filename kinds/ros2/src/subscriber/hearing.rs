//! Judges what is heard at a topic: who sent it, what it says and when it arrived here.

mod quickest;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, UNIX_EPOCH};

use ros2_client::{Gid, ROSTime};
use sinew_core::Fault;
use sinew_runtime::service::tell;

use self::quickest::Quickest;
use crate::fields::Mapping;
use crate::session::{Foreign, Origin};
use crate::topics::inward::{Heard, Intake, InwardType, Refused, Taken, Wanted, write};

/// Most messages taken in one poll. DDS keeps twice 64 of a topic for one reader, and over Zenoh
/// `depth` wait, so a poll comes to its end. What a flood brings beyond that is lost there, and
/// counted here by the gaps in its numbers.
const TAKEN_MAX: usize = 256;
/// Most writers that are remembered; in a flood, new ones replace others.
const WRITERS_MAX: usize = 64;
/// Most writers that a line is printed about; further ones are only counted.
const WRITERS_TOLD_MAX: u32 = 16;
/// Most characters that are shown of what a writer says of itself.
const SHOWN_MAX: usize = 100;
/// Time between two lines about what was refused.
const TELL: Duration = Duration::from_secs(10);
/// By this time all that waited while this process was away has been read, even if messages keep
/// coming: the sockets hold 8 MiB.
const AWAY: Duration = Duration::from_secs(2);
/// Without a message for this long, a line says so.
const SILENCE: Duration = Duration::from_secs(2);

/// Tells what a writer is.
pub(super) type Ask = Box<dyn Fn(Gid) -> Option<Foreign> + Send>;

/// A topic that is listened to.
pub(super) struct Hearing {
    ty: &'static InwardType,
    /// The hash of its type.
    hash: String,
    ask: Ask,
    intake: Box<dyn Intake>,
    wanted: Wanted,
    mapping: Mapping,
    /// Length of a message of the graph.
    bytes: usize,
    frame_id: String,
    after: Duration,
    writers: BTreeMap<Gid, Writer>,
    writers_told: u32,
    /// The newest message that may enter the graph, and when it was taken.
    newest: Option<(Instant, Vec<u8>)>,
    looked: Instant,
    /// When this process was found to have been away for so long that nobody knows how old the
    /// messages are that come. `None` again when a poll finds nothing, or after `AWAY`.
    away: Option<Instant>,
    /// When the last message entered the graph.
    heard: Instant,
    is_silent: bool,
    tally: Tally,
    told: Option<Instant>,
    told_refused: [u64; Refused::WORDS.len()],
}

/// A writer of a topic.
struct Writer {
    /// Whether it means the same type.
    is_good: bool,
    /// Number of its last message.
    number: i64,
    /// When that message was taken.
    heard: Instant,
    /// How long its messages are on their way.
    quickest: Quickest,
}

/// What became of the messages.
#[derive(Default)]
struct Tally {
    taken: u64,
    entered: u64,
    /// Gaps in the numbers of the writers.
    lost: u64,
    refused: [u64; Refused::WORDS.len()],
}

impl Hearing {
    pub(super) fn new(
        ty: &'static InwardType,
        ask: Ask,
        intake: Box<dyn Intake>,
        wanted: Wanted,
        mapping: Mapping,
        bytes: usize,
    ) -> Hearing {
        let now = Instant::now();
        Hearing {
            hash: ty.definition.hash(),
            ty,
            ask,
            intake,
            wanted,
            mapping,
            bytes,
            frame_id: String::new(),
            after: Duration::MAX,
            writers: BTreeMap::new(),
            writers_told: 0,
            newest: None,
            looked: now,
            away: None,
            heard: now,
            is_silent: true,
            tally: Tally::default(),
            told: None,
            told_refused: Default::default(),
        }
    }

    /// Takes messages of this frame only, if it has a name.
    pub(super) fn of_frame(self, frame_id: String) -> Hearing {
        Hearing { frame_id, ..self }
    }

    /// Takes no messages older than `after`.
    pub(super) fn no_older_than(self, after: Duration) -> Hearing {
        Hearing { after, ..self }
    }

    /// The hash of its type.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// Takes what has come since the last poll.
    pub(super) fn look(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        if now.duration_since(self.looked) > self.after {
            self.away = Some(now);
        }
        self.looked = now;
        let mut found = 0;
        while found < TAKEN_MAX {
            match self.intake.take(&self.wanted)? {
                Taken::Nothing => break,
                Taken::Unreadable => self.refuse(Refused::Bytes),
                Taken::Message(heard, origin) => {
                    if let Err(refused) = self.judge(heard, origin, now) {
                        self.refuse(refused);
                    }
                }
            }
            found += 1;
        }
        self.tally.taken += found as u64;
        let is_over = |since: Instant| {
            let time = now.duration_since(since);
            found == 0 && time > self.after || time > AWAY
        };
        if self.away.is_some_and(is_over) {
            self.away = None;
        }
        Ok(())
    }

    fn refuse(&mut self, why: Refused) {
        self.tally.refused[why as usize] += 1;
    }

    /// Makes a message the newest, if it may enter the graph.
    fn judge(
        &mut self,
        heard: Result<Heard, Refused>,
        origin: Origin,
        now: Instant,
    ) -> Result<(), Refused> {
        let (gid, took_ns) = (origin.info.publisher_gid(), origin.took_ns);
        let arrived = origin.info.received_timestamp();
        if !self.is_of_type(origin) {
            return Err(Refused::Type);
        }
        let writer = self.writers.get_mut(&gid).zip(took_ns);
        let is_slow =
            writer.is_some_and(|(it, took_ns)| it.quickest.is_slow(took_ns, now, self.after));
        let heard = heard?;
        if !self.frame_id.is_empty() && heard.frame_id != self.frame_id {
            return Err(Refused::Frame);
        }
        if is_slow || self.away.is_some() || arrived.is_none_or(|arrived| age(arrived) > self.after)
        {
            return Err(Refused::Late);
        }
        let mut message = vec![0; self.bytes];
        write(heard, &self.mapping, self.ty.slots, &mut message)?;
        if self.newest.replace((now, message)).is_some() {
            self.refuse(Refused::Overtaken);
        }
        Ok(())
    }

    /// Whether the writer sends this type. The network hands over the messages of all writers at a
    /// topic of this name, whatever their type.
    fn is_of_type(&mut self, Origin { info, said, .. }: Origin) -> bool {
        let (gid, number) = (info.publisher_gid(), info.sequence_number());
        if let Some(writer) = self.writers.get_mut(&gid) {
            let gap = number.saturating_sub(writer.number).saturating_sub(1);
            self.tally.lost += u64::try_from(gap).unwrap_or(0);
            writer.number = number.max(writer.number);
            writer.heard = self.looked;
            return writer.is_good;
        }
        // If the writer is not known yet, its next message asks again.
        let Some(foreign) = said.or_else(|| (self.ask)(gid)) else { return false };
        let is_good = foreign.means(self.ty.definition, &self.hash);
        if self.writers.len() >= WRITERS_MAX {
            self.writers.pop_first();
        }
        let quickest = Quickest::new(self.looked);
        self.writers.insert(gid, Writer { is_good, number, heard: self.looked, quickest });
        if self.writers_told < WRITERS_TOLD_MAX {
            self.writers_told += 1;
            self.tell_of(is_good, foreign);
        }
        is_good
    }

    /// Prints what a new writer is, if that is worth a line.
    fn tell_of(&self, is_good: bool, writer: Foreign) {
        let is_heard = |it: &&Writer| it.is_good && self.looked.duration_since(it.heard) < SILENCE;
        let heard = self.writers.values().filter(is_heard).count();
        if !is_good {
            let (theirs, ours) = (shown(&writer.type_name), self.ty.definition.dds_name());
            let hash = writer.hash.map_or(String::new(), |hash| format!(" ({})", shown(&hash)));
            tell(format_args!(
                "a writer sends {theirs}{hash}, not {ours} ({}): not heard",
                self.hash
            ));
        } else if heard > 1 {
            tell(format_args!("{heard} writers send at this topic: the newest message counts"));
        }
    }

    /// The newest message, once, if it is not too old.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let (taken, message) = self.newest.take()?;
        if taken.elapsed() > self.after {
            self.refuse(Refused::Late);
            return None;
        }
        self.tally.entered += 1;
        self.heard = Instant::now();
        if self.is_silent {
            self.is_silent = false;
            tell("messages come");
        }
        Some(message)
    }

    /// Prints whether messages are missing, and what was refused.
    pub(super) fn report(&mut self) {
        if !self.is_silent && self.heard.elapsed() > SILENCE {
            self.is_silent = true;
            tell(format_args!("no message for {} s", SILENCE.as_secs()));
        }
        let mut refused = self.tally.refused;
        // Overtaken messages are normal here and not reported.
        refused[Refused::Overtaken as usize] = 0;
        let is_due = self.told.is_none_or(|told| told.elapsed() > TELL);
        if is_due && refused != self.told_refused {
            let rows = refused.iter().zip(Refused::WORDS).filter(|(count, _)| **count > 0);
            let texts: Vec<_> = rows.map(|(count, word)| format!("{count} {word}")).collect();
            tell(format_args!("dropped since the start: {}", texts.join(", ")));
            (self.told, self.told_refused) = (Some(Instant::now()), refused);
        }
    }

    /// What became of the messages so far.
    pub(super) fn figures(&self) -> Vec<(&'static str, u64)> {
        let Tally { taken, entered, lost, refused } = &self.tally;
        let figures = [("taken", *taken), ("entered", *entered), ("lost", *lost)];
        figures.into_iter().chain(Refused::WORDS.into_iter().zip(*refused)).collect()
    }
}

/// A stranger's text for a line of the log, escaped so that it cannot look like another line.
fn shown(text: &str) -> String {
    text.escape_debug().take(SHOWN_MAX).collect()
}

/// How long ago a message arrived, by the wall clock; zero if that clock was set back meanwhile.
fn age(arrived: ROSTime) -> Duration {
    let arrived_ns = u64::try_from(arrived.to_nanos()).unwrap_or(0);
    let arrived = UNIX_EPOCH + Duration::from_nanos(arrived_ns);
    arrived.elapsed().unwrap_or_default()
}

#[cfg(test)]
mod tests;

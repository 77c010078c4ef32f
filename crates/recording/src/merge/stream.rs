//! The messages of a recording in the order of their times, read by a thread of its own. In the
//! file they are grouped by thread, one group for each pass of the recorder.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;
use std::mem::take;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::vec::IntoIter;

use mcap::records::{MessageHeader, Record};

use super::survey::Time;
use crate::read::{self, Extent};
use crate::recording::{Part, Recording};

/// A message is held until another one arrives that is this much later. A recorder's messages are
/// out of order by at most what the core remembers, two seconds, and one batch.
const LATE_NS_MAX: i64 = 5_000_000_000;
/// Most bytes of messages that are held; beyond that the earliest are passed on.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Each message takes this much besides its data.
const ITEM_BYTES: usize = 128;
/// Messages that are passed on at once, and how many such groups may wait.
const AT_ONCE: usize = 512;
const WAITING_MAX: usize = 4;

/// A topic of a recording, as described in one of its files.
#[derive(Debug)]
pub(super) struct SourceTopic {
    /// Distinguishes it from the other topics of the recording.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) encoding: String,
    pub(super) metadata: BTreeMap<String, String>,
    /// Name and text. Without an encoding there is no schema.
    pub(super) schema: (String, Vec<u8>),
    pub(super) schema_encoding: String,
}

/// A message.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) time: Time,
    /// Its `publish_time` minus its `log_time`.
    pub(super) publish_after_ns: i64,
    pub(super) sequence: u32,
    pub(super) topic: Arc<SourceTopic>,
    pub(super) data: Vec<u8>,
}

/// Notes about what was read, and about what could not be read.
type Words = (Vec<String>, Vec<String>);

/// The messages of a recording.
pub(super) struct Feed<'scope> {
    items: Receiver<Vec<Item>>,
    now: IntoIter<Item>,
    reader: ScopedJoinHandle<'scope, Result<Words, String>>,
}

impl<'scope> Feed<'scope> {
    /// Starts to read.
    ///
    /// # Errors
    /// The kernel refused one more thread.
    pub(super) fn of<'env>(
        scope: &'scope Scope<'scope, 'env>,
        recording: &'env Recording,
    ) -> Result<Feed<'scope>, String> {
        let (to, items) = sync_channel(WAITING_MAX);
        let read = move || Reader::new(to).read(recording);
        let reader = Builder::new().name("merge-reads".into()).spawn_scoped(scope, read);
        let cannot = |error: io::Error| format!("cannot start a thread: {error}");
        Ok(Feed { items, now: Vec::new().into_iter(), reader: reader.map_err(cannot)? })
    }

    /// The next message. Blocks on the disk.
    pub(super) fn next(&mut self) -> Option<Item> {
        if self.now.len() == 0 {
            self.now = self.items.recv().ok()?.into_iter();
        }
        self.now.next()
    }

    /// The notes, after everything was read.
    ///
    /// # Errors
    /// The system's error on opening or reading a file.
    pub(super) fn end(self) -> Result<Words, String> {
        drop(self.items);
        self.reader.join().expect("who reads does not panic")
    }
}

/// A message that is held, by its time and its order of arrival.
struct Held((i64, u64), Item);

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.0 == other.0
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

struct Reader {
    to: SyncSender<Vec<Item>>,
    held: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    /// Messages to be passed on next.
    ready: Vec<Item>,
    count: u64,
    newest_ns: i64,
    /// The time of the last message that was passed on, and how many messages came too late for
    /// their place.
    sent_ns: i64,
    disordered: u64,
    /// For the part that is being read.
    schemas: HashMap<u16, (String, String, Vec<u8>)>,
    topics: HashMap<u16, Arc<SourceTopic>>,
    topics_count: usize,
}

impl Reader {
    fn new(to: SyncSender<Vec<Item>>) -> Reader {
        Reader {
            to,
            held: BinaryHeap::new(),
            held_bytes: 0,
            ready: Vec::new(),
            count: 0,
            newest_ns: i64::MIN,
            sent_ns: i64::MIN,
            disordered: 0,
            schemas: HashMap::new(),
            topics: HashMap::new(),
            topics_count: 0,
        }
    }

    fn read(mut self, recording: &Recording) -> Result<Words, String> {
        let (mut notes, mut missing) = (recording.notes.clone(), Vec::new());
        for part in &recording.parts {
            (self.schemas, self.topics) = (HashMap::new(), HashMap::new());
            let end = read::read(&part.path, &mut |record| self.take(record, part))?;
            let number = part.head.part;
            match end {
                Extent::Complete => {}
                // The receiver wants no more.
                Extent::Stopped => return Ok((notes, missing)),
                Extent::Cut => {
                    notes.push(format!("part {number} has no end: merged as far as it goes"))
                }
                Extent::Foreign => missing.push(format!("part {number} is no longer an MCAP file")),
                Extent::Damaged(text) => {
                    missing.push(format!("part {number} is damaged: {text}; merged up to there"));
                }
            }
        }
        while let Some(Reverse(Held(_, item))) = self.held.pop() {
            self.send(item);
        }
        let _ = self.to.send(take(&mut self.ready));
        if self.disordered > 0 {
            notes.push(format!(
                "{} messages are more than {} s out of order in their file, and so in this one",
                self.disordered,
                LATE_NS_MAX / 1_000_000_000
            ));
        }
        Ok((notes, missing))
    }

    fn take(&mut self, record: &Record<'_>, part: &Part) -> ControlFlow<()> {
        match record {
            Record::Schema { header, data } => {
                let (name, encoding) = (header.name.clone(), header.encoding.clone());
                self.schemas.insert(header.id, (name, encoding, data.to_vec()));
            }
            Record::Channel(topic) => {
                let of = self.schemas.get(&topic.schema_id).cloned().unwrap_or_default();
                let (schema_name, schema_encoding, text) = of;
                self.topics.insert(
                    topic.id,
                    Arc::new(SourceTopic {
                        number: self.topics_count,
                        name: topic.topic.clone(),
                        encoding: topic.message_encoding.clone(),
                        metadata: topic.metadata.clone(),
                        schema: (schema_name, text),
                        schema_encoding,
                    }),
                );
                self.topics_count += 1;
            }
            Record::Message { header, data } => return self.hold(header, data, part),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Holds a message until all earlier messages must have arrived.
    fn hold(&mut self, header: &MessageHeader, data: &[u8], part: &Part) -> ControlFlow<()> {
        let Some(topic) = self.topics.get(&header.channel_id) else {
            return ControlFlow::Continue(());
        };
        let time = Time::of(header, &part.head);
        let publish_after_ns = header.publish_time.wrapping_sub(header.log_time) as i64;
        let (sequence, topic, data) = (header.sequence, Arc::clone(topic), data.to_vec());
        let item = Item { time, publish_after_ns, sequence, topic, data };
        self.count += 1;
        self.held_bytes += item.data.len() + ITEM_BYTES;
        self.newest_ns = self.newest_ns.max(time.monotonic_ns);
        self.held.push(Reverse(Held((time.monotonic_ns, self.count), item)));
        while let Some(Reverse(Held((at_ns, _), _))) = self.held.peek()
            && (self.newest_ns.saturating_sub(*at_ns) > LATE_NS_MAX
                || self.held_bytes > HELD_BYTES_MAX)
            && let Some(Reverse(Held(_, item))) = self.held.pop()
        {
            self.send(item);
        }
        if self.ready.len() < AT_ONCE {
            return ControlFlow::Continue(());
        }
        match self.to.send(take(&mut self.ready)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn send(&mut self, item: Item) {
        self.held_bytes -= item.data.len() + ITEM_BYTES;
        self.disordered += u64::from(item.time.monotonic_ns < self.sent_ns);
        self.sent_ns = self.sent_ns.max(item.time.monotonic_ns);
        self.ready.push(item);
    }
}

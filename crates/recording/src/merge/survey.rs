//! A first pass through a recording: its time span, and its estimates of other hosts' clocks.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use mcap::records::{MessageHeader, Record};
use sinew_control::status::HostClock;

use crate::clock;
use crate::format::{GAP, PartHead};
use crate::read;
use crate::recording::Recording;

/// Most gaps of a recording that are kept.
const GAPS_MAX: usize = 10_000;

/// A time of a recording, ns: by the clock of its file, and by its host's monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) unix_ns: i64,
    pub(super) monotonic_ns: i64,
}

impl Time {
    /// The time of a message of a part.
    pub(super) fn of(header: &MessageHeader, head: &PartHead) -> Time {
        let unix_ns = i64::try_from(header.log_time).unwrap_or(i64::MAX);
        Time { unix_ns, monotonic_ns: unix_ns.saturating_sub(head.clock_offset_ns) }
    }
}

/// What the first pass finds about a host.
pub(super) struct Survey<'a> {
    pub(super) name: &'a str,
    pub(super) recording: &'a Recording,
    /// First and last message.
    span: (Time, Time),
    pub(super) clocks: Vec<(String, HostClock)>,
    /// The metadata of the gaps.
    pub(super) gaps: Vec<BTreeMap<String, String>>,
}

/// Reads through the recording of a host.
///
/// # Errors
/// It cannot be read, or has no messages.
pub(super) fn survey(recording: &Recording) -> Result<Survey<'_>, String> {
    let (mut span, mut clocks, mut gaps) = (None::<(Time, Time)>, Vec::new(), Vec::new());
    for part in &recording.parts {
        let mut hosts: HashMap<u16, String> = HashMap::new();
        read::read(&part.path, &mut |record| {
            match record {
                Record::Channel(topic) => {
                    let host = clock::host_of(&topic.topic);
                    hosts.extend(host.map(|host| (topic.id, host.to_owned())));
                }
                Record::Message { header, data } => {
                    let time = Time::of(header, &part.head);
                    if let Some(host) = hosts.get(&header.channel_id) {
                        let at_ns = u64::try_from(time.monotonic_ns).unwrap_or(0);
                        let row = clock::read(data, at_ns).map(|row| (host.clone(), row));
                        clocks.extend(row);
                    } else {
                        let (first, last) = span.unwrap_or((time, time));
                        let first =
                            if time.monotonic_ns < first.monotonic_ns { time } else { first };
                        let last = if time.monotonic_ns > last.monotonic_ns { time } else { last };
                        span = Some((first, last));
                    }
                }
                Record::Metadata(row) if row.name == GAP && gaps.len() < GAPS_MAX => {
                    gaps.push(row.metadata.clone());
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
    }
    let name = recording.head().part_of.as_deref().unwrap_or_default();
    let none = || format!("'{}' has no messages", recording.file.display());
    let span = span.ok_or_else(none)?;
    Ok(Survey { name, recording, span, clocks, gaps })
}

impl Survey<'_> {
    /// First and last message.
    pub(super) fn ends(&self) -> [Time; 2] {
        [self.span.0, self.span.1]
    }

    /// What to add to a monotonic time of the first part to get nanoseconds since 1970.
    pub(super) fn offset_ns(&self) -> i64 {
        self.recording.head().clock_offset_ns
    }

    /// The time of the first message.
    pub(super) fn first_unix_ns(&self) -> u64 {
        u64::try_from(self.span.0.unix_ns).unwrap_or(0)
    }

    /// The part of the recording that is missing.
    pub(super) fn missing(&self) -> Option<String> {
        self.recording.what_is_missing().map(|text| format!("{}: {text}", self.name))
    }
}

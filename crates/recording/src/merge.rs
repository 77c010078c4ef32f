//! Merges recordings of several hosts of one graph into one file: all messages in the order of one
//! clock, and how certain that order is.
//!
//! The clock is that of the first recording's host. Other clocks are related to it by the estimates
//! that recorders write ([`clock`](crate::clock)). These are about the monotonic clocks, so a step
//! of a wall clock moves nothing. For a host without estimates its wall clock is trusted, and this
//! proves nothing.

mod causality;
mod clocks;
mod line;
mod report;
mod stream;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs::Permissions;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mcap::records::{MessageHeader, Metadata};
use mcap::{Attachment, Compression, WriteOptions};
use sinew_runtime::Kinds;
use sinew_spec::plan::Plan;
use tempfile::{Builder, NamedTempFile};

use self::causality::{Causality, Moment, Role};
use self::clocks::Clocks;
use self::report::HostOrder;
pub use self::report::MergeReport;
use self::stream::{Feed, Item};
use self::survey::{Survey, survey};
use crate::format::{GAP, LIBRARY, MEDIA_TYPE, MERGED, ORDER, SPEC};
use crate::recording::Recording;
use crate::replay::{Changes, Graphs, Refused};

/// Merges recordings into a new file at `to`.
///
/// # Errors
/// The recordings do not belong together, or one cannot be read; or `to` exists or cannot be
/// written. Then no part of `to` remains.
pub fn merge(
    recordings: &[Recording],
    nodes: &Kinds,
    to: &Path,
    stop: &AtomicBool,
) -> Result<MergeReport, Refused> {
    if to.symlink_metadata().is_ok() {
        let to = to.display();
        return Err(Refused::Words(format!("'{to}' exists already; name a new file")));
    }
    check_names(recordings).map_err(Refused::Words)?;
    let made = recordings.iter().map(|it| Graphs::make(it, nodes, Changes::default()));
    let plans: Vec<Plan> = made.map(|made| Ok(made?.recorded)).collect::<Result<_, _>>()?;
    check_versions(recordings, &plans).map_err(Refused::Words)?;
    let merged = merge_planned(recordings, &plans, to, stop);
    merged.map_err(Refused::Words)
}

fn merge_planned(
    recordings: &[Recording],
    plans: &[Plan],
    to: &Path,
    stop: &AtomicBool,
) -> Result<MergeReport, String> {
    let surveys: Vec<Survey<'_>> = recordings.iter().map(survey).collect::<Result<_, _>>()?;
    let clocks = Clocks::of(&surveys);
    check_overlap(&surveys, &clocks)?;
    let cannot =
        |error: &dyn std::fmt::Display| format!("cannot write '{}': {error}", to.display());
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // The same as for any new file; the user's umask applies.
    let mode = Permissions::from_mode(0o666);
    let file = Builder::new().prefix(".sinew-merge-").permissions(mode).tempfile_in(folder);
    let file = file.map_err(|error| cannot(&error))?;
    let mut merge = Merge::begin(&surveys, &clocks, plans, &file).map_err(|it| cannot(&it))?;
    let ended = merge.run(stop, &cannot);
    let report = ended.and_then(|()| merge.end(to).map_err(|error| cannot(&error)))?;
    // A file that has appeared at `to` meanwhile is not overwritten.
    file.persist_noclobber(to).map_err(|error| cannot(&error.error))?;
    Ok(report)
}

/// The host of a recording.
fn host_of(recording: &Recording) -> Result<&str, String> {
    let file = recording.file.display();
    let graph = &recording.head().graph;
    recording.head().part_of.as_deref().ok_or_else(|| {
        format!(
            "'{file}' is of graph '{graph}', which did not run on several hosts: there is nothing \
             to merge it with; give recordings of 'sinew run --host'"
        )
    })
}

fn check_names(recordings: &[Recording]) -> Result<(), String> {
    let mut hosts: BTreeMap<&str, &Recording> = BTreeMap::new();
    for recording in recordings {
        let host = host_of(recording)?;
        if let Some(other) = hosts.insert(host, recording) {
            let files = [other, recording].map(|it| it.file.display().to_string());
            let [first, second] = files;
            return Err(match other.head().run == recording.head().run {
                true => format!(
                    "'{first}' and '{second}' are parts of one run of host '{host}'; name one of \
                     them, the parts beside it are taken too"
                ),
                false => format!(
                    "'{first}' and '{second}' are two runs of host '{host}'; give one recording of \
                     each host"
                ),
            });
        }
        let [first, this] = [&recordings[0], recording].map(|it| &it.head().graph);
        if first != this {
            return Err(format!(
                "'{}' is of graph '{first}', '{}' of graph '{this}'; give recordings of one graph",
                recordings[0].file.display(),
                recording.file.display()
            ));
        }
    }
    match recordings {
        [_, _, ..] => Ok(()),
        _ => Err("one recording cannot be merged; name those of the other hosts, too".into()),
    }
}

fn check_versions(recordings: &[Recording], plans: &[Plan]) -> Result<(), String> {
    let version = plans[0].hosts.version;
    let is_other = |plan: &Plan| plan.hosts.version != version;
    let Some(other) = plans.iter().position(is_other) else { return Ok(()) };
    Err(format!(
        "'{}' and '{}' are of different versions of graph '{}': its links between hosts are \
         others; their hosts did not speak to each other",
        recordings[0].file.display(),
        recordings[other].file.display(),
        plans[0].name
    ))
}

/// Checks that each recording overlaps in time with another one.
fn check_overlap(surveys: &[Survey<'_>], clocks: &Clocks) -> Result<(), String> {
    let spans =
        surveys.iter().enumerate().map(|(host, it)| it.ends().map(|it| clocks.time(host, it)));
    let spans: Vec<[Moment; 2]> = spans.collect();
    for (at, [first, last]) in spans.iter().enumerate() {
        let mut others = spans.iter().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, other)| other[0].ns <= last.ns && first.ns <= other[1].ns) {
            continue;
        }
        let nearest = if at == 0 { 1 } else { 0 };
        let apart_ns = (spans[nearest][0].ns - last.ns).max(first.ns - spans[nearest][1].ns);
        let by = match clocks.is_trusted(at) || clocks.is_trusted(nearest) {
            true => "by their clocks of day, and no estimate ties their clocks together",
            false => "by the estimates of their clocks",
        };
        return Err(format!(
            "'{}' and '{}' were not recorded at the same time: {:.3} s lie between them, {by}",
            surveys[nearest].recording.file.display(),
            surveys[at].recording.file.display(),
            apart_ns as f64 * 1e-9
        ));
    }
    Ok(())
}

/// A topic of a host, in the merged file.
struct Merged {
    number: u16,
    roles: Vec<(usize, Role)>,
}

/// A merge in progress.
struct Merge<'a> {
    surveys: &'a [Survey<'a>],
    clocks: &'a Clocks,
    writer: mcap::Writer<BufWriter<&'a std::fs::File>>,
    /// For each host, by the numbers of its topics.
    topics: Vec<HashMap<usize, Merged>>,
    causality: Causality,
    hosts: Vec<HostOrder>,
    /// The host and time of the last message.
    last: Option<(usize, Moment)>,
    report: MergeReport,
}

impl<'a> Merge<'a> {
    fn begin(
        surveys: &'a [Survey<'a>],
        clocks: &'a Clocks,
        plans: &[Plan],
        file: &'a NamedTempFile,
    ) -> mcap::McapResult<Merge<'a>> {
        let options = WriteOptions::new().library(LIBRARY).compression(Some(Compression::Lz4));
        let mut writer = options.create(BufWriter::new(file.as_file()))?;
        let names: Vec<&str> = surveys.iter().map(|it| it.name).collect();
        let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let metadata = BTreeMap::from([
            of("graph", &plans[0].name),
            of("hosts", &names.join(", ")),
            of("clock", names[0]),
        ]);
        writer.write_metadata(&Metadata { name: MERGED.into(), metadata })?;
        for survey in surveys {
            for gap in &survey.gaps {
                let mut metadata = gap.clone();
                metadata.insert("host".into(), survey.name.into());
                writer.write_metadata(&Metadata { name: GAP.into(), metadata })?;
            }
            let data = survey.recording.spec.as_bytes().into();
            let (log_time, name) = (survey.first_unix_ns(), format!("{}/{SPEC}", survey.name));
            let (create_time, media_type) = (log_time, MEDIA_TYPE.into());
            writer.attach(&Attachment { log_time, create_time, name, media_type, data })?;
        }
        Ok(Merge {
            surveys,
            clocks,
            writer,
            topics: surveys.iter().map(|_| HashMap::new()).collect(),
            causality: Causality::of(plans, &names),
            hosts: (0..surveys.len()).map(|at| HostOrder::of(at, surveys, clocks)).collect(),
            last: None,
            report: MergeReport::of(&plans[0].name, names[0]),
        })
    }

    /// Takes the earliest message of all hosts, until none is left.
    fn run(
        &mut self,
        stop: &AtomicBool,
        cannot: &dyn Fn(&dyn std::fmt::Display) -> String,
    ) -> Result<(), String> {
        let surveys = self.surveys;
        thread::scope(|scope| {
            let feeds = surveys.iter().map(|it| Feed::of(scope, it.recording));
            let mut feeds: Vec<Feed<'_>> = feeds.collect::<Result<_, _>>()?;
            let mut heads: Vec<Option<(Moment, Item)>> =
                feeds.iter_mut().enumerate().map(|(host, feed)| self.next(host, feed)).collect();
            let earliest = |heads: &[Option<(Moment, Item)>]| {
                let there = heads.iter().enumerate();
                there.filter_map(|(host, it)| Some((it.as_ref()?.0.ns, host))).min()
            };
            while let Some((_, host)) = earliest(&heads) {
                // Relaxed: the flag protects no other data.
                if stop.load(Ordering::Relaxed) {
                    return Err("interrupted; nothing was written".into());
                }
                let next = self.next(host, &mut feeds[host]);
                if let Some((moment, item)) = std::mem::replace(&mut heads[host], next) {
                    self.take(host, moment, item).map_err(|error| cannot(&error))?;
                }
            }
            for (host, feed) in feeds.into_iter().enumerate() {
                let (notes, missing) = feed.end()?;
                let named = |text| format!("{}: {text}", surveys[host].name);
                self.report.notes.extend(notes.into_iter().map(named));
                self.report.missing.extend(missing.into_iter().map(named));
            }
            Ok(())
        })
    }

    fn next(&self, host: usize, feed: &mut Feed<'_>) -> Option<(Moment, Item)> {
        let item = feed.next()?;
        Some((self.clocks.time(host, item.time), item))
    }

    fn take(&mut self, host: usize, moment: Moment, item: Item) -> mcap::McapResult<()> {
        let number = self.number(host, &item)?;
        let unix_ns = |ns: i64| u64::try_from(ns).unwrap_or(0);
        let header = MessageHeader {
            channel_id: number,
            sequence: item.sequence,
            log_time: unix_ns(moment.ns),
            publish_time: unix_ns(moment.ns.saturating_add(item.publish_after_ns)),
        };
        self.writer.write_to_known_channel(&header, &item.data)?;
        let roles = &self.topics[host][&item.topic.number].roles;
        self.causality.take(roles, moment, &item.data);
        self.hosts[host].take(moment, item.time);
        self.report.take(moment, self.last.filter(|(other, _)| *other != host).map(|it| it.1));
        self.last = Some((host, moment));
        Ok(())
    }

    /// The number of a message's topic in the merged file.
    fn number(&mut self, host: usize, item: &Item) -> mcap::McapResult<u16> {
        let topic = &item.topic;
        if let Some(known) = self.topics[host].get(&topic.number) {
            return Ok(known.number);
        }
        let name = self.surveys[host].name;
        let (schema_name, text) = &topic.schema;
        let schema = match topic.schema_encoding.is_empty() {
            true => 0,
            false => self.writer.add_schema(schema_name, &topic.schema_encoding, text)?,
        };
        let mut metadata = topic.metadata.clone();
        metadata.insert("host".into(), name.into());
        let merged = format!("/{name}{}", topic.name);
        let number = self.writer.add_channel(schema, &merged, &topic.encoding, &metadata)?;
        let roles = self.causality.roles(host, &topic.name);
        self.topics[host].insert(topic.number, Merged { number, roles });
        Ok(number)
    }

    /// Writes how certain the order is, also into the file, and ends the file.
    fn end(mut self, to: &Path) -> mcap::McapResult<MergeReport> {
        let missing = self.surveys.iter().flat_map(|it| it.missing());
        self.report.missing.extend(missing);
        self.report.end(to, self.hosts, self.causality.end());
        let metadata = BTreeMap::from([("order".to_owned(), self.report.to_json().to_string())]);
        self.writer.write_metadata(&Metadata { name: ORDER.into(), metadata })?;
        self.writer.finish()?;
        Ok(self.report)
    }
}

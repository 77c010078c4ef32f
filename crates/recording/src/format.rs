//! The format of a recording, for the writer and the reader.
//!
//! A recording is one or more MCAP files, its *parts*. Each part is complete in itself:
//!
//! - metadata [`HEAD`]: a [`PartHead`], which run, which part, and how to make its plan again;
//! - attachment [`SPEC`]: the text of the spec;
//! - further attachments: the files that parameters of the core's nodes name, as the spec does;
//! - topic `/<node>/<port>`: each new message of a tap (`sinew_core::trace::taps`);
//! - topic `/<domain>/<thread>/cycle`: each cycle of the thread, see [`cycle`](super::cycle);
//! - topic `/@clock/<host>`: the clock of another host, see [`clock`](super::clock);
//! - topic `/@events`: the events of the run, see [`event`](super::event);
//! - metadata [`GAP`]: a [`RecordedGap`], cycles that are missing, and why.
//!
//! Times of messages: `log_time` is the start of their cycle and `publish_time` its release, in
//! nanoseconds since 1970 (add [`PartHead::clock_offset_ns`] to a monotonic time); `sequence` is
//! the low half of the cycle's number.
//!
//! Messages are CDR, after a schema in the language of ROS 2. The reason is that our messages are
//! CDR already, except for four bytes in front: little endian, without padding, arrays of fixed
//! length, eight-byte scalars at multiples of eight.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sinew_control::WrittenImages;
use sinew_spec::GuestImage;

/// Version of the format. A reader of another version refuses the file.
pub const VERSION: u32 = 2;
/// The extension of a part's file, without the dot.
pub const EXTENSION: &str = "mcap";
/// Name of the metadata that holds a [`PartHead`].
pub const HEAD: &str = "sinew";
/// Name of the metadata that holds a [`RecordedGap`].
pub const GAP: &str = "sinew/gap";
/// Name of the metadata at the start of a file that was merged from recordings of several hosts.
/// Such a file is for people and viewers, and is no recording any more.
pub const MERGED: &str = "sinew/merged";
/// Name of the metadata at the end of a merged file: how certain the order of its messages is.
pub const ORDER: &str = "sinew/order";
/// The program that wrote a file, in its header.
pub const LIBRARY: &str = concat!("sinew ", env!("CARGO_PKG_VERSION"));
/// The same for any version.
pub const LIBRARIES: &str = "sinew ";
/// Name of the attachment that is the text of the spec.
pub const SPEC: &str = "spec.yaml";
/// Longest file that is attached. Every part contains it.
pub const ATTACHMENT_BYTES_MAX: u64 = 64 << 20;
/// Media type of the attachments: they may be any file that nodes read.
pub const MEDIA_TYPE: &str = "application/octet-stream";
/// The encoding of messages.
pub const ENCODING: &str = "cdr";
/// The language of their schemas.
pub const SCHEMA_ENCODING: &str = "ros2msg";
/// In front of each message: CDR, little endian, no options.
pub const CDR_HEAD: [u8; 4] = [0, 1, 0, 0];

/// The bytes of a message, without the head that it has in the file. `None` if it is not our CDR.
pub fn message(data: &[u8]) -> Option<&[u8]> {
    data.strip_prefix(&CDR_HEAD)
}

/// The description of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHead {
    /// Identifies the run; the same in all of its parts.
    pub run: String,
    /// Number of the part in its run, from 1.
    pub part: u32,
    /// How often the core had been restarted before this part: each time, cycle numbers start
    /// again.
    pub life: u32,
    /// Name of the graph.
    pub graph: String,
    /// The spec's file, as the user named it.
    pub file: String,
    /// For a graph with hosts: the host whose part of the graph ran.
    pub part_of: Option<String>,
    /// The folder at which the spec's paths start.
    pub base: PathBuf,
    /// `node.parameter` and the value that replaced the spec's.
    pub overrides: Vec<(String, String)>,
    /// The tables of kinds of its guests' images.
    pub images: Vec<GuestImage>,
    /// The CPUs that the plan was made for.
    pub cpus: Vec<u32>,
    /// What to add to a monotonic time to get nanoseconds since 1970.
    pub clock_offset_ns: i64,
    /// Name of the machine.
    pub host: String,
}

impl PartHead {
    /// As metadata.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let json = "plain lists are JSON";
        let rows = [
            ("version", VERSION.to_string()),
            ("run", self.run.clone()),
            ("part", self.part.to_string()),
            ("life", self.life.to_string()),
            ("graph", self.graph.clone()),
            ("file", self.file.clone()),
            ("base", self.base.display().to_string()),
            ("overrides", serde_json::to_string(&self.overrides).expect(json)),
            ("images", serde_json::to_string(&WrittenImages(self.images.clone())).expect(json)),
            ("cpus", serde_json::to_string(&self.cpus).expect(json)),
            ("clock_offset_ns", self.clock_offset_ns.to_string()),
            ("host", self.host.clone()),
        ];
        let part_of = self.part_of.iter().map(|host| ("part_of", host.clone()));
        rows.into_iter().chain(part_of).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// From metadata.
    ///
    /// # Errors
    /// Which key is missing or has a value that we do not know.
    pub fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<PartHead, String> {
        let version: u32 = number(metadata, "version")?;
        if version != VERSION {
            return Err(format!(
                "the recording is of version {version}, expected {VERSION}; read it with the \
                 Sinew that wrote it"
            ));
        }
        let json = |key: &str, error| format!("metadata '{key}': {error}");
        let overrides = serde_json::from_str(text(metadata, "overrides")?);
        // A recording from before there were guests has no images.
        let images = metadata.get("images").map(|text| serde_json::from_str::<WrittenImages>(text));
        let cpus = serde_json::from_str(text(metadata, "cpus")?);
        Ok(PartHead {
            run: text(metadata, "run")?.into(),
            part: number(metadata, "part")?,
            life: number(metadata, "life")?,
            graph: text(metadata, "graph")?.into(),
            file: text(metadata, "file")?.into(),
            part_of: metadata.get("part_of").cloned(),
            base: text(metadata, "base")?.into(),
            overrides: overrides.map_err(|error| json("overrides", error))?,
            images: images
                .transpose()
                .map_err(|error| json("images", error))?
                .unwrap_or_default()
                .0,
            cpus: cpus.map_err(|error| json("cpus", error))?,
            clock_offset_ns: number(metadata, "clock_offset_ns")?,
            host: text(metadata, "host")?.into(),
        })
    }
}

/// Cycles of a thread that are missing. It may be in a part of a later life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedGap {
    /// The life of the core, counted as in [`PartHead::life`].
    pub life: u32,
    /// Name of the domain.
    pub domain: String,
    /// The thread in it.
    pub thread: usize,
    /// Number of the first cycle that is missing.
    pub first: u64,
    /// How many cycles are missing.
    pub cycles: u64,
    /// Why, in words.
    pub reason: String,
}

impl RecordedGap {
    /// As metadata.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let rows = [
            ("life", self.life.to_string()),
            ("domain", self.domain.clone()),
            ("thread", self.thread.to_string()),
            ("first", self.first.to_string()),
            ("cycles", self.cycles.to_string()),
            ("reason", self.reason.clone()),
        ];
        rows.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// From metadata.
    ///
    /// # Errors
    /// As for [`PartHead::from_metadata`].
    pub fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<RecordedGap, String> {
        Ok(RecordedGap {
            life: number(metadata, "life")?,
            domain: text(metadata, "domain")?.into(),
            thread: number(metadata, "thread")?,
            first: number(metadata, "first")?,
            cycles: number(metadata, "cycles")?,
            reason: text(metadata, "reason")?.into(),
        })
    }
}

fn text<'a>(metadata: &'a BTreeMap<String, String>, key: &str) -> Result<&'a str, String> {
    let missing = || format!("metadata '{key}' is missing; is this a recording of Sinew?");
    metadata.get(key).map(String::as_str).ok_or_else(missing)
}

fn number<T: std::str::FromStr>(map: &BTreeMap<String, String>, key: &str) -> Result<T, String> {
    let value = text(map, key)?;
    value.parse().map_err(|_| format!("metadata '{key}': expected a number, found '{value}'"))
}

/// The description of the first part of a run, for tests.
#[cfg(test)]
pub(crate) fn first() -> PartHead {
    PartHead {
        run: "a1".into(),
        part: 1,
        life: 0,
        graph: "arm".into(),
        file: "arm.yaml".into(),
        part_of: None,
        base: "nowhere".into(),
        overrides: vec![],
        images: vec![],
        cpus: vec![0, 1],
        clock_offset_ns: 0,
        host: "here".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_gap_come_back_from_metadata() {
        let overrides = vec![("planner.laps".into(), "0".into())];
        let part_of = Some("cell".into());
        let head =
            PartHead { part: 3, life: 1, overrides, clock_offset_ns: -5, part_of, ..first() };
        assert_eq!(PartHead::from_metadata(&head.to_metadata()), Ok(head.clone()));
        let mut other = head.to_metadata();
        other.insert("version".into(), "9".into());
        assert!(PartHead::from_metadata(&other).unwrap_err().contains("version 9, expected 2"));
        other = head.to_metadata();
        other.remove("cpus");
        assert!(PartHead::from_metadata(&other).unwrap_err().contains("'cpus' is missing"));
        let (domain, reason) = ("control".into(), "".into());
        let gap = RecordedGap { life: 3, domain, thread: 0, first: 7, cycles: 2, reason };
        assert_eq!(RecordedGap::from_metadata(&gap.to_metadata()), Ok(gap));
    }
}

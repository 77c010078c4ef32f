//! A recording: all parts of one run, found in the folder of the part that was named, and the data
//! from which the run's plan can be made again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mcap::Summary;
use mcap::records::Record;
use sinew_spec::TEXT_LEN_MAX;

use super::format::{EXTENSION, HEAD, MERGED, PartHead, SPEC};
use super::mend::head;
use super::read::{self, Extent};

/// The parts of a run, and the files in them.
#[derive(Debug)]
pub struct Recording {
    /// The part that was named.
    pub file: PathBuf,
    /// Ascending, by number.
    pub parts: Vec<Part>,
    /// Text of the spec.
    pub spec: String,
    /// Data files of nodes, under the names that the spec gives them.
    pub files: Vec<(String, Vec<u8>)>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A part.
#[derive(Debug)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// The description in the part.
    pub head: PartHead,
}

impl Recording {
    /// Opens the recording that `file` is a part of.
    ///
    /// # Errors
    /// What is wrong with that file, in words.
    pub fn open(file: &Path) -> Result<Recording, String> {
        let name = file.display();
        let (mut head, mut spec, mut files) = (None, None, Vec::new());
        let mut is_merged = false;
        let end = read::read_beginning(file, &mut |record| {
            match record {
                Record::Metadata(row) if row.name == HEAD && head.is_none() => {
                    head = Some(PartHead::from_metadata(&row.metadata));
                }
                Record::Metadata(row) => is_merged |= row.name == MERGED,
                Record::Attachment { header, data, .. }
                    if header.name == SPEC && spec.is_none() =>
                {
                    spec = Some(data.to_vec());
                }
                Record::Attachment { header, data, .. } => {
                    files.push((header.name.clone(), data.to_vec()));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        if end == Extent::Foreign {
            return Err(format!(
                "'{name}' is not an MCAP file; give a recording of 'kind: recorder'"
            ));
        }
        let foreign = || match &end {
            _ if is_merged => format!(
                "'{name}' was merged from recordings of several hosts; give one that a recorder \
                 wrote"
            ),
            Extent::Damaged(text) => format!("'{name}' is damaged at its beginning: {text}"),
            Extent::Cut => format!("'{name}' ends before it says which run it is of"),
            _ => format!(
                "'{name}' is an MCAP file, but not one of ours: it has no metadata '{HEAD}'"
            ),
        };
        let head = head.ok_or_else(foreign)?.map_err(|text| format!("'{name}': {text}"))?;
        let missing = || format!("'{name}' has no attachment '{SPEC}': the graph is not known");
        let spec =
            text_of(spec.ok_or_else(missing)?).map_err(|text| format!("'{name}': {text}"))?;
        if head.cpus.is_empty() {
            return Err(format!("'{name}': metadata 'cpus' is empty; expected those of the run"));
        }
        let (parts, notes) = siblings(file, head);
        Ok(Recording { file: file.into(), parts, spec, files, notes })
    }

    /// Numbers of missing parts before or between existing ones.
    pub fn missing(&self) -> Vec<u32> {
        let last = self.parts.last().map_or(0, |part| part.head.part);
        let is_there = |number: &u32| self.parts.iter().any(|part| part.head.part == *number);
        // If a recording claims four thousand million parts, some hundred are enough.
        (1..last).filter(|number| !is_there(number)).take(100).collect()
    }

    /// The same in words, if there are any.
    pub fn what_is_missing(&self) -> Option<String> {
        let missing: Vec<_> = self.missing().iter().map(u32::to_string).collect();
        let file = self.file.display();
        (!missing.is_empty())
            .then(|| format!("part {} is not in the folder of '{file}'", missing.join(", ")))
    }

    /// The description of the run, taken from the part that was opened or any other one.
    pub fn head(&self) -> &PartHead {
        &self.parts[0].head
    }

    /// How many times the core was started in the recording.
    pub fn lives(&self) -> usize {
        let mut lives: Vec<u32> = self.parts.iter().map(|part| part.head.life).collect();
        lives.dedup();
        lives.len()
    }
}

/// How many messages of a topic a finished file claims to have. `None` for a file without an end.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn counted(file: &Path, topic: &str) -> Result<Option<u64>, String> {
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    let summary = Summary::read(&bytes).map_err(|error| error.to_string())?;
    Ok(summary.and_then(|Summary { stats, channels: topics, .. }| {
        let counts = stats?.channel_message_counts;
        let of_topic =
            counts.iter().filter(|(id, _)| topics.get(id).is_some_and(|it| it.topic == topic));
        Some(of_topic.map(|(_, count)| count).sum())
    }))
}

fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > TEXT_LEN_MAX {
        return Err(format!("the spec is larger than {} MiB, the limit", TEXT_LEN_MAX >> 20));
    }
    String::from_utf8(bytes).map_err(|_| format!("attachment '{SPEC}' is not UTF-8"))
}

/// All parts of the run of `file`, which has `head`, and notes about the others.
fn siblings(file: &Path, head: PartHead) -> (Vec<Part>, Vec<String>) {
    let (run, mut notes) = (head.run.clone(), Vec::new());
    let mut parts = BTreeMap::from([(head.part, Part { path: file.into(), head })]);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = match fs::read_dir(folder.unwrap_or(Path::new("."))) {
        Ok(entries) => entries,
        Err(error) => {
            notes.push(format!("its folder cannot be searched for other parts: {error}"));
            return (parts.into_values().collect(), notes);
        }
    };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == EXTENSION));
    paths.sort();
    let given = file.canonicalize().ok();
    for path in paths.into_iter().filter(|path| path.canonicalize().ok() != given) {
        let Some(head) = head_of(&path).filter(|head| head.run == run) else { continue };
        let number = head.part;
        if parts.contains_key(&number) {
            let path = path.display();
            notes.push(format!("'{path}' is part {number} once more; it is left out"));
            continue;
        }
        parts.insert(number, Part { path, head });
    }
    (parts.into_values().collect(), notes)
}

/// The description in a file, if it is a part of a recording that this program can read.
fn head_of(path: &Path) -> Option<PartHead> {
    // What cannot be read is no part of a recording. Opening a pipe would block.
    let file = path.is_file().then(|| File::open(path).ok())??;
    head(&file).ok()??.ok()
}

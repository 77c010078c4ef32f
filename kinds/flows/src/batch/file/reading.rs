//! Reads files one after the other, a few records at a time, from the place of a checkpoint.

mod follow;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sinew_flow::Error;

use super::checkpoint::{ElementCounts, Saved};
use super::records::{Known, Manner, Record, Records, digest_of};
use crate::framing::FilePlace;

/// Most files that a pattern may mean.
const FILES_MAX: usize = 10_000;
/// Most records that are read ahead of the flow, and about how many bytes.
const BATCH_MAX: usize = 256;
const BATCH_BYTES: usize = 64 << 10;

/// What is to be read, and how.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) folder: PathBuf,
    /// A path or a pattern, relative to the folder.
    pub(super) path: String,
    /// Whether the path comes from a packet.
    pub(super) is_foreign: bool,
    pub(super) manner: Manner,
    /// The place of the checkpoint as messages show it; and the checkpoint.
    pub(super) checkpoint: Option<String>,
    pub(super) saved: Option<Saved>,
}

/// Files that are read.
pub(super) struct Reading {
    pub(super) order: Order,
    pub(super) names: Vec<String>,
    /// The file that is read now, and its index in `names`.
    records: Records,
    at: usize,
    /// Since when there is another file under the name of the followed one.
    moved: Option<Instant>,
    /// Lines for the log about a followed file.
    pub(super) notes: Vec<String>,
    /// The error that ended the last records early; returned by the next call.
    failure: Option<Error>,
    /// Bytes of all files, and of the files before the one in which it begins.
    pub(super) bytes: u64,
    pub(super) bytes_before: u64,
    /// Where it begins, and the counts up to there.
    pub(super) begun: FilePlace,
    pub(super) counts: ElementCounts,
}

impl Reading {
    /// Finds and opens the files, and goes to the place of the checkpoint.
    ///
    /// # Errors
    /// There are no files, they cannot be read, or the checkpoint is of other files.
    pub(super) fn open(order: Order) -> Result<Reading, Error> {
        let names = names(&order)?;
        let saved = order.saved.clone();
        let at = saved.as_ref().map_or(0, |saved| saved.file_at);
        let foreign = |what: &str| foreign(&order, what);
        let Some(name) = names.get(at) else {
            return Err(foreign(&format!("it has {} files, here are {}", at + 1, names.len())));
        };
        let (mut records, mut notes) = (open(&order, name, at)?, Vec::new());
        if let Some(saved) = &saved {
            if saved.files_sha256 != names_digest(&names[..=at]) {
                return Err(foreign(&format!("its file is '{}', here it is '{name}'", saved.file)));
            }
            match differs(&records.known, saved, name) {
                None => records.go_to(saved.place())?,
                Some(what) if !order.manner.follows => return Err(foreign(&what)),
                Some(what) => {
                    let is_other = records.known.inode != saved.inode;
                    let old = is_other.then(|| follow::rotated(&order, saved)).flatten();
                    if let Some(old) = old {
                        records = old?;
                    } else {
                        let from = saved.offset;
                        notes.push(format!(
                            "{what}; what the file before had after byte {from} is lost"
                        ));
                    }
                }
            }
        }
        let begun = records.place();
        let counts = saved.map_or(ElementCounts::default(), |saved| saved.counts);
        let lens: Vec<u64> = names.iter().map(|name| len_of(&order, name)).collect();
        let (bytes, bytes_before) = (lens.iter().sum(), lens[..at].iter().sum());
        let (failure, moved) = (None, None);
        Ok(Reading {
            order,
            names,
            records,
            at,
            moved,
            notes,
            failure,
            bytes,
            bytes_before,
            begun,
            counts,
        })
    }

    /// The next records; empty at the end of the last file.
    ///
    /// # Errors
    /// A file cannot be read, or a record is too long.
    pub(super) fn next(&mut self) -> Result<Vec<Record>, Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        if self.records.follows() {
            follow::look(self)?;
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < BATCH_MAX && bytes < BATCH_BYTES {
            match self.step() {
                Ok(Some(record)) => {
                    bytes += record.raw.len();
                    records.push(record);
                }
                Ok(None) => break,
                // The records before the error come first.
                Err(error) if !records.is_empty() => {
                    self.failure = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    fn step(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let record = self.records.next()?;
            if record.is_none() && self.order.manner.follows && follow::goes_on(self)? {
                continue;
            }
            if record.is_some() || self.at + 1 == self.names.len() {
                return Ok(record);
            }
            self.at += 1;
            self.records = open(&self.order, &self.names[self.at], self.at)?;
        }
    }
}

/// The checkpoint for this place.
pub(super) fn saved_at(
    names: &[String],
    known: &Known,
    place: FilePlace,
    counts: ElementCounts,
) -> Saved {
    let head_len = known.head_len(place.offset);
    Saved {
        sinew_checkpoint: Saved::VERSION,
        file: known.name.clone(),
        file_at: known.at,
        files_sha256: names_digest(&names[..=known.at]),
        inode: known.inode,
        head_sha256: known.head_sha256(head_len).unwrap_or_default(),
        head_len,
        offset: place.offset,
        line: place.line,
        counts,
    }
}

/// Why the file is not the one of the checkpoint; `None` if it is.
fn differs(known: &Known, saved: &Saved, name: &str) -> Option<String> {
    let (was, is) = (saved.offset, known.len);
    if known.inode != saved.inode {
        return Some(format!("'{name}' is another file (its inode is another)"));
    }
    if is < was {
        return Some(format!("{was} bytes of '{name}' were read, it has {is}"));
    }
    (known.head_sha256(saved.head_len).as_ref() != Some(&saved.head_sha256))
        .then(|| format!("'{name}' begins otherwise"))
}

fn names_digest(names: &[String]) -> String {
    digest_of(names.join("\0").as_bytes())
}

fn open(order: &Order, name: &str, at: usize) -> Result<Records, Error> {
    let place = (&*order.folder.join(name), name, at);
    Records::open(place, order.manner, order.checkpoint.is_some())
}

fn len_of(order: &Order, name: &str) -> u64 {
    // A file that is gone is reported when it is opened.
    fs::metadata(order.folder.join(name)).map_or(0, |state| state.len())
}

fn foreign(order: &Order, what: &str) -> Error {
    let path = order.checkpoint.as_deref().unwrap_or_default();
    Error::new(format_args!(
        "the checkpoint '{path}' does not belong to these files: {what}; bring back the files, \
         name another checkpoint, or remove it to begin from the start"
    ))
    .with_status(409)
}

/// The names of the files that the order means, sorted.
fn names(order: &Order) -> Result<Vec<String>, Error> {
    let Order { folder, path, is_foreign, .. } = order;
    let wrong = |text: String| Err(Error::new(text).with_status(400));
    if *is_foreign && (path.starts_with('/') || path.split('/').any(|part| part == "..")) {
        return wrong(format!(
            "'{path}' is outside of the folder of the spec; a packet may name only files in it"
        ));
    }
    if path.is_empty() || path.contains('\0') {
        return wrong("the path of the file is empty, or has a zero byte in it".into());
    }
    if order.manner.follows || !path.contains(['*', '?', '[']) || folder.join(path).exists() {
        return Ok(vec![path.clone()]);
    }
    let pattern = Path::new(&glob::Pattern::escape(&folder.to_string_lossy())).join(path);
    let pattern = pattern.to_string_lossy();
    let found = match glob::glob(&pattern) {
        Ok(found) => found,
        Err(error) => return wrong(format!("'{path}' is not a pattern: {error}")),
    };
    let mut names = Vec::new();
    for path in found.filter_map(Result::ok).filter(|path| path.is_file()) {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        names.push(name.to_string_lossy().into_owned());
        if names.len() > FILES_MAX {
            return wrong(format!("'{pattern}' matches more than {FILES_MAX} files; name fewer"));
        }
    }
    if names.is_empty() {
        return Err(Error::new(format_args!("no file matches '{path}'")).with_status(404));
    }
    names.sort_unstable();
    Ok(names)
}

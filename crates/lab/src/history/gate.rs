//! The file of the gate of instruction counts as figures over commits: each version of it that git
//! has on the first-parent path to the checked-out commit, and the file as it is now.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde::Deserialize;

use super::{SeenAt, Sighting};
use crate::headlines::Headline;
use crate::report::Build;

#[cfg(test)]
mod tests;

/// At most this many versions of the file are read, the newest ones: git is asked once for each,
/// and a line with more dots cannot be read. A note says that older ones are left out.
const VERSIONS_MAX: usize = 500;
/// The most bytes that a version may have, enough for a few hundred verbs. A longer version is left
/// out, and a note says so.
const VERSION_LEN_MAX: u64 = 64 << 10;
/// The most bytes that git may say about the commits; a path has at most 4096 bytes.
const LOG_LEN_MAX: u64 = 4 << 20;
/// The most bytes of errors that are read from git, and the most characters of them that are shown.
const COMPLAINT_LEN_MAX: u64 = 64 << 10;
const COMPLAINT_SHOWN: usize = 300;

/// The file, as far as a history needs it: earlier versions may have had fewer or more parts.
#[derive(PartialEq, Deserialize)]
struct Book {
    tools: BTreeMap<String, String>,
    verbs: Vec<Verb>,
}

#[derive(PartialEq, Deserialize)]
struct Verb {
    verb: String,
    instructions: u64,
    why: String,
}

impl Book {
    fn read(text: &[u8]) -> Result<Book, String> {
        if text.len() as u64 > VERSION_LEN_MAX {
            return Err(format!("is larger than {} KiB, the limit", VERSION_LEN_MAX >> 10));
        }
        let book: Book = serde_json::from_slice(text)
            .map_err(|error| format!("is not a file of the gate (docs/gate.md): {error}"))?;
        let mut names = BTreeSet::new();
        match book.verbs.iter().find(|verb| !names.insert(&verb.verb)) {
            Some(twice) => Err(format!("has '{}' twice; take one row out", twice.verb)),
            None => Ok(book),
        }
    }

    fn tools(&self) -> String {
        self.tools.values().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// A version of the file.
struct Version {
    build: Build,
    book: Book,
}

/// All figures that this file of the gate ever had, oldest first, and notes about them.
///
/// # Errors
/// The file is not a file of the gate, is in no repository that git can read, or was never
/// committed.
pub fn gate_sightings(file: &Path) -> Result<(Vec<Sighting>, Vec<String>), String> {
    let name = file.display().to_string();
    let cannot = |error: io::Error| format!("cannot read '{name}': {error}");
    if !fs::metadata(file).map_err(cannot)?.is_file() {
        return Err(format!("'{name}' is not a file; expected that of the gate"));
    }
    let text = bounded(File::open(file).map_err(cannot)?, VERSION_LEN_MAX).map_err(cannot)?;
    let book = Book::read(&text).map_err(|why| format!("'{name}' {why}"))?;
    // A file behind a symbolic link has its history at its real place.
    let path = fs::canonicalize(file).map_err(cannot)?;
    let (mut versions, head, mut notes) =
        committed(&path).map_err(|why| format!("'{name}' {why}"))?;
    if versions.last().is_none_or(|last| last.book != book) {
        versions.push(Version { build: Build { changed: true, ..head }, book });
    }
    notes.extend(other_tools(&versions));
    notes.extend(gone(&versions));
    let sightings = |(place, version): (usize, &Version)| version.sightings(place, &name);
    let seen: Vec<_> = versions.iter().enumerate().flat_map(sightings).collect();
    if seen.is_empty() {
        return Err(format!("'{name}' never had a verb"));
    }
    Ok((seen, notes))
}

impl Version {
    fn commit(&self) -> String {
        self.build.short().unwrap_or_default()
    }

    fn sightings(&self, place: usize, file: &str) -> Vec<Sighting> {
        let sighting = |Verb { verb, instructions, why }: &Verb| Sighting {
            series: format!("gate: {}", self.book.tools()),
            headline: Headline {
                row: verb.clone(),
                measure: "instructions".into(),
                unit: String::new(),
                higher_is_better: false,
            },
            origin: SeenAt {
                commit: self.build.short(),
                committed_s: self.build.committed_s,
                file: file.into(),
                why: Some(why.clone()),
                place,
            },
            figure: *instructions as f64,
            exact: true,
        };
        self.book.verbs.iter().map(sighting).collect()
    }
}

/// A note about changes of the tools: counts by other tools are not comparable.
fn other_tools(versions: &[Version]) -> Option<String> {
    let change = |pair: &[Version]| match pair {
        [before, after] if before.book.tools != after.book.tools => {
            Some(format!("at {} [{}]", after.commit(), after.book.tools()))
        }
        _ => None,
    };
    let changes: Vec<_> = versions.windows(2).filter_map(change).collect();
    let first = versions.first().map(|first| first.book.tools()).unwrap_or_default();
    let what = "the gate's tools changed, and figures of different tools are drawn apart";
    (!changes.is_empty()).then(|| format!("{what}: first [{first}], {}", changes.join(", ")))
}

/// The verbs that the newest version no longer has, each with the last commit that had it.
fn gone(versions: &[Version]) -> Option<String> {
    let verbs = |version: &Version| {
        let verb = |of: &Verb| (of.verb.clone(), version.commit());
        version.book.verbs.iter().map(verb).collect::<Vec<_>>()
    };
    let mut last: BTreeMap<_, _> = versions.iter().flat_map(verbs).collect();
    for verb in &versions.last()?.book.verbs {
        last.remove(&verb.verb);
    }
    let verb = |(verb, commit)| format!("'{verb}' (last at {commit})");
    let gone: Vec<_> = last.into_iter().map(verb).collect();
    (!gone.is_empty()).then(|| format!("no longer in the gate's file: {}", gone.join(", ")))
}

/// What git has of the file, oldest first; the commit that is checked out; and notes.
fn committed(path: &Path) -> Result<(Vec<Version>, Build, Vec<String>), String> {
    let git = Git { folder: path.parent().unwrap_or(Path::new("/")).to_path_buf() };
    let in_none = |why| format!("has no history that git can read: {why}");
    let shallow = ["rev-parse", "--is-shallow-repository"].map(OsStr::new);
    let is_shallow = git.ask(shallow, LOG_LEN_MAX).map_err(in_none)?.starts_with(b"true");
    let head = git.log(&["-1"], &[]).map_err(in_none)?;
    let head = build(&String::from_utf8_lossy(&head));
    let name = path.file_name().unwrap_or_default();
    let newest = format!("-{}", VERSIONS_MAX + 1);
    // These options follow the file over its names, and show for a merge what it brought to the
    // first parent.
    let options = [
        newest.as_str(),
        "--first-parent",
        "--diff-merges=first-parent",
        "--follow",
        "--diff-filter=d",
        "--name-only",
        "--no-relative",
        "-z",
    ];
    let log = git.log(&options, &[OsStr::new("--"), name]).map_err(in_none)?;
    let parts: Vec<_> = log.split(|byte| *byte == 0).collect();
    // A commit, and after a newline the file's name in that commit.
    let commit =
        |of: &[&[u8]]| (of[0].to_vec(), of[1].strip_prefix(b"\n").unwrap_or(of[1]).to_vec());
    let commits: Vec<_> = parts.chunks_exact(2).map(commit).collect();
    if commits.is_empty() {
        return Err("was never committed, so it has no history; commit it first".into());
    }
    let mut notes = vec![];
    if commits.len() > VERSIONS_MAX {
        notes.push(format!(
            "the gate's file has more than {VERSIONS_MAX} versions; the older ones are left out"
        ));
    }
    let mut versions = vec![];
    for (commit, path) in commits.into_iter().take(VERSIONS_MAX).rev() {
        let build = build(&String::from_utf8_lossy(&commit));
        match git.version(&build, &path).and_then(|text| Book::read(&text)) {
            Ok(book) => versions.push(Version { build, book }),
            Err(why) => notes.push(format!(
                "left out: the gate's file at {} {why}",
                build.short().unwrap_or_default()
            )),
        }
    }
    if is_shallow {
        let first = versions.first().map(Version::commit).unwrap_or_default();
        notes.push(format!(
            "the repository is a shallow clone, so the gate's history begins at {first}, where its \
             figures may be older; get all of it with 'git fetch --unshallow'"
        ));
    }
    Ok((versions, head, notes))
}

/// A commit and its time.
fn build(line: &str) -> Build {
    let mut words = line.split_ascii_whitespace();
    Build {
        commit: words.next().map(Into::into),
        committed_s: words.next().and_then(|seconds| seconds.parse().ok()),
        ..Build::default()
    }
}

/// Git, in the folder of the file.
struct Git {
    folder: PathBuf,
}

impl Git {
    /// Commits with their times, newest first.
    fn log(&self, options: &[&str], files: &[&OsStr]) -> Result<Vec<u8>, String> {
        let plain = ["log", "--no-show-signature", "--no-color", "--format=%H %ct"];
        let words = plain.iter().chain(options).map(OsStr::new);
        self.ask(words.chain(files.iter().copied()), LOG_LEN_MAX)
    }

    /// The file at a commit. If it is too long, one byte more than the limit is returned.
    fn version(&self, at: &Build, path: &[u8]) -> Result<Vec<u8>, String> {
        let commit = at.commit.as_deref().unwrap_or_default();
        let object = [commit.as_bytes(), b":", path].concat();
        let object = OsString::from_vec(object);
        self.ask(["cat-file".as_ref(), "blob".as_ref(), object.as_os_str()], VERSION_LEN_MAX)
            .map_err(|why| format!("cannot be read: {why}"))
    }

    /// What git says, up to one byte more than `len_max`.
    fn ask<'a>(
        &self,
        words: impl IntoIterator<Item = &'a OsStr>,
        len_max: u64,
    ) -> Result<Vec<u8>, String> {
        let mut git = Command::new("git");
        git.arg("--literal-pathspecs").arg("-C").arg(&self.folder).args(words);
        // Git uses the file's own repository, not that of a hook that calls us, and does not
        // prompt.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| format!("cannot run git: {error}");
        let mut child = git.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "git is not installed, or not in PATH".into(),
            _ => failed(error),
        })?;
        let (out, complaint) = (child.stdout.take(), child.stderr.take());
        // Both streams are read at the same time; otherwise git could wait for one while we read
        // the other.
        let (out, complaint) = thread::scope(|scope| {
            let complaint = scope.spawn(|| all_of(complaint, COMPLAINT_LEN_MAX));
            (all_of(out, len_max), complaint.join())
        });
        let status = child.wait().map_err(failed)?;
        let out = out.map_err(failed)?;
        // If the output was cut off, git could not finish.
        if status.success() || out.len() as u64 > len_max {
            return Ok(out);
        }
        let complaint = complaint.ok().and_then(Result::ok).unwrap_or_default();
        let words = String::from_utf8_lossy(&complaint);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = words.chars().take(COMPLAINT_SHOWN).collect();
        Err(format!("git ended with {status} and says '{shown}'"))
    }
}

fn all_of(from: Option<impl Read>, len_max: u64) -> io::Result<Vec<u8>> {
    from.map_or(Ok(vec![]), |from| bounded(from, len_max))
}

/// All bytes of a source, up to one byte more than `len_max`.
fn bounded(from: impl Read, len_max: u64) -> io::Result<Vec<u8>> {
    let mut all = vec![];
    from.take(len_max + 1).read_to_end(&mut all)?;
    Ok(all)
}

//! `--watch`: polls the files of a running graph. An edit is checked on a thread of its own, as
//! `sinew check` does. A good edit is offered to the run; a bad one changes nothing.

use std::fs;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::thread;
use std::time::Duration;

use sinew_control::Spec;
use sinew_control::status::{Event, EventKind};
use sinew_runtime::Edition;
use sinew_runtime::Kinds;
use sinew_runtime::run::Run;
use sinew_spec::plan::TargetMachine;

use super::Audience;
use crate::answer::say;
use crate::load::{LoadError, Loaded, load_and_make};
use crate::part::PartArgs;

/// How often the files are polled. An edit is taken once the files have stayed the same for this
/// time: an editor may write in several steps, or replace a file by a new one.
const LOOK: Duration = Duration::from_millis(100);

/// The edits of a graph's files, as the run's loop sees them.
pub(crate) struct Edits {
    news: Receiver<News>,
    /// Dropped when the run ends; then the thread ends too.
    _running: Sender<()>,
    /// Number of the last event that was handled.
    seen: u64,
}

/// The result of a check.
enum News {
    /// A good edit.
    Edition(Box<Edition>),
    /// A bad one.
    Bad(LoadError),
}

impl Edits {
    /// Starts to watch the files of a graph that was made with `part` and `nodes`.
    ///
    /// # Errors
    /// Nothing in the graph can be edited while it runs, its spec is not a regular file, or no
    /// thread can be started.
    pub(crate) fn watch(
        path: &Path,
        part: &PartArgs,
        nodes: &Kinds,
        loaded: &Loaded,
    ) -> Result<Edits, LoadError> {
        let plan = &loaded.plan;
        if !(0..plan.nodes.len()).any(|node| plan.is_flow(node)) {
            return Err(LoadError::Request(
                "--watch: this graph has no flows, and nothing else can be edited while it runs; \
                 leave --watch out"
                    .into(),
            ));
        }
        if !path.is_file() {
            return Err(LoadError::Request(format!(
                "--watch: '{}' is not a file that could be edited; name one, or leave --watch out",
                path.display()
            )));
        }
        let (sender, news) = channel();
        let (running, end) = channel();
        let watcher = Watcher {
            path: path.to_owned(),
            part: part.clone(),
            nodes: nodes.clone(),
            machine: loaded.spec.machine.clone(),
            files: files(path, loaded, nodes),
            touched: Vec::new(),
            text: loaded.spec.text.clone(),
            news: sender,
        };
        let spawned = thread::Builder::new().name("edits".into()).spawn(move || watcher.run(&end));
        spawned.map_err(|error| LoadError::Request(format!("cannot start a thread: {error}")))?;
        Ok(Edits { news, _running: running, seen: 0 })
    }

    /// How long the run's loop may sleep.
    pub(crate) fn spacing() -> Duration {
        LOOK
    }

    /// Hands good edits to the run, and says what is wrong with bad ones.
    pub(crate) fn go_on(&mut self, run: &mut Run, audience: &Audience) {
        // The live view shows refusals itself, and 'sinew check' shows them in full.
        let says = !audience.view.is_live();
        let refused = |event: &&Event| event.what == EventKind::EditRefused;
        for event in run.events().after(self.seen).filter(refused).filter(|_| says) {
            say(&format!("error: the edit is refused, the graph goes on: {}", event.text));
        }
        for news in self.news.try_iter() {
            match news {
                News::Edition(edition) => run.edit(*edition),
                News::Bad(error) => {
                    if says {
                        error.report();
                    }
                    run.note(EventKind::EditRefused, None, in_short(&error));
                }
            }
        }
        self.seen = run.events().newest();
    }
}

/// The first error, and how many more there are.
fn in_short(error: &LoadError) -> String {
    let errors = error.to_json()["errors"].as_array().cloned().unwrap_or_default();
    let Some(first) = errors.first() else { return "it cannot be read".into() };
    let text = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
    let place = match (text("file"), first["line"].as_u64()) {
        (file, Some(line)) => format!("{file}:{line}: "),
        _ => String::new(),
    };
    let more = match errors.len() - 1 {
        0 => String::new(),
        more => format!("; and {more} more errors, see 'sinew check'"),
    };
    format!("{place}{}{more}", text("message"))
}

/// A file, and the node that reads it. `None` for the spec.
struct File {
    path: PathBuf,
    node: Option<String>,
    stamp: Option<Stamp>,
}

/// What changes when a file is written or replaced by another: device, inode number, length, and
/// the times of its content and its inode.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    let (changed, itself) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
    Some((file.dev(), file.ino(), file.size(), changed.0, changed.1, itself.0, itself.1))
}

/// The spec, and the files that its flow nodes read.
fn files(path: &Path, loaded: &Loaded, nodes: &Kinds) -> Vec<File> {
    let plan = &loaded.plan;
    let mut files = vec![File { path: path.to_owned(), node: None, stamp: stamp(path) }];
    for index in (0..plan.nodes.len()).filter(|&node| plan.is_flow(node)) {
        for path in nodes.files(plan, index, &loaded.spec.base) {
            let stamp = stamp(&path);
            files.push(File { path, node: Some(plan.nodes[index].name.clone()), stamp });
        }
    }
    files
}

/// The thread that polls the files.
struct Watcher {
    path: PathBuf,
    part: PartArgs,
    nodes: Kinds,
    /// The machine that the run was compiled for. Edits are compiled for it too.
    machine: TargetMachine,
    files: Vec<File>,
    /// Nodes whose files were edited since the last good edit.
    touched: Vec<String>,
    /// The spec that the run was started with.
    text: String,
    news: Sender<News>,
}

impl Watcher {
    fn run(mut self, end: &Receiver<()>) {
        // The spec may have been edited since it was read.
        let read = fs::read_to_string(&self.path);
        let mut is_behind = read.is_ok_and(|text| text != self.text);
        self.text.clear();
        let mut last = self.stamps();
        while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let now = self.stamps();
            let is_quiet = now == last;
            last = now;
            let known = self.files.iter().map(|file| &file.stamp);
            if is_quiet && (is_behind || !known.eq(&last)) {
                is_behind = false;
                if self.offer(&last).is_err() {
                    return;
                }
            }
        }
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.files.iter().map(|file| stamp(&file.path)).collect()
    }

    /// Checks what the files say now.
    fn offer(&mut self, now: &[Option<Stamp>]) -> Result<(), SendError<News>> {
        for (file, now) in self.files.iter_mut().zip(now) {
            if file.stamp != *now {
                file.stamp = *now;
                self.touched.extend(file.node.clone());
            }
        }
        match load_and_make(&self.path, &self.part, &self.nodes, &self.machine) {
            Err(error) => self.news.send(News::Bad(error)),
            Ok(loaded) => {
                let files = files(&self.path, &loaded, &self.nodes);
                let before = mem::replace(&mut self.files, files);
                self.keep_stamps(&before);
                let (Loaded { spec, plan }, touched) = (loaded, mem::take(&mut self.touched));
                let Spec { text, outside, .. } = spec;
                let edition = Edition { text, plan, touched, outside };
                self.news.send(News::Edition(Box::new(edition)))
            }
        }
    }

    /// Keeps the old stamps: a file that is written while the spec is checked is a further edit.
    fn keep_stamps(&mut self, before: &[File]) {
        for file in &mut self.files {
            if let Some(known) = before.iter().find(|known| known.path == file.path) {
                file.stamp = known.stamp;
            }
        }
    }
}

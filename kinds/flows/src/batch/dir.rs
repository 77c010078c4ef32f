//! `dir`: begins a flow for each file that comes into a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use glob::Pattern;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::fault::Cause;
use sinew_core::{Fault, Made, Parameters, Refusal};
use sinew_flow::{
    FLOW, FlowEntry, FlowLimits, Local, Make, Opened, Outlet, Reply, Source, StopSignal, Value,
    output,
};

use super::watch::FolderWatch;
use crate::path::LIMIT_NS_MAX;
use crate::work::{WORK_MAX, limits};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

static INFO: Kind = Kind {
    name: "dir",
    doc: "Begins a flow for each file in a folder, and for each new one, in the order of their \
          names. Its packet is {file, name, size}. When the reply is back, the file is moved to \
          the folder 'done', so each file comes once; after a kill, the files that were under way \
          come again. Only the first worker runs it.",
    ports: &[output("out", "The packet.")],
    parameters: &[
        Parameter::new("path", ParameterType::Path).doc("The folder. Folders in it are ignored."),
        Parameter::new("pattern", ParameterType::Text).or("'*'").doc(
            "Pattern of the names, such as '*.csv'. Names that begin with a dot are ignored: such \
             files are still being written.",
        ),
        Parameter::new("done", ParameterType::Path).doc(
            "A folder on the same disk, for files whose reply is not an error; created if missing. \
             Nothing in it is replaced.",
        ),
        Parameter::new("failed", ParameterType::Text).or("\"\"").doc(
            "The same for files whose reply is an error. Empty: they stay, and come again when \
             they change or the domain starts again.",
        ),
        Parameter::new("quiet", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("1s")
            .doc("A file is complete when it has not changed for this long."),
        Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 })
            .or("1")
            .doc("Most files that are under way at once."),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: LIMIT_NS_MAX },
        )
        .or("24h")
        .doc("Longest that the flow of a file may take."),
        WORK_MAX.or("1000000000000"),
    ],
    ..FLOW
};

const OUT: usize = 0;
/// Most files that are looked at; more come when these have gone.
const FILES_MAX: usize = 10_000;
/// Most files of one name in a folder that files are moved to.
const NAMES_MAX: usize = 10_000;

/// The node as the spec gives it.
struct Dir {
    folders: Arc<Folders>,
    quiet: Duration,
    concurrency: usize,
    limits: FlowLimits,
}

struct Folders {
    path: PathBuf,
    /// The path as it is shown in packets.
    shown: String,
    pattern: Pattern,
    done: PathBuf,
    failed: Option<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    let refuse = |name, message: String, help: &str| {
        Err(vec![Refusal::new(parameters.span(name), message, help)])
    };
    let pattern = match Pattern::new(parameters.text("pattern")) {
        Ok(pattern) => pattern,
        Err(error) => return refuse("pattern", error.to_string(), "write pattern: '*.csv'"),
    };
    let (path, done) = (parameters.path("path"), parameters.path("done"));
    let failed = Some(parameters.text("failed")).filter(|failed| !failed.is_empty());
    let failed = failed.map(|_| parameters.path("failed"));
    for (name, other) in [("done", Some(&done)), ("failed", failed.as_ref())] {
        if other == Some(&path) {
            let text = format!("'{name}' is the folder itself: each file would come again");
            return refuse(name, text, "name another folder");
        }
    }
    let shown = parameters.text("path").to_owned();
    Ok(Box::new(Dir {
        folders: Arc::new(Folders { path, shown, pattern, done, failed }),
        quiet: parameters.duration("quiet"),
        concurrency: parameters.integer("concurrency") as usize,
        limits: limits(parameters),
    }))
}

impl Source for Dir {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        self.folders.open().map_err(|text| Fault::new(Cause::System, format_args!("{text}")))?;
        Ok(vec![self])
    }
}

impl Folders {
    fn open(&self) -> Result<(), String> {
        let device = |path: &Path| {
            let state = fs::metadata(path).and_then(|state| match state.is_dir() {
                true => Ok(state),
                false => Err(io::ErrorKind::NotADirectory.into()),
            });
            state.map(|state| state.dev()).map_err(|error| format!("{}: {error}", path.display()))
        };
        let home = device(&self.path)?;
        for other in [Some(&self.done), self.failed.as_ref()].into_iter().flatten() {
            let shown = other.display();
            fs::create_dir_all(other).map_err(|error| format!("{shown}: {error}"))?;
            if device(other)? != home {
                return Err(format!("{shown} is on another disk; name one on the same"));
            }
        }
        Ok(())
    }

    /// The files that are there, by name.
    fn files(&self) -> io::Result<BTreeMap<String, State>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || !self.pattern.matches(&name) {
                continue;
            }
            // If the file is gone meanwhile, it is left out.
            let Ok(state) = entry.metadata() else { continue };
            if state.is_file() {
                files.insert(name, State { len: state.len(), changed: state.modified()? });
            }
            if files.len() == FILES_MAX {
                break;
            }
        }
        Ok(files)
    }

    /// Moves a file away, under a name that is free there; `false` if it is to stay.
    fn put_away(&self, name: &str, has_failed: bool) -> Result<bool, String> {
        let to = match (&self.failed, has_failed) {
            (None, true) => return Ok(false),
            (Some(failed), true) => failed,
            (_, false) => &self.done,
        };
        for number in 0..NAMES_MAX {
            let new = if number == 0 { name.to_owned() } else { format!("{name}.{number}") };
            let (from, new) = (self.path.join(name), to.join(new));
            match renameat_with(CWD, &from, CWD, &new, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Ok(()) => return Ok(true),
                Err(error) => {
                    return Err(format!("'{name}' cannot be moved to {}: {error}", to.display()));
                }
            }
        }
        Err(format!("'{name}' is {NAMES_MAX} times in {}; remove some there", to.display()))
    }
}

/// What is compared to see that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    len: u64,
    changed: SystemTime,
}

/// A file that is there.
struct Seen {
    state: State,
    since: Instant,
    /// Its flow has begun; the flow may have failed.
    has_come: bool,
}

impl Opened for Dir {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        mut stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        async move {
            let watch = FolderWatch::new(&self.folders.path);
            let mut coming = Coming { dir: &self, outlet, seen: BTreeMap::new(), failure: None };
            let mut open = FuturesUnordered::new();
            let mut under_way = BTreeSet::new();
            loop {
                coming.look().await;
                while let Some((name, packet)) = coming.next(&under_way) {
                    under_way.insert(name.clone());
                    open.push(coming.begin(name, packet));
                }
                tokio::select! {
                    biased;
                    () = stop.wait() => break,
                    Some(ended) = open.next() => { under_way.remove(&coming.end(ended).await); }
                    () = watch.changed() => {}
                }
            }
            // Flows that have begun are waited for; no new ones begin.
            while let Some(ended) = open.next().await {
                coming.end(ended).await;
            }
            Ok(())
        }
        .boxed_local()
    }
}

/// The files of the folder, and how far each is.
struct Coming<'a> {
    dir: &'a Dir,
    outlet: Outlet,
    seen: BTreeMap<String, Seen>,
    /// Why the folder cannot be read, as the log says it.
    failure: Option<String>,
}

impl Coming<'_> {
    /// Looks at the files in the folder.
    async fn look(&mut self) {
        let folders = Arc::clone(&self.dir.folders);
        let files = self.outlet.pool().run_slow(move || folders.files()).await;
        let files = files.map_err(|error| error.to_string());
        let files = match files.and_then(|files| files.map_err(|error| error.to_string())) {
            Ok(files) => files,
            Err(text) => {
                // Logged once, and not for each look.
                if self.failure.as_ref() != Some(&text) {
                    self.outlet.say(format_args!("the folder cannot be read: {text}"));
                }
                self.failure = Some(text);
                return;
            }
        };
        self.failure = None;
        self.seen.retain(|name, _| files.contains_key(name));
        for (name, state) in files {
            let new = Seen { state, since: Instant::now(), has_come: false };
            let seen = self.seen.entry(name).or_insert(new);
            if seen.state != state {
                *seen = Seen { state, since: Instant::now(), has_come: false };
            }
        }
    }

    /// The first file that is complete and has not begun a flow, if there is room for one more.
    fn next(&mut self, under_way: &BTreeSet<String>) -> Option<(String, Value)> {
        if under_way.len() >= self.dir.concurrency {
            return None;
        }
        let is_next = |(name, seen): &(&String, &mut Seen)| {
            let is_whole = seen.since.elapsed() >= self.dir.quiet;
            is_whole && !seen.has_come && !under_way.contains(*name)
        };
        let (name, seen) = self.seen.iter_mut().find(is_next)?;
        seen.has_come = true;
        let file = Path::new(&self.dir.folders.shown).join(name);
        let packet = Value::map([
            ("file", Value::text(file.to_string_lossy().into_owned())),
            ("name", Value::text(name.clone())),
            ("size", Value::Integer(seen.state.len as i64)),
        ]);
        Some((name.clone(), packet))
    }

    fn begin(&self, name: String, packet: Value) -> Local<'static, (String, Reply)> {
        let (outlet, limits) = (self.outlet.clone(), self.dir.limits);
        async move { (name, outlet.open(OUT, packet, limits).await) }.boxed_local()
    }

    /// Moves a file away when its reply is back.
    async fn end(&mut self, (name, reply): (String, Reply)) -> String {
        let (folders, moved, has_failed) =
            (Arc::clone(&self.dir.folders), name.clone(), reply.is_err());
        let put_away = move || folders.put_away(&moved, has_failed);
        let said = self.outlet.pool().run_slow(put_away).await.map_err(|error| error.to_string());
        match said.and_then(|said| said) {
            // A later file of this name is another file.
            Ok(true) => drop(self.seen.remove(&name)),
            Ok(false) => {}
            Err(text) => self
                .outlet
                .say(format_args!("{text}; it stays, and comes again with the next start")),
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::FlowFixture;
    use tempfile::tempdir;
    use tokio::time::sleep;

    use super::*;
    use crate::testing::{LIMIT, plan, run, table};

    const GRAPH: &str = "
- kind: dir
  name: d
  path: in
  pattern: '*.csv'
  done: done
  failed: failed
  quiet: 20ms
  ports: {out: [{name: f, port: in}]}
- {kind: file, name: f, path: '{{ packet.file }}', as: csv, ports: {out: [{name: n, port: in}]}}
- {kind: snippet, name: n, language: cel, code: int(packet.n)}
";

    fn dir(text: &str, folder: &Path) -> Result<Box<dyn Source>, Vec<Refusal>> {
        let plan = plan(text);
        make(&Parameters::of(&plan, &plan.nodes[0], folder))
    }

    /// Serves while `happens` runs.
    fn meanwhile(text: &str, folder: &Path, happens: impl AsyncFnOnce()) {
        let made = FlowFixture::new(&plan(text), &table(), folder);
        let fixture = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
        run(async {
            let source = dir(text, folder).unwrap_or_else(|refusals| panic!("{refusals:?}"));
            let opened = source.open(1).expect("its folders").remove(0);
            let (stopper, stop) = StopSignal::new();
            let serves = tokio::task::spawn_local(opened.serve(fixture.outlet("d"), stop));
            happens().await;
            stopper.end();
            serves.await.expect("no panic").expect("no fault");
        });
        assert_eq!(fixture.flows(), 0);
    }

    async fn until(folder: &Path, files: &[&str]) {
        let begun = Instant::now();
        while !files.iter().all(|file| folder.join(file).exists()) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {files:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[test]
    fn each_file_comes_once_and_is_put_where_it_belongs() {
        let folder = tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("in")).expect("a folder");
        let write = |name: &str, text: &str| fs::write(path.join(name), text).expect("a file");
        write("in/first.csv", "n\n1\n");
        write("in/other.txt", "n\n1\n");
        write("in/.hidden.csv", "n\n1\n");
        meanwhile(GRAPH, path, async || {
            until(path, &["done/first.csv"]).await;
            write("in/second.csv", "n\nx\n");
            write("in/first.csv", "n\n2\n");
            until(path, &["failed/second.csv", "done/first.csv.1"]).await;
        });
        let first = fs::read_to_string(path.join("done/first.csv")).expect("it is there");
        assert_eq!(first, "n\n1\n", "nothing is replaced");
        let left = dir(GRAPH, path).map(|_| fs::read_dir(path.join("in")).expect("it").count());
        assert_eq!(left.ok(), Some(2), "what is not meant stays");
    }

    #[test]
    fn a_file_that_grows_has_not_come_yet() {
        let folder = tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("in")).expect("a folder");
        let slow = GRAPH.replace("quiet: 20ms", "quiet: 1h");
        meanwhile(&slow, path, async || {
            fs::write(path.join("in/a.csv"), "n\n1\n").expect("a file");
            sleep(Duration::from_millis(100)).await;
        });
        assert!(path.join("in/a.csv").exists(), "it may still grow");
    }

    #[test]
    fn one_that_stays_where_it_failed_comes_again_when_it_changes() {
        let folder = tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("in")).expect("a folder");
        fs::write(path.join("in/a.csv"), "n\nx\n").expect("a file");
        let stays = GRAPH.replace("failed: failed", "failed: ''");
        meanwhile(&stays, path, async || {
            sleep(Duration::from_millis(200)).await;
            assert!(path.join("in/a.csv").exists());
            fs::write(path.join("in/a.csv"), "n\n17\n").expect("a file");
            until(path, &["done/a.csv"]).await;
        });
    }

    #[test]
    fn folders_that_will_not_do_are_refused() {
        let folder = tempdir().expect("a folder");
        for (from, to, expected) in [
            ("done: done", "done: in", "the folder itself"),
            ("failed: failed", "failed: in", "the folder itself"),
            ("'*.csv'", "'[a'", "Pattern syntax error"),
        ] {
            let refusals = dir(&GRAPH.replace(from, to), folder.path()).err().expect("refusals");
            assert!(refusals[0].message.contains(expected), "{refusals:?}");
        }
        let open = |text: &str| {
            let source = dir(text, folder.path()).unwrap_or_else(|refusals| panic!("{refusals:?}"));
            source.open(1).err().expect("a fault").text().to_owned()
        };
        assert!(open(GRAPH).contains("No such file"), "{}", open(GRAPH));
        fs::create_dir(folder.path().join("in")).expect("a folder");
        let elsewhere = open(&GRAPH.replace("done: done", "done: /dev/shm"));
        assert!(elsewhere.contains("on another disk"), "{elsewhere}");
    }
}

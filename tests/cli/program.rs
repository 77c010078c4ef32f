//! The program under test. It is started, waited for with a limit, and always ended.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{ThreadId, current, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A wait longer than this is a hang. It says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often a condition is checked.
const LOOK: Duration = Duration::from_millis(5);

/// The folders of the tests. Each belongs to a thread, so to a test.
static OWNERS: Mutex<BTreeMap<PathBuf, ThreadId>> = Mutex::new(BTreeMap::new());

/// The program.
pub(crate) const SINEW: &str = env!("CARGO_BIN_EXE_sinew");

/// Sets a flag when a test has ended, also by a failure: otherwise it would wait for ever for the
/// threads that poll the flag.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A file of the repository.
pub(crate) fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The graph that most runs use.
pub(crate) fn calm() -> String {
    ours("tests/cli/calm.yaml").display().to_string()
}

/// The arm of the README.
pub(crate) fn arm() -> String {
    ours("graphs/arm/arm.yaml").display().to_string()
}

/// A graph in a folder of its own, named `name`.
pub(crate) fn graph_in(name: &str, text: &str) -> String {
    let graph = folder(name).join("graph.yaml");
    fs::write(&graph, text).expect("a place for it");
    graph.display().to_string()
}

/// The calm graph with edits in its text, in a folder of its own, named `name`.
pub(crate) fn edited(name: &str, edits: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(calm()).expect("a spec");
    let text = text.replace("../../graphs/arm", &ours("graphs/arm").display().to_string());
    let text = edits.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the calm graph has no '{from}' any more");
        text.replace(from, to)
    });
    graph_in(name, &text)
}

/// A new, empty folder named `name`.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    claim(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Deletes what an earlier run has left of this folder. Panics if another test of this program has
/// the folder: one would delete the files of the other.
pub(crate) fn claim(folder: &Path) {
    let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = *owners.entry(folder.to_owned()).or_insert_with(|| current().id());
    drop(owners);
    assert_eq!(owner, current().id(), "another test has {}, too", folder.display());
    let _ = fs::remove_dir_all(folder);
}

/// Waits for `condition`, which is described by `what`.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        sleep(LOOK);
    }
}

/// Says that a test cannot run here. With `CI=true` this is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
pub(crate) fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

/// The result of a command.
pub(crate) struct Answer {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    /// Standard error without the lines in `of_others`.
    pub(crate) err: String,
    /// Warnings about other runs on its CPUs, mostly those of other tests, and about privileges
    /// that it does not have here.
    pub(crate) of_others: String,
}

impl Answer {
    /// Standard output as the one JSON object that it must be.
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.out);
        value.unwrap_or_else(|error| panic!("{error} in:\n{}\n{}", self.out, self.err))
    }

    /// The answer, after a check that it has no sign of a failure of the program itself.
    #[track_caller]
    pub(crate) fn ended_with(self, status: i32) -> Answer {
        let out: String = self.out.chars().take(500).collect();
        assert_eq!(self.status, Some(status), "{}\n{out}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

/// Runs `sinew` with `arguments` to its end.
pub(crate) fn sinew<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Answer {
    let mut command = Command::new(SINEW);
    command.args(arguments);
    Running::start(command).answer()
}

/// Checks that a request is bad: status 2, nothing on standard output, and the `expected` words.
pub(crate) fn refused<A: AsRef<OsStr> + Debug>(arguments: &[A], expected: &str) {
    let answer = sinew(arguments).ended_with(2);
    assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
}

/// How many programs were started; it names the files of their output.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running program. Its output goes to files, so that nothing has to read it.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Starts a command.
    pub(crate) fn start(command: Command) -> Running {
        Running::start_into(command, None)
    }

    /// The same, with standard output into `out`.
    pub(crate) fn start_into(mut command: Command, out: Option<Stdio>) -> Running {
        // Relaxed: the number is only unique, and orders nothing.
        let name = format!("{}-{}", std::process::id(), STARTED.fetch_add(1, Relaxed));
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (out_path, err) = (place.with_extension("out"), place.with_extension("err"));
        let file = File::create(&out_path).expect("a file for the output");
        if command.get_envs().all(|(name, _)| name != "XDG_CACHE_HOME") {
            // The user who runs the tests may have a machine profile. The tests must not use it.
            command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        }
        command.stdin(Stdio::null()).stdout(out.unwrap_or_else(|| file.into()));
        command.stderr(File::create(&err).expect("a file for the errors"));
        let child = command.spawn().expect("the program starts");
        Running { child, out: out_path, err }
    }

    /// `sinew run --json` of the calm graph, until it is asked to stop.
    pub(crate) fn arm(more: &[&str]) -> Running {
        // The run reacts to SIGHUP, even if the test process ignores it.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", SINEW, "run", "--json"]).args(more).arg(calm());
        Running::start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes of the domains, in the order of the spec, once all of them exist.
    pub(crate) fn domains(&self, count: usize) -> Vec<u32> {
        let mut domains = vec![];
        wait_until("the domains have started", || {
            domains = children(self.pid());
            domains.len() == count
        });
        domains
    }

    /// Its standard output so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.out).expect("its output is UTF-8")
    }

    /// Sends a signal to this process.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Sends the signal again and again until this process has ended: signals close together count
    /// as one.
    pub(crate) fn insist(&self, signal: Signal) {
        wait_until("a signal has ended the program", || {
            self.signal(signal);
            !is_alive(self.pid())
        });
    }

    /// Waits for the end. Returns the result.
    pub(crate) fn answer(mut self) -> Answer {
        let status = self.wait();
        const OF_OTHERS: [&str; 2] =
            [" has realtime threads on the same CPUs", "the kernel refused "];
        let of_others = |line: &&str| OF_OTHERS.iter().any(|words| line.contains(words));
        let err = fs::read_to_string(&self.err).expect("its output is UTF-8");
        let (of_others, err) = err.split_inclusive('\n').partition(of_others);
        Answer { status: status.code(), out: self.said(), err, of_others }
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the program ended", || {
            status = self.child.try_wait().expect("a child of ours");
            status.is_some()
        });
        status.expect("just looked at")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // These calls fail only if nothing is left to do. The domains end with their parent.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.out);
        let _ = fs::remove_file(&self.err);
    }
}

/// Sends a signal to a process that must be there.
pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a pid")).expect("a pid is not zero");
    kill_process(pid, signal).expect("the process is there to get the signal");
}

/// The processes that `pid` has started and that have not ended, the oldest first.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

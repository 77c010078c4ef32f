//! The program under test: started, waited for with a limit, and never left behind.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The program.
pub(crate) const SINEW: &str = env!("CARGO_BIN_EXE_sinew");

/// A file of the repository.
pub(crate) fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The graph that a run is made with.
pub(crate) fn calm() -> String {
    ours("tests/cli/calm.yaml").display().to_string()
}

/// The arm of the README.
pub(crate) fn arm() -> String {
    ours("graphs/arm/arm.yaml").display().to_string()
}

/// A graph in a folder that is `name`'s own.
pub(crate) fn graph_in(name: &str, text: &str) -> String {
    let graph = folder(name).join("graph.yaml");
    fs::write(&graph, text).expect("a place for it");
    graph.display().to_string()
}

/// The calm graph with other words in it, in a folder that is `name`'s own.
pub(crate) fn edited(name: &str, edits: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(calm()).expect("a spec");
    let text = text.replace("../../graphs/arm", &ours("graphs/arm").display().to_string());
    let text = edits.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the calm graph has no '{from}' any more");
        text.replace(from, to)
    });
    graph_in(name, &text)
}

/// A new, empty folder that is `name`'s own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there, from the run before.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Waits for `condition`, which is described by `what`.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        sleep(LOOK);
    }
}

/// Says that a test cannot run here. With `CI=true` that is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
pub(crate) fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

/// What a command left behind.
pub(crate) struct Answer {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    /// Less the next one.
    pub(crate) err: String,
    /// What it says of other runs on its CPUs, those of other tests, mostly; and of rights that it
    /// has not here.
    pub(crate) of_others: String,
}

impl Answer {
    /// Standard output as the one JSON object that it must be.
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.out);
        value.unwrap_or_else(|error| panic!("{error} in:\n{}\n{}", self.out, self.err))
    }

    /// The answer, if nothing in it is the program's own failure.
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

/// That a request is bad: status 2, nothing on standard output, and the `expected` words.
pub(crate) fn refused<A: AsRef<OsStr> + Debug>(arguments: &[A], expected: &str) {
    let answer = sinew(arguments).ended_with(2);
    assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
}

/// How many programs were started; it names the files of their output.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A program that runs, with its output in files, so that nobody has to read it.
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
        // A number that no other test gets; nothing is ordered by it.
        let name = format!("{}-{}", std::process::id(), STARTED.fetch_add(1, Relaxed));
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (out_path, err) = (place.with_extension("out"), place.with_extension("err"));
        let file = File::create(&out_path).expect("a file for the output");
        if command.get_envs().all(|(name, _)| name != "XDG_CACHE_HOME") {
            // Whoever runs the tests may have a machine profile, which is none of theirs.
            command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        }
        command.stdin(Stdio::null()).stdout(out.unwrap_or_else(|| file.into()));
        command.stderr(File::create(&err).expect("a file for the errors"));
        let child = command.spawn().expect("the program starts");
        Running { child, out: out_path, err }
    }

    /// `sinew run --json` of the calm graph, until it is asked to stop.
    pub(crate) fn arm(more: &[&str]) -> Running {
        // It hears SIGHUP, also where whoever runs the tests has it ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", SINEW, "run", "--json"]).args(more).arg(calm());
        Running::start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes of the domains, in the order of the spec, once they are all there.
    pub(crate) fn domains(&self, count: usize) -> Vec<u32> {
        let mut domains = vec![];
        wait_until("the domains have started", || {
            domains = children(self.pid());
            domains.len() == count
        });
        domains
    }

    /// What it has printed so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.out).expect("its output is UTF-8")
    }

    /// Sends a signal to this process.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Sends it again and again until this process has ended: signals that come close together
    /// count as one.
    pub(crate) fn insist(&self, signal: Signal) {
        wait_until("a signal has ended the program", || {
            self.signal(signal);
            !is_alive(self.pid())
        });
    }

    /// Waits for the end.
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
        // Each may fail only because there is nothing left to do. A parent that dies takes its
        // domains with it.
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

/// The processes that `pid` has started and that have not ended, oldest first.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process is there and not only waited for.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

//! Films, graphs that play them, and the data on their page.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Running, SINEW, folder, graph_in, ours, send, sinew, skip, wait_until};

/// Only one film at a time: on a busy machine pictures are late, and some tests count them.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether films can be made. Prints what is missing.
pub(crate) fn alone() -> Option<MutexGuard<'static, ()>> {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        skip("there is no ffmpeg; apt-get install ffmpeg");
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs FFmpeg's program.
pub(crate) fn ffmpeg(arguments: &[&str]) {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).output();
    let output = output.expect("it is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) const XVID: [&str; 6] = ["-c:v", "mpeg4", "-vtag", "xvid", "-q:v", "5"];
pub(crate) const JPEG: [&str; 6] = ["-c:v", "mjpeg", "-q:v", "5", "-pix_fmt", "yuvj420p"];
pub(crate) const MP3: [&str; 2] = ["-c:a", "mp3"];
pub(crate) const PCM: [&str; 4] = ["-c:a", "pcm_s16le", "-ar", "44100"];

/// A film of the size in the paper, in a folder of its own, named after `name`.
pub(crate) fn film(name: &str, seconds: u32, video: &[&str], sound: &[&str]) -> PathBuf {
    let path = folder(&format!("film_{name}")).join(format!("{name}.avi"));
    let picture = format!("testsrc2=size=640x352:rate=25:duration={seconds}");
    let tone = format!("sine=frequency=440:duration={seconds}");
    let inputs = ["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &tone];
    let out = ["-g", "12", path.to_str().expect("a name of ours")];
    ffmpeg(&[&inputs[..], video, sound, &out].concat());
    path
}

/// A graph of `graphs/dual_os` with this film and edits in its text, and the address of its page.
pub(crate) fn graph(
    name: &str,
    from: &str,
    film: &Path,
    edits: &[(&str, &str)],
) -> (String, String) {
    let text = fs::read_to_string(ours("graphs/dual_os").join(from)).expect("the graph");
    let page = free_address();
    let film = format!("film: '{}'\n", film.display());
    let screen = format!("kind: video_sink\n    listen: {page}\n    log: shown.csv\n");
    let always = [
        ("film: film_xvid.avi\n", &film[..]),
        ("film: film_jpeg.avi\n", &film),
        ("kind: video_sink\n", &screen),
        ("../../guest", &ours("guest").display().to_string()),
        // Uses as many CPUs as there are.
        ("{cpus: [0]}", "{}"),
        ("{cpus: [1]}", "{}"),
        ("cpus: [1]\n", "\n"),
    ]
    .map(|(from, to)| (from.to_owned(), to.to_owned()));
    let text = always.iter().fold(text, |text, (from, to)| text.replace(from, to));
    let text = edits.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the graph has no '{from}':\n{text}");
        text.replace(from, to)
    });
    (graph_in(name, &text), page)
}

/// A free address.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").to_string()
}

/// A player that runs.
pub(crate) struct Player {
    running: Running,
    page: String,
    graph: String,
}

impl Player {
    /// Starts a graph.
    pub(crate) fn start((graph, page): (String, String)) -> Player {
        let mut command = Command::new(SINEW);
        command.args(["run", "--json", &graph]);
        Player { running: Running::start(command), page, graph }
    }

    /// The body of the page's answer. `None` if there is no page (yet).
    pub(crate) fn ask(&self, request: &str, more: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.page).ok()?;
        let page = &self.page;
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a good time");
        let head = format!("{request} HTTP/1.1\r\nHost: {page}\r\nOrigin: http://{page}\r\n");
        write!(stream, "{head}Connection: close\r\n{more}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let is_good = head.starts_with("HTTP/1.1 20");
        Some(if is_good { body.to_owned() } else { format!("{head}\n{body}") })
    }

    /// Its state; `Null` before there is a page.
    pub(crate) fn state(&self) -> Value {
        let body = self.ask("GET /state", "\r\n");
        body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default()
    }

    /// Waits until the state meets a condition. Returns the state.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut state = Value::Null;
        wait_until(what, || {
            state = self.state();
            thread::sleep(Duration::from_millis(20));
            is_so(&state)
        });
        state
    }

    /// Waits until this many more pictures were shown, the last of them in step with the sound.
    pub(crate) fn plays_on(&self, more: u64) -> Value {
        let before = count(&self.state(), "shown");
        self.until("it plays on in step", |it| {
            count(it, "shown") >= before + more && it["frozen_s"].is_null() && is_in_step(it)
        })
    }

    /// Gives an order.
    pub(crate) fn order(&self, body: &str) -> String {
        let head = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.ask("POST /order", &head).expect("the page is there")
    }

    /// A column of the log of shown pictures.
    pub(crate) fn column(&self, name: &str) -> Vec<Option<i64>> {
        let log = Path::new(&self.graph).with_file_name("shown.csv");
        let text = fs::read_to_string(log).expect("it was written");
        let mut lines = text.lines().map(|line| line.split(','));
        let mut head = lines.next().expect("a first line");
        let column = head.position(|column| column == name).expect("a column of this name");
        lines.map(|mut line| line.nth(column).and_then(|field| field.parse().ok())).collect()
    }

    /// What one domain of the run has printed so far.
    pub(crate) fn said(&self, domain: &str) -> String {
        let log = sinew(["log", &self.running.pid().to_string(), "--json"]).out;
        let events = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let of = events.filter(|event: &Value| event["domain"] == domain);
        of.map(|event| format!("{}\n", event["text"].as_str().unwrap_or_default())).collect()
    }

    /// Waits until a domain has printed this.
    pub(crate) fn until_said(&self, domain: &str, what: &str) {
        wait_until(&format!("'{domain}' has said '{what}'"), || {
            thread::sleep(Duration::from_millis(50));
            self.said(domain).contains(what)
        });
    }

    /// The process of a domain, and how often it was restarted.
    pub(crate) fn process(&self, domain: &str) -> (u32, u64) {
        let pid = self.running.pid().to_string();
        let top = sinew(["top", &pid, "--once", "--json"]).ended_with(0).json();
        let domains = top["domains"].as_array().expect("domains");
        let found = domains.iter().find(|it| it["name"] == domain).expect("it is there");
        (count(found, "pid") as u32, count(found, "restarts"))
    }

    /// Kills a domain, and waits for its next life.
    pub(crate) fn kill(&self, domain: &str) {
        let (pid, restarts) = self.process(domain);
        send(pid, Signal::KILL);
        wait_until(&format!("'{domain}' is back"), || {
            let (pid, now) = self.process(domain);
            pid != 0 && now > restarts
        });
    }

    /// Sends a signal to a domain.
    pub(crate) fn signal(&self, domain: &str, signal: Signal) {
        send(self.process(domain).0, signal);
    }

    /// Ends the run in order. Returns its report.
    pub(crate) fn stop(self) -> Value {
        self.running.signal(Signal::INT);
        let answer = self.running.answer();
        assert!(!answer.err.contains("panicked"), "{}", answer.err);
        answer.json()
    }
}

/// A number of a state.
pub(crate) fn count(state: &Value, key: &str) -> u64 {
    state[key].as_u64().unwrap_or_default()
}

/// Whether sound and picture were less than two pictures apart. A player in step needs much less,
/// so a busy machine does not decide the result. A player out of step is much further apart.
pub(crate) fn is_in_step(state: &Value) -> bool {
    state["difference_ms"]["last"].as_f64().is_some_and(|ms| ms.abs() < 80.0)
}

/// Waits until the film is over. Returns the last state.
pub(crate) fn watch(player: &Player) -> Value {
    player.until("the film is over", |it| it["state"] == "ended")
}

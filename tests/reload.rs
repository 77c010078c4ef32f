//! `--watch`: a graph that is edited, well and badly, while clients send many requests.

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustix::process::Signal;
use tokio::join;
use tokio::runtime::Builder;
use tokio::time::timeout;

use program::{Running, SINEW, calm, edited, folder, graph_in, send, sinew, wait_until};

/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells clients to end, also when the test fails while they send requests: otherwise the test
/// would wait for them for ever and report nothing.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A graph that answers with `text`.
fn graph(text: &str) -> String {
    format!(
        "- {{kind: listener, name: listener, port: 0, ports: {{out: [{{name: router, port: in}}]}}}}
- kind: router
  name: router
  routes: [{{method: GET, path: /ping, port: \"out[0]\"}}]
  ports: {{\"out[0]\": [{{name: pong, port: in}}]}}
- {{kind: snippet, name: pong, language: text, code: {text}}}
"
    )
}

/// A run that watches its file.
struct Watched {
    running: Running,
    file: PathBuf,
    address: String,
}

impl Watched {
    fn start(name: &str, more: &[&str]) -> Watched {
        Watched::of(graph_in(name, &graph("v0")), more)
    }

    /// A run of a graph that answers with `v0`.
    fn of(file: String, more: &[&str]) -> Watched {
        let file = PathBuf::from(file);
        let mut command = Command::new(SINEW);
        command.arg("run").arg(&file).arg("--watch").args(more);
        let running = Running::start(command);
        let mut watched = Watched { running, file, address: String::new() };
        wait_until("it says where it listens", || {
            let told = watched.running.said();
            let at = told.split("http://").nth(1).and_then(|rest| rest.split_once('\n'));
            watched.address = at.map_or(String::new(), |(address, _)| address.trim().to_owned());
            !watched.address.is_empty()
        });
        wait_until("it answers", || watched.ask() == "v0");
        watched
    }

    /// How often it has printed this.
    fn count(&self, what: &str) -> usize {
        self.running.said().matches(what).count()
    }

    /// Edits the file, either in place or as editors do that replace it by a new one. Waits until
    /// the run prints `what` about it.
    fn edit(&self, text: &str, in_place: bool, what: &str) {
        let before = self.count(what);
        if in_place {
            fs::write(&self.file, text).expect("the file");
        } else {
            let new = self.file.with_extension("new");
            fs::write(&new, text).and_then(|()| fs::rename(new, &self.file)).expect("the file");
        }
        wait_until(&format!("it says '{what}' of:\n{text}"), || self.count(what) > before);
    }

    /// A graph that answers with `text` at this run's port, with further options of the listener.
    fn fixed(&self, text: &str, more: &str) -> String {
        let port = self.address.rsplit(':').next().expect("a port");
        graph(text).replace("port: 0", &format!("port: {port}{more}"))
    }

    /// The answer on a new connection. Empty if there is none.
    fn ask(&self) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return String::new() };
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let request = "GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        let got =
            stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        let good = got.is_ok() && answer.starts_with("HTTP/1.1 200");
        if good {
            answer.split_once("\r\n\r\n").map_or("", |it| it.1).into()
        } else {
            String::new()
        }
    }
}

/// Sends requests on one connection again and again, and opens another connection only if an answer
/// says that this one closes. Returns the number of answers. Each must come from one of the graphs.
fn ask_on_and_on(address: &str, done: &AtomicBool) -> u64 {
    let connect = || {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        BufReader::new(stream)
    };
    let (mut reader, mut count, mut closes) = (connect(), 0, false);
    while !done.load(Relaxed) {
        if std::mem::take(&mut closes) {
            reader = connect();
        }
        reader
            .get_mut()
            .write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("it is open");
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).expect("an answer");
        assert!(line.starts_with("HTTP/1.1 200"), "answer {count}: '{line}'");
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).expect("a header");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            closes |= line.to_lowercase().trim() == "connection: close";
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        assert_eq!(body.first(), Some(&b'v'), "answer {count}: {body:?}");
        count += 1;
    }
    count
}

#[test]
fn no_request_fails_while_the_graph_is_edited() {
    let watched = Watched::start("reload-load", &[]);
    let (done, lone) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let kept = scope.spawn(|| ask_on_and_on(&watched.address, &done));
        let alone = scope.spawn(|| {
            while !done.load(Relaxed) {
                let answer = watched.ask();
                assert!(answer.starts_with('v'), "'{answer}' after {lone:?} answers");
                lone.fetch_add(1, Relaxed);
            }
        });
        let ends = Ends(&done);
        for at in 1..=50 {
            match at % 3 {
                0 => {
                    let bad = graph("v").replace("kind: snippet", "kind: snipet");
                    watched.edit(&bad, at % 2 == 0, "the edit is refused");
                }
                _ => {
                    watched.edit(&graph(&format!("v{at}")), at % 2 == 0, "the graph was edited");
                    assert_eq!(watched.ask(), format!("v{at}"));
                }
            }
        }
        drop(ends);
        alone.join().expect("no request failed");
        assert!(kept.join().expect("no request failed") > 100);
    });
    assert!(lone.load(Relaxed) > 100);
    assert_eq!(watched.count("faulted"), 0, "{}", watched.running.said());
}

/// Sends requests over HTTP/2, several at once on a connection, again and again. Returns the number
/// of answers. Each must come from one of the graphs.
fn ask_over_http2(address: &str, done: &AtomicBool) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client: Client<_, Empty<Bytes>> =
            Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let url: Uri = format!("http://{address}/ping").parse().expect("a url");
        let ask_on = async || {
            let mut count = 0;
            while !done.load(Relaxed) {
                let answer = timeout(PATIENCE, client.get(url.clone())).await.expect("no hang");
                let answer = answer.unwrap_or_else(|error| panic!("after {count}: {error:?}"));
                assert_eq!((answer.status(), answer.version()), (StatusCode::OK, Version::HTTP_2));
                let body = answer.into_body().collect().await.expect("all of it").to_bytes();
                assert_eq!(body.first(), Some(&b'v'), "after {count}: {body:?}");
                count += 1;
            }
            count
        };
        let counts = join!(ask_on(), ask_on(), ask_on(), ask_on());
        counts.0 + counts.1 + counts.2 + counts.3
    })
}

/// Sends requests from `clients` threads while the graph is edited. Every edit changes the
/// listener, or only every second one: see `turns`.
fn edit_the_listener(
    watched: &Watched,
    turns: usize,
    clients: usize,
    ask: fn(&str, &AtomicBool) -> u64,
) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let asks: Vec<_> =
            (0..clients).map(|_| scope.spawn(|| ask(&watched.address, &done))).collect();
        let ends = Ends(&done);
        for at in 1..=20 {
            let more = format!(", headers_max: {}", 50 + at / turns);
            watched.edit(&watched.fixed(&format!("v{at}"), &more), true, "the graph was edited");
            assert_eq!(watched.ask(), format!("v{at}"));
        }
        drop(ends);
        for ask in asks {
            assert!(ask.join().expect("no request failed") > 100);
        }
    });
    assert_eq!(watched.count("faulted"), 0, "{}", watched.running.said());
}

#[test]
fn no_request_over_http2_fails_while_the_listener_is_edited() {
    let watched = Watched::start("reload-http2", &[]);
    edit_the_listener(&watched, 2, 1, ask_over_http2);
    assert_eq!(watched.count("(listener"), 10 + 1, "{}", watched.running.said());
}

#[test]
fn no_request_on_a_kept_connection_fails_while_the_listener_is_edited() {
    edit_the_listener(&Watched::start("reload-kept", &[]), 1, 4, ask_on_and_on);
}

#[test]
fn a_bad_edit_changes_nothing_and_says_why() {
    let watched = Watched::start("reload-bad", &[]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let cases = [
        (graph("v1").replace("- kind: router", "- kind: router: x"), "graph.yaml"),
        (graph("v1").replace("kind: snippet", "kind: snipet"), "did you mean 'snippet'?"),
        (graph("v1").replace("name: pong, port: in", "name: pang, port: in"), "pang"),
        (graph("v1").replace("path: /ping", "path: 'ping'"), "ping"),
        (graph("v1").replace("language: text", "language: cobol"), "cobol"),
        (graph("v1").replace("port: 0", &format!("port: {port}")), "cannot listen at"),
        (format!("name: other\nnodes:\n{}", graph("v1")), "the graph lacks 'domains'"),
        (String::new(), ""),
    ];
    let mut refused = 0;
    for (text, _) in &cases {
        watched.edit(text, true, "the edit is refused");
        refused += 1;
        assert_eq!(watched.ask(), "v0", "{text}");
    }
    fs::remove_file(&watched.file).expect("the file");
    wait_until("it misses its file", || watched.count("the edit is refused") > refused);
    assert_eq!(watched.ask(), "v0");
    watched.edit(&graph("v2"), false, "the graph was edited: 1 node changed (pong)");
    assert_eq!(watched.ask(), "v2");
    watched.running.signal(Signal::TERM);
    let answer = watched.running.answer().ended_with(0);
    for (text, expected) in cases {
        assert!(answer.err.contains(expected), "'{expected}' of:\n{text}\nin:\n{}", answer.err);
    }
}

#[test]
fn flows_beside_a_core_are_edited_and_the_core_is_not() {
    let flows = graph("v0").replace("\n- ", "\n  - ").replace("\n  routes", "\n    routes");
    let flows = flows.replace("\n  name", "\n    name").replace("\n  ports", "\n    ports");
    let nodes = format!("nodes:\n  {flows}");
    let beside = [("domains:\n", "domain: web\ndomains:\n  web: {}\n"), ("nodes:\n", &nodes)];
    let watched = Watched::of(edited("reload-beside", &beside), &[]);
    let text = fs::read_to_string(&watched.file).expect("the graph");
    let flows_edited = text.replace("code: v0", "code: v1");
    watched.edit(&flows_edited, true, "the graph was edited: 1 node changed (pong)");
    assert_eq!(watched.ask(), "v1");
    watched.edit(&text.replace("laps: 0", "laps: 7"), true, "node 'planner' of the core changed");
    assert_eq!(watched.ask(), "v1");
}

#[test]
fn a_listener_that_is_edited_keeps_its_port() {
    let watched = Watched::start("reload-port", &[]);
    let fixed = |more: &str| watched.fixed("v0", more);
    watched.edit(&fixed(""), true, "the graph was edited: 1 node changed (listener)");
    assert_eq!(watched.ask(), "v0");
    watched.edit(&fixed(", headers_max: 50"), true, "the graph was edited: 1 node changed (lis");
    assert_eq!(watched.ask(), "v0");
}

#[test]
fn a_domain_that_comes_back_starts_with_the_newest_graph() {
    let watched = Watched::start("reload-restart", &[]);
    watched.edit(&graph("v1").replace("pong", "other"), true, "3 nodes changed (other, pong");
    let domain = watched.running.domains(1)[0];
    send(domain, Signal::KILL);
    wait_until("it is ready again", || watched.count("restarting") == 1);
    wait_until("it listens again", || watched.count("http://") > 1);
    watched.edit(&graph("v2"), true, "the graph was edited");
    assert_eq!(watched.count("the edit is refused"), 0, "{}", watched.running.said());
}

#[test]
fn a_store_is_one_for_all_workers_and_outlives_edits_and_in_a_file_kill_9() {
    let watched = Watched::start("reload-store", &[]);
    let counts = |word: &str| {
        let says = format!("\"{word} {{{{ values.memory }}}} {{{{ values.disk }}}}\"");
        let count = |name: &str, next: &str| {
            format!(
                "- {{kind: state, name: {name}, store: in_{name}, do: increment, key: \"'n'\", \
                 into: {name}, ports: {{out: [{{name: {next}, port: in}}]}}}}\n"
            )
        };
        watched.fixed(&says, "").replace("name: pong, port: in", "name: memory, port: in")
            + &count("memory", "disk")
            + &count("disk", "pong")
            + "- {kind: store, name: in_memory}\n- {kind: store, name: in_disk, path: n.store}\n"
    };
    watched.edit(&counts("v"), true, "the graph was edited");
    let ask = || (0..10).map(|_| watched.ask()).collect::<Vec<_>>();
    let mut answers: Vec<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().flat_map(|client| client.join().expect("answers")).collect()
    });
    let numbers = |at: usize, answers: &[String]| {
        let number = |answer: &String| answer.split(' ').nth(at)?.parse().ok();
        let mut numbers: Vec<Option<u32>> = answers.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    };
    for at in 1..=2 {
        assert!(numbers(at, &answers).into_iter().eq((1..=40).map(Some)), "{answers:?}");
    }
    watched.edit(&counts("w"), true, "the graph was edited: 1 node changed (pong)");
    answers = vec![watched.ask()];
    assert_eq!(answers, ["w 41 41"]);
    send(watched.running.domains(1)[0], Signal::KILL);
    wait_until("it answers again", || {
        answers.push(watched.ask());
        answers.last().is_some_and(|it| !it.is_empty())
    });
    assert_eq!(answers.last().map(String::as_str), Some("w 1 42"), "{}", watched.running.said());
}

#[test]
fn tests_and_what_only_they_reach_are_no_part_of_a_run() {
    let watched = Watched::start("reload-tests", &[]);
    let tests = "- {kind: test, name: proves, ports: {out: [{name: before, port: in}]}}
- {kind: nop, name: before, ports: {out: [{name: pong, port: in}]}}
";
    let edited = format!("{}{tests}", graph("v0"));
    watched.edit(&edited, true, "the graph was edited: only its text changed, not the graph");
    let pid = watched.running.pid().to_string();
    let status = sinew(["top", &pid, "--once", "--json"]).ended_with(0).json();
    let nodes = status["domains"][0]["nodes"].as_array().expect("nodes");
    let names: Vec<_> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!(names, ["listener", "router", "pong"]);
}

#[test]
fn what_has_no_flows_is_not_watched_and_not_profiled() {
    let graph = calm();
    for flags in [&["--watch"][..], &["--profile", "/tmp/none.prof"]] {
        let answer = sinew(["run", &graph].iter().chain(flags)).ended_with(2);
        assert!(answer.err.contains("this graph has no flows"), "{}", answer.err);
    }
}

#[test]
fn a_profile_is_written_at_the_end() {
    let place = folder("profile");
    let profile = place.join("cpu.prof").display().to_string();
    let watched = Watched::start("reload-profile", &["--profile", &profile, "--profile-hz", "999"]);
    (0..500).for_each(|_| assert_eq!(watched.ask(), "v0"));
    watched.running.signal(Signal::TERM);
    watched.running.answer().ended_with(0);
    let bytes = fs::read(&profile).expect("the profile");
    assert_eq!(bytes.get(..2), Some(&[0x1f, 0x8b][..]), "a gzip file of {} bytes", bytes.len());
}

#[test]
fn a_profile_for_which_there_is_no_room_is_no_success() {
    let watched = Watched::start("reload-full", &["--profile", "/dev/full", "--profile-hz", "999"]);
    assert_eq!(watched.ask(), "v0");
    watched.running.signal(Signal::TERM);
    let out = watched.running.answer().ended_with(1).out;
    assert!(
        out.ends_with("but the CPU profile '/dev/full' is incomplete; exit status 1\n"),
        "{out}"
    );
}

//! Runs as others reach them: list, top, log, restart, stop, through a control socket in the test's
//! own folder.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Answer, Running, SINEW, calm, claim, edited, is_alive, ours, wait_until};

/// The folder for the sockets of a test's runs. Its path is short, because a socket's path must be
/// short.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let folder = format!("sinew-cli-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        claim(&folder);
        DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
        Place(folder)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SINEW);
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.0).env_remove("RUNTIME_DIRECTORY");
        command
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    pub(crate) fn sinew(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).answer()
    }

    /// Starts a run, and waits until it runs. Also returns its process as the commands name it.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Running, String) {
        self.run_in(&[], arguments)
    }

    /// The same with numbers in its environment.
    pub(crate) fn run_with(&self, arguments: &[&str], env: &[(&str, u16)]) -> (Running, String) {
        let texts: Vec<_> = env.iter().map(|(name, number)| (*name, number.to_string())).collect();
        let environment: Vec<_> = texts.iter().map(|(name, text)| (*name, &**text)).collect();
        self.run_in(&environment, arguments)
    }

    /// The same with these variables in its environment.
    pub(crate) fn run_in(
        &self,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> (Running, String) {
        let mut command = self.command(&[&["run", "--json"], arguments].concat());
        command.envs(environment.iter().copied());
        let running = Running::start(command);
        let pid = running.pid().to_string();
        wait_until("the graph runs", || {
            assert!(is_alive(running.pid()), "the run ended at once");
            self.listed(running.pid()).is_some_and(|run| run["phase"] == "running")
        });
        (running, pid)
    }

    /// Stops a run, which must have had no fault.
    pub(crate) fn stop(&self, running: Running) -> Answer {
        self.sinew(&["stop", &running.pid().to_string()]).ended_with(0);
        running.answer().ended_with(0)
    }

    /// A run with a service beside the core.
    pub(crate) fn run_with_log(&self) -> (Running, String) {
        let file = format!("log.file={}", self.0.join("axes.csv").display());
        let graph = ours("tests/cli/calm_log.yaml").display().to_string();
        self.run(&["--set", &file, &graph])
    }

    /// The entry of a run in `sinew list`.
    pub(crate) fn listed(&self, pid: u32) -> Option<Value> {
        let list = self.sinew(&["list", "--json"]).json();
        let runs = list["runs"].as_array().expect("a list").clone();
        runs.into_iter().find(|run| run["pid"] == pid)
    }

    /// A domain as `sinew top` shows it.
    pub(crate) fn domain(&self, pid: &str, name: &str) -> Value {
        let top = self.sinew(&["top", pid, "--once", "--json"]).ended_with(0).json();
        let domains = top["domains"].as_array().expect("a list").clone();
        domains.into_iter().find(|domain| domain["name"] == name).expect("a domain of the graph")
    }

    fn sockets(&self) -> usize {
        fs::read_dir(self.0.join("sinew")).map_or(0, Iterator::count)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The system cleans up what remains.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_graph_says_that_another_one_is_on_its_cpus() {
    let place = Place::new("same_cpus");
    let (first, pid) = place.run(&[&calm()]);
    let second = place.sinew(&["run", "--json", "--duration", "1s", &calm()]).ended_with(0);
    let said = &second.of_others;
    let pair = "'control' of this graph at SCHED_FIFO 80, 'control' of that run at 80";
    for words in ["warning: run 'calm' (process ", pair, "{cpu: ...}"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains(&format!("(process {pid})")), "{said}");
    assert!(said.contains(&format!("'sinew stop {pid}'")), "{said}");
    place.stop(first);
}

#[test]
fn a_run_is_listed_shown_and_stopped() {
    let place = Place::new("stopped");
    let (running, pid) = place.run(&[&calm()]);
    let list = place.sinew(&["list"]).ended_with(0).out;
    assert!(list.lines().any(|line| line.contains(&pid) && line.contains("calm.yaml")), "{list}");
    let top = place.sinew(&["top", &pid, "--once"]).ended_with(0).out;
    for part in [&format!("process {pid}"), "control/0", "drives.out > ethercat.frame"] {
        assert!(top.contains(part), "{part}:\n{top}");
    }
    assert_eq!(place.domain(&pid, "plant")["state"], "running");
    let follower = place.start(&["log", &pid, "--follow"]);
    let stop = place.sinew(&["stop", &pid]).ended_with(0);
    let stopped = format!("calm (process {pid}): stopped; safe outputs after ");
    assert!(stop.out.starts_with(&stopped), "{}", stop.out);
    assert!(!is_alive(running.pid()), "stop says so too early");
    assert_eq!(running.answer().ended_with(0).json()["outcome"], "stopped");
    let log = follower.answer().ended_with(0);
    assert!(log.err.contains(&format!("calm (process {pid}) has ended")), "{}", log.err);
    assert!(log.out.contains("  request     stop, by process "), "{}", log.out);
    assert_eq!(place.sockets(), 0, "the socket is left");
}

#[test]
fn the_log_is_a_line_for_each_event_without_gaps() {
    let place = Place::new("log");
    let (_running, pid) = place.run(&[&calm()]);
    let log = place.sinew(&["log", &pid, "--json"]).ended_with(0).out;
    let event = |line: &str| serde_json::from_str::<Value>(line).expect("an event");
    let numbers: Vec<_> = log.lines().map(|line| event(line)["number"].as_u64()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected);
    assert!(log.contains("\"what\":\"started\"") && log.contains("\"domain\":\"plant\""), "{log}");
}

#[test]
fn two_runs_of_one_graph_are_told_apart() {
    let place = Place::new("two");
    // No other test has a run with this name.
    let file = edited("two_runs", &[("name: calm", "name: twins")]);
    let (first, one) = place.run(&[&file]);
    let (second, other) = place.run(&[&file]);
    for command in [&["stop", "twins"][..], &["top", "twins", "--once"], &["log", "twins"]] {
        let refused = place.sinew(command).ended_with(2).err;
        assert!(refused.contains("expected the process of one of these runs"), "{refused}");
        assert!(refused.contains(&one) && refused.contains(&other), "{refused}");
    }
    place.sinew(&["stop", &one, "--json"]).ended_with(0);
    assert!(is_alive(second.pid()), "the wrong one was stopped");
    first.answer().ended_with(0);
    // Now the name is sufficient.
    assert_eq!(
        place.sinew(&["stop", "twins", "--json"]).ended_with(0).json()["outcome"],
        "stopped"
    );
    second.answer().ended_with(0);
}

#[test]
fn a_service_is_restarted_and_the_core_is_not() {
    let place = Place::new("restart");
    let (running, pid) = place.run_with_log();
    let (control, before) = (place.domain(&pid, "control"), place.domain(&pid, "log"));
    let restart = place.sinew(&["restart", "log", "--run", &pid, "--json"]).ended_with(0).json();
    assert!(restart["ready_after_ms"].is_number(), "{restart}");
    let after = place.domain(&pid, "log");
    assert_eq!((&after["state"], &after["restarts"]), (&"running".into(), &1.into()));
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!(place.domain(&pid, "control")["pid"], control["pid"]);
    let refused = place.sinew(&["restart", "control", "--run", &pid]).ended_with(1).err;
    assert!(refused.contains("'control' is realtime: the core starts as a whole"), "{refused}");
    let refused = place.sinew(&["restart", "lgo", "--run", &pid]).ended_with(1).err;
    assert!(refused.contains("no domain 'lgo'; there are: control, plant, log"), "{refused}");
    place.stop(running);
}

#[test]
fn restarts_and_a_stop_at_once_all_come_to_an_end() {
    let place = Place::new("at_once");
    let (running, pid) = place.run_with_log();
    let restart = || place.start(&["restart", "log", "--run", &pid]);
    let restarts = [(); 3].map(|()| restart());
    restarts.into_iter().for_each(|restart| drop(restart.answer().ended_with(0)));
    // Now one restart is in progress while the graph is told to stop.
    let restart = restart();
    place.sinew(&["stop", &pid]).ended_with(0);
    let restart = restart.answer();
    let why = ["the run has ended", "the graph is stopping", "nothing runs", "no run"];
    let refused = restart.status != Some(0) && why.iter().any(|why| restart.err.contains(why));
    assert!(restart.status == Some(0) || refused, "{:?} {}", restart.status, restart.err);
    running.answer().ended_with(0);
}

#[test]
fn a_killed_run_is_listed_no_more() {
    let place = Place::new("killed");
    let (running, _) = place.run(&[&calm()]);
    let pid = running.pid();
    running.signal(Signal::KILL);
    wait_until("the run is gone", || !is_alive(pid));
    assert_eq!(place.sockets(), 1, "the kill has not landed");
    // The process is gone only after its parent has waited for it.
    drop(running);
    assert_eq!(place.listed(pid), None);
    assert_eq!(place.sockets(), 0, "the socket is left");
}

#[test]
fn a_run_that_does_not_answer_is_named() {
    let place = Place::new("silent");
    let (running, pid) = place.run(&[&calm()]);
    running.signal(Signal::STOP);
    let list = place.sinew(&["list"]).ended_with(1);
    let expected = format!("error: process {pid}: it does not answer within 5 s");
    assert!(list.err.contains(&expected), "{}", list.err);
    let stop = place.sinew(&["stop", &pid]).ended_with(1).err;
    assert!(stop.contains(&format!("process {pid}: it does not answer")), "{stop}");
    running.signal(Signal::CONT);
    place.stop(running);
}

#[test]
fn a_run_that_nobody_could_reach_does_not_start() {
    let place = Place::new("unreachable");
    symlink("/tmp", place.0.join("sinew")).expect("a link");
    let refused = place.sinew(&["run", &calm()]).ended_with(1);
    assert!(refused.err.contains("is a symbolic link, expected a folder; remove it"), "{}", {
        refused.err
    });
    assert!(!refused.out.contains("control"), "something was started: {}", refused.out);
}

#[test]
fn a_request_that_cannot_be_meant_is_refused() {
    let place = Place::new("refused");
    let unknown = "no-such-graph";
    for command in [["stop", unknown], ["log", unknown], ["top", unknown]] {
        let command = [&command[..], if command[0] == "top" { &["--once"] } else { &[] }].concat();
        let refused = place.sinew(&command).ended_with(2).err;
        assert!(refused.contains("no run 'no-such-graph'"), "{refused}");
    }
    let restart = ["restart", "log", "--run", unknown];
    for command in
        [&["stop", unknown][..], &restart, &["log", unknown], &["top", unknown, "--once"]]
    {
        let refused = place.sinew(&[command, &["--json"]].concat()).ended_with(2);
        let error = refused.json()["errors"][0]["message"].to_string();
        assert!(error.contains("no run 'no-such-graph'"), "{command:?}: {error}");
    }
    place.sinew(&["top", "--json"]).ended_with(2);
    place.sinew(&["stop", "--timeout", "soon"]).ended_with(2);
}

/// A graph whose node logs that it enters its second state.
const SAYS: &str = "name: says
domains: {control: {realtime: {period: 5ms, overrun: {policy: count}}}}
nodes:
  - kind: state_machine
    name: machine
    initial: waits
    states: {waits: {transitions: [{to: goes, after: 100ms}]}, goes: {end: true}}
";

#[test]
fn what_a_node_logs_is_in_the_log() {
    let place = Place::new("says");
    let file = place.0.join("says.yaml").display().to_string();
    fs::write(&file, SAYS).expect("a file");
    let (running, pid) = place.run(&[&file]);
    let said = "in node 'machine': enters state 'goes'";
    let of_node = |text: &str| {
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        events.filter(|event| event["what"] == "log").collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    wait_until("it says something", || {
        lines = of_node(&place.sinew(&["log", &pid, "--json"]).ended_with(0).out);
        !lines.is_empty()
    });
    let cycle = lines[0]["logged"]["cycle"].as_u64().expect("a number");
    let logged = json!({"node": "machine", "level": "info", "cycle": cycle});
    assert_eq!((lines.len(), &lines[0]["logged"]), (1, &logged));
    assert_eq!(lines[0]["text"], format!("info: cycle {cycle}: {said}"));
    assert_eq!(lines[0]["domain"], "control");
    let text = place.sinew(&["log", &pid]).ended_with(0).out;
    assert!(text.contains(said), "{text}");
    place.stop(running);
}

//! The hosts of `graphs/cell`. Each is a run with a folder for its socket.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::program::{Running, SINEW, graph_in, is_alive, ours, wait_until};

/// The graph, and the addresses of its hosts.
pub(crate) struct Cell {
    name: String,
    text: String,
    addresses: [(&'static str, String); 2],
    /// The words before the command of a host, which say where it runs.
    inside: Option<fn(&str) -> Vec<String>>,
}

impl Cell {
    /// On this machine, at free ports.
    pub(crate) fn new(name: &str) -> Cell {
        // Both at once: otherwise they might be the same.
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [cell, office] = listeners.map(|it| it.local_addr().expect("an address").to_string());
        Cell::at(name, [("CELL", cell), ("OFFICE", office)], None)
    }

    /// With hosts at these addresses.
    pub(crate) fn at(
        name: &str,
        addresses: [(&'static str, String); 2],
        inside: Option<fn(&str) -> Vec<String>>,
    ) -> Cell {
        let text = fs::read_to_string(ours("graphs/cell/cell.yaml")).expect("a graph");
        // It tolerates a busy machine, as all runs of tests do.
        let edits = [
            ("period: 1ms", "period: 5ms"),
            ("period: 10ms", "period: 20ms"),
            ("consecutive_max: 50}", "consecutive_max: 10000}"),
            ("lost_frames_max: 50", "lost_frames_max: 100"),
            ("after: 50}", "after: 100}"),
            ("following_mm: 60", "following_mm: 1000"),
            ("following_deg: 20", "following_deg: 180"),
            ("port: 8080", "port: 0"),
            ("wait: spin, ", "wait: spin_then_park, "),
            ("../arm", "ARM"),
            ("../robot", "ROBOT"),
        ];
        let text = edits.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "the graph has no '{from}' any more");
            text.replace(from, to)
        });
        let of = |folder: &str| ours(folder).display().to_string();
        let text = text.replace("ARM", &of("graphs/arm")).replace("ROBOT", &of("graphs/robot"));
        Cell { name: name.to_owned(), text, addresses, inside }
    }

    /// The hosts of `graphs/http/two_hosts.yaml`.
    pub(crate) fn of_calls(name: &str) -> Cell {
        let text = fs::read_to_string(ours("graphs/http/two_hosts.yaml")).expect("a graph");
        let text = text.replace("port: 8000", "port: 0");
        let addresses = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [front, back] = addresses.map(|it| it.local_addr().expect("an address").to_string());
        let addresses = [("FRONT", front), ("BACK", back)];
        Cell { name: name.to_owned(), text, addresses, inside: None }
    }

    /// Hosts `cell`, which sends the constants 1 to 6 at six ports, and `office`, which takes them.
    pub(crate) fn of_six_ports(
        name: &str,
        addresses: [(&'static str, String); 2],
        inside: fn(&str) -> Vec<String>,
    ) -> Cell {
        let sends = |port: u32| {
            let out = format!("{{name: s{port}, port: in, delivery: latest, after: 100ms}}");
            let head = format!("kind: constant, name: k{port}, domain: sends, value: {port}");
            format!("  - {{{head}, ports: {{out: [{out}]}}}}\n")
        };
        let takes =
            |port| format!("  - {{kind: statistics, name: s{port}, domain: takes, window: 2}}\n");
        let nodes: String = (1..=6).map(sends).chain((1..=6).map(takes)).collect();
        let domain = |name: &str, host: &str| {
            let realtime = "{period: 5ms, overrun: {policy: count}}";
            format!("  {name}: {{host: {host}, realtime: {realtime}}}\n")
        };
        let domains = domain("sends", "cell") + &domain("takes", "office");
        let hosts = "{cell: {address: \"{{ env.CELL }}\"}, office: {}}";
        let text = format!("name: six\nhosts: {hosts}\ndomains:\n{domains}nodes:\n{nodes}");
        Cell { name: name.to_owned(), text, addresses, inside: Some(inside) }
    }

    /// The address of a host.
    pub(crate) fn address(&self, host: &str) -> &str {
        let of = |(name, _): &&(&str, String)| name.eq_ignore_ascii_case(host);
        &self.addresses.iter().find(of).expect("a host with an address").1
    }

    /// Starts a host, and waits until it runs.
    pub(crate) fn run(&self, host: &str) -> Host {
        self.run_edited(host, &[])
    }

    /// The same with edits in its text.
    pub(crate) fn run_edited(&self, host: &str, edits: &[(&str, &str)]) -> Host {
        self.run_with(host, edits, &[])
    }

    /// The same with more arguments.
    pub(crate) fn run_with(&self, host: &str, edits: &[(&str, &str)], more: &[&str]) -> Host {
        let started = self.start_edited(host, edits, more);
        wait_until("the host runs", || started.top()["phase"] == "running");
        started
    }

    /// Starts a host that may never run.
    pub(crate) fn start(&self, host: &str) -> Host {
        self.start_edited(host, &[], &[])
    }

    /// The report of a drill of host `cell`.
    pub(crate) fn drill(&self, more: &[&str]) -> Value {
        let folder_name = format!("hosts-{}", self.name);
        let (graph, place) = (graph_in(&folder_name, &self.text), runtime_folder(&folder_name));
        let mut command = Command::new(SINEW);
        command.args(["drill", "--json", "--host", "cell", &graph]).args(more);
        command.env("XDG_RUNTIME_DIR", &place);
        let output = command.output().expect("the program starts");
        let _ = fs::remove_dir_all(&place);
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {said}"))
    }

    fn start_edited(&self, host: &str, edits: &[(&str, &str)], more: &[&str]) -> Host {
        let text = edits.iter().fold(self.text.clone(), |text, (from, to)| {
            assert!(text.contains(from), "the graph has no '{from}' any more");
            text.replace(from, to)
        });
        let folder_name = format!("hosts-{}-{host}", self.name);
        let graph = graph_in(&folder_name, &text);
        let place = runtime_folder(&folder_name);
        let inside = self.inside.map_or_else(Vec::new, |inside| inside(host));
        let words = inside.iter().map(String::as_str).chain([SINEW]);
        let words = words.chain(["run", "--json", "--host", host, &graph]);
        let words = words.chain(more.iter().copied());
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("XDG_RUNTIME_DIR", &place);
        command.envs(self.addresses.iter().map(|(name, address)| (*name, address)));
        Host { running: Running::start(command), place }
    }
}

/// A folder with a short name: a socket's path must be short.
fn runtime_folder(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("sinew-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a folder");
    place
}

/// A host that was started.
pub(crate) struct Host {
    running: Running,
    place: PathBuf,
}

impl Host {
    /// The output of a command about its run, whatever its status.
    fn ask(&self, arguments: &[&str]) -> String {
        self.sinew(&[arguments, &[&self.running.pid().to_string()]].concat())
    }

    /// The output of `sinew top` for the run with this name.
    pub(crate) fn named(&self, run: &str) -> Value {
        serde_json::from_str(&self.sinew(&["top", "--once", "--json", run])).unwrap_or_default()
    }

    /// The output of `sinew list`.
    pub(crate) fn list(&self) -> String {
        self.sinew(&["list"])
    }

    fn sinew(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(SINEW);
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.place);
        let output = command.output().expect("the program starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The output of `sinew top` for its run.
    pub(crate) fn top(&self) -> Value {
        self.named(&self.running.pid().to_string())
    }

    /// The same as text for people.
    pub(crate) fn shown(&self) -> String {
        self.ask(&["top", "--once"])
    }

    /// The output of `sinew log`.
    pub(crate) fn log(&self) -> String {
        self.ask(&["log"])
    }

    /// The supervisor's process: the words before its command replace themselves by it.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The process of a domain.
    pub(crate) fn process(&self, domain: &str) -> u32 {
        let pid = self.domain(domain)["pid"].as_u64().expect("it runs");
        u32::try_from(pid).expect("a process")
    }

    /// A domain in `sinew top`.
    pub(crate) fn domain(&self, name: &str) -> Value {
        let top = self.top();
        let domains = top["domains"].as_array().cloned().unwrap_or_default();
        domains.into_iter().find(|it| it["name"] == name).unwrap_or_default()
    }

    /// Host and port at which a domain is reached.
    pub(crate) fn serves(&self, domain: &str) -> String {
        let url = || self.domain(domain)["address"].as_str().map(str::to_owned);
        wait_until("the domain says where it serves", || url().is_some());
        let url = url().expect("just seen");
        url.trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    /// Another host, as this one sees it.
    pub(crate) fn seen(&self, host: &str) -> Value {
        let hosts = self.domain("zenoh")["hosts"].as_array().cloned().unwrap_or_default();
        hosts.into_iter().find(|it| it["name"] == host).unwrap_or_default()
    }

    /// Waits until it sees another host in this state.
    #[track_caller]
    pub(crate) fn sees(&self, host: &str, state: &str) {
        wait_until(&format!("host '{host}' is {state}"), || {
            self.is_there();
            self.seen(host)["state"] == state
        });
    }

    /// Number of the office's targets that have reached the limiter's mailbox.
    pub(crate) fn targets(&self) -> u64 {
        let top = self.top();
        let links = top["links"].as_array().cloned().unwrap_or_default();
        let link = links.iter().find(|link| link["to"] == "limiter.in");
        link.and_then(|link| link["written"].as_u64()).unwrap_or_default()
    }

    /// Checks that this host still runs, whatever happens to others.
    #[track_caller]
    fn is_there(&self) {
        assert!(is_alive(self.pid()), "the run has ended: {}", self.running.said());
    }

    /// Waits until many more targets have come, and the core still runs.
    #[track_caller]
    pub(crate) fn obeys_more_targets(&self, when: &str) {
        let before = self.targets();
        wait_until(&format!("targets come {when}"), || {
            self.is_there();
            self.targets() > before + 50
        });
        assert_eq!(self.top()["phase"], "running", "{when}");
    }

    /// Ends it in order.
    pub(crate) fn stop(self) {
        self.ask(&["stop"]);
        wait_until("the host has stopped", || !is_alive(self.running.pid()));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

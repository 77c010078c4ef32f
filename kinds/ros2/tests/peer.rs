//! `peer.py`, a node of Cyclone DDS, and `zenoh_peer.py`, a node in the way of rmw_zenoh, each in a
//! process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::stage::{domain, skip};

/// A peer in its process.
pub(crate) struct Peer {
    process: Child,
    lines: Receiver<Value>,
}

fn python() -> String {
    std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Whether a peer can run here; if not, says what is missing.
pub(crate) fn is_there() -> bool {
    has("cyclonedds")
}

/// Whether a peer with zenoh can run here; if not, says what is missing.
pub(crate) fn is_zenoh_there() -> bool {
    has("zenoh, rosbags")
}

fn has(packages: &str) -> bool {
    let python = python();
    let import = format!("import {packages}");
    let tried = Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    let good = tried.is_ok_and(|status| status.success());
    if !good {
        skip(&format!("'{python}' cannot import {packages}; name another in SINEW_TEST_PYTHON"));
    }
    good
}

impl Peer {
    /// Starts a peer with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Peer {
        Peer::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer.py"), &domain(), arguments)
    }

    /// Starts a peer over Zenoh with these arguments, with a router at this port.
    pub(crate) fn over_zenoh(port: &str, arguments: &[&str]) -> Peer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zenoh_peer.py");
        Peer::of(script, port, arguments)
    }

    fn of(script: &str, first: &str, arguments: &[&str]) -> Peer {
        let mut process = Command::new(python())
            .args([script, first])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Peer { process, lines }
    }

    /// The next line of the peer, if there is one.
    pub(crate) fn heard(&self) -> Option<Value> {
        self.lines.try_recv().ok()
    }

    /// The next line of the peer, if one comes within this time.
    pub(crate) fn says(&self, time: Duration) -> Option<Value> {
        self.lines.recv_timeout(time).ok()
    }

    /// Kills it at once, without notice to anybody, as when a machine loses its power.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it runs");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! The same in separate network namespaces whose cables are pulled: `graphs/cell/netns.sh`.

use std::process::{Command, Stdio};

use crate::hosts::stage::Cell;
use crate::program::{ours, wait_until};

/// A name for networks that only this process uses.
fn word() -> String {
    format!("t{}", std::process::id())
}

fn script() -> String {
    ours("graphs/cell/netns.sh").display().to_string()
}

/// Runs the script on the networks. Returns whether it succeeded.
fn networks(words: &[&str]) -> bool {
    let mut command = Command::new(script());
    command.args(words).env("SINEW_NETNS", word()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The networks. They are removed at the end.
struct Networks;

impl Networks {
    /// `None` if this process may not create them, or 'ip' is not installed.
    fn up() -> Option<Networks> {
        let made = Networks;
        networks(&["up"]).then_some(made)
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        networks(&["down"]);
    }
}

fn inside(host: &str) -> Vec<String> {
    let words = ["env".to_owned(), format!("SINEW_NETNS={}", word()), script(), "in".to_owned()];
    [&words[..], &[host.to_owned()]].concat()
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn a_cable_that_is_pulled_stops_nothing_and_all_goes_on_once_it_is_back() {
    // Skipped in CI too: a container may forbid networks, which says nothing about this program.
    let Some(_networks) = Networks::up() else {
        return println!("skipped: networks of their own need root and 'ip'");
    };
    let addresses = ["198.51.100.1:7447", "198.51.100.2:7447"].map(str::to_owned);
    let [cell, office] = addresses;
    let cell = Cell::at("networks", [("CELL", cell), ("OFFICE", office)], Some(inside));
    let (here, office) = (cell.run("cell"), cell.run("office"));
    here.obeys_more_targets("at the beginning");
    assert!(networks(&["cut", "office"]));
    here.sees("office", "silent");
    office.sees("cell", "silent");
    let before = here.targets();
    assert_eq!(here.top()["phase"], "running");
    assert!(networks(&["mend", "office"]));
    here.obeys_more_targets("once the cable is back");
    assert!(here.targets() > before);
    wait_until("nobody is silent", || {
        here.seen("office")["state"] == "heard" && office.seen("cell")["state"] == "heard"
    });
    office.stop();
    here.stop();
}

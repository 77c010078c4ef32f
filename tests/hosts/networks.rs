//! The same in separate network namespaces whose cables are pulled: `graphs/cell/netns.sh`.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::hosts::stage::Cell;
use crate::program::{folder, ours, wait_until};

thread_local! {
    /// The number of this test, which runs on a thread of its own.
    static NUMBER: u32 = {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // A number of its own for each; it orders nothing.
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// A name for networks that only this test uses.
fn word() -> String {
    format!("t{}-{}", std::process::id(), NUMBER.with(|it| *it))
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

/// Drops all packets from and to the office, or lets them pass again. Returns whether it worked.
fn drop_packets(drops: bool) -> bool {
    let how = if drops { "-A" } else { "-D" };
    ["INPUT", "OUTPUT"].iter().all(|chain| {
        let way = if *chain == "INPUT" { "-i" } else { "-o" };
        networks(&["in", "office", "iptables", how, chain, way, "eth0", "-j", "DROP"])
    })
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

/// The columns of a table that a run has written, by their names: the values in them.
fn columns(table: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = table.lines().map(|line| line.split(',').map(str::to_owned));
    let names = lines.next().into_iter().flatten();
    let mut columns: Vec<_> = names.map(|name| (name, vec![])).collect();
    for line in lines {
        columns.iter_mut().zip(line).for_each(|(column, value)| column.1.push(value));
    }
    columns
}

/// `SINEW_CUTS` says how many cuts there are.
#[test]
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn after_a_short_cut_no_message_comes_out_of_another_port() {
    // Skipped in CI too: a container may forbid networks, which says nothing about this program.
    let Some(_networks) = Networks::up() else {
        return println!("skipped: networks of their own need root and 'ip'");
    };
    if !(drop_packets(true) && drop_packets(false)) {
        return println!("skipped: dropping packets needs 'iptables'");
    }
    let cuts = std::env::var("SINEW_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(15);
    let addresses = [("CELL", "198.51.100.1:7447"), ("OFFICE", "198.51.100.2:7447")];
    let six = Cell::of_six_ports("six", addresses.map(|(it, at)| (it, at.to_owned())), inside);
    let table = folder("hosts-six").join("office.csv");
    let (here, office) =
        (six.run("cell"), six.run_with("office", &[], &["--csv", &table.display().to_string()]));
    let is_heard = || office.seen("cell")["state"] == "heard";
    wait_until("the cell is heard", is_heard);
    for cut in 0..cuts {
        assert!(drop_packets(true));
        sleep(Duration::from_millis(150 + cut % 15 * 20));
        assert!(drop_packets(false));
        sleep(Duration::from_millis(900));
    }
    wait_until("the cell is heard after all cuts", is_heard);
    let seen = office.seen("cell");
    assert_eq!(seen["misplaced"], 0, "full keys cannot be misplaced: {seen}");
    // Otherwise the cuts have cut nothing.
    assert!(seen["lost"].as_u64() > Some(cuts * 10), "not shown: {seen}");
    office.stop();
    here.stop();
    let columns = columns(&std::fs::read_to_string(&table).expect("the run's table"));
    for port in 1..=6 {
        let of_port = |name: &str| name == format!("s{port}.min") || name == format!("s{port}.max");
        let mut found = columns.iter().filter(|(name, _)| of_port(name)).peekable();
        assert!(found.peek().is_some_and(|(_, values)| values.len() > 100), "not shown: s{port}");
        for value in found.flat_map(|(_, values)| values).filter(|value| !value.is_empty()) {
            let value: f64 = value.parse().expect("a number");
            assert!(value == 0.0 || value == f64::from(port), "port {port} has seen {value}");
        }
    }
}

//! `graphs/cell`: targets come from another host, late ones are dropped, and no event on the
//! network or on the other hosts stops the arm's core.

mod calls;
mod drills;
mod merge;
mod networks;
mod router;
mod stage;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::hosts::stage::Cell;
use crate::program::{self, folder, graph_in, refused, send, wait_until};

/// Longer than a target may be obeyed. But not so long that its connection is closed and loses the
/// messages on their way.
const TOO_LONG: Duration = Duration::from_millis(300);

/// Stops a process.
fn stand_still(process: u32) {
    send(process, Signal::STOP);
    sleep(TOO_LONG);
    send(process, Signal::CONT);
}

#[test]
fn a_host_that_stands_still_comes_back_to_late_commands_and_obeys_none() {
    let cell = Cell::new("late");
    let (here, office) = (cell.run("cell"), cell.run("office"));
    here.obeys_more_targets("at the beginning");
    assert_eq!(here.seen("hall")["state"], "unheard");
    let before = here.seen("office")["late"].as_u64().expect("a number");
    let zenoh = here.process("zenoh");
    // On a busy machine the connection may end anyway, and then nothing was shown.
    wait_until("late commands have come, and were counted", || {
        stand_still(zenoh);
        sleep(TOO_LONG);
        here.seen("office")["late"].as_u64() > Some(before)
    });
    here.obeys_more_targets("after that");
    stand_still(office.process("zenoh"));
    here.obeys_more_targets("after the office stood still");
    office.stop();
    here.stop();
}

#[test]
fn a_host_that_dies_is_told_and_comes_back() {
    let cell = Cell::new("dies");
    let here = cell.run("cell");
    let office = cell.run("office");
    here.obeys_more_targets("at the beginning");
    send(office.pid(), Signal::KILL);
    here.sees("office", "silent");
    assert_eq!(here.top()["phase"], "running");
    assert_eq!(here.named("cell@cell")["host"], "cell");
    assert!(here.list().contains("cell@cell"), "{}", here.list());
    drop(office);
    let office = cell.run("office");
    here.sees("office", "heard");
    here.obeys_more_targets("of the office's second life");
    let log = here.log();
    for text in ["host 'office' is heard", "host 'office' is silent"] {
        assert!(log.contains(text), "{text}: {log}");
    }
    // The service that handles the other hosts is started again after a kill, like any service.
    send(here.process("zenoh"), Signal::KILL);
    here.obeys_more_targets("after zenoh was killed");
    office.stop();
    here.stop();
}

#[test]
fn a_host_with_another_graph_is_told_and_not_obeyed() {
    let cell = Cell::new("other");
    let here = cell.run("cell");
    let office = cell.run_edited(
        "office",
        &[("delivery: latest, after: 100ms", "delivery: queue, after: 100ms")],
    );
    here.sees("office", "other_graph");
    office.sees("cell", "other_graph");
    assert_eq!(here.targets(), 0);
    assert!(here.log().contains("start both with the same file"), "{}", here.log());
    office.stop();
    here.stop();
}

#[test]
fn a_port_that_is_taken_is_told_until_it_is_free() {
    let cell = Cell::new("port");
    let taken = std::net::TcpListener::bind(cell.address("cell")).expect("a free port");
    let here = cell.start("cell");
    wait_until("the log says so", || here.log().contains("cannot listen at"));
    drop(taken);
    let office = cell.run("office");
    here.obeys_more_targets("once the port is free");
    office.stop();
    here.stop();
}

#[test]
fn what_came_from_another_host_is_replayed_bit_for_bit() {
    let cell = Cell::new("replayed");
    let folder = folder("hosts-recordings");
    let node = format!("nodes:\n  - {{kind: recorder, domain: rec, folder: {}}}", folder.display());
    let edits = [
        ("  camera: {host: hall}", "  camera: {host: hall}\n  rec: {host: cell}"),
        ("nodes:", &node),
    ];
    let (here, office) = (cell.run_edited("cell", &edits), cell.run("office"));
    here.obeys_more_targets("while it is recorded");
    office.stop();
    here.stop();
    let mut parts = fs::read_dir(&folder).expect("the recorder's folder");
    let part = parts.next().expect("a part").expect("its name").path().display().to_string();
    let report = program::sinew(["replay", "--json", &part]).ended_with(0).json();
    assert_eq!(
        (&report["identical"], &report["graph"]),
        (&true.into(), &"cell".into()),
        "{report}"
    );
    assert!(report["cycles"].as_u64().is_some_and(|cycles| cycles > 100), "{report}");
}

#[test]
fn the_drill_cuts_the_line_to_another_host_and_sends_again_what_it_said() {
    let cell = Cell::new("drilled");
    let report = cell.drill(&["--only", "host=office,fault=cut_2s,host_killed,sent_again"]);
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3, "{report}");
    for row in rows {
        let round = &row["rounds"][0];
        assert!(round["proof"].is_string(), "nothing shows that it came: {row}");
        let wrong = ["failures", "not_shown"].map(|it| round[it].as_array().map(Vec::len));
        assert_eq!(wrong, [Some(0); 2], "{row}");
        let was_silent = row["fault"] != "sent_again";
        assert_eq!(round["host"]["silent_ms"].is_u64(), was_silent, "{row}");
        assert_eq!(round["host"]["heard_ms"].is_u64(), was_silent, "{row}");
    }
    let [late, refused] = ["late", "refused"].map(|it| rows[2]["rounds"][0]["host"][it].as_u64());
    assert!(late.zip(refused).is_some_and(|(late, refused)| late + refused >= 50), "{report}");
}

#[test]
fn a_run_is_the_part_of_one_host() {
    let graph = program::ours("graphs/cell/cell.yaml").display().to_string();
    refused(&["run", &graph], "add '--host cell' or '--host office' or '--host hall'");
    refused(&["run", "--host", "offise", &graph], "did you mean 'office'?");
    let arm = program::arm();
    refused(&["run", "--host", "cell", &arm], "there is no host 'cell'");
    refused(&["drill", "--host", "cell"], "--set and --host need a graph; name its file");
    let whole = program::sinew(["check", &graph]).ended_with(0).out;
    for text in ["cell: 3 hosts, ", "planner.out at office -> limiter.in at cell"] {
        assert!(whole.contains(text), "{text}: {whole}");
    }
    let part = program::sinew(["check", "--host", "cell", &graph]).ended_with(0).out;
    for text in ["the part of host cell", "messages of another host that are older than 100ms"] {
        assert!(part.contains(text), "{text}: {part}");
    }
}

#[test]
fn a_certificate_that_is_not_there_is_told_before_anything_runs() {
    let text = fs::read_to_string(program::ours("graphs/cell/cell.yaml")).expect("a graph");
    let tls = "tls: {ca: ca.pem, certificate: none.pem, key: none.key}";
    let text = text
        .replace("' }}\"}", &format!("' }}}}\", {tls}}}"))
        .replace("hall: {}", &format!("hall: {{{tls}}}"));
    let graph = graph_in("hosts-tls", &text);
    refused(&["check", "--host", "cell", &graph], "ca.pem");
}

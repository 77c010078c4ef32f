//! Two operating systems in one graph: the arm with a guard under FreeRTOS between its master and
//! its drives. The guard's decisions are tested as the drill sees them, from outside.

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;
use serde_json::Value;

use program::{
    Running, SINEW, children, graph_in, is_alive, ours, refused, send, sinew, skip, wait_until,
};

/// Only one guest at a time: each needs a CPU.
static ALONE: Mutex<()> = Mutex::new(());

const IMAGE: &str = "guest/target/armv7a-none-eabi/release/guard";

/// Whether a guest can be run. Prints what is missing.
fn guest() -> Option<MutexGuard<'static, ()>> {
    let emulator = Command::new("qemu-system-arm").arg("--version").output();
    if emulator.is_err() {
        skip("there is no qemu-system-arm; apt-get install qemu-system-arm");
        return None;
    }
    if !ours(IMAGE).exists() {
        skip("the guest was not built; cd guest && cargo build --release");
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The graph with edits in its text, in a folder of its own, named `name`.
fn graph(name: &str, edits: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(ours("graphs/dual_os/arm.yaml")).expect("the graph");
    let text = text.replace("../arm", &ours("graphs/arm").display().to_string());
    let text = text.replace("../../guest", &ours("guest").display().to_string());
    // These tests do not check times: a busy machine must not decide the result.
    let patient = [
        ("consecutive_max: 50", "consecutive_max: 100000"),
        ("lost_frames_max: 50", "lost_frames_max: 100"),
        ("heartbeat: 500ms", "heartbeat: 2s"),
    ];
    let text = patient.iter().chain(edits).fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the graph has no '{from}' any more");
        text.replace(from, to)
    });
    graph_in(name, &text)
}

/// The rows of a drill.
fn drill(graph: &str, only: &str) -> Vec<Value> {
    let answer = sinew(["drill", graph, "--json", "--only", only]).ended_with(0).json();
    assert_eq!(answer["good"], true, "{answer:#}");
    answer["rows"].as_array().expect("rows").clone()
}

#[test]
fn a_graph_with_a_guest_is_checked_against_its_image() {
    let Some(_alone) = guest() else { return };
    let good = graph("dual_good", &[]);
    let said = sinew(["check", &good]).ended_with(0).out;
    assert!(said.contains("guest on board virt") && said.contains("ethercat.out -> guard.in"));
    let drawn = sinew(["graph", &good]).ended_with(0).out;
    assert!(drawn.contains("Frame · 192 B · carve_out"), "{drawn}");
    let bad = |name: &str, from: &str, to: &str, expected: &str| {
        refused(&["check", &graph(name, &[(from, to)])], expected);
    };
    let image = ours(IMAGE).display().to_string();
    bad("dual_missing", &image, "nowhere.elf", "no such file");
    bad("dual_foreign", &image, "/bin/true", "with 64 bits");
    bad("dual_text", &image, &ours("README.md").display().to_string(), "README.md");
    bad("dual_after", "after: 10 ", "after: 0 ", "after cannot be '0'");
    bad("dual_kind", "kind: guard\n", "kind: gaurd\n", "did you mean 'guard'?");
    let pose = ("{name: guard, port: in, delivery: latest}", "{name: ik, port: in}");
    bad("dual_link", pose.0, pose.1, "sends Frame (192 bytes)");
}

#[test]
fn without_an_emulator_the_check_says_so() {
    let Some(_alone) = guest() else { return };
    let mut command = Command::new(SINEW);
    command.args(["check", &graph("dual_bare", &[])]).env("PATH", "/nowhere");
    let answer = Running::start(command).answer().ended_with(2);
    assert!(answer.err.contains("qemu-system-arm"), "{}", answer.err);
}

/// Cycles of the drives until they are safe, for a controller that is stopped (SIGSTOP). The
/// supervisor takes two seconds to notice.
fn cycles_until_safe(name: &str, guards_after: &str) -> u64 {
    // The drives themselves would tolerate it for a long time.
    let patient = ("after: 50}", "after: 20000}");
    let unwatched = ("domain: plant\n", "domain: plant\n    watchdog_ms: 6000\n");
    let graph = graph(name, &[patient, unwatched, ("after: 10 ", guards_after)]);
    let rows = drill(&graph, "domain=control,fault=stop");
    let round = &rows[0]["rounds"][0];
    assert!(round["proof"].is_string(), "{round:#}");
    let moved = round["moved_rad"].as_array().expect("axes");
    assert!(moved.iter().any(|way| way.as_f64() > Some(0.0)), "it stood: {round:#}");
    round["safe_cycles"].as_u64().expect("it stopped")
}

#[test]
fn the_guest_stops_the_axes_of_a_controller_that_is_silent() {
    let Some(_alone) = guest() else { return };
    let (with, without) = (
        cycles_until_safe("dual_silent", "after: 10 "),
        cycles_until_safe("dual_patient", "after: 10000 "),
    );
    assert!(with < 1000 && without > 1000, "{with} cycles, and {without} if the guard bears it");
}

#[test]
fn whatever_ends_a_guest_the_drives_stop_by_themselves() {
    let Some(_alone) = guest() else { return };
    let graph = graph("dual_crash", &[("after: 50}", "after: 500}")]);
    let rows = drill(&graph, "node=guard,fault=error,panic,segv,undefined,hang,kill,hostile");
    let seen: Vec<_> = rows.iter().filter_map(|row| row["fault"].as_str()).collect();
    assert_eq!(seen, ["panic", "error", "segv", "kill", "hang", "undefined", "hostile"]);
    for row in &rows {
        let round = &row["rounds"][0];
        assert!(round["proof"].is_string() && round["still_ns"].is_u64(), "{row:#}");
        assert_eq!(round["left"], Value::Array(vec![]), "{row:#}");
    }
}

/// The guest's domain in `sinew top`: its state, its process, how often it was restarted.
fn of_guest(pid: &str) -> (String, u32, u64) {
    let top = sinew(["top", pid, "--once", "--json"]).ended_with(0).json();
    let domains = top["domains"].as_array().expect("domains");
    let guest = domains.iter().find(|domain| domain["name"] == "guard").expect("it is there");
    let number = |key: &str| guest[key].as_u64().unwrap_or_default();
    let state = guest["state"].as_str().unwrap_or_default().to_owned();
    (state, number("pid") as u32, number("restarts"))
}

#[test]
fn a_guest_comes_back_in_a_new_life_and_its_links_go_on() {
    let Some(_alone) = guest() else { return };
    let held = graph("dual_hold", &[("name: dual_os\n", "name: dual_hold\nhold: true\n")]);
    let held = {
        let text = fs::read_to_string(&held).expect("the graph").replace("laps: 3", "laps: 0");
        graph_in("dual_hold", &text)
    };
    let mut command = Command::new(SINEW);
    command.args(["run", "--json", &held]);
    let run = Running::start(command);
    let pid = run.pid().to_string();
    let running = |restarts: u64| {
        wait_until("the guest runs", || {
            let (state, _, found) = of_guest(&pid);
            state == "running" && found == restarts
        });
    };
    wait_until("the run is there", || sinew(["top", &pid, "--once"]).status == Some(0));
    running(0);
    let enabled = || {
        wait_until("the arm is enabled", || {
            let top = sinew(["top", &pid, "--once", "--json"]).ended_with(0).json();
            let control = &top["domains"][0];
            assert_eq!(control["name"], "control");
            top["phase"] == "running" && control["threads"][0]["cycles"].as_u64() > Some(1500)
        });
    };
    // A master that is still starting would wait for the drives, and tolerate that the guest is
    // gone.
    enabled();
    let agent = of_guest(&pid).1;
    let emulator = *children(agent).first().expect("the agent has started the emulator");
    assert!(Path::new(&format!("/proc/{emulator}")).exists());
    send(emulator, Signal::KILL);
    running(1);
    assert!(!is_alive(emulator) && !is_alive(agent), "both are gone");
    wait_until("the core is held", || {
        let top = sinew(["top", &pid, "--once", "--json"]).ended_with(0).json();
        top["phase"] == "held"
    });
    sinew(["reset", &pid]).ended_with(0);
    // Frames pass through the guest again: otherwise the master would stop the core at once.
    enabled();
    let (_, agent, _) = of_guest(&pid);
    let emulator = *children(agent).first().expect("a new one");
    sinew(["stop", &pid]).ended_with(0);
    assert_eq!(run.answer().status, Some(0));
    assert!(!is_alive(agent) && !is_alive(emulator), "nothing is left behind");
}

/// The order is in the carve-out, where a guest can write too. So the guest can obey an order that
/// nobody gave. This is a failure like any other: the guest is started again.
#[test]
fn a_guest_that_stops_though_nobody_told_it_to_is_restarted_by_its_policy() {
    let Some(_alone) = guest() else { return };
    let image = ours(IMAGE).with_file_name("trials").display().to_string();
    // The address at which the guest sees Linux's order.
    let order = 0x6000_0000 + 0x80;
    let text = format!(
        "name: unasked\ndomains:\n  guard:\n    guest: {{image: {image}}}\n    restart: {{backoff: \
         10ms, backoff_max: 10ms, restarts_max: 100, window: 1s}}\nnodes:\n  - {{kind: trouble, \
         name: trouble, domain: guard, what: 14, cycle: 300, address: {order}}}\n"
    );
    let mut command = Command::new(SINEW);
    command.args(["run", &graph_in("unasked", &text)]);
    let run = Running::start(command);
    let pid = run.pid().to_string();
    wait_until("the run is there", || sinew(["top", &pid, "--once"]).status == Some(0));
    // Each life does this again, and the next life starts all the same.
    wait_until("a third life runs", || {
        let (state, _, restarts) = of_guest(&pid);
        state == "running" && restarts >= 2
    });
    sinew(["stop", &pid]).ended_with(0);
    let answer = run.answer().ended_with(0);
    let said = format!("{}{}", answer.out, answer.err);
    for words in ["life 1,", "the guest has stopped without being told to", "life 2,", "life 3,"] {
        assert!(said.contains(words), "not said: '{words}' in\n{said}");
    }
}

/// The figures of `Board::needs`, checked with the installed emulator.
#[test]
fn a_guest_gets_ready_with_the_least_limits_that_a_check_accepts() {
    let Some(_alone) = guest() else { return };
    let image = ours(IMAGE).with_file_name("trials").display().to_string();
    let text = format!(
        "name: least\ndomains:\n  guard:\n    guest: {{image: {image}}}\n    restart: {{policy: \
         never}}\n    limits: {{memory: 288MiB, processes: 4, descriptors: 33}}\nnodes:\n  - \
         {{kind: trouble, name: trouble, domain: guard, cycle: 1000000000}}\n"
    );
    let mut command = Command::new(SINEW);
    command.args(["run", "--json", &graph_in("least", &text)]);
    let run = Running::start(command);
    let pid = run.pid().to_string();
    wait_until("the run is there", || sinew(["top", &pid, "--once"]).status == Some(0));
    wait_until("the guest runs", || of_guest(&pid).0 == "running");
    let top = sinew(["top", &pid, "--once", "--json"]).ended_with(0).json();
    assert_eq!(top["domains"][0]["role"], "guest");
    sinew(["stop", &pid]).ended_with(0);
    let report = run.answer().ended_with(0).json();
    assert_eq!(report["domains"][0]["role"], "guest");
    let less = graph_in("less", &text.replace("288MiB", "256MiB"));
    refused(&["check", &less], "guest 'guard' cannot run with memory: 256MiB; it needs 288MiB");
}

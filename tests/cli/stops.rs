//! Runs that are stopped, frozen or killed while the arm moves: what the machine does then, what
//! the report says, and that nothing remains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Running, SINEW, calm, folder, is_alive, send, wait_until};
use crate::runs::has_stopped;

/// A run whose arm is moving.
struct Moving {
    running: Running,
    control: u32,
    plant: u32,
    /// The rows of the drives, one for each of their cycles.
    rows: PathBuf,
}

impl Moving {
    fn start(name: &str) -> Moving {
        let csv = folder(name).join("run.csv");
        let running = Running::arm(&["--csv", &csv.display().to_string()]);
        let domains = running.domains(2);
        let rows = csv.with_extension("plant.csv");
        wait_until("the brakes are open", || {
            assert!(is_alive(domains[0]), "the run ended before the arm moved");
            brakes(&rows) == Some(0)
        });
        Moving { running, control: domains[0], plant: domains[1], rows }
    }

    fn is_gone(&self) -> bool {
        ![self.control, self.plant].into_iter().any(is_alive)
    }

    /// Waits for the end with `status`. Returns what was written.
    fn ended_with(self, status: i32) -> (Value, String, PathBuf) {
        let (control, plant) = (self.control, self.plant);
        let answer = self.running.answer().ended_with(status);
        // The parent waits for its children before it reports.
        assert!(!is_alive(control) && !is_alive(plant), "a process is left");
        nothing_is_left_in_shared_memory();
        (answer.json(), answer.err, self.rows)
    }
}

/// How many of the six brakes are closed in the last row of the file.
fn brakes(rows: &Path) -> Option<usize> {
    let text = fs::read_to_string(rows).ok()?;
    let columns: Vec<_> = text.lines().next()?.split(',').collect();
    let first = columns.iter().position(|&name| name == "drives.brake.0")?;
    // The last line may be incomplete.
    let row = text[..=text.rfind('\n')?].lines().skip(1).last()?;
    Some(row.split(',').skip(first).take(6).filter(|&brake| brake == "1").count())
}

fn nothing_is_left_in_shared_memory() {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let ours: Vec<_> = entries.map(|entry| entry.file_name().display().to_string()).collect();
    assert!(!ours.iter().any(|name| name.contains("sinew")), "{ours:?}");
}

/// The faults of a report: domain, cause, text.
fn faults(report: &Value) -> Vec<(&str, &str, &str)> {
    let rows = report["faults"].as_array().expect("a list");
    rows.iter()
        .map(|row| {
            let word = |key: &str| row[key].as_str().expect("a text");
            (word("domain"), word("cause"), word("text"))
        })
        .collect()
}

#[test]
fn a_signal_stops_in_order() {
    for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM), ("hup", Signal::HUP)] {
        let moving = Moving::start(&format!("signal_{name}"));
        moving.running.signal(signal);
        let (report, err, rows) = moving.ended_with(0);
        assert_eq!((&report["outcome"], err.as_str()), (&"stopped".into(), ""));
        assert_eq!(brakes(&rows), Some(6));
        has_stopped(&report);
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let moving = Moving::start("second_signal");
    // A machine that does not answer makes the stop take long.
    send(moving.plant, Signal::STOP);
    moving.running.signal(Signal::INT);
    wait_until("the controller has stopped", || !is_alive(moving.control));
    moving.running.insist(Signal::INT);
    let (report, err, _) = moving.ended_with(1);
    // On a very slow machine the stop may have been given up before. Then the report says this.
    match report["outcome"].as_str() {
        Some("killed") => assert!(err.contains("killed before the graph had stopped"), "{err}"),
        outcome => assert_eq!(outcome, Some("faulted"), "{err}"),
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let mut command = Command::new("nohup");
    command.args([SINEW, "run", "--json"]).arg(calm());
    let running = Running::start(command);
    running.domains(2);
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("it runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("hexadecimal");
    assert_eq!(ignored & 1, 1, "SIGHUP is heard:\n{status}");
    running.signal(Signal::HUP);
    running.signal(Signal::TERM);
    running.answer().ended_with(0);
}

#[test]
fn a_machine_that_dies_is_a_fault_that_says_so() {
    let moving = Moving::start("machine_dies");
    send(moving.plant, Signal::KILL);
    let (report, err, _) = moving.ended_with(1);
    assert_eq!(report["outcome"], "faulted");
    assert!(err.contains("error: plant: its process was ended by signal 9"), "{err}");
    let faults = faults(&report);
    assert!(faults.iter().any(|&(domain, cause, _)| (domain, cause) == ("plant", "died")));
}

#[test]
fn a_controller_that_dies_leaves_the_brakes_closed() {
    let moving = Moving::start("controller_dies");
    send(moving.control, Signal::KILL);
    let (report, err, rows) = moving.ended_with(1);
    assert_eq!(report["outcome"], "faulted");
    assert!(err.contains("error: control: its process was ended by signal 9"), "{err}");
    assert_eq!(faults(&report)[0].1, "died");
    assert_eq!(brakes(&rows), Some(6));
    has_stopped(&report);
}

#[test]
fn a_machine_that_freezes_is_a_fault_and_is_not_waited_for() {
    let moving = Moving::start("machine_freezes");
    send(moving.plant, Signal::STOP);
    let (report, err, _) = moving.ended_with(1);
    assert_eq!(report["outcome"], "faulted");
    assert!(err.contains("error: control: ") && err.contains("error: plant: "), "{err}");
    assert_eq!(faults(&report).len(), 2);
}

#[test]
fn a_controller_that_freezes_cannot_keep_the_brakes_open() {
    let moving = Moving::start("controller_freezes");
    send(moving.control, Signal::STOP);
    wait_until("the drives closed their brakes", || brakes(&moving.rows) == Some(6));
    let (report, err, rows) = moving.ended_with(1);
    assert_eq!(report["outcome"], "faulted");
    assert!(err.contains("error: control: ran no cycle for "), "{err}");
    let us = |key: &str| report["stop"][key].as_i64().expect("it was seen");
    assert!(us("safe_output_us") < us("at_rest_us"), "{}", report["stop"]);
    assert!(us("at_rest_us") < 0, "long before that was known: {}", report["stop"]);
    assert_eq!(brakes(&rows), Some(6));
}

#[test]
fn a_csv_without_all_its_rows_is_no_success() {
    let moving = Moving::start("rows_are_missing");
    // Much longer than the traces can hold.
    moving.running.signal(Signal::STOP);
    sleep(Duration::from_secs(6));
    moving.running.signal(Signal::CONT);
    moving.running.signal(Signal::INT);
    let (report, err, _) = moving.ended_with(1);
    assert_eq!(report["outcome"], "stopped", "the machine fared well: {report}");
    let number = |value: &Value| value.as_u64().expect("a count");
    let mut all_missing = 0;
    for at in 0..2 {
        let (file, thread) = (&report["csv"]["files"][at], &report["threads"][at]);
        let (rows, missing) = (number(&file["rows"]), number(&file["missing"]));
        let all = number(&thread["cycles"]) + number(&thread["stopping_cycles"]);
        all_missing += missing;
        assert_eq!((rows + missing, number(&thread["records_lost"])), (all, missing), "{report}");
        let text = fs::read_to_string(file["path"].as_str().expect("a path")).expect("the rows");
        assert_eq!(text.lines().count() as u64, rows + 1, "and a head");
    }
    assert!(all_missing > 0, "{}", report["csv"]);
    let lacks = report["csv"]["error"].as_str().expect("what it lacks");
    assert!(lacks.contains(" rows") && err.contains(lacks), "{lacks}: {err}");
}

#[test]
fn a_parent_that_is_killed_leaves_nothing_running() {
    let moving = Moving::start("parent_dies");
    moving.running.signal(Signal::KILL);
    wait_until("the domains followed their parent", || moving.is_gone());
    nothing_is_left_in_shared_memory();
}

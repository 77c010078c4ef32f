//! Runs that end by themselves: the report, the rows, and what a run does without something that it
//! wants.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::geteuid;
use serde_json::Value;

use crate::program::{Answer, Running, SINEW, calm, edited, folder, ours, sinew, skip};

/// A user without privileges, by convention.
const NOBODY: u32 = 65534;

#[test]
fn the_report_is_one_json_object_with_all_its_figures() {
    let answer = Running::arm(&["--duration", "1s"]).answer().ended_with(0);
    let report = answer.json();
    assert_eq!(answer.out.lines().count(), 1);
    assert_eq!((&report["graph"], &report["outcome"]), (&"calm".into(), &"stopped".into()));
    for count in ["cycles", "overruns", "skipped", "stopping_cycles", "records_lost"] {
        assert!(report[count].is_u64(), "{count}: {}", report[count]);
    }
    for figure in ["tracking_error_m_max", "duration_s", "start_to_first_cycle_ms"] {
        assert!(report[figure].is_number(), "{figure}: {}", report[figure]);
    }
    for figures in ["cycle_latency_ns", "activation_jitter_ns", "slack_ns"] {
        has_figures(&report[figures]);
    }
    let nodes = report["nodes"].as_array().expect("a list");
    let names: Vec<_> = nodes.iter().map(|node| node["name"].as_str()).collect();
    assert_eq!(names, [Some("planner"), Some("ik"), Some("ethercat")]);
    nodes.iter().for_each(|node| has_figures(&node["execution_ns"]));
    for text in ["cpu", "kernel"] {
        assert!(report["machine"][text].is_string(), "{}", report["machine"]);
    }
    assert_eq!(report["faults"], Value::Array(vec![]));
}

/// Numbers, or null if there are fewer than ten values beyond the percentile.
fn has_figures(figures: &Value) {
    let n = figures["n"].as_u64().expect("a count");
    assert!(n > 0, "{figures}");
    assert!(["mean", "max", "stddev"].iter().all(|key| figures[key].is_number()), "{figures}");
    for (percentile, needed) in [("p50", 20), ("p95", 200), ("p99", 1000), ("p99_9", 10_000)] {
        let shown = &figures[percentile];
        match n >= needed {
            true => assert!(shown.is_number(), "{percentile} in {figures}"),
            false => assert!(shown.is_null(), "{percentile} in {figures}"),
        }
    }
}

#[test]
fn a_job_that_is_done_ends_the_run() {
    let file = folder("job").join("run.csv").display().to_string();
    let more = ["--set", "planner.laps=1", "--csv", &file];
    let report = Running::arm(&more).answer().ended_with(0).json();
    assert_eq!(report["outcome"], "finished");
    assert_eq!(report["records_lost"], 0);
    let rows = |path: &str| -> u64 {
        let text = fs::read_to_string(path).expect("the rows");
        let (head, rows) = text.split_once('\n').expect("a head");
        let columns = head.split(',').count();
        assert!(head.starts_with("domain,thread,cycle,release_ns,start_ns,latency_ns,"), "{head}");
        assert!(text.ends_with('\n'));
        for row in rows.lines() {
            assert_eq!(row.split(',').count(), columns, "{row}");
        }
        rows.lines().count() as u64
    };
    let number = |value: &Value| value.as_u64().expect("a count");
    let control = rows(&file);
    assert_eq!(control, number(&report["cycles"]) + number(&report["stopping_cycles"]));
    let plant = rows(&file.replace(".csv", ".plant.csv"));
    assert_eq!(control + plant, number(&report["csv"]["rows"]));
    has_stopped(&report);
}

/// Checks that the drives last reported every brake as closed, and had opened it before.
pub(crate) fn has_stopped(report: &Value) {
    let signals = report["signals"].as_array().expect("a list");
    let brake = signals.iter().find(|signal| signal["name"] == "brake").expect("a brake");
    assert_eq!(brake["min"], Value::from(vec![0.0; 6]), "the arm never moved");
    assert_eq!(brake["last_words"], Value::from(vec!["closed"; 6]));
}

#[test]
fn a_full_disk_ends_the_rows_but_not_the_run() {
    let answer = Running::arm(&["--duration", "1s", "--csv", "/dev/full"]).answer().ended_with(1);
    says_full(&answer, "'/dev/full' failed after 0 rows: No space left");
}

fn says_full(answer: &Answer, expected: &str) {
    let report = answer.json();
    assert_eq!(report["outcome"], "stopped", "{}", answer.err);
    assert!(report["cycles"].as_u64() > Some(0));
    has_stopped(&report);
    let error = report["csv"]["error"].as_str().expect("what went wrong");
    assert!(error.contains(expected), "{error}");
    assert_eq!(answer.err, format!("warning: {error}\n"));
}

#[test]
fn a_disk_that_fills_up_keeps_the_rows_that_it_took() {
    let disk = folder("small_disk");
    let csv = disk.join("run.csv");
    let script = format!(
        "mount -t tmpfs -o size=128k none {disk} || exit 77
         {SINEW} run --json --duration 2s --csv {csv} {graph}; status=$?
         wc -l < {csv} >&2; exit $status",
        disk = disk.display(),
        csv = csv.display(),
        graph = calm()
    );
    // A mount that only this process sees. It ends with the process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script]);
    let answer = match Command::new("unshare").arg("--version").output() {
        Ok(_) => Running::start(command).answer(),
        Err(_) => return skip("there is no 'unshare'"),
    };
    if answer.status == Some(77) || answer.err.starts_with("unshare:") {
        return skip(&format!("no file system may be mounted here: {}", answer.err));
    }
    let (said, lines) = answer.err.trim_end().rsplit_once('\n').expect("text, then a number");
    let answer = Answer { err: format!("{said}\n"), out: answer.out.clone(), ..answer };
    let report = answer.json();
    says_full(&answer, "No space left");
    let files = report["csv"]["files"].as_array().expect("a list");
    // The file's head is one line, and the last line may be incomplete.
    let rows = files[0]["rows"].as_u64().expect("a count");
    let lines: u64 = lines.trim().parse().expect("a number of lines");
    assert!(lines == rows + 1 && rows > 0, "{lines} lines, {rows} rows reported");
}

#[test]
fn a_reader_that_leaves_ends_the_run_in_order() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let csv = folder("reader_leaves").join("run.csv").display().to_string();
    let mut command = Command::new(SINEW);
    command.args(["run", "--csv", &csv, &calm()]);
    let running = Running::start_into(command, Some(writer.into()));
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).expect("a line");
    assert!(line.starts_with("calm: control runs every 5000 us"), "{line}");
    let answer = running.answer().ended_with(0);
    assert_eq!(answer.err, "");
}

#[test]
fn a_report_that_cannot_be_written_is_status_1() {
    for json in [&["--json"][..], &[]] {
        let mut command = Command::new(SINEW);
        command.args(["run", "--duration", "100ms"]).args(json).arg(calm());
        let full = File::options().write(true).open("/dev/full").expect("the full device");
        let answer = Running::start_into(command, Some(full.into())).answer().ended_with(1);
        assert!(answer.err.contains("cannot write to standard output: No space"), "{}", answer.err);
    }
}

#[test]
fn without_json_the_report_is_text() {
    let answer = sinew(["run", "--duration", "100ms", &calm()]).ended_with(0);
    let parts = ["\ncalm: stopped after ", "\ncontrol, thread 0, every 5000 us", "\nprivileges\n"];
    for part in parts.iter().chain(&["\nmachine: ", "  drives.brake          all closed\n"]) {
        assert!(answer.out.contains(part), "no '{part}' in:\n{}", answer.out);
    }
}

#[test]
fn on_one_cpu_nothing_spins_and_the_run_says_so() {
    let graph = edited("one_cpu", &[("spin_then_park", "spin")]);
    let status = fs::read_to_string("/proc/self/status").expect("our own status");
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = cpus.expect("a list of CPUs").trim();
    let first = cpus.split(['-', ',']).next().expect("a CPU");
    if Command::new("taskset").arg("--version").output().is_err() {
        return skip("there is no 'taskset'");
    }
    let mut command = Command::new("taskset");
    command.args(["-c", first, SINEW, "run", "--json", "--duration", "1s"]).arg(&graph);
    let report = Running::start(command).answer().ended_with(0).json();
    let notes = report["notes"].to_string();
    let expected = "2 threads of 2 would spin on 1 CPU: links wait with spin_then_park instead";
    assert!(notes.contains(expected), "{notes}");
    has_stopped(&report);
}

/// `sinew run` of the calm graph as a user without privileges. `None` if this is not possible here.
fn unprivileged(name: &str, more: &[&str]) -> Option<Answer> {
    // The repository and its build may be unreadable for other users.
    let place = std::env::temp_dir().join(format!("sinew-{name}-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a folder");
    // Copied by another process: if we had the program open for writing while another test starts a
    // process, it would be busy.
    let mut copy = Command::new("cp");
    copy.args([SINEW.into(), ours("graphs/arm/square.csv"), ours("graphs/arm/irb120.urdf")]);
    assert!(copy.arg(&place).status().expect("'cp' starts").success());
    let program = place.join("sinew");
    let graph = place.join("calm.yaml");
    let text = fs::read_to_string(calm()).expect("a spec").replace("../../graphs/arm/", "");
    fs::write(&graph, text).expect("a place for it");
    let files = fs::read_dir(&place).expect("our own folder").flatten().map(|file| file.path());
    for path in files.chain([place.clone()]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("readable");
    }
    let mut command = Command::new(program);
    command.args(["run", "--json", "--duration", "1s"]).args(more).arg(graph).current_dir("/");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let answer = Running::start(command).answer();
    fs::remove_dir_all(&place).expect("our own folder");
    let missing = answer.json()["privileges"][0]["missing"].to_string();
    if missing.contains("SCHED_FIFO") {
        return Some(answer);
    }
    skip("this user may use SCHED_FIFO, and we cannot become another one");
    None
}

#[test]
fn without_privileges_it_runs_and_says_what_is_missing() {
    let Some(answer) = unprivileged("plain", &[]) else { return };
    let report = answer.ended_with(0).json();
    assert_eq!(report["outcome"], "stopped");
    let row = &report["privileges"][0];
    assert_eq!(row["asked"]["policy"], "SCHED_FIFO");
    assert_eq!(row["obtained"]["policy"], "SCHED_OTHER");
    has_stopped(&report);
}

#[test]
fn strict_without_privileges_is_a_fault_that_names_the_privilege() {
    let Some(answer) = unprivileged("strict", &["--strict"]) else { return };
    let answer = answer.ended_with(1);
    assert!(answer.err.contains("--strict: SCHED_FIFO 80 refused"), "{}", answer.err);
    assert!(answer.err.contains("CAP_SYS_NICE"), "{}", answer.err);
    let report = answer.json();
    assert_eq!((&report["outcome"], &report["cycles"]), (&"faulted".into(), &0.into()));
}

#[test]
fn two_runs_at_once_bear_each_other() {
    let runs = [(); 2].map(|()| Running::arm(&["--duration", "1s"]));
    for run in runs {
        has_stopped(&run.answer().ended_with(0).json());
    }
}

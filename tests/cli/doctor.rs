//! `sinew doctor` for its user: what it refuses, what it prints, and that it does not change the
//! machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::program::{Answer, Running, SINEW, folder, ours, refused, sinew, skip};

/// The shortest possible measurement.
const SHORT: [&str; 2] = ["doctor", "--duration=100ms"];

fn short(more: &[&str]) -> Answer {
    sinew(SHORT.iter().chain(more))
}

/// The JSON of an answer, whose exit status must agree with its verdict.
#[track_caller]
fn judged(answer: Answer) -> Value {
    let json = answer.json();
    let can = json["verdict"]["can"].as_bool().expect("a verdict");
    answer.ended_with(i32::from(!can));
    json
}

fn finding<'a>(json: &'a Value, name: &str) -> &'a Value {
    let mut findings = json["findings"].as_array().expect("findings").iter();
    findings.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no '{name}' in {json}"))
}

#[test]
fn a_request_to_doctor_that_is_bad_is_refused_before_anything_is_measured() {
    let refused = |arguments: &[&str], expected: &str| {
        refused(&[&["doctor"], arguments].concat(), expected);
    };
    for bad in ["0", "0ms", "-1ms", "1", "ms", "1e300s", "", "NaNms"] {
        refused(&[&format!("--period={bad}")], "expected");
        refused(&[&format!("--duration={bad}")], "expected");
    }
    let range = "expected whole microseconds from 100us to 1s";
    for bad in ["99us", "1001ms", "2h", "100.5us"] {
        refused(&["--period", bad], range);
    }
    refused(&["--duration", "9ms"], "holds fewer than 10 periods of 1ms; give 10ms or more");
    refused(&["--period", "1s", "--duration", "9s"], "give 10s or more");
    for bad in ["", "x", "1-", "3-1", "0-4294967295", "0,,1", "0x1"] {
        refused(&["--cpus", bad], "expected numbers and ranges, such as 2-3,6");
    }
    refused(&["--cpus", "0,8191"], "no CPU 8191; there are 0");
    refused(&["graph.yaml"], "unexpected argument");
}

#[test]
fn every_finding_says_what_was_read_where_and_why_it_matters() {
    let answer = short(&["--json", "--cpus", "0"]);
    assert_eq!(answer.err, "", "no progress where there is no terminal");
    let json = judged(answer);
    let grades = ["good", "could be better", "bad", "unknown"];
    for row in json["findings"].as_array().expect("findings") {
        let says = |key: &str| row[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(says("name") && says("read") && says("why"), "{row}");
        assert!(grades.contains(&row["grade"].as_str().expect("a word")), "{row}");
        let from = row["from"].as_array().expect("files");
        let is_path = |path: &Value| path.as_str().is_some_and(|path| path.starts_with('/'));
        assert!(!from.is_empty() && from.iter().all(is_path), "{row}");
        assert_eq!(says("mend"), says("undo"), "who changes must be able to go back: {row}");
    }
    assert_eq!((&json["period_ns"], &json["cpus"]), (&1_000_000.into(), &vec![0].into()));
    let late = &json["latency"]["late_ns"];
    assert_eq!((&late["all"]["n"], &late["cpus"][0]["cpu"]), (&100.into(), &0.into()));
    assert!(late["all"]["p99"].is_null(), "of 100 wake-ups one lies beyond it: {late}");
}

#[test]
fn people_get_a_table_the_remedies_and_a_verdict() {
    let text = short(&["--cpus", "0"]).out;
    for part in [
        "doctor: can this machine run a graph every 1ms on CPU 0?\nmachine: ",
        "\nfindings: ",
        " preemption ",
        "\nwake-ups every 1ms, 1 round of 100 on each CPU: how late, us\n",
        "\n  sinew CPU 0 ",
        "\nverdict: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, verdict) = text.split_once("\nverdict: ").expect("a verdict");
    let words: Vec<_> = verdict.split_whitespace().collect();
    let says = |part: &str| words.join(" ").contains(part);
    let by_maximum = says("the latest of ") && says("with such a maximum a period of ");
    assert!(by_maximum || says("no: SCHED_FIFO or a CPU was refused"), "{verdict}");
    let undone = text.matches("\n  undo  ").count();
    assert_eq!(text.matches("\n  mend  ").count(), undone, "{text}");
}

#[test]
fn without_cyclictest_it_says_how_to_get_it() {
    let mut command = Command::new(SINEW);
    command.args(SHORT).args(["--cpus", "0"]).env("PATH", "/nonexistent");
    let text = Running::start(command).answer().out;
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("is not installed, so these figures have no comparison"));
    let packages = ["apt-get install rt-tests", "dnf install realtime-tests", "part of rt-tests"];
    assert!(packages.iter().any(|package| words.join(" ").contains(package)), "{text}");
}

#[test]
fn cyclictest_is_asked_for_the_same_and_stands_beside_our_figures() {
    let json = judged(short(&["--json"]));
    let (ours, beside) = (&json["latency"]["late_ns"], &json["latency"]["cyclictest"]);
    if json["latency"]["policy"] != "SCHED_FIFO" || beside["absent"].is_string() {
        return skip(&format!("SCHED_FIFO and cyclictest (rt-tests): {}", beside["absent"]));
    }
    assert!(beside["version"].as_str().is_some_and(|text| text.starts_with("cyclictest V ")));
    // It ends when the first of its threads is done, so the others may lack a few values.
    let n = |of: &Value| of["all"]["n"].as_u64().expect("a count");
    assert!((1..=n(ours)).contains(&n(&beside["late_ns"])), "{beside}");
    assert!(beside["max_ratio"]["median"].as_f64().is_some_and(|ratio| ratio > 0.0), "{beside}");
    let max = |of: &Value| of["all"]["max"].as_u64().expect("a maximum");
    let both = max(ours).max(max(&beside["late_ns"]));
    assert_eq!(json["verdict"]["late_ns_max"], both, "the verdict is by the latest of all");
}

/// The program's answer to a user without privileges, with a graph of two realtime threads, in a
/// folder where that user may start it.
fn as_nobody(name: &str, arguments: &[&str]) -> Answer {
    const NOBODY: u32 = 65_534;
    let place = std::env::temp_dir().join(format!("sinew-{name}-{}", std::process::id()));
    fs::create_dir(&place).expect("a folder");
    let (program, graph) = (place.join("program"), place.join("axis.yaml"));
    fs::copy(SINEW, &program).expect("a copy");
    let axis = fs::read_to_string(ours("graphs/axis/axis.yaml")).expect("the axis");
    // Late cycles are no fault here. The dashboard is left out because it would need a port.
    let axis = axis.replace("{policy: stop, consecutive_max: 50}", "{policy: count}");
    let lines: Vec<_> = axis.lines().filter(|line| !line.contains("dashboard")).collect();
    fs::write(&graph, lines.join("\n")).expect("a file");
    chown(&place, Some(NOBODY), Some(NOBODY)).expect("a folder of ours");
    for path in [&place, &program, &graph] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }
    let mut command = Command::new(&program);
    command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir(&place);
    command.env("XDG_RUNTIME_DIR", &place);
    let answer = Running::start(command).answer();
    fs::remove_dir_all(&place).expect("a folder of ours");
    answer
}

#[test]
fn a_run_without_privileges_says_so_at_its_start_and_where_help_is() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become a user without privileges");
    }
    let answer = as_nobody("run-user", &["run", "--json", "--duration", "300ms", "axis.yaml"]);
    let warning = answer.of_others.clone();
    assert!(warning.contains("locked memory or a CPU to 2 of 2 realtime threads"), "{warning}");
    assert!(warning.contains("'sinew doctor'") && warning.lines().count() == 1, "{warning}");
    let json = answer.ended_with(0).json();
    let missing = json["privileges"][0]["missing"][0].as_str().expect("words").to_string();
    assert!(missing.contains("'sinew doctor' says how to get that here"), "{missing}");
}

#[test]
fn a_user_without_privileges_is_told_no_and_what_to_ask_for() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become a user without privileges");
    }
    let answer = as_nobody("doctor-user", &[SHORT[0], SHORT[1], "--json", "--cpus", "0"]);
    let json = answer.ended_with(1).json();
    assert_eq!(finding(&json, "rtprio")["grade"], "bad");
    // Which command is recommended depends on where this test runs.
    let advice = ["mend", "note"].map(|key| finding(&json, "rtprio")[key].to_string()).join(" ");
    assert!(advice.contains("rtprio") || advice.contains("SYS_NICE"), "{advice}");
    assert!(finding(&json, "system")["read"].as_str().is_some_and(|name| !name.is_empty()));
    assert_eq!(json["verdict"]["can"], false);
    assert_eq!(json["latency"]["policy"], "other");
    assert!(json["latency"]["missing"][0].as_str().expect("words").contains("SCHED_FIFO"));
}

/// The files that a program and its children open for writing, create, remove or rename.
fn changes(name: &str, program: &[&str]) -> Vec<String> {
    let trace = folder(name).join("trace");
    let mut command = Command::new("strace");
    command.arg("-f").arg("-o").arg(&trace);
    command.args(["-e", "trace=%file", "-E", "PATH=/nonexistent"]).args(program);
    Running::start(command).answer();
    let text = fs::read_to_string(trace).expect("strace wrote it");
    assert!(text.contains("execve("), "{text}");
    let words = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "mkdir", "mknod", "unlink", "rename"];
    let more = ["chmod", "chown", "truncate", "mount(", "link(", "utimensat", "setxattr"];
    let is_change = |line: &&str| words.iter().chain(&more).any(|word| line.contains(word));
    // Reading a link's target changes nothing.
    let changes = text.lines().filter(is_change).filter(|line| !line.contains(" readlink("));
    changes.map(Into::into).collect()
}

#[test]
fn it_changes_nothing_itself() {
    if Command::new("strace").arg("--version").output().is_err() {
        return skip("it needs strace (package 'strace')");
    }
    let help = sinew(["doctor", "--help"]).ended_with(0).out;
    assert!(help.contains("Doctor changes nothing"), "{help}");
    let noticed = folder("doctor_noticed").join("file").display().to_string();
    let script = format!(": > {noticed}");
    let twin = changes("doctor_twin", &["/bin/sh", "-c", &script]);
    assert!(twin.iter().any(|line| line.contains(&noticed)), "the proof notices nothing: {twin:?}");
    let arguments: Vec<_> = [SINEW].into_iter().chain(SHORT).collect();
    assert_eq!(changes("doctor_trace", &arguments), Vec::<String>::new());
}

//! `sinew tune` and the use of its machine profile: by a plan, by a run, and where it must not be
//! used.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sinew_core::privileges;

use crate::control::Place;
use crate::program::{
    Answer, Running, SINEW, calm, edited, folder, graph_in, refused, sinew, skip,
};

/// The first two CPUs of this process.
fn cpus() -> Option<[u32; 2]> {
    let [one, other, ..] = privileges::cpus().expect("affinity")[..] else {
        skip("there is one CPU, and both sides of a link spin");
        return None;
    };
    Some([one, other])
}

/// The answer of `sinew tune` for these CPUs; measured once.
fn tuned([one, other]: [u32; 2]) -> &'static Value {
    static TUNED: OnceLock<Value> = OnceLock::new();
    TUNED.get_or_init(|| {
        let file = folder("tune").join("machine.json").display().to_string();
        let list = format!("{one},{other}");
        sinew(["tune", "--quick", "--json", "--cpus", &list, "--out", &file]).ended_with(0).json()
    })
}

/// A file with this profile and some changes, in a folder of its own, named `name`.
fn profile(name: &str, cpus: [u32; 2], changes: &[(&str, Value)]) -> String {
    let mut profile = tuned(cpus)["profile"].clone();
    for (place, value) in changes {
        *profile.pointer_mut(place).expect("a place in it") = value.clone();
    }
    let file = folder(name).join("machine.json");
    fs::write(&file, profile.to_string()).expect("a place for it");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("it is ours");
    file.display().to_string()
}

/// The calm graph with queues between threads on these CPUs.
fn on_two([one, other]: [u32; 2], name: &str) -> String {
    let control = format!(
        "threads: [{{cpu: {one}, nodes: [planner]}}, {{cpu: {other}, nodes: [ik, ethercat]}}]
    realtime: {{period: 5ms,"
    );
    let edits = [
        ("realtime: {period: 5ms,", &*control),
        ("{name: ik, port: in}", "{name: ik, port: in, capacity: 64, wait: spin_then_park}"),
        ("port: feedback, delay: 1}", "port: feedback, delay: 1, wait: spin_then_park}"),
    ];
    edited(name, &edits)
}

/// The same between processes, with a queue in one direction.
fn across([one, other]: [u32; 2], name: &str) -> String {
    let control = format!(
        "threads: [{{cpu: {one}, nodes: [planner, ik, ethercat]}}]
    realtime: {{period: 5ms,"
    );
    let plant = format!(
        "plant: {{threads: [{{cpu: {other}, nodes: [drives]}}], realtime: {{trigger: input,"
    );
    let edits = [
        ("realtime: {period: 5ms,", &*control),
        ("plant: {realtime: {trigger: input,", &*plant),
        ("port: in, transport: shared_memory, delivery: latest", "port: in, full: drop"),
    ];
    edited(name, &edits)
}

/// Runs a command with this cache folder.
fn with_cache(cache: &Path, arguments: &[&str]) -> Answer {
    let mut command = Command::new(SINEW);
    command.args(arguments).env("XDG_CACHE_HOME", cache);
    Running::start(command).answer()
}

#[test]
fn tune_writes_what_it_measured_with_all_that_it_tried() {
    let Some(cpus) = cpus() else { return };
    let answer = tuned(cpus);
    let file = answer["file"].as_str().expect("a path");
    let written: Value = serde_json::from_str(&fs::read_to_string(file).expect("there")).expect("");
    assert_eq!(written, answer["profile"]);
    assert_eq!((&written["version"], &answer["left_out"]), (&json!(3), &json!([])));
    assert!(written["machine"]["kernel"].is_string(), "{}", written["machine"]);
    let pair = &written["pairs"][0];
    assert_eq!(pair["cpus"], json!(cpus));
    for (class, sizes) in [("small", [8, 48]), ("short", [64, 256]), ("long", [64, 256])] {
        let tried = pair[class]["tried"].as_array().expect("a list");
        assert!(tried.len() >= 8, "{class}: {}", tried.len());
        assert!(tried.iter().any(|row| row["tuning"] == pair[class]["chosen"]), "{class}");
        for row in tried {
            let times = row["times"].as_array().expect("a list");
            let bytes: Vec<_> = times.iter().map(|time| time["bytes"].as_u64()).collect();
            assert_eq!(bytes, sizes.iter().map(|&size| Some(size)).collect::<Vec<_>>());
            assert!(times.iter().all(|time| time["median"].as_f64() > Some(0.0)), "{row}");
            assert!(row["speed"]["rounds"].as_u64() >= Some(3), "{row}");
        }
    }
}

#[test]
fn a_graph_runs_with_any_profile_and_its_plan_says_with_which() {
    let Some(cpus) = cpus() else { return };
    let graphs = [on_two(cpus, "tune_threads"), across(cpus, "tune_processes")];
    let chosen = |layout: &str, gap_ns: u32| {
        json!({
            "layout": layout, "eager_polls": 0, "gap_ns": gap_ns, "fetches_ahead": false,
            "hands_over": true,
        })
    };
    // The second one is wrong on purpose: a tenth of a millisecond between polls.
    for (name, chosen) in
        [("tune_sequence", chosen("sequence", 0)), ("tune_gaps", chosen("index", 100_000))]
    {
        let places = ["/pairs/0/small/chosen", "/pairs/0/short/chosen", "/pairs/0/long/chosen"];
        let changes = places.map(|it| (it, chosen.clone()));
        let file = profile(name, cpus, &changes);
        let by = ["--profile-machine", &file];
        for graph in &graphs {
            let plan =
                sinew([&["graph", "--json"], &by[..], &[graph]].concat()).ended_with(0).json();
            let links = plan["links"].as_array().expect("a list");
            let shaped: Vec<_> = links.iter().filter(|link| !link["tuning"].is_null()).collect();
            assert_eq!(shaped.len(), 2, "{name}: {links:?}");
            for link in shaped {
                let mut expected = chosen.clone();
                if link["delivery"] != "queue" {
                    expected["layout"] = Value::Null;
                }
                assert_eq!(link["tuning"], expected, "{name}");
            }
            let note = format!("are shaped by the machine profile {file} of ");
            let notes = plan["notes"].as_array().expect("a list");
            assert!(
                notes.iter().any(|it| it.as_str().expect("a text").contains(&note)),
                "{notes:?}"
            );
            let run = [&["run", "--json", "--duration", "500ms"], &by[..], &[graph]].concat();
            let report = sinew(run).ended_with(0).json();
            assert_eq!((&report["outcome"], &report["faults"]), (&json!("stopped"), &json!([])));
        }
    }
    let none = ["graph", "--json", "--profile-machine", "none", &graphs[0]];
    let plan = sinew(none).ended_with(0).json();
    assert!(plan["links"].as_array().expect("a list").iter().all(|it| it["tuning"].is_null()));
}

#[test]
fn a_profile_of_another_machine_is_refused_with_the_differences() {
    let Some(cpus) = cpus() else { return };
    let graph = on_two(cpus, "tune_other");
    let other = profile("tune_foo", cpus, &[("/machine/cpu", "Foo 9000".into())]);
    let differences = "it is of another machine: cpu is 'Foo 9000' there and '";
    refused(&["check", "--profile-machine", &other, &graph], differences);
    refused(&["run", "--profile-machine", &other, &graph], differences);
    refused(&["graph", "--profile-machine", "/no/such", &graph], "there is no such file");
    // In the cache folder it does no harm.
    let cache = folder("tune_cache");
    let place = cache.join("sinew/machine.json");
    fs::create_dir(cache.join("sinew")).expect("a folder");
    fs::copy(&other, &place).expect("a copy");
    let said = |arguments: &[&str]| with_cache(&cache, arguments).ended_with(0).out;
    let note = format!("note: the machine profile {} is not used: {differences}", place.display());
    assert!(said(&["check", &graph]).contains(&note));
    assert!(!said(&["check", "--profile-machine", "none", &graph]).contains("machine profile"));
    let ran = with_cache(&cache, &["run", "--duration", "100ms", &graph]).ended_with(0).err;
    assert!(ran.contains(&note.replace("note: ", "warning: ")), "{ran}");
    fs::write(&place, "{").expect("a broken one");
    assert!(said(&["check", &graph]).contains("is not used: it is not a machine profile: EOF"));
    let good = profile("tune_good", cpus, &[]);
    fs::copy(&good, &place).expect("a copy");
    assert!(said(&["check", &graph]).contains("are shaped by the machine profile "));
    fs::set_permissions(&good, Permissions::from_mode(0o666)).expect("it is ours");
    refused(&["check", "--profile-machine", &good, &graph], "its mode is 666, so anybody");
}

#[test]
fn a_request_to_tune_that_cannot_be_met_is_told_why() {
    refused(&["tune", "--cpus", "x"], "'x' is not a list of CPUs");
    refused(&["tune", "--cpus", "8000,8001"], "CPU 8000 does not exist or may not be used");
    refused(&["tune", "--cpus", "0", &calm()], "cannot be used with");
    let one = privileges::cpus().expect("affinity")[0].to_string();
    if cpus().is_some() {
        refused(&["tune", "--cpus", &one], "is one CPU; name two CPUs");
    }
    refused(&["tune", "/no/such/graph.yaml"], "cannot read the spec");
    let alone = "- {kind: listener, name: listener, protocol: http, port: 0}\n";
    refused(
        &["tune", &graph_in("tune_alone", alone)],
        "nothing is measured: it has no lock-free link",
    );
    if cpus().is_some() {
        refused(&["tune", "--out", "/proc/machine.json"], "cannot write '/proc/machine.json': ");
        refused(&["tune", "--out", "-"], "'-' is not a file; '--json' writes the profile");
        let graph = calm();
        let before = fs::read(&graph).expect("a graph");
        refused(&["tune", "--out", &graph], "is not a machine profile and would be lost");
        assert_eq!(fs::read(&graph).expect("it is still there"), before);
    }
    let mut command = Command::new(SINEW);
    command.args(["tune", "--quick"]).env("XDG_CACHE_HOME", "").env("HOME", "");
    let err = Running::start(command).answer().ended_with(2).err;
    assert!(
        err.contains("nothing is measured") || err.contains("there is no cache folder"),
        "{err}"
    );
}

/// The output of `sinew tune`, started from a shell that first changes its own process. It goes
/// through pipes, because the shell may have forbidden files.
fn in_shell(first: &str, arguments: &str) -> (Option<i32>, String, String) {
    let line = format!("{first} {SINEW} tune {arguments}");
    let output = Command::new("sh").args(["-c", &line]).output().expect("a shell is there");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_cpu_is_the_first_reason_that_is_told() {
    let one = privileges::cpus().expect("affinity")[0];
    for arguments in ["", "--cpus 0,1", "--cpus x", &calm()] {
        let (status, _, err) = in_shell(&format!("taskset -c {one}"), arguments);
        assert_eq!(status, Some(2), "{err}");
        assert!(
            err.contains(&format!("this process may use CPU {one} only")),
            "{arguments}: {err}"
        );
    }
}

#[test]
fn what_was_measured_is_told_though_the_disk_is_full() {
    let Some([one, other]) = cpus() else { return };
    let file = folder("tune_full").join("machine.json");
    // No file may have any bytes, and the signal about this is ignored.
    let full = "trap '' XFSZ; ulimit -f 0;";
    let arguments = format!("--quick --cpus {one},{other} --out {}", file.display());
    let (status, out, err) = in_shell(full, &arguments);
    assert_eq!(status, Some(1), "{err}");
    assert!(out.contains("long links: a message of a stream"), "{out}");
    assert!(!out.contains("use it with") && err.contains("error: cannot write '"), "{out}{err}");
    let (status, out, _) = in_shell(full, &format!("{arguments} --json"));
    let answer: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((status, &answer["file"]), (Some(1), &Value::Null));
    assert_eq!(answer["profile"]["pairs"][0]["cpus"], json!([one, other]));
    assert!(answer["errors"][0]["message"].as_str().expect("a text").contains("cannot write '"));
    assert!(!file.exists());
}

#[test]
fn where_no_thread_starts_no_pair_is_measured_and_nothing_is_written() {
    let Some([one, other]) = cpus() else { return };
    let file = folder("tune_no_threads").join("machine.json");
    // There is no room for such a stack.
    let no_threads = "RUST_MIN_STACK=100000000000000";
    let arguments = format!("--quick --cpus {one},{other} --out {}", file.display());
    let (status, out, err) = in_shell(no_threads, &arguments);
    assert_eq!(status, Some(1), "{err}");
    assert!(out.contains("no pair was measured, so nothing was written"), "{out}");
    assert!(out.contains("cannot start a thread"), "{out}");
    let (status, out, _) = in_shell(no_threads, &format!("{arguments} --json"));
    let answer: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((status, &answer["file"]), (Some(1), &Value::Null));
    assert_eq!(answer["profile"]["pairs"], json!([]));
    assert_eq!(answer["profile"]["not_measured"][0]["cpus"], json!([one, other]));
    assert!(!file.exists());
}

#[test]
fn a_run_that_disturbs_the_measurement_is_told() {
    let Some([one, other]) = cpus() else { return };
    let (place, file) = (Place::new("tune"), folder("tune_beside").join("machine.json"));
    let (running, pid) = place.run(&[&calm()]);
    let (list, file) = (format!("{one},{other}"), file.display().to_string());
    let answer = place.sinew(&["tune", "--quick", "--cpus", &list, "--out", &file]).ended_with(0);
    assert!(answer.err.contains(&format!("warning: process {pid} is a run")), "{}", answer.err);
    place.stop(running);
}

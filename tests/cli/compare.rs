//! `sinew lab compare`, with programs that print given reports, and with reports made here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{folder, refused, sinew};

/// A report of one row with this median in each of nine rounds.
pub(crate) fn report(ns: f64) -> Value {
    let distribution = json!({"n": 0, "buckets": []});
    let measure = json!({
        "name": "round_trip", "distribution": distribution, "rounds": vec![ns; 9], "ratios": []
    });
    let row = json!({
        "axes": [["transport", "pipe"]], "measures": [measure],
        "figures": [{"name": "requests", "unit": "1/s", "value": 1e9 / ns}],
        "notes": [], "skipped": null
    });
    json!({
        "scenario": "link", "format": 1,
        "build": {"version": "0.1.0", "commit": "0123456789abcdef", "committed_s": 1},
        "machine": {
            "cpu": "Foo 9000", "cpus_online": "0-1", "cpus_allowed": [0, 1], "kernel": "6.18",
            "preemption": "PREEMPT_RT", "governor": null, "caches": [], "load_average": [0.0],
            "clock_source": null, "virtualised": false
        },
        "timer": {"overhead_ns": 20.0, "resolution_ns": 1.0},
        "quick": true, "partial": false, "rounds": 9, "rows": [row],
        "tables": [], "verdicts": [], "notes": []
    })
}

pub(crate) fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// A program that runs this script.
fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = written(folder, name, &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

/// A program that prints this report, whatever its arguments are, and records that it was run.
fn prints(folder: &Path, name: &str, report: &Value) -> String {
    written(folder, &format!("{name}.json"), &report.to_string());
    let script = format!("echo {name} \"$@\" >> \"$(dirname \"$0\")/asked\"\nexec cat \"$0.json\"");
    program(folder, name, &script)
}

#[test]
fn programs_run_in_turns_and_a_slower_one_fails() {
    let folder = folder("compare_programs");
    let old = prints(&folder, "old", &report(100.0));
    let new = prints(&folder, "new", &report(120.0));
    let page = folder.join("page.html").display().to_string();
    let options = ["--rounds", "6", "--only", "transport=pipe", "--report", page.as_str()];
    let arguments = ["lab", "compare", old.as_str(), new.as_str()].into_iter().chain(options);
    let answer = sinew(arguments).ended_with(1);
    let last = "2 rows slower, 0 faster, 0 the same, 0 not distinguishable\n";
    assert!(answer.out.ends_with(last), "{}", answer.out);
    assert!(answer.out.contains("/old, sinew 0.1.0 of 0123456789"), "{}", answer.out);
    assert_eq!(answer.err, "", "no progress where there is no terminal");
    let asked = fs::read_to_string(folder.join("asked")).expect("they were asked");
    let order: String = asked.lines().filter_map(|line| line.chars().next()).collect();
    assert_eq!(order, "onnoonnoonno");
    let all = "lab link --quick --json --only transport=pipe";
    assert!(asked.lines().all(|line| line.ends_with(all)), "{asked}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn a_program_beside_itself_is_the_same() {
    let folder = folder("compare_same");
    let program = prints(&folder, "program", &report(100.0));
    let arguments = ["lab", "compare", &program, &program, "--rounds", "6", "--json"];
    let json = sinew(arguments).ended_with(0).json();
    assert_eq!(json["rows_that_are"]["the_same"], 2);
    assert_eq!(json["rows"][0]["change"], "same");
    assert_eq!(json["rows"][0]["ratio"]["median"], 1.0);
}

#[test]
fn reports_are_compared_by_the_rounds_that_they_hold() {
    let folder = folder("compare_reports");
    // The sort of a file does not depend on its name.
    let file = |name, report: &Value| written(&folder, name, &report.to_string());
    let old = file("old.sh", &report(100.0));
    let new = file("new", &report(120.0));
    assert!(sinew(["lab", "compare", &old, &new]).ended_with(1).out.contains("1 row slower"));
    let text = sinew(["lab", "compare", &new, &old]).ended_with(0).out;
    assert!(text.contains("0 rows slower, 1 faster"), "{text}");
    sinew(["lab", "compare", &old, &new, "--threshold", "25%"]).ended_with(0);
    let mut few = report(100.0);
    few["rows"][0]["measures"][0]["rounds"] = json!([100.0, 100.0]);
    let few = file("few", &few);
    let text = sinew(["lab", "compare", &few, &few]).ended_with(1).out;
    assert!(text.ends_with("; 1 row NOT SHOWN: counts as failed\n"), "{text}");
}

#[test]
fn bad_files_are_told_what_is_wrong_with_them() {
    let folder = folder("compare_bad");
    let good = written(&folder, "good", &report(100.0).to_string());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut other = report(100.0);
        change(&mut other);
        written(&folder, "other", &other.to_string())
    };
    let refuses = |old: &str, new: &str, expected: &str| {
        refused(&["lab", "compare", old, new], expected);
    };
    let scenario = with(&|it| it["scenario"] = "sync".into());
    refuses(&good, &scenario, "are of 'link' and of 'sync'; compare reports of one scenario");
    let format = with(&|it| it["format"] = 0.into());
    refuses(&good, &format, "have format 1 and 0");
    let newer = with(&|it| it["format"] = 99.into());
    refuses(&newer, &good, "other' is a report of format 99, and this program knows 1 at most");
    let machine = with(&|it| it["machine"]["kernel"] = "2.4.0".into());
    refuses(&good, &machine, "kernel is '6.18' there and '2.4.0' here");
    let partial = with(&|it| it["partial"] = true.into());
    refuses(&good, &partial, "other' is partial: it was interrupted");
    let skipped = with(&|it| it["rows"][0]["skipped"] = "who spins needs two CPUs".into());
    refuses(
        &skipped,
        &skipped,
        "no row was measured; the first one says: who spins needs two CPUs",
    );
    let broken = written(&folder, "broken", "{\"scenario\": \"link\",\n\"rows\": [}");
    refuses(&broken, &good, "broken' is not a report of the lab: ");
    refuses(&broken, &good, "at line 2 column 10");
    let text = written(&folder, "text", "lab link: 9 rounds");
    refuses(&good, &text, "text' is neither a program");
    refuses("/no/such/file", &good, "cannot read '/no/such/file': No such file");
    refuses("/dev/zero", &good, "'/dev/zero' is not a file");
    let closed = written(&folder, "closed", "#!/bin/sh\n");
    refuses(&closed, &good, "closed' is a program, but it is not executable");
    let program = prints(&folder, "program", &report(100.0));
    refuses(&program, &good, "program' is a program and '");
    refuses(&program, &good, "expected two programs or two reports");
    refused(&["lab", "compare", &good, &good, "--scenario", "link"], "--scenario is for programs");
    refused(&["lab", "compare", &good, &good, "--threshold", "5"], "expected a number above 0");
    refused(&["lab", "compare", &good, &good, "--rounds", "5"], "5 is not in 6..");
    refused(&["lab", "compare", &good], "<NEW>");
}

#[test]
fn a_program_that_gives_no_report_is_named_with_what_it_says() {
    let folder = folder("compare_failing");
    let good = prints(&folder, "good", &report(100.0));
    let refuses = |script: &str, expected: &str| {
        let bad = program(&folder, "bad", script);
        refused(&["lab", "compare", &good, &bad, "--rounds", "6"], expected);
    };
    let errors = r#"echo '{"errors": [{"message": "no scenario '"'link'"'"}]}'; exit 2"#;
    refuses(errors, "/bad lab link --quick --json' ended with exit status: 2: no scenario 'link'");
    refuses("echo broken >&2; exit 1", "ended with exit status: 1: broken");
    refuses("kill -9 $$", "ended with signal: 9");
    refuses("echo hello", "gave no report: what it printed is not a report of the lab: ");
    let other = report(100.0).to_string().replace("\"link\"", "\"sync\"");
    refuses(&format!("cat <<'EOF'\n{other}\nEOF"), "gave a report of 'sync'");
    let missing = written(&folder, "missing", "#!/no/such/shell\n");
    fs::set_permissions(PathBuf::from(&missing), fs::Permissions::from_mode(0o755)).expect("it is");
    refused(&["lab", "compare", &good, &missing], "cannot be started: No such file");
}

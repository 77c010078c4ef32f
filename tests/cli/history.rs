//! `sinew lab history`, with reports made here, one for each commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use xml::reader::EventReader;

use crate::compare::{report, written};
use crate::program::{Running, SINEW, folder, refused, sinew};

/// Sixteen reports in a folder. From the ninth commit on the row takes a tenth longer.
fn reports(folder: &Path) -> PathBuf {
    let below = folder.join("reports");
    fs::create_dir_all(&below).expect("a folder");
    for at in 0..16_u32 {
        let mut one = report(if at < 8 { 100.0 } else { 110.0 } + f64::from(at * 7 % 5) * 0.2);
        one["build"]["commit"] = format!("{at:02x}0123456789").into();
        one["build"]["committed_s"] = (1000 + at).into();
        // Ordered by name they are in reverse order.
        written(&below, &format!("{:02}.json", 99 - at), &one.to_string());
    }
    written(&below, "notes.txt", "no report");
    below
}

#[test]
fn a_folder_of_reports_shows_the_commit_at_which_a_row_changed() {
    let folder = folder("history_folder");
    let below = reports(&folder).display().to_string();
    let page = folder.join("page.html").display().to_string();
    let answer = sinew(["lab", "history", &below, "--report", &page]).ended_with(0);
    let first = "lab history: 2 figures of 16 reports, 2 change points\n";
    assert!(answer.out.starts_with(first), "{}", answer.out);
    assert!(answer.out.contains("0801234567  link, quick: Foo 9000"), "{}", answer.out);
    let json = sinew(["lab", "history", &below, "--json"]).ended_with(0).json();
    let series = &json["series"][0];
    assert_eq!(series["changes"][0]["at"], 8);
    assert_eq!(series["origins"][8]["committed_s"], 1008);
    let page = fs::read_to_string(page).expect("a page");
    let (_, data) = page.split_once("id=\"report\">").expect("raw data");
    let data = data.split("</script>").next().expect("its end");
    let data: Value = serde_json::from_str(data).expect("one object");
    assert_eq!(data["series"][0]["figures"].as_array().map(Vec::len), Some(16));
    for plot in page.split("<svg").skip(1) {
        let plot = plot.split("</svg>").next().expect("its end");
        let plot = format!("<svg{plot}</svg>");
        EventReader::from_str(&plot).into_iter().for_each(|event| drop(event.expect("XML")));
    }
}

#[test]
fn what_is_no_history_is_refused() {
    let folder = folder("history_bad");
    let good = written(&folder, "good", &report(100.0).to_string());
    let broken = written(&folder, "broken", "{\"scenario\": \"link\",\n\"rows\": [}");
    let empty = folder.join("empty").display().to_string();
    fs::create_dir(&empty).expect("a folder");
    let refuses = |files: &[&str], expected: &str| {
        refused(&[&["lab", "history"], files].concat(), expected);
    };
    refuses(&[], "<FILE|FOLDER>");
    refuses(&[&good], "good' is the only report; a history needs 2 at least");
    refuses(&[&good, &broken], "broken' is not a report of the lab: ");
    refuses(&[&good, &broken], "at line 2 column 10");
    refuses(&[&empty], "empty' ends with .json");
    refuses(&[&good, "/no/such/file"], "cannot read '/no/such/file': No such file");
    refuses(&[&good, "/dev/zero"], "'/dev/zero' is not a file");
    let mut skipped = report(100.0);
    skipped["rows"][0]["skipped"] = "who spins needs two CPUs".into();
    let skipped = written(&folder, "skipped", &skipped.to_string());
    refuses(&[&skipped, &skipped], "no report has a row that was measured");
}

/// The gate's file with one verb.
fn gate(instructions: u64, why: &str) -> String {
    let tools = json!({"compiler": "r", "valgrind": "v", "libc": "l", "machine": "m"});
    let verbs = json!([{"verb": "flow/open", "instructions": instructions, "why": why}]);
    json!({"about": "of a thousand", "tools": tools, "verbs": verbs}).to_string()
}

#[test]
fn the_gates_file_stands_beside_reports_with_the_reasons_of_its_changes() {
    let folder = folder("history_gate");
    let below = reports(&folder).display().to_string();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        let status = git.args(["-c", "commit.gpgsign=false"]).args(words).status();
        assert!(status.expect("git").success(), "{words:?}");
    };
    git(&["init", "-q"]);
    let file = written(&folder, "g.json", &gate(1000, "the first"));
    refused(&["lab", "history", "--gate", &file], "--gate: ");
    git(&["add", "g.json"]);
    git(&["commit", "-q", "-m", "x"]);
    written(&folder, "g.json", &gate(1100, "one more copy"));
    let page = folder.join("page.html").display().to_string();
    let only = sinew(["lab", "history", "--gate", &file, "--report", &page]).ended_with(0);
    let first = "lab history: 1 figure of 2 versions of the gate, 1 change of the gate\n";
    assert!(only.out.starts_with(first), "{}", only.out);
    assert!(only.out.contains("+: one more copy (flow/open)\n"), "{}", only.out);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("<td>one more copy</td>"), "{page}");
    let both = ["lab", "history", "--gate", &file, &below, "--json"];
    let json = sinew(both).ended_with(0).json();
    assert_eq!(json["series"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        json["series"][0]["changes"][0],
        json!({"at": 1, "before": 1000.0, "after": 1100.0, "p": null})
    );
    assert_eq!(json["series"][0]["origins"][1]["why"], "one more copy");
    let mut lacking = Command::new(SINEW);
    lacking.args(["lab", "history", "--gate", &file]).env("PATH", &below);
    let answer = Running::start(lacking).answer().ended_with(2);
    assert!(answer.err.contains("git is not installed, or not in PATH"), "{}", answer.err);
}

//! The lab: what it refuses before it measures, and what files a short measurement writes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use xml::reader::EventReader;

use crate::program::{self, Running, SINEW, folder, refused, sinew};

/// One row that needs one CPU and no privileges.
const SHORT: [&str; 6] = ["lab", "pipeline", "--quick", "--rounds=1", "--only", "placement=fused"];

#[test]
fn the_scenarios_are_listed_with_their_axes() {
    let text = sinew(["lab"]).ended_with(0).out;
    let json = sinew(["lab", "--json"]).ended_with(0).json();
    let scenarios = json["scenarios"].as_array().expect("a list");
    for name in ["pipeline", "link"] {
        assert!(text.contains(&format!("{name}: ")), "{text}");
        let row = scenarios.iter().find(|row| row["name"] == name).expect(name);
        let values = row["axes"]["transport"].as_array().expect("values");
        assert!(values.contains(&Value::from("shared_memory")), "{row}");
    }
    assert!(text.contains("  transport  "), "{text}");
}

#[test]
fn a_request_that_cannot_be_met_is_told_what_could_be() {
    refused(&["lab", "pipelin"], "no scenario 'pipelin'; there are pipeline, link");
    refused(&["lab", "--quick"], "<SCENARIO>");
    refused(&["lab", "link", "--rounds", "0"], "0 is not in 1..");
    refused(&["lab", "link", "--image", "trials"], "'link' runs no guest");
    refused(&["lab", "guest", "--image", "/nowhere"], "build it: cargo build --release in guest/");
    refused(&["lab", "link", "--rounds", "many"], "invalid digit");
    refused(&["lab", "link", "--only", "transport"], "expected AXIS=VALUE");
    refused(&["lab", "link", "--only", "colour=red"], "no axis 'colour'; there are ");
    refused(&["lab", "link", "--only", "transport=ship"], "transport is never 'ship'; it is ");
    refused(&["lab", "link", "--only", "bytes=8", "--only", "bytes=48"], "bytes is given twice");
    let nothing = ["lab", "link", "--only", "transport=pipe", "--only", "sync=mutex"];
    refused(&nothing, "--only transport=pipe --only sync=mutex: none of the ");
    let answer = sinew(["lab", "link", "--json", "--only", "colour=red"]).ended_with(2);
    let json = answer.json();
    let message = json["errors"][0]["message"].as_str().expect("a text");
    assert!(message.contains("no axis 'colour'"), "{message}");
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let file = folder("lab_places").join("file");
    fs::write(&file, "what was there").expect("a file");
    let file = file.display().to_string();
    let below = format!("{file}/plots");
    for (option, path) in [
        ("--report", "/no/such/folder/page.html"),
        ("--report", "/proc"),
        ("--svg", "/proc/no/such"),
        ("--svg", &file),
        ("--svg", &below),
    ] {
        let arguments = SHORT.iter().copied().chain([option, path]).collect::<Vec<_>>();
        refused(&arguments, &format!("{option}: cannot write "));
        refused(&arguments, &format!("'{path}': "));
    }
    assert_eq!(fs::read_to_string(&file).expect("still there"), "what was there");
}

#[test]
fn a_report_of_rivals_must_be_one_of_this_machine() {
    let folder = folder("lab_rivals");
    let refused = |text: &[u8], expected: &str| {
        let path = folder.join("rivals.json");
        fs::write(&path, text).expect("a file");
        refused(&["lab", "link", "--rivals", &path.display().to_string()], expected);
    };
    refused(b"", "is not a report of rivals: EOF");
    refused(b"{\"rows\": []}", "is not a report of rivals: missing field");
    refused(b"\xff\xfe", "cannot read '");
    let machine = sinew(SHORT.into_iter().chain(["--json"])).ended_with(0).json();
    refused(machine.to_string().as_bytes(), "is a report of 'pipeline'; expected one of 'rivals'");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut report = machine.clone();
        report["scenario"] = "rivals".into();
        change(&mut report);
        report.to_string().into_bytes()
    };
    refused(&with(&|report| report["partial"] = true.into()), "is partial");
    let elsewhere = with(&|report| {
        report["machine"]["cpu"] = "Foo 9000".into();
        report["machine"]["kernel"] = "2.4.0".into();
    });
    refused(&elsewhere, "cpu is 'Foo 9000' there and '");
    refused(&elsewhere, "; kernel is '2.4.0' there and '");
    refused(&elsewhere, "run the rivals here: cargo run --release --manifest-path rivals/");
    let missing = folder.join("missing.json").display().to_string();
    let arguments = ["lab", "link", "--rivals", &missing];
    program::refused(&arguments, "cannot read '");
    program::refused(&arguments, "No such file");
    program::refused(&["lab", "pipeline", "--rivals", &missing], "'pipeline' has no rivals");
}

#[test]
fn no_page_is_left_by_a_request_that_no_row_meets() {
    let page = folder("lab_no_page").join("page.html");
    let nothing = ["lab", "link", "--only", "transport=pipe", "--only", "sync=mutex", "--report"];
    let arguments: Vec<_> = nothing.into_iter().chain([page.to_str().expect("a name")]).collect();
    refused(&arguments, "none of the ");
    assert!(!page.exists());
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_file() {
    let folder = folder("lab_second");
    let mut command = Command::new(SINEW);
    command.args(["lab", "pipeline", "--only", "work=real", "--only", "placement=fused"]);
    command.env("TMPDIR", &folder).arg("--report").arg(folder.join("page.html"));
    let running = Running::start(command);
    running.domains(1);
    let left = || fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(left(), 1, "the arm's files, and no page yet");
    running.signal(Signal::INT);
    running.insist(Signal::TERM);
    running.answer().ended_with(1);
    // Either the second signal came in time, or the report was written after the first.
    let written = folder.join("page.html").exists();
    assert_eq!(left(), usize::from(written));
}

fn well_formed(svg: &str) {
    EventReader::from_str(svg).into_iter().for_each(|event| drop(event.expect("XML")));
}

#[test]
fn a_short_measurement_gives_text_page_and_plots() {
    let folder = folder("lab_short");
    let (page, plots) = (folder.join("page.html"), folder.join("made/plots"));
    // Nothing remains of a longer file that existed before.
    fs::write(&page, "x".repeat(10_000_000)).expect("a file");
    let outputs = ["--report", page.to_str().expect("a name"), "--svg"];
    let arguments = SHORT.into_iter().chain(outputs).chain([plots.to_str().expect("a name")]);
    let answer = sinew(arguments).ended_with(0);
    assert!(answer.out.starts_with("lab pipeline: 1 round, quick\nmachine: "), "{}", answer.out);
    assert!(!answer.out.contains("PARTIAL"), "{}", answer.out);
    assert_eq!(answer.err, "", "no progress where there is no terminal");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    let (_, data) = page.split_once("id=\"report\">").expect("raw data");
    let data = data.split("</script>").next().expect("its end");
    let report: Value = serde_json::from_str(data).expect("one object");
    assert_eq!(report["scenario"], "pipeline");
    assert!(report["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{report}");
    let files = fs::read_dir(plots).expect("a folder").map(|entry| entry.expect("one").path());
    let files: Vec<_> = files.collect();
    let is_svg = |file: &PathBuf| file.extension() == Some("svg".as_ref());
    assert!(files.len() > 1 && files.iter().all(is_svg), "{files:?}");
    files.iter().for_each(|file| well_formed(&fs::read_to_string(file).expect("a plot")));
}

#[test]
fn ctrl_c_in_the_middle_shows_what_there_is_marked_partial() {
    let page = folder("lab_partial").join("page.html");
    let mut command = Command::new(SINEW);
    command.args(["lab", "pipeline", "--only", "placement=fused", "--json", "--report"]);
    command.arg(&page);
    let running = Running::start(command);
    // It handles signals before it measures.
    running.domains(1);
    running.signal(Signal::INT);
    let answer = running.answer().ended_with(1);
    assert_eq!(answer.json()["partial"], true);
    assert!(fs::read_to_string(page).expect("a page").contains("<strong>Partial.</strong>"));
}

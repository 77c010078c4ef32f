//! The arm with its log.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use sinew_control::status::EventKind;

use crate::Test;
use crate::stage::{Stage, arm, empty_folder};

/// It runs as long as necessary: the tests decide when it is over, and accept a busy machine.
const OVERRIDES: [(&str, &str); 7] = [
    ("planner.laps", "0"),
    ("ethercat.lost_frames_max", "100"),
    ("ethercat.startup_ms", "60000"),
    ("ethercat.handover_deg", "10"),
    ("planner.following_mm", "1000"),
    ("planner.following_deg", "180"),
    ("drives.watchdog_ms", "6000"),
];

pub(crate) const TESTS: &[Test] = &[
    ("a_log_that_is_killed_comes_back_and_goes_on", a_log_that_is_killed_comes_back_and_goes_on),
    ("the_arm_runs_on_when_its_log_cannot_be_written", the_arm_runs_on_without_its_log),
];

/// Runs graphs/arm in a folder of its own, where the log may be written, with this file as its log.
fn start(name: &str, log: &str) -> Stage {
    let base = empty_folder(name);
    for file in ["irb120.urdf", "square.csv"] {
        fs::copy(arm().join(file), base.join(file)).expect("a copy");
    }
    let text = fs::read_to_string(arm().join("logged.yaml")).expect("the graph");
    let text = text
        .replace("consecutive_max: 50", "consecutive_max: 1000000")
        .replace("period: 1ms", "period: 5ms")
        .replace("after: 50", "after: 1000");
    let overrides: Vec<_> = OVERRIDES.into_iter().chain([("log.file", log)]).collect();
    Stage::start(&text, base, &overrides)
}

fn lines(base: &Path) -> usize {
    fs::read_to_string(base.join("axes.csv")).map_or(0, |text| text.lines().count())
}

fn a_log_that_is_killed_comes_back_and_goes_on() {
    let mut arm = start("killed_log", "axes.csv");
    arm.until("the log has lines", |arm| lines(&arm.base) > 1);
    arm.signal("log", Signal::KILL);
    arm.until("the log is ready again", |arm| arm.texts(EventKind::Ready, "log").len() == 2);
    let ends = arm.texts(EventKind::Faulted, "log");
    assert_eq!(ends.len(), 1);
    assert!(ends[0].contains("signal 9"), "the kill has landed: {}", ends[0]);
    let before = lines(&arm.base);
    arm.until("the log has more lines", |arm| lines(&arm.base) > before);
    let said = arm.texts(EventKind::Output, "log");
    let goes_on = said.iter().filter(|text| text.starts_with("goes on with '"));
    assert_eq!((goes_on.count(), said[0].starts_with("begins '")), (1, true));
    let file = arm.base.join("axes.csv");
    arm.stop();
    is_whole(&fs::read_to_string(file).expect("the log"));
}

/// One header, the same number of cells in each line, and no target twice while the drives follow.
fn is_whole(log: &str) {
    let (header, lines) = log.split_once('\n').expect("a header");
    assert!(log.ends_with('\n') && header.starts_with("time_unix_ms,"), "{header}");
    let mut last = 0;
    for line in lines.lines() {
        let cells: Vec<_> = line.split(',').collect();
        assert_eq!(cells.len(), header.split(',').count(), "{line}");
        if !cells[15..21].iter().all(|state| *state == "operation enabled") {
            continue;
        }
        let target: u64 = cells[2].parse().unwrap_or_else(|error| panic!("{error} in {line}"));
        assert!(target > last || target == 0 && last == 0, "after {last}: {line}");
        last = target;
    }
    assert!(last > 0, "the axes have had targets");
}

fn the_arm_runs_on_without_its_log() {
    let mut arm = start("unwritable_log", "nowhere/axes.csv");
    arm.until("the log has been restarted", |arm| arm.texts(EventKind::Started, "log").len() > 1);
    let reason = arm.texts(EventKind::Faulted, "log")[0].to_owned();
    assert!(reason.starts_with("in node 'log': cannot write '"), "{reason}");
    assert!(reason.contains("No such file or directory"), "{reason}");
    arm.until("the core runs", |arm| arm.run.started_ns() != u64::MAX);
    arm.stop();
}

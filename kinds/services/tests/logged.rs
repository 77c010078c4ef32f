//! The arm with its log, run for real. The domains are this program, started again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::status::{Event, EventKind};
use sinew_core::pace::Pace;
use sinew_core::privileges;
use sinew_robot::NODES;
use sinew_runtime::Kinds;
use sinew_runtime::domain;
use sinew_runtime::run::{DOMAIN_COMMAND, Outcome, Request, Run};
use sinew_services::axis_log;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, render};

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(20);
/// As often as it takes: the tests say when it is over, and bear a busy machine.
const OVERRIDES: [(&str, &str); 7] = [
    ("planner.laps", "0"),
    ("ethercat.lost_frames_max", "100"),
    ("ethercat.startup_ms", "60000"),
    ("ethercat.handover_deg", "10"),
    ("planner.following_mm", "1000"),
    ("planner.following_deg", "180"),
    ("drives.watchdog_ms", "6000"),
];

/// All tests; `cargo test` filters them by name as usual.
const TESTS: &[(&str, fn())] = &[
    ("a_log_that_is_killed_comes_back_and_goes_on", a_log_that_is_killed_comes_back_and_goes_on),
    ("the_arm_runs_on_when_its_log_cannot_be_written", the_arm_runs_on_without_its_log),
];

/// The arm and its log.
fn kinds() -> Kinds {
    Kinds { nodes: NODES.to_vec(), services: vec![axis_log::NODE], ..Kinds::default() }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(descriptor.parse().expect("a number"), &kinds());
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        let good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += u32::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// graphs/arm in a folder of its own, where the log may be written.
struct Arm {
    base: PathBuf,
    run: Run,
}

impl Arm {
    /// Starts it with this file as its log.
    fn start(name: &str, log: &str) -> Arm {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // It may be there, from the run before.
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).expect("a folder for the test");
        let arm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm");
        for file in ["irb120.urdf", "square.csv"] {
            fs::copy(arm.join(file), base.join(file)).expect("a copy");
        }
        let text = fs::read_to_string(arm.join("logged.yaml")).expect("the graph");
        let text = text
            .replace("consecutive_max: 50", "consecutive_max: 1000000")
            .replace("period: 1ms", "period: 5ms")
            .replace("after: 50", "after: 1000");
        let overrides = OVERRIDES.into_iter().chain([("log.file", log)]);
        let overrides: Vec<_> = overrides.map(|(at, value)| (at.into(), value.into())).collect();
        let cpus = privileges::cpus().expect("affinity");
        let source = Source { file: "logged.yaml", text: &text, overrides: &overrides };
        let kinds = kinds().catalogue();
        let plan = compile(&source, &kinds, &Machine { cpus: cpus.clone() })
            .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)));
        let request = Request {
            file: "logged.yaml".into(),
            text: text.clone(),
            base: base.clone(),
            overrides,
            cpus,
            plan,
            strict: false,
            pace: Pace::AsPlanned,
            injections: Vec::new(),
        };
        Arm { base, run: Run::start(request).expect("it starts") }
    }

    /// Lets it run until `condition`, which is described by `what`.
    fn until(&mut self, what: &str, mut condition: impl FnMut(&Arm) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            let runs = self.run.poll(LOOK, &mut |_, _| ());
            assert!(runs, "ended before {what}: {}", self.story());
        }
    }

    /// Stops it, and sees to it that the core was not harmed.
    fn stop(mut self) {
        self.run.stop();
        let begun = Instant::now();
        while self.run.poll(LOOK, &mut |_, _| ()) {
            assert!(begun.elapsed() < PATIENCE, "does not stop: {}", self.story());
        }
        let faults: Vec<_> = self.run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
        let (outcome, story) = (self.run.outcome(), self.story());
        assert_eq!((outcome, faults), (Outcome::Stopped, Vec::new()), "{story}");
    }

    /// What has happened to the log.
    fn events(&self, what: EventKind) -> Vec<&Event> {
        let of_log = |event: &&Event| event.domain.as_deref() == Some("log");
        let events = self.run.events().after(0).filter(of_log);
        events.filter(|event| event.what == what).collect()
    }

    fn story(&self) -> String {
        let line = |event: &Event| format!("\n{:?} {}: {}", event.domain, event.what, event.text);
        self.run.events().after(0).map(line).collect()
    }

    fn lines(&self) -> usize {
        fs::read_to_string(self.base.join("axes.csv")).map_or(0, |text| text.lines().count())
    }

    /// Kills the log's process as it is now.
    fn kill_log(&self) {
        let started = self.events(EventKind::Started);
        let number = started.last().and_then(|event| event.text.strip_prefix("process "));
        let number = number.and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        kill_process(number.expect("its process"), Signal::KILL).expect("it is there");
    }
}

fn a_log_that_is_killed_comes_back_and_goes_on() {
    let mut arm = Arm::start("killed_log", "axes.csv");
    arm.until("the log has lines", |arm| arm.lines() > 1);
    arm.kill_log();
    arm.until("the log is ready again", |arm| arm.events(EventKind::Ready).len() == 2);
    let ends: Vec<_> = arm.events(EventKind::Faulted).iter().map(|it| it.text.clone()).collect();
    assert_eq!(ends.len(), 1);
    assert!(ends[0].contains("signal 9"), "the kill has landed: {}", ends[0]);
    let before = arm.lines();
    arm.until("the log has more lines", |arm| arm.lines() > before);
    let said = arm.events(EventKind::Output);
    let goes_on = said.iter().filter(|event| event.text.starts_with("goes on with '"));
    assert_eq!((goes_on.count(), said[0].text.starts_with("begins '")), (1, true));
    let file = arm.base.join("axes.csv");
    arm.stop();
    is_whole(&fs::read_to_string(file).expect("the log"));
}

/// One header, as many cells in each line, and no target twice while the drives follow.
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
    let mut arm = Arm::start("unwritable_log", "nowhere/axes.csv");
    arm.until("the log has been restarted", |arm| arm.events(EventKind::Started).len() > 1);
    let reason = arm.events(EventKind::Faulted)[0].text.clone();
    assert!(reason.starts_with("in node 'log': cannot write '"), "{reason}");
    assert!(reason.contains("No such file or directory"), "{reason}");
    arm.until("the core runs", |arm| arm.run.started_ns() != u64::MAX);
    arm.stop();
}

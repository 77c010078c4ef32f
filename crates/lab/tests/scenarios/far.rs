//! Far sides in processes of their own: they carry messages, and one that is killed is an error of
//! the near side, never a hang.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sinew_core::clock::Clock;
use sinew_lab::ScenarioReport;
use sinew_lab::harness::process::{FarSide, Process};
use sinew_lab::harness::{Cpus, Gone, Life, Side, Socket, answer, on_thread, round_trips, stop};
use sinew_lab::rounds::{Progress, Silent};
use sinew_lab::scenario::ScenarioRequest;

use crate::{Test, quick, run};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("a_far_process_answers_on_its_cpu_and_ends", answers),
    ("a_far_process_that_is_killed_is_an_error_that_names_the_signal", killed),
    ("a_far_process_that_fails_says_why", fails),
    ("every_transport_that_crosses_processes_is_measured", measured),
    ("a_row_whose_far_side_is_killed_says_so_and_the_others_go_on", goes_on),
];

pub(crate) const ECHO: FarSide =
    FarSide { name: "echo", run: |_, mut ends| answer(&mut Socket(ends.remove(0).into())) };
pub(crate) const FAIL: FarSide =
    FarSide { name: "fail", run: |text, _| Err(Gone(format!("was told '{text}'"))) };

/// Starts a part, and gives its process and the near end of a socket to `near`.
fn with<T: Send>(
    part: &str,
    near: impl FnOnce(&Process, &mut Socket) -> Result<T, Gone> + Send,
) -> Result<T, Gone> {
    on_thread(Cpus::of_this_process().near, || {
        let (here, there) = UnixStream::pair().expect("sockets");
        let process =
            Process::start(part, "some words", &[there.as_fd()], Cpus::of_this_process().far)?;
        drop(there);
        let found = near(&process, &mut Socket(here));
        process.join(found)
    })
}

fn answers() {
    let found = with("echo", |process, side| {
        let mut trips = 0;
        round_trips(side, Clock::calibrate(), 100, |_| trips += 1)?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
        let status = status.expect("it lives");
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(allowed.map(str::trim), Some(Cpus::of_this_process().far.to_string().as_str()));
        stop(side)?;
        Ok(trips)
    });
    assert_eq!(found, Ok(100));
}

fn killed() {
    let found = with("echo", |process, side| {
        round_trips(side, Clock::calibrate(), 10, |_| {})?;
        kill(process.id());
        while !process.life().is_over() {
            std::thread::yield_now();
        }
        round_trips(side, Clock::calibrate(), 10, |_| {})
    });
    let Gone(why) = found.expect_err("it is dead");
    assert!(why.ends_with("the far side: its process was ended by signal 9"), "{why}");
}

fn fails() {
    let Gone(why) = with("fail", |_, side| side.receive()).expect_err("it fails");
    assert!(why.ends_with("was told 'some words'"), "{why}");
    let Gone(why) = with("nothing", |_, side| side.receive()).expect_err("there is none");
    assert!(why.ends_with("there is no part 'nothing'"), "{why}");
    assert!(!Life::Parent.is_over());
}

fn kill(id: u32) {
    let pid = Pid::from_raw(id as i32).expect("a number of a process");
    kill_process(pid, Signal::KILL).expect("it is ours");
}

fn link(only: &[&str], progress: &dyn Progress) -> ScenarioReport {
    let request = ScenarioRequest { rounds: Some(2), ..quick() };
    run("link", only, request, progress, &AtomicBool::new(false)).expect("there are such rows")
}

fn measured() {
    let report = link(&["placement=processes", "wait=park", "bytes=8,65536"], &Silent);
    assert!(report.rows.len() >= 8, "{}", report.rows.len());
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
        let trips = row.measure("round_trip").expect("it was measured");
        assert_eq!(trips.rounds.len(), 2, "{}", row.id());
    }
}

/// Kills the far side of the first row as soon as it exists.
struct Killer;

impl Progress for Killer {
    fn at(&self, row: &str, _: Duration, _: Duration) {
        if row.starts_with("shared_memory") {
            kill_first_child();
        }
    }
}

/// Kills the next child of this process, as soon as it exists.
pub(crate) fn kill_first_child() {
    std::thread::spawn(|| kill(first_child()));
}

/// Waits for a child of this process; returns its number.
fn first_child() -> u32 {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let is_child = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| status.contains(&parent))
    };
    loop {
        let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if let Some(child) = ids.into_iter().find(is_child) {
            return child;
        }
    }
}

fn goes_on() {
    let report = link(&["placement=processes", "wait=park", "bytes=8"], &Killer);
    let (dead, others): (Vec<_>, Vec<_>) =
        report.rows.iter().partition(|row| row.axis("transport") == Some("shared_memory"));
    let why = dead[0].skipped.as_deref().expect("its far side was killed");
    assert!(why.contains("its process was ended by signal 9"), "{why}");
    assert!(!report.partial && others.len() >= 3);
    assert!(others.iter().all(|row| row.skipped.is_none()));
}

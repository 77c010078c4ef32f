//! Cameras, run for real beside a core. The domains are this program, started again.

mod kinds;
#[path = "../program/mod.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::status::{Event, EventKind};
use sinew_core::pace::Pace;
use sinew_core::privileges;
use sinew_runtime::Kinds;
use sinew_runtime::run::{Outcome, Request, Run};
use sinew_services::SERVICES;
use sinew_services::camera::image::POINTS_LEN;
use sinew_services::camera::jpeg;
use sinew_spec::plan::{Machine, Plan};
use sinew_spec::{Source, compile, render};

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(10);
/// Kills of the camera, at any step of a frame.
const KILLS: usize = 4;

/// All tests; `cargo test` filters them by name as usual.
const TESTS: &[(&str, fn())] = &[
    ("frames_of_a_camera_that_is_killed_arrive_whole_and_in_order", killed),
    ("a_camera_that_is_unplugged_comes_back_and_the_core_goes_on", unplugged),
    ("the_arm_is_drawn_and_goes_on_without_a_core_to_look_at", drawn),
    ("a_film_is_shown_and_at_its_end_the_camera_is_done", shown_from_a_file),
    ("what_a_camera_cannot_do_is_refused_with_what_to_change", refused),
];

const GRAPH: &str = "
name: film
domains:
  core: {realtime: {period: 2ms, overrun: {policy: count}}}
  camera: {restart: {backoff: 10ms, backoff_max: 10ms, restarts_max: 1000}}
  screen: {}
nodes:
  - {kind: joints, name: joints, domain: core, ports: {out: [{name: camera, port: pose}]}}
  - kind: KIND
    name: camera
    domain: camera
    ports: {out: [{name: screen, port: in, capacity: 4}]}
  - {kind: screen, name: screen, domain: screen}
";

fn main() -> ExitCode {
    program::carry_out(TESTS, &all_kinds())
}

/// The services, and what these tests add.
fn all_kinds() -> Kinds {
    let own = [kinds::NUMBERED, kinds::PULLED, kinds::SCREEN];
    let services = SERVICES.iter().copied().chain(own).collect();
    Kinds { nodes: vec![kinds::JOINTS], services, ..Kinds::default() }
}

/// The folder of an arm.
fn base() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

fn plan(text: &str, overrides: &[(String, String)], cpus: &[u32]) -> Plan {
    let source = Source { file: "film.yaml", text, overrides };
    compile(&source, &all_kinds().catalogue(), &Machine { cpus: cpus.to_vec() })
        .unwrap_or_else(|bad| panic!("{}", render(&bad, text, false)))
}

/// The graph with a camera of this kind, running.
struct Film {
    run: Run,
}

impl Film {
    fn start(kind: &str, overrides: &[(&str, &str)]) -> Film {
        let text = GRAPH.replace("KIND", kind);
        let own = |&(at, value): &(&str, &str)| (at.to_owned(), value.to_owned());
        let overrides: Vec<_> = overrides.iter().map(own).collect();
        let cpus = privileges::cpus().expect("affinity");
        let request = Request {
            file: "film.yaml".into(),
            base: base(),
            plan: plan(&text, &overrides, &cpus),
            text,
            overrides,
            cpus,
            strict: false,
            pace: Pace::AsPlanned,
            injections: Vec::new(),
        };
        Film { run: Run::start(request).expect("it starts") }
    }

    /// Lets it run until `condition`, which is described by `what`.
    fn until(&mut self, what: &str, mut condition: impl FnMut(&Film) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            let runs = self.run.poll(LOOK, &mut |_, _| ());
            assert!(runs, "ended before {what}: {}", self.story());
        }
    }

    /// Waits until the screen has seen so many frames more.
    fn shows(&mut self, more: u64) {
        let before = self.seen();
        self.until("the screen has seen more", |film| film.seen() >= before + more);
    }

    /// Frames that the screen has seen.
    fn seen(&self) -> u64 {
        let said = self.texts(EventKind::Output, "screen");
        let seen = said.iter().filter_map(|line| line.strip_prefix("seen ")?.parse().ok());
        seen.max().unwrap_or(0)
    }

    /// What the screen found wrong.
    fn wrong(&self) -> Vec<String> {
        let said = self.texts(EventKind::Output, "screen").into_iter();
        said.filter(|line| !line.starts_with("seen")).collect()
    }

    fn texts(&self, what: EventKind, domain: &str) -> Vec<String> {
        let ours = |event: &&Event| event.what == what && event.domain.as_deref() == Some(domain);
        self.run.events().after(0).filter(ours).map(|event| event.text.clone()).collect()
    }

    /// Stops it: in order, for nothing that a camera did reached the core.
    fn stop(mut self) {
        self.run.stop();
        let begun = Instant::now();
        while self.run.poll(LOOK, &mut |_, _| ()) {
            assert!(begun.elapsed() < PATIENCE, "does not stop: {}", self.story());
        }
        assert_eq!(self.run.outcome(), Outcome::Stopped);
    }

    fn story(&self) -> String {
        let line = |event: &Event| format!("\n{:?} {}: {}", event.domain, event.what, event.text);
        self.run.events().after(0).map(line).collect()
    }
}

fn killed() {
    let mut film = Film::start("numbered", &[]);
    film.shows(10);
    for kill in 1..=KILLS {
        let started = film.texts(EventKind::Started, "camera");
        let number = started.last().and_then(|text| text.strip_prefix("process "));
        let pid = number.and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        kill_process(pid.expect("its process"), Signal::KILL).expect("it is there");
        film.until("it is back", |film| film.texts(EventKind::Ready, "camera").len() == kill + 1);
        film.shows(10);
    }
    let ends = film.texts(EventKind::Faulted, "camera");
    assert_eq!(ends.len(), KILLS, "{ends:?}");
    assert!(ends.iter().all(|text| text.contains("signal 9")), "the kills have landed: {ends:?}");
    assert_eq!(film.wrong(), [""; 0]);
    film.stop();
}

fn unplugged() {
    let mut film = Film::start("pulled", &[]);
    film.until("it came back twice", |film| film.texts(EventKind::Ready, "camera").len() >= 3);
    film.shows(5);
    let ends = film.texts(EventKind::Faulted, "camera");
    assert!(ends.len() >= 2 && ends.iter().all(|text| text.contains("unplugged")), "{ends:?}");
    assert_eq!(film.wrong(), [""; 0], "half a frame was not sent");
    film.stop();
}

fn drawn() {
    let mut film = Film::start("camera", &[("camera.arm", "irb120.urdf")]);
    // The screen knows other frames: it calls these strange, and that they came is what counts.
    film.shows(10);
    assert!(film.wrong().iter().all(|line| line.starts_with("strange")), "{:?}", film.wrong());
    assert!(film.texts(EventKind::Faulted, "camera").is_empty());
    film.stop();
}

/// Frames of the film.
const FILM: u64 = 40;

fn shown_from_a_file() {
    let picture = |number: u64| {
        let points = vec![number as u8 * 6; POINTS_LEN].into_boxed_slice();
        let points: Box<[u8; POINTS_LEN]> = points.try_into().expect("a frame's");
        jpeg::encode(&*points, 80)
    };
    let file = std::env::temp_dir().join(format!("sinew-film-{}.mjpeg", std::process::id()));
    std::fs::write(&file, (0..FILM).flat_map(picture).collect::<Vec<u8>>()).expect("a folder");
    let path = file.to_str().expect("UTF-8");
    let own = [("camera.source", "file"), ("camera.file", path), ("camera.rate_hz", "60")];
    let mut film = Film::start("camera", &own);
    // More frames than it has: it begins again. Those whose points are no test's are 'strange'.
    film.shows(FILM + 10);
    assert!(film.wrong().iter().all(|line| line.starts_with("strange")), "{:?}", film.wrong());
    assert_eq!(film.texts(EventKind::Faulted, "camera"), [""; 0]);
    film.stop();

    let once = own.into_iter().chain([("camera.repeat", "false")]).collect::<Vec<_>>();
    let mut film = Film::start("camera", &once);
    film.until("it is over", |film| !film.texts(EventKind::Ended, "camera").is_empty());
    assert_eq!(film.texts(EventKind::Started, "camera").len(), 1, "it is done and stays so");
    film.stop();
    std::fs::remove_file(&file).expect("it was written");
}

fn refused() {
    let text = GRAPH.replace("KIND", "camera");
    let said = |overrides: &[(&str, &str)]| {
        let own = |&(at, value): &(&str, &str)| (at.to_owned(), value.to_owned());
        let overrides: Vec<_> = overrides.iter().map(own).collect();
        let plan = plan(&text, &overrides, &[0]);
        let at = plan.nodes.iter().position(|node| node.name == "camera").expect("it is there");
        all_kinds().check_node(&plan, at, &base()).err().map(|refusals| refusals[0].message.clone())
    };
    assert_eq!(said(&[("camera.arm", "irb120.urdf")]), None);
    assert!(said(&[]).is_some_and(|text| text.contains("'arm'")));
    let other = said(&[("camera.arm", "square.csv")]);
    assert!(other.is_some_and(|text| text.contains("square.csv")));
    let v4l2 = said(&[("camera.source", "v4l2"), ("camera.device", "/dev/video-of-nobody")]);
    assert_eq!(v4l2, None, "whether there is a camera shows when it starts");
    let film = |file: &str| said(&[("camera.source", "file"), ("camera.file", file)]);
    assert!(said(&[("camera.source", "file")]).is_some_and(|text| text.contains("in 'file'")));
    assert!(film("square.csv").is_some_and(|text| text.contains("expected a JPEG")));
    assert!(film("no-such.mjpeg").is_some_and(|text| text.contains("No such file")));
}

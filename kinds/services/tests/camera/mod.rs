//! Cameras, really running beside a core.

pub(crate) mod kinds;

use rustix::process::Signal;
use sinew_control::status::EventKind;
use sinew_pictures::camera::image::{POINTS_LEN, head};
use sinew_pictures::picture::{PictureView, jpeg};

use crate::Test;
use crate::stage::{Stage, arm, owned, plan};

/// Kills of the camera, at any point within a frame.
const KILLS: usize = 4;

pub(crate) const TESTS: &[Test] = &[
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

/// The graph with a camera of this kind, running.
fn start(kind: &str, overrides: &[(&str, &str)]) -> Stage {
    Stage::start(&GRAPH.replace("KIND", kind), arm(), overrides)
}

/// Waits until the screen has seen this many frames more.
fn shows(film: &mut Stage, more: u64) {
    let before = seen(film);
    film.until("the screen has seen more", |film| seen(film) >= before + more);
}

/// Frames that the screen has seen.
fn seen(film: &Stage) -> u64 {
    let said = film.texts(EventKind::Output, "screen").into_iter();
    said.filter_map(|line| line.strip_prefix("seen ")?.parse().ok()).max().unwrap_or(0)
}

/// The errors that the screen found.
fn wrong(film: &Stage) -> Vec<&str> {
    let said = film.texts(EventKind::Output, "screen").into_iter();
    said.filter(|line| !line.starts_with("seen")).collect()
}

fn killed() {
    let mut film = start("numbered", &[]);
    shows(&mut film, 10);
    for kill in 1..=KILLS {
        film.signal("camera", Signal::KILL);
        film.until("it is back", |film| film.texts(EventKind::Ready, "camera").len() == kill + 1);
        shows(&mut film, 10);
    }
    let ends = film.texts(EventKind::Faulted, "camera");
    assert_eq!(ends.len(), KILLS, "{ends:?}");
    assert!(ends.iter().all(|text| text.contains("signal 9")), "the kills have landed: {ends:?}");
    assert_eq!(wrong(&film), [""; 0]);
    film.stop();
}

fn unplugged() {
    let mut film = start("pulled", &[]);
    film.until("it came back twice", |film| film.texts(EventKind::Ready, "camera").len() >= 3);
    shows(&mut film, 5);
    let ends = film.texts(EventKind::Faulted, "camera");
    assert!(ends.len() >= 2 && ends.iter().all(|text| text.contains("unplugged")), "{ends:?}");
    assert_eq!(wrong(&film), [""; 0], "half a frame was not sent");
    film.stop();
}

fn drawn() {
    let mut film = start("camera", &[("camera.arm", "irb120.urdf")]);
    // The screen expects other frames and calls these strange; it only matters that they came.
    shows(&mut film, 10);
    assert!(wrong(&film).iter().all(|line| line.starts_with("strange")), "{:?}", wrong(&film));
    assert!(film.texts(EventKind::Faulted, "camera").is_empty());
    film.stop();
}

/// Frames of the film.
const FILM: u64 = 40;

fn shown_from_a_file() {
    let picture = |number: u64| {
        let points = vec![number as u8 * 6; POINTS_LEN];
        jpeg::encode(&PictureView::new(head(number, 0), &points).expect("a frame's"), 80)
    };
    let file = std::env::temp_dir().join(format!("sinew-film-{}.mjpeg", std::process::id()));
    std::fs::write(&file, (0..FILM).flat_map(picture).collect::<Vec<u8>>()).expect("a folder");
    let path = file.to_str().expect("UTF-8");
    let own = [("camera.source", "file"), ("camera.file", path), ("camera.rate_hz", "60")];
    let mut film = start("camera", &own);
    // More frames than the film has: it begins again. Frames with other points are 'strange'.
    shows(&mut film, FILM + 10);
    assert!(wrong(&film).iter().all(|line| line.starts_with("strange")), "{:?}", wrong(&film));
    assert_eq!(film.texts(EventKind::Faulted, "camera"), [""; 0]);
    film.stop();

    let once = own.into_iter().chain([("camera.repeat", "false")]).collect::<Vec<_>>();
    let mut film = start("camera", &once);
    film.until("it is over", |film| !film.texts(EventKind::Ended, "camera").is_empty());
    assert_eq!(film.texts(EventKind::Started, "camera").len(), 1, "it is done and stays so");
    film.stop();
    std::fs::remove_file(&file).expect("it was written");
}

fn refused() {
    let text = GRAPH.replace("KIND", "camera");
    let said = |overrides: &[(&str, &str)]| {
        let plan = plan(&text, &owned(overrides), &[0]);
        let at = plan.nodes.iter().position(|node| node.name == "camera").expect("it is there");
        crate::all_kinds()
            .check_node(&plan, at, &arm())
            .err()
            .map(|refusals| refusals[0].message.clone())
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

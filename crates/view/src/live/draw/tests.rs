//! The picture on an in-memory terminal.

use ratatui::style::Color;
use sinew_control::status::DomainState;
use sinew_core::privileges::{Asked, Obtained};
use sinew_report::fixture;
use sinew_runtime::run::ServiceState;

use super::*;
use crate::screen;

/// As long as the address of a dashboard, which contains its token.
const ADDRESS: &str = "http://127.0.0.1:8600/#token=264c017f6b7e07719d08b281582655d3";

fn picture(width: u16, height: u16, color: bool) -> (String, Vec<Color>) {
    picture_with(None, width, height, color)
}

fn picture_with(
    notice: Option<&str>,
    width: u16,
    height: u16,
    color: bool,
) -> (String, Vec<Color>) {
    let stats = fixture::stats(2000);
    let mut tracks = Tracks::new(&stats);
    for cycle in 0..2000_u64 {
        let mut observed = fixture::observed(cycle);
        let angle = cycle as f64 * 5e-3;
        observed.signals = vec![0.001, 0.4, angle.sin() * 0.1, 0.3 + angle.cos() * 0.1];
        tracks.add(fixture::CONTROL, &observed);
    }
    let asked = Asked { priority: 80, cpu: Some(1) };
    let fifo = Obtained { policy: 1, priority: 80, cpu: Some(1), locked_kib: 5120 };
    let scene = Scene {
        privileges: &[
            (fixture::CONTROL, asked, fifo),
            (fixture::PLANT, asked, Obtained::default()),
        ],
        services: &[(
            "log".into(),
            ServiceState {
                domain: 2,
                state: DomainState::Running,
                pid: Some(7),
                restarts: 3,
                last_reason: Some("its process was ended by signal 9".into()),
                address: Some(ADDRESS.into()),
                flows: vec![],
            },
        )],
        elapsed_s: 2.04,
        duration_s: Some(60.0),
        notice,
        ..Scene::of("arm", &stats)
    };
    screen::picture((width, height), |frame| draw(frame, &scene, &tracks, Theme { color }))
}

#[test]
fn everything_that_matters_is_on_a_small_terminal() {
    let (text, _) = picture(80, 24, true);
    let parts = [
        "arm  running  2.0 s of 60 s  2000 cycles",
        ADDRESS,
        "control every 1000 us",
        "cycle latency       9.00   9.00      -    9.00",
        "activation jitter",
        "overruns 0   skipped periods 0",
        "tracking error",
        "planner       ███████████",
        "control/0  FIFO 80",
        "OTHER, not FIFO 80",
        "mm across",
        "log          running      3  its process was",
        "drives.state                1-5 enabled, 6 fault",
        "drives.brake                1-5 open, 6 closed",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let dots = text.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count();
    assert!(dots > 20, "the circle is drawn:\n{text}");
}

#[test]
fn an_address_is_never_cut() {
    for width in [30, 60, 80, 200] {
        let (text, _) = picture(width, 24, true);
        let rows: String = text.lines().skip(1).take(4).map(str::trim).collect();
        assert!(rows.replace(' ', "").contains(&format!("log:{ADDRESS}")), "{width}:\n{text}");
    }
}

#[test]
fn no_color_means_none() {
    let (_, colors) = picture(120, 40, false);
    assert!(colors.iter().all(|color| *color == Color::Reset));
    let (_, colors) = picture(120, 40, true);
    assert!(colors.iter().any(|color| *color != Color::Reset));
}

#[test]
fn a_notice_takes_the_rows_it_needs_up_to_three() {
    let notice = "word ".repeat(30);
    let (text, _) = picture_with(Some(notice.trim()), 80, 24, true);
    let rows: Vec<_> = text.lines().collect();
    let words = |row: &str| row.matches("word").count();
    assert_eq!((words(rows[2]), words(rows[3]), words(rows[4])), (16, 14, 0), "{text}");
    assert!(rows[4].starts_with(" control every"), "{text}");
    let (text, _) = picture_with(Some(&notice.repeat(9)), 80, 24, true);
    let rows: Vec<_> = text.lines().collect();
    assert!(rows[4].ends_with('…') && rows[5].starts_with(" control every"), "{text}");
}

#[test]
fn what_a_screen_does_not_show_is_counted() {
    // Two rows of signals and their title. A screen of 40x10 has room only for the times of cycles.
    for (width, height) in [(80, 20), (40, 10), (80, 3)] {
        let (text, _) = picture(width, height, true);
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with("… ") && last.contains(" more row"), "{width}x{height}:\n{text}");
    }
    for (width, height) in [(80, 40), (200, 60)] {
        let (text, _) = picture(width, height, true);
        assert!(!text.contains("more row") && text.contains("drives.brake"), "{text}");
    }
}

#[test]
fn a_narrow_screen_has_no_map_and_marks_what_it_cuts() {
    let (text, _) = picture(40, 30, true);
    assert!(!text.contains("mm across"), "{text}");
    let cut = text.lines().find(|line| line.starts_with(" cycle lat")).expect("a row");
    assert!(cut.ends_with('…'), "{text}");
    let (text, _) = picture(200, 60, true);
    assert!(text.contains("mm across") && !text.contains('…'), "{text}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (10, 3), (47, 5), (48, 12), (200, 8), (300, 100)] {
        picture_with(Some("what went wrong"), width, height, true);
    }
}

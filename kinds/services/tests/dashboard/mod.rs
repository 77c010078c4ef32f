//! Tests of the dashboard with viewers of all kinds.

mod client;
pub(crate) mod kinds;
mod scope;
mod shown;
mod strangers;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use serde_json::json;
use sinew_control::status::EventKind;
use sinew_services::dashboard::protocol::{FLAG_FRESH, FLAG_STOPPING};

use self::client::Viewer;
use self::shown::Shown;
use crate::Test;
use crate::stage::PATIENCE;

pub(crate) const TESTS: &[Test] = &[
    ("a_viewer_is_greeted_and_sees_the_core_move", greeted),
    ("the_values_of_ports_come_to_whoever_asks", valued),
    ("a_scope_follows_the_core_and_says_when_it_ends", scope::followed),
    ("a_scope_bears_hostile_settings_and_there_are_few", scope::hostile),
    ("each_of_two_dashboards_on_any_port_has_its_own_links", two),
    ("a_command_reaches_the_planner_exactly_once", commanded),
    ("a_halt_is_measured_and_a_reset_begins_again", halted),
    ("a_dashboard_that_is_restarted_says_so_and_comes_back", restarted),
    ("viewers_hear_that_the_run_has_ended", ended),
    ("a_stalled_viewer_is_closed_and_harms_none_of_fifty", stalled),
    ("a_camera_that_never_ends_holds_up_nobody", flooded),
    ("there_are_no_more_viewers_than_allowed", crowded),
    ("who_has_no_token_commands_nothing", strangers::without_a_token),
    ("a_tap_needs_the_token_and_a_domain_with_flows", strangers::tapping),
    ("parameters_need_the_token_and_must_be_tunable", strangers::tuning),
    ("no_viewer_sees_the_token", strangers::redacted),
    ("what_comes_from_other_sites_is_refused", strangers::foreign),
    ("what_is_no_order_is_answered_or_closed", strangers::malformed),
    ("half_requests_keep_no_viewer_out", strangers::silent),
    ("an_address_in_use_is_named", strangers::in_use),
];

fn greeted() {
    let shown = Shown::start(&[]);
    let (address, _) = shown.address();
    let mut viewer = Viewer::open(&address);
    let hello = &viewer.hello;
    assert_eq!((&hello["graph"], &hello["protocol"]), (&json!("shown"), &json!(1)));
    assert_eq!(hello["threads"][0]["nodes"], json!(["probe"]));
    assert_eq!((&hello["commands"], &hello["camera"]), (&json!(true), &json!(true)));
    assert_eq!((&hello["holds"], &hello["paths"]), (&json!(true), &json!(["a", "b"])));
    assert_eq!(hello["signals"][3]["offset"], json!(3));
    assert_eq!((&hello["path_signal"], &hello["arm"]), (&json!(3), &json!(null)));
    assert_eq!(hello["picture"]["nodes"].as_array().map(Vec::len), Some(3));
    let film = &hello["picture"]["nodes"][1];
    assert_eq!((&film["flow"], &film["runs"]), (&json!(null), &json!(true)));
    assert_eq!(hello["picture"]["flow_links"], json!([]));
    let status = viewer.text_that("status", |it| it["status"]["phase"] == "running");
    assert_eq!(status["status"]["graph"], json!("shown"));
    let moving =
        |what| move |motion: &client::Motion| motion.cycle > what && !motion.points.is_empty();
    let first = viewer.motion_that("a cycle", moving(0.0));
    let next = viewer.motion_that("later cycles", moving(first.cycle));
    assert!(next.sequence > first.sequence && next.flags & FLAG_FRESH != 0);
    let last = next.points.last().expect("a path");
    assert_eq!((last[0], &next.signals[3..6]), (next.cycle as f32, &last[..]));
    let figures = viewer.text_that("figures", |it| it["threads"][0]["cycles"].as_u64() > Some(9));
    let latency = &figures["threads"][0]["latency"];
    let counts = latency["counts"].as_array().expect("buckets").iter();
    assert_eq!(counts.map(|it| it.as_u64().unwrap_or(0)).sum::<u64>(), latency["count"]);
    assert_eq!(Some(latency["counts"].as_array().map_or(0, Vec::len)), {
        viewer.hello["histogram"]["count"].as_u64().map(|count| count as usize)
    });
    viewer.say(json!({"do": "view", "image": true}).to_string());
    let (first, jpeg) = viewer.image();
    assert!(jpeg.starts_with(&[0xff, 0xd8]) && viewer.image().0 > first);
    viewer.say(json!({"do": "ping", "at": 1.5}).to_string());
    assert_eq!(viewer.text("pong")["at"], json!(1.5));
    drop(viewer);
    shown.stop();
}

fn valued() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let port = viewer.hello["ports"][0].clone();
    assert_eq!((&port["port"], &port["direction"]), (&json!("probe.command"), &json!("in")));
    assert_eq!(port["others"], json!(["page.command"]));
    let names: Vec<_> = port["fields"].as_array().expect("fields").iter().collect();
    let path = names.iter().find(|it| it["name"] == "path").expect("its field")["offset"].as_u64();
    viewer.say(json!({"do": "view", "image": false, "values": true}).to_string());
    let number =
        |bytes: &[u8], at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    assert_eq!(number(&viewer.values(), 16), -1.0, "nobody has written it");
    assert!(viewer.order(&token, json!({"do": "choose", "path": 1})).is_ok());
    let begun = Instant::now();
    let values = loop {
        let values = viewer.values();
        if number(&values, 16) >= 0.0 {
            break values;
        }
        assert!(begun.elapsed() < PATIENCE, "the command is never shown");
    };
    assert_eq!((values[2], values[24], values[28]), (1, 1, 1), "one port, one message, new");
    assert_eq!(number(&values, 32 + 8 * path.expect("a place") as usize), 1.0);
    shown.stop();
}

fn two() {
    let shown = Shown::start_beside_another();
    for (domain, is_linked) in [("page", true), ("aside", false)] {
        let hello = Viewer::open(&shown.address_of(domain).0).hello;
        let is_linked = json!(is_linked);
        assert_eq!((&hello["commands"], &hello["camera"]), (&is_linked, &is_linked), "{domain}");
    }
    shown.stop();
}

fn commanded() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    let orders = [
        (json!({"do": "choose", "path": 1}), [1.0, 1.0]),
        (json!({"do": "pause"}), [2.0, 0.0]),
        (json!({"do": "resume"}), [3.0, 0.0]),
    ];
    for (count, (order, expected)) in (1..).zip(orders) {
        assert_eq!(viewer.order(&token, order), Ok("the planner is told".into()));
        let motion = viewer.motion_that("the command", |it| it.signals[0] >= count as f32);
        assert_eq!((motion.signals[0], &motion.signals[1..3]), (count as f32, &expected[..]));
    }
    let unknown = viewer.order(&token, json!({"do": "choose", "path": 2}));
    assert_eq!(unknown, Err("there is no path 2, expected less than 2".into()));
    // Another life of the dashboard counts from another number: its first command is a new one.
    assert!(viewer.order(&token, json!({"do": "restart", "domain": "page"})).is_ok());
    let address = shown.until("it is back", |shown| {
        let now = shown.address().0;
        (now != address).then_some(now)
    });
    let mut viewer = Viewer::open(&address);
    assert!(viewer.order(&token, json!({"do": "pause"})).is_ok());
    viewer.motion_that("one command more", |it| it.signals[0] == 4.0);
    let some_cycles_on = viewer.motion().cycle + 200.0;
    let motion = viewer.motion_that("later cycles", |it| it.cycle > some_cycles_on);
    assert_eq!(motion.signals[0], 4.0, "each came once");
    shown.stop();
}

fn halted() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    viewer.motion_that("the core runs", |it| it.cycle > 100.0 && it.signals[6] == 0.0);
    let reset = viewer.order(&token, json!({"do": "reset"}));
    assert!(reset.is_err(), "the core runs: {reset:?}");
    assert!(viewer.order(&token, json!({"do": "halt"})).is_ok());
    let stop = viewer.text_that("stop", |it| it["brakes_closed_us"].is_f64());
    assert!(stop["reason"].as_str().is_some_and(|it| it.contains("dashboard")), "{stop}");
    assert!(stop["brakes_closed_us"].as_f64().is_some_and(|us| us > 0.0), "{stop}");
    assert!(stop["safe_output_us"].is_null(), "the probe has no actuator: {stop}");
    let held = viewer.text_that("status", |it| it["status"]["phase"] == "held");
    assert!(held["status"]["stop"].is_object());
    // A viewer that comes later is told too.
    assert_eq!(Viewer::open(&address).text("stop"), stop);
    assert!(viewer.order(&token, json!({"do": "reset"})).is_ok());
    let again = viewer.motion_that("the core runs again", |it| {
        it.flags & (FLAG_FRESH | FLAG_STOPPING) == FLAG_FRESH
    });
    assert_eq!(again.signals[6..], [0.0, 0.0], "the brakes are open");
    let figures = viewer.text_that("figures", |it| it["threads"][0]["cycles"].is_u64());
    let cycles = figures["threads"][0]["cycles"].as_f64().expect("a count");
    let motion = viewer.motion_that("later cycles", |it| it.cycle >= cycles);
    assert!(motion.cycle < PATIENCE.as_millis() as f64, "numbers begin again: {motion:?}");
    shown.stop();
}

fn restarted() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    viewer.say(json!({"do": "restart", "id": 1, "token": token, "domain": "page"}).to_string());
    let closed = viewer.closed().expect("a good bye");
    assert_eq!(
        (u16::from(closed.code), closed.reason.as_str()),
        (1001, "the dashboard ends; open the page again")
    );
    let again = shown.until("it is back", |shown| {
        let now = shown.address();
        (now.0 != address).then_some(now)
    });
    assert_eq!(again.1, token, "the token is the run's");
    assert_ne!(Viewer::open(&again.0).hello["life"], viewer.hello["life"]);
    shown.stop();
}

fn ended() {
    let shown = Shown::start(&[]);
    let mut viewer = Viewer::open(&shown.address().0);
    shown.tell_to_stop();
    assert_eq!(viewer.text("ended")["text"], json!("the run has ended"));
    assert_eq!(viewer.closed().map(|frame| u16::from(frame.code)), Some(1000));
    shown.stop();
}

/// Viewers beside the stalled one.
const OTHERS: usize = 49;
/// Frames that each of them must get while one is stalled.
const FRAMES: u32 = 200;
/// Most additional memory for fifty viewers, KiB: a frame is made once for all.
const GROWTH_KIB_MAX: u64 = 16 << 10;

fn stalled() {
    let shown = Shown::start(&[]);
    let (address, _) = shown.address();
    let mut first = Viewer::open(&address);
    let resident = |viewer: &mut Viewer| {
        let status = viewer.text_that("status", |it| it["status"]["phase"] == "running");
        let domains = status["status"]["domains"].as_array().expect("domains").iter();
        let page = domains.into_iter().find(|it| it["name"] == "page").expect("its domain");
        page["resident_kib"].as_u64().expect("its memory")
    };
    let before_kib = resident(&mut first);
    let mut stalled = Viewer::open(&address);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let look_on = |mut viewer: Viewer| {
            let begun = viewer.motion().sequence;
            viewer.motion_that("many frames", |it| it.sequence > begun + FRAMES);
            // From here on it only waits for the end.
            while !is_over.load(Relaxed) {
                viewer.motion();
            }
        };
        for _ in 0..OTHERS {
            let viewer = Viewer::open(&address);
            scope.spawn(move || look_on(viewer));
        }
        // It never reads; the count of viewers shows that it was closed.
        first.text_that("figures", |it| it["viewers"] == OTHERS + 2);
        first.text_that("figures", |it| it["viewers"] == OTHERS + 1);
        let after_kib = resident(&mut first);
        is_over.store(true, Relaxed);
        assert!(after_kib < before_kib + GROWTH_KIB_MAX, "{before_kib} KiB, then {after_kib}");
    });
    stalled.runs_dry();
    let begun = Instant::now();
    while first.text("figures")["viewers"] != 1 {
        assert!(begun.elapsed() < PATIENCE, "viewers that left are still counted");
    }
    assert_eq!(shown.texts(EventKind::Faulted, "page"), [""; 0]);
    shown.stop();
}

fn flooded() {
    let shown = Shown::start(&[("film.pause_ms", "0")]);
    let mut viewer = Viewer::open(&shown.address().0);
    viewer.say(json!({"do": "view", "image": true}).to_string());
    let first = viewer.image().0;
    let begun = viewer.motion().sequence;
    viewer.motion_that("frames go on", |it| it.sequence > begun + FRAMES);
    assert!(viewer.image().0 > first);
    assert_eq!(shown.texts(EventKind::Faulted, "page"), [""; 0]);
    shown.stop();
}

fn crowded() {
    let shown = Shown::start(&[("page.viewers_max", "2")]);
    let (address, _) = shown.address();
    let [mut first, second] = [(); 2].map(|()| Viewer::open(&address));
    let refused = Viewer::knock(&address).closed().expect("a good bye");
    assert_eq!(u16::from(refused.code), 1013);
    assert!(refused.reason.contains("'viewers_max'"), "{}", refused.reason);
    drop(second);
    first.text_that("figures", |it| it["viewers"] == 1);
    Viewer::open(&address).motion();
    shown.stop();
}

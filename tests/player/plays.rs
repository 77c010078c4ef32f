//! Films that are played to their end, and commands meanwhile.

use std::process::Command;

use serde_json::Value;

use super::stage::{
    JPEG, MP3, PCM, Player, XVID, alone, count, ffmpeg, film, graph, is_in_step, watch,
};
use crate::program::{ours, skip};

/// The pictures of a film that were shown or counted otherwise.
fn accounted(state: &Value) -> u64 {
    ["shown", "dropped", "skipped", "broken"].iter().map(|key| count(state, key)).sum()
}

#[test]
fn a_film_of_the_papers_sort_is_played_to_its_end_and_no_picture_is_copied() {
    let Some(_alone) = alone() else { return };
    for (name, video, sound) in [("xvid", &XVID, &MP3[..]), ("jpeg", &JPEG, &PCM[..])] {
        let film = film(&format!("whole_{name}"), 4, video, sound);
        let player = Player::start(graph(&format!("whole_{name}"), "player.yaml", &film, &[]));
        let state = watch(&player);
        assert_eq!(accounted(&state), 100, "{name}: {state:#}");
        assert_eq!(count(&state, "copies"), 0, "{name}: {state:#}");
        assert_eq!((count(&state, "width"), count(&state, "height")), (640, 352));
        assert!(state["film_s"].as_f64().is_some_and(|film_s| (3.9..4.2).contains(&film_s)));
        let positions = player.column("position_ns");
        assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {positions:?}");
        assert_eq!(positions.len() as u64, count(&state, "shown"));
        assert!(positions.iter().all(|it| it.is_some_and(|ns| ns % 40_000_000 < 1_000)));
        assert!(player.column("copies").iter().all(|copies| *copies == Some(0)));
        // The sound was played, and pictures were compared with it.
        assert!(state["difference_ms"]["n"].as_u64() > Some(90), "{name}: {state:#}");
        player.stop();
    }
}

#[test]
fn pictures_in_another_order_and_of_other_lengths_are_shown_in_theirs() {
    let Some(_alone) = alone() else { return };
    let reordered = film("reordered", 3, &["-c:v", "mpeg4", "-bf", "2"], &MP3);
    let player = Player::start(graph("reordered", "player.yaml", &reordered, &[]));
    let state = watch(&player);
    assert_eq!((accounted(&state), count(&state, "copies")), (75, 0), "{state:#}");
    let positions = player.column("position_ns");
    assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{positions:?}");
    player.stop();
    // Every third picture of the first second is missing, and every second picture after that.
    let varied = reordered.with_file_name("varied.mkv");
    let (from, to) = (reordered.to_str().expect("ours"), varied.to_str().expect("ours"));
    let chosen = "select=if(lt(n\\,25)\\,mod(n\\,3)\\,mod(n\\,2))";
    let coded = ["-c:v", "mpeg4", "-fps_mode", "passthrough", "-c:a", "copy"];
    ffmpeg(&[&["-i", from, "-vf", chosen], &coded[..], &[to]].concat());
    let player = Player::start(graph("varied", "player.yaml", &varied, &[]));
    let state = watch(&player);
    assert_eq!(accounted(&state), 16 + 25, "{state:#}");
    player.stop();
}

#[test]
fn a_film_without_sound_has_a_clock_and_one_without_pictures_is_heard() {
    let Some(_alone) = alone() else { return };
    let silent = film("silent", 3, &XVID, &["-an"]);
    let player = Player::start(graph("silent", "player.yaml", &silent, &[]));
    let state = watch(&player);
    assert_eq!(accounted(&state), 75, "{state:#}");
    assert!(state["difference_ms"]["n"].as_u64() > Some(60), "{state:#}");
    player.stop();
    let blind = film("blind", 3, &["-vn"], &MP3);
    let player = Player::start(graph("blind", "player.yaml", &blind, &[]));
    let state = watch(&player);
    assert!(state["position_s"].as_f64().is_some_and(|s| s > 2.8), "{state:#}");
    player.stop();
}

#[test]
fn who_takes_only_one_stream_is_not_held_up_by_the_other() {
    let Some(_alone) = alone() else { return };
    let film = film("halves", 8, &XVID, &MP3);
    // Nothing takes the sound: pictures are shown as they come.
    let page = super::stage::free_address();
    let spec = format!(
        "name: halves
domains: {{source: {{}}, decoder: {{}}, screen: {{}}}}
nodes:
  - kind: media_source
    domain: source
    film: '{}'
    ports: {{video: [{{name: pictures, port: in}}]}}
  - kind: video_decoder
    name: pictures
    domain: decoder
    ports: {{out: [{{name: screen, port: in}}]}}
  - {{kind: video_sink, name: screen, domain: screen, listen: '{page}', log: shown.csv}}
",
        film.display()
    );
    let player = Player::start((crate::program::graph_in("halves", &spec), page));
    player.until("all was shown", |it| accounted(it) == 200);
    player.stop();
}

#[test]
fn who_watches_can_pause_jump_and_change_the_speed() {
    let Some(_alone) = alone() else { return };
    let film = film("orders", 30, &XVID, &MP3);
    let player = Player::start(graph("orders", "player.yaml", &film, &[]));
    player.plays_on(10);
    assert_eq!(player.order(r#"{"order": "pause"}"#), "");
    let paused = player.until("it stands", |it| it["state"] == "paused");
    let later = player.until("it stands still", |it| it["state"] == "paused");
    assert_eq!(later["position_s"], paused["position_s"]);
    // A jump while the film is paused shows the picture there, and the film stays paused.
    player.order(r#"{"order": "seek", "value": 20}"#);
    player.until("it stands there", |it| {
        it["state"] == "paused" && it["position_s"].as_f64() == Some(20.0)
    });
    player.order(r#"{"order": "play"}"#);
    player.plays_on(10);
    let seconds = |state: &Value| state["position_s"].as_f64().unwrap_or_default();
    for (to, from) in [("3.7", 3.7), ("25", 25.0), ("0", 0.0)] {
        player.order(&format!(r#"{{"order": "seek", "value": {to}}}"#));
        player.until("it plays there", |it| {
            let here = seconds(it) - from;
            (0.0..5.0).contains(&here) && it["state"] == "playing" && is_in_step(it)
        });
    }
    for speed in ["2", "0.5", "1"] {
        player.order(&format!(r#"{{"order": "speed", "value": {speed}}}"#));
        let wanted: f64 = speed.parse().expect("ours");
        player.until("it has this speed", |it| it["speed"].as_f64() == Some(wanted));
        player.plays_on(5);
    }
    // No picture from before a jump was shown after it.
    let (serials, positions) = (player.column("serial"), player.column("position_ns"));
    for serial in 1..=4 {
        let of = serials.iter().zip(&positions).filter(|(it, _)| **it == Some(serial));
        let mut of = of.map(|(_, position)| position.expect("a number"));
        let target = [20, 3, 25, 0][serial as usize - 1] * 1_000_000_000;
        assert!(of.all(|position| position + 700_000_000 >= target), "{serial}");
    }
    let wrong = player.order(r#"{"order": "rewind"}"#);
    assert!(wrong.starts_with("HTTP/1.1 400") && wrong.contains("there is no order"), "{wrong}");
    let foreign = player.ask("POST /order", "Origin: http://evil.example\r\n\r\n");
    assert!(foreign.is_some_and(|answer| answer.starts_with("HTTP/1.1 403")));
    player.stop();
}

#[test]
fn the_page_shows_pictures_in_a_stream_and_one_by_one() {
    let Some(_alone) = alone() else { return };
    let film = film("page", 20, &XVID, &MP3);
    let kept = ("log: shown.csv", "log: shown.csv\n    file: kept.mjpeg\n    at_end: repeat");
    let (spec, page) = graph("page", "player.yaml", &film, &[kept]);
    let kept = std::path::Path::new(&spec).with_file_name("kept.mjpeg");
    let player = Player::start((spec, page.clone()));
    player.plays_on(5);
    let answer = player.ask("GET /", "\r\n").expect("a page");
    assert!(answer.contains("/player.js"), "{answer}");
    // FFmpeg's own client reads the stream, and its prober reads the file.
    let address = format!("http://{page}/stream.mjpeg");
    let copied = kept.with_file_name("copied.avi");
    let copy = ["-i", &address, "-frames:v", "20", "-c", "copy"];
    ffmpeg(&[&copy[..], &[copied.to_str().expect("ours")]].concat());
    // After the end, the film starts again at its beginning.
    player.order(r#"{"order": "seek", "value": 19.5}"#);
    player.until("it begins again", |it| it["position_s"].as_f64().is_some_and(|s| s < 5.0));
    player.plays_on(5);
    player.stop();
    for (file, least) in [(&copied, 20), (&kept, 30)] {
        let probe = ["-v", "error", "-count_frames", "-show_entries"];
        let entries = ["stream=codec_name,width,height,nb_read_frames", "-of", "csv=p=0"];
        let output = Command::new("ffprobe").args(probe).args(entries).arg(file).output();
        let text = String::from_utf8(output.expect("FFmpeg's prober").stdout).expect("text");
        let fields: Vec<_> = text.trim().split(',').collect();
        assert_eq!(fields[..3], ["mjpeg", "640", "352"], "{text}");
        assert!(fields[3].parse::<u32>().is_ok_and(|count| count >= least), "{text}");
    }
}

#[test]
fn a_camera_is_seen_on_the_same_screen_without_a_clock() {
    let Some(_alone) = alone() else { return };
    let page = super::stage::free_address();
    let arm = ours("graphs/arm/irb120.urdf").display().to_string();
    let spec = format!(
        "name: seen
domains: {{camera: {{}}, screen: {{}}}}
nodes:
  - kind: camera
    domain: camera
    arm: {arm}
    ports: {{out: [{{name: screen, port: in, capacity: 4}}]}}
  - {{kind: video_sink, name: screen, domain: screen, listen: '{page}', log: shown.csv}}
"
    );
    let player = Player::start((crate::program::graph_in("seen", &spec), page));
    let state = player.until("pictures are shown", |it| count(it, "shown") > 20);
    assert_eq!(state["state"], "live");
    assert_eq!((count(&state, "width"), count(&state, "height")), (640, 480));
    player.stop();
}

#[test]
fn the_guest_decodes_the_film_and_a_crash_of_it_costs_pictures_alone() {
    let Some(_alone) = alone() else { return };
    if Command::new("qemu-system-arm").arg("--version").output().is_err() {
        return skip("there is no qemu-system-arm; apt-get install qemu-system-arm");
    }
    if !ours("guest/target/armv7a-none-eabi/release/player").exists() {
        return skip("the guest was not built; cd guest && cargo build --release");
    }
    let film = film("guest", 20, &JPEG, &PCM);
    let player = Player::start(graph("guest", "player_guest.yaml", &film, &[]));
    let state = player.plays_on(25);
    assert_eq!(count(&state, "copies"), 0);
    player.kill("decoder");
    let before = player.state();
    let after = player.plays_on(25);
    assert!(after["position_s"].as_f64() > before["position_s"].as_f64(), "the sound went on");
    let state = watch(&player);
    assert_eq!(count(&state, "copies"), 0);
    assert_eq!(state["sound"]["underruns"], after["sound"]["underruns"], "{state:#}");
    player.stop();
}

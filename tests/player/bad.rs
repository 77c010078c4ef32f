//! Films that cannot be played, and the errors about them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use super::stage::{JPEG, MP3, PCM, Player, XVID, alone, count, film, graph, watch};
use crate::program::{folder, refused};

#[test]
fn what_is_no_film_is_refused_before_anything_runs() {
    let Some(_alone) = alone() else { return };
    let place = folder("bad_films");
    let file = |name: &str, bytes: &[u8]| {
        let path = place.join(name);
        fs::write(&path, bytes).expect("room for it");
        path
    };
    let check = |name: &str, film: &Path, expected: &str| {
        let (graph, _) = graph(name, "player.yaml", film, &[]);
        refused(&["check", &graph], expected);
    };
    check("bad_none", &place.join("none.avi"), "No such file");
    check("bad_folder", &place, "is a folder");
    check("bad_text", &file("text.avi", b"not a film\n"), "Invalid data");
    check("bad_empty", &file("empty.avi", b""), "give a film in 'film'");
    check("bad_noise", &file("noise.avi", &[0x5a; 100_000]), "Invalid data");
    let whole = fs::read(film("size", 1, &JPEG, &PCM)).expect("it was made");
    for (side, name) in [(0_u32, "zero"), (16_384, "huge")] {
        // Width and height are in the main header and in the header of the stream.
        let mut bytes = whole.clone();
        let sides = [640_u32.to_le_bytes(), 352_u32.to_le_bytes()].concat();
        let other = [side.to_le_bytes(), side.to_le_bytes()].concat();
        while let Some(at) = bytes.windows(8).position(|found| found == sides) {
            bytes[at..at + 8].copy_from_slice(&other);
        }
        let path = file(&format!("{name}.avi"), &bytes);
        let (graph, page) = graph(&format!("bad_{name}"), "player.yaml", &path, &[]);
        // The stream itself says how large its pictures are. If the header is right then, the film
        // plays.
        if crate::program::sinew(["check", &graph]).status == Some(0) {
            let player = Player::start((graph, page));
            let state = watch(&player);
            assert_eq!(count(&state, "copies"), 0, "{name}: {state:#}");
            player.stop();
        } else {
            refused(&["check", &graph], &format!("{side} x {side}"));
        }
    }
}

#[test]
fn a_codec_that_nobody_has_is_named_and_the_sound_goes_on() {
    let Some(_alone) = alone() else { return };
    let film = film("codec", 6, &XVID, &MP3);
    let mut bytes = fs::read(&film).expect("it was made");
    // The codec is in the main header and in the header of the stream.
    for known in [&b"xvid"[..], b"XVID", b"FMP4"] {
        while let Some(at) = bytes.windows(4).position(|found| found == known) {
            bytes[at..at + 4].copy_from_slice(b"ZZZZ");
        }
    }
    fs::write(&film, bytes).expect("room for it");
    let player = Player::start(graph("codec", "player.yaml", &film, &[]));
    player.until_said("decoder", "no decoder for '");
    let state = watch(&player);
    assert_eq!(count(&state, "shown"), 0, "{state:#}");
    assert!(state["position_s"].as_f64().is_some_and(|s| s > 5.5), "{state:#}");
    player.stop();
}

#[test]
fn a_film_comes_through_a_pipe() {
    let Some(_alone) = alone() else { return };
    let film = film("pipe", 4, &JPEG, &PCM);
    let pipe = film.with_file_name("film.pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let (graph, page) = graph("pipe", "player.yaml", &pipe, &[]);
    let into = pipe.clone();
    let writing = thread::spawn(move || fs::copy(film, into).map(drop));
    let player = Player::start((graph, page));
    let state = watch(&player);
    assert!(count(&state, "shown") + count(&state, "dropped") >= 99, "{state:#}");
    assert!(writing.join().is_ok());
    player.stop();
}

#[test]
fn sound_of_any_rate_is_heard_for_as_long_as_the_film_lasts() {
    let Some(_alone) = alone() else { return };
    for (name, sound) in [
        ("rate44", &["-c:a", "mp3", "-ar", "44100"][..]),
        ("rate48", &["-c:a", "pcm_s16le", "-ar", "48000"]),
        ("rate8", &["-c:a", "pcm_s16le", "-ar", "8000", "-ac", "1"]),
    ] {
        let film = film(name, 3, &JPEG, sound);
        let player = Player::start(graph(name, "player.yaml", &film, &[]));
        let state = watch(&player);
        let heard_s = state["position_s"].as_f64().unwrap_or_default();
        assert!((2.9..3.2).contains(&heard_s), "{name}: {state:#}");
        player.stop();
    }
}

//! Failures while a film is played: the sound goes on, and the picture comes back in step.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{JPEG, MP3, PCM, Player, XVID, alone, count, film, free_address, graph, watch};

fn seconds(state: &Value) -> f64 {
    state["position_s"].as_f64().unwrap_or_default()
}

#[test]
fn whoever_is_killed_comes_back_in_step_and_nothing_is_heard_twice() {
    let Some(_alone) = alone() else { return };
    let film = film("killed", 40, &XVID, &MP3);
    let player = Player::start(graph("killed", "player.yaml", &film, &[]));
    player.plays_on(10);
    for domain in ["decoder", "source", "screen", "sound", "decoder"] {
        let before = player.state();
        player.kill(domain);
        player.until("there is a page", |it| !it.is_null());
        let after = player.plays_on(10);
        assert!(seconds(&after) > seconds(&before), "{domain}: {before:#} {after:#}");
        assert_eq!(count(&after, "copies"), 0, "{domain}");
        if domain == "decoder" {
            assert_eq!(before["sound"]["underruns"], after["sound"]["underruns"], "{after:#}");
        }
    }
    let positions: Vec<_> = player.column("position_ns").into_iter().flatten().collect();
    assert!(positions.is_sorted(), "{positions:?}");
    player.stop();
}

#[test]
fn while_nobody_reads_pictures_the_sound_goes_on() {
    let Some(_alone) = alone() else { return };
    let film = film("stands", 40, &XVID, &MP3);
    // The domain must be found stopped, not dead.
    let patient = ("screen: {}", "screen: {heartbeat: 60s}");
    let player = Player::start(graph("stands", "player.yaml", &film, &[patient]));
    let before = player.plays_on(10);
    player.signal("screen", Signal::STOP);
    // Not a matter of time: long enough that the film's video fills all queues.
    thread::sleep(Duration::from_secs(10));
    player.signal("screen", Signal::CONT);
    let after = player.plays_on(10);
    assert!(seconds(&after) - seconds(&before) > 9.0, "{before:#} {after:#}");
    assert_eq!(after["sound"]["underruns"], before["sound"]["underruns"], "{after:#}");
    player.until_said("source", "left out");
    player.stop();
}

#[test]
fn a_decoder_that_stands_freezes_the_picture_and_the_page_says_so() {
    let Some(_alone) = alone() else { return };
    let film = film("frozen", 30, &XVID, &MP3);
    let patient = ("decoder: {}", "decoder: {heartbeat: 60s}");
    let player = Player::start(graph("frozen", "player.yaml", &film, &[patient]));
    player.plays_on(10);
    player.signal("decoder", Signal::STOP);
    let frozen = player.until("it is frozen", |it| it["frozen_s"].as_f64() > Some(1.0));
    assert_eq!(frozen["state"], "playing");
    player.until_said("screen", "the picture is frozen");
    player.signal("decoder", Signal::CONT);
    player.plays_on(10);
    player.until_said("screen", "in step with the sound again");
    player.stop();
}

#[test]
fn a_film_that_is_cut_off_is_played_as_far_as_it_goes() {
    let Some(_alone) = alone() else { return };
    let film = film("cut", 8, &XVID, &MP3);
    let bytes = fs::read(&film).expect("it was made");
    let cut = film.with_file_name("half.avi");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("room for it");
    let player = Player::start(graph("cut", "player.yaml", &cut, &[]));
    let state = watch(&player);
    assert!((2.0..6.0).contains(&seconds(&state)), "{state:#}");
    player.until_said("source", "it is cut off or damaged");
    player.stop();
    // If it is damaged in the middle, it continues after the damage.
    let spoilt = film.with_file_name("spoilt.avi");
    let mut bytes = bytes;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0x55);
    fs::write(&spoilt, &bytes).expect("room for it");
    let player = Player::start(graph("spoilt", "player.yaml", &spoilt, &[]));
    let state = watch(&player);
    assert!(seconds(&state) > 7.0, "{state:#}");
    player.stop();
}

#[test]
fn a_film_that_is_still_written_is_followed() {
    let Some(_alone) = alone() else { return };
    let film = film("grows", 6, &JPEG, &PCM);
    let bytes = fs::read(&film).expect("it was made");
    let growing = film.with_file_name("growing.avi");
    let third = bytes.len() / 3;
    fs::write(&growing, &bytes[..third]).expect("room for it");
    let grows = ("kind: media_source\n", "kind: media_source\n    grows: true\n");
    let player = Player::start(graph("grows", "player.yaml", &growing, &[grows]));
    let starved = player.until("all that is there was played", |it| it["state"] == "starved");
    assert!(count(&starved, "shown") > 10, "{starved:#}");
    let mut file = fs::OpenOptions::new().append(true).open(&growing).expect("ours");
    file.write_all(&bytes[third..]).expect("room for it");
    player.until("the rest is played", |it| seconds(it) > 5.0 && it["state"] == "starved");
    player.stop();
}

#[test]
fn a_server_that_stalls_is_waited_for() {
    let Some(_alone) = alone() else { return };
    let film = film("stalls", 10, &JPEG, &PCM);
    let bytes = fs::read(&film).expect("it was made");
    let server = TcpListener::bind(free_address()).expect("a port");
    let address = format!("http://{}/film.avi", server.local_addr().expect("bound"));
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        let (mut client, _) = server.accept().expect("it asks");
        let half = bytes.len() / 2;
        // The request is read: otherwise the close would discard what was sent.
        let asked = client.read(&mut [0; 4096]).expect("a request");
        assert!(asked > 0);
        // No length and no ranges: the film can only be read forwards.
        client.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: video/avi\r\n\r\n").expect("sent");
        client.write_all(&bytes[..half]).expect("sent");
        waits.recv().expect("the test goes on");
        client.write_all(&bytes[half..]).expect("sent");
        client.shutdown(Shutdown::Write).expect("all is sent");
        // Until the other side has closed the connection.
        let _ = client.read(&mut [0; 16]);
    });
    let named = graph("stalls", "player.yaml", std::path::Path::new(&address), &[]);
    let player = Player::start(named);
    let starved = player.until("what came was played", |it| it["state"] == "starved");
    assert!(count(&starved, "shown") > 25, "{starved:#}");
    player.until_said("source", "nothing has come for");
    go_on.send(()).expect("the server waits");
    player.plays_on(10);
    watch(&player);
    player.stop();
}

//! `graphs/apps/streaming`: a client that reads nothing holds back the sender, and nothing is lost.
//! A client that disconnects ends only its own part.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::api::Api;
use crate::control::Place;
use crate::program::{Running, ours, wait_until};

/// Windows that are sent. With [`NAME_LEN`] they are 40 MB. All sockets between the sender and a
/// client that reads nothing have room for about 15 MB.
const WINDOWS: u64 = 1000;
/// Measurements in a window, each of another sensor.
const WINDOW: u64 = 10;
/// Bytes of a sensor's name.
const NAME_LEN: usize = 4000;
/// A client that waits longer than this has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// If the sender makes no progress for this time, it is held back.
const HELD_BACK: Duration = Duration::from_secs(1);

fn connect(api: &Api) -> TcpStream {
    let stream = TcpStream::connect(api.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Sends a request for the events, and reads none yet.
fn listen(api: &Api) -> TcpStream {
    let mut stream = connect(api);
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    stream.peek(&mut [0]).expect("an answer has begun");
    stream
}

/// Counts the measurements in the means, until all have arrived or the other side ends.
fn count(stream: TcpStream) -> u64 {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let counts = data.take((WINDOWS * WINDOW) as usize).map(|data| {
        let mean: Value = serde_json::from_str(&data).expect("JSON");
        mean["count"].as_u64().expect("a count")
    });
    counts.sum()
}

/// Sends all measurements. Counts the windows that were sent.
fn send(api: &Api, windows: &AtomicU64) {
    let mut stream = connect(api);
    let head = "POST /measurements HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                Content-Type: application/x-ndjson\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a request");
    let name = "x".repeat(NAME_LEN);
    let line = |at: u64| format!("{{\"sensor\": \"{name} {at}\", \"value\": {at}}}\n");
    let text: String = (0..WINDOW).map(line).collect();
    for _ in 0..WINDOWS {
        write!(stream, "{:x}\r\n{text}\r\n", text.len()).expect("it is taken");
        // Relaxed: the counter orders nothing.
        windows.fetch_add(1, Relaxed);
    }
    stream.write_all(b"0\r\n\r\n").expect("it is taken");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// Runs it. A topic whose clients are behind does `when_full`.
fn start(name: &str, when_full: &str) -> (Place, Running, Api) {
    let place = Place::new(name);
    let graph = ours("graphs/apps/streaming/streaming.yaml").display().to_string();
    let when_full = format!("means.when_full={when_full}");
    let values = ["web.port=0", "web.stall_max=10m", "lines.window_count=10", &when_full];
    let mut arguments = vec![&*graph];
    arguments.extend(values.iter().flat_map(|value| ["--set", value]));
    let (running, pid) = place.run(&arguments);
    let api = Api::of(&place, &pid, "services");
    (place, running, api)
}

#[test]
fn the_slowest_client_sets_the_pace_and_one_that_leaves_holds_back_nobody() {
    let (place, running, api) = start("streaming", "wait");
    let (slow, quick, leaves) = (listen(&api), listen(&api), listen(&api));
    let quick = thread::spawn(move || count(quick));
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(&api, &sent));
        let mut before = u64::MAX;
        wait_until("who sends is held back", || {
            assert!(!sender.is_finished(), "nobody has held it back");
            thread::sleep(HELD_BACK);
            std::mem::replace(&mut before, sent.load(Relaxed)) == before
        });
        // Two clients read nothing. One disconnects, and the other one still sets the pace.
        drop(leaves);
        thread::sleep(HELD_BACK);
        assert!(!sender.is_finished(), "the slow one is passed by");
        assert_eq!(count(slow), WINDOWS * WINDOW, "the slow one");
        sender.join().expect("all is sent");
    });
    assert_eq!(quick.join().expect("it reads"), WINDOWS * WINDOW, "the quick one");
    place.stop(running).ended_with(0);
}

/// What the test above would see if the topic did not wait.
#[test]
fn where_the_topic_drops_nobody_is_held_back_and_the_slow_client_loses() {
    let (place, running, api) = start("streaming_drops", "drop");
    let slow = listen(&api);
    send(&api, &AtomicU64::new(0));
    let slow = thread::spawn(move || count(slow));
    place.stop(running).ended_with(0);
    assert!(slow.join().expect("it reads") < WINDOWS * WINDOW, "the slow one has all");
}

//! `graphs/apps/streaming`: a client that takes nothing holds back who sends, and nothing is lost;
//! one that goes away ends its part only.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::api::Api;
use crate::control::Place;
use crate::program::{ours, wait_until};

/// Windows that are sent: more than fit between the sender and a client that takes nothing.
const WINDOWS: u64 = 3000;
/// Measurements of a window.
const WINDOW: u64 = 100;
/// Sensors, each of which has a mean in every window.
const SENSORS: u64 = 50;
/// Who waits longer than this has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// So long the sender gets on no further, and is held back.
const HELD_BACK: Duration = Duration::from_secs(1);

fn connect(api: &Api) -> TcpStream {
    let stream = TcpStream::connect(api.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Asks for the events, and reads none yet.
fn listen(api: &Api) -> TcpStream {
    let mut stream = connect(api);
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    let mut first = [0];
    stream.peek(&mut first).expect("an answer has begun");
    stream
}

/// The measurements that the means stand for which come in so many events.
fn count(stream: TcpStream, events: u64) -> u64 {
    let lines = BufReader::new(stream).lines().map(|line| line.expect("text"));
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let counts = data.take(events as usize).map(|data| {
        let mean: Value = serde_json::from_str(&data).expect("JSON");
        mean["count"].as_u64().expect("a count")
    });
    counts.sum()
}

/// Sends all measurements; counts the windows that are sent.
fn send(api: &Api, windows: &AtomicU64) {
    let mut stream = connect(api);
    let head = "POST /measurements HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                Content-Type: application/x-ndjson\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a request");
    for _ in 0..WINDOWS {
        let line =
            |at: u64| format!("{{\"sensor\": \"sensor {}\", \"value\": {at}}}\n", at % SENSORS);
        let text: String = (0..WINDOW).map(line).collect();
        write!(stream, "{:x}\r\n{text}\r\n", text.len()).expect("it is taken");
        // Relaxed: nothing is ordered by it.
        windows.fetch_add(1, Relaxed);
    }
    stream.write_all(b"0\r\n\r\n").expect("it is taken");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn the_slowest_client_sets_the_pace_and_one_that_leaves_holds_back_nobody() {
    let place = Place::new("streaming");
    let graph = ours("graphs/apps/streaming/streaming.yaml").display().to_string();
    let (running, pid) = place.run(&[&graph, "--set", "web.port=0", "--set", "web.stall_max=10m"]);
    let api = Api::of(&place, &pid, "services");
    let (slow, quick, leaves) = (listen(&api), listen(&api), listen(&api));
    let quick = thread::spawn(move || count(quick, WINDOWS * SENSORS));
    let sent = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(&api, &sent));
        let mut before = u64::MAX;
        wait_until("who sends is held back", || {
            assert!(!sender.is_finished(), "nobody has held it back");
            thread::sleep(HELD_BACK);
            std::mem::replace(&mut before, sent.load(Relaxed)) == before
        });
        // Two clients take nothing. One leaves, and the other one still sets the pace.
        leaves.shutdown(Shutdown::Both).expect("it is open");
        thread::sleep(HELD_BACK);
        assert!(!sender.is_finished(), "the slow one is passed by");
        assert_eq!(count(slow, WINDOWS * SENSORS), WINDOWS * WINDOW, "the slow one");
        sender.join().expect("all is sent");
    });
    assert_eq!(quick.join().expect("it reads"), WINDOWS * WINDOW, "the quick one");
    place.stop(running).ended_with(0);
}

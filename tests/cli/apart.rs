//! `graphs/http/apart.yaml`: the process behind a listener is killed again and again under load.
//! The clients of its requests get an answer at once, and others notice nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::api::Api;
use crate::control::Place;
use crate::program::{Over, graph_in, ours, send, wait_until};

/// Number of kills. `SINEW_KILL_ROUNDS=100 cargo test` sets more.
const ROUNDS: u64 = 5;
/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// A client's pause after an answer. Without it the CPUs are never idle. Linux 6.18 with autogroup
/// scheduling then gave its own threads no time for seconds, so no process could start.
const PAUSE: Duration = Duration::from_millis(1);
/// Connections for each kind of request.
const CONNECTIONS: usize = 4;

/// How often a connection was answered with each status. The connection is never lost.
fn ask(address: &str, request: &str, over: &AtomicBool) -> BTreeMap<u16, u64> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut input = BufReader::new(stream.try_clone().expect("a socket"));
    let mut answers = BTreeMap::new();
    while !over.load(Relaxed) {
        stream.write_all(request.as_bytes()).expect("the connection is there");
        *answers.entry(answer(&mut input)).or_default() += 1;
        thread::sleep(PAUSE);
    }
    answers
}

/// The status of an answer. The answer is read to its end.
fn answer(input: &mut BufReader<TcpStream>) -> u16 {
    let (mut status, mut len) = (None, 0);
    loop {
        let mut line = String::new();
        assert!(input.read_line(&mut line).expect("an answer") > 0, "the connection is lost");
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(' ') {
            _ if line.is_empty() => break,
            Some(("http/1.1", rest)) => status = rest.get(..3).and_then(|it| it.parse().ok()),
            Some(("content-length:", rest)) => len = rest.parse().expect("a length"),
            _ => {}
        }
    }
    std::io::copy(&mut input.take(len), &mut std::io::sink()).expect("a body");
    status.expect("a status")
}

#[test]
fn a_domain_that_dies_again_and_again_takes_only_its_own_packets_with_it() {
    let rounds = std::env::var("SINEW_KILL_ROUNDS").ok().and_then(|it| it.parse().ok());
    let rounds: u64 = rounds.unwrap_or(ROUNDS);
    let text = fs::read_to_string(ours("graphs/http/apart.yaml")).expect("a graph");
    let text =
        text.replace("backoff: 10ms", "backoff: 10ms, backoff_max: 10ms, restarts_max: 1000");
    let place = Place::new("apart");
    let (running, pid) = place.run(&["--set", "listener.port=0", &graph_in("apart", &text)]);
    let api = Api::of(&place, &pid, "web");
    let scripts = || place.domain(&pid, "scripts")["pid"].as_u64().map(|pid| pid as u32);
    let scored = || api.ask_with("POST", "/score", "content-type: application/json\r\n", BODY).0;
    wait_until("the scripts answer", || scored() == 200);
    let (over, address) = (AtomicBool::new(false), api.address());
    let score = format!(
        "POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let ping = "GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned();
    thread::scope(|scope| {
        let ends_clients = Over(&over);
        let asks = |request| {
            let over = &over;
            (0..CONNECTIONS).map(move |_| scope.spawn(move || ask(address, request, over)))
        };
        let (scores, pings): (Vec<_>, Vec<_>) = (asks(&score).collect(), asks(&ping).collect());
        for _ in 0..rounds {
            let before = scripts().expect("it runs");
            send(before, Signal::KILL);
            wait_until("another process answers", || {
                scripts().is_some_and(|now| now != before) && scored() == 200
            });
        }
        drop(ends_clients);
        let sum = |all: Vec<thread::ScopedJoinHandle<'_, BTreeMap<u16, u64>>>| {
            let mut sum = BTreeMap::new();
            for answers in all.into_iter().map(|it| it.join().expect("no connection is lost")) {
                for (status, count) in answers {
                    *sum.entry(status).or_insert(0) += count;
                }
            }
            sum
        };
        let (scores, pings) = (sum(scores), sum(pings));
        assert_eq!(pings.keys().collect::<Vec<_>>(), [&200], "{pings:?}");
        assert!(scores.keys().all(|status| [200, 502, 503].contains(status)), "{scores:?}");
        assert!(scores[&200] > 0 && scores.contains_key(&503), "{scores:?}");
    });
    place.stop(running).ended_with(0);
}

const BODY: &str = r#"{"text": "so far so good"}"#;

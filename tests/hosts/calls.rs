//! `graphs/http/two_hosts.yaml`: a packet goes to another host, and its reply comes back. A client
//! is answered even while that host is away.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;

use crate::hosts::stage::{Cell, Host};
use crate::program::{ours, send, sinew, wait_until};

/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a request. Returns the status and the body of the answer.
fn ask(of: &Host, request: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(of.serves("web")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let head = "host: localhost\r\nconnection: close\r\ncontent-type: application/json";
    let len = body.len();
    let asked = format!("{request} HTTP/1.1\r\n{head}\r\ncontent-length: {len}\r\n\r\n{body}");
    stream.write_all(asked.as_bytes()).expect("the connection is there");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").map(|it| it.1.to_owned()).unwrap_or_default())
}

fn score(of: &Host) -> (u16, String) {
    ask(of, "POST /score", r#"{"text": "so far so good"}"#)
}

#[test]
fn a_packet_goes_to_another_host_and_while_that_is_away_its_sender_is_told() {
    let graph = Cell::of_calls("calls");
    let front = graph.run("front");
    let (status, _) = score(&front);
    assert_eq!(status, 503, "nobody was heard yet");
    let back = graph.run("back");
    front.sees("back", "heard");
    let answers = || wait_until("the script answers", || score(&front).0 == 200);
    answers();
    assert_eq!(score(&front), (200, r#"{"words":4}"#.to_owned()));

    send(back.pid(), Signal::KILL);
    wait_until("the other host is silent", || {
        let (status, _) = score(&front);
        assert!([200, 502, 503, 504].contains(&status), "{status}");
        front.seen("back")["state"] == "silent"
    });
    assert_eq!(score(&front).0, 503);
    assert_eq!(ask(&front, "GET /ping", "").0, 200, "what needs no other host");
    wait_until("the log says why", || front.log().contains("its host 'back' is silent"));
    drop(back);
    let back = graph.run("back");
    answers();

    // The service that handles the other hosts can be killed like any service, on both sides.
    for host in [&back, &front] {
        send(host.process("zenoh"), Signal::KILL);
        wait_until("it has noticed", || {
            host.domain("zenoh")["restarts"].as_u64().is_some_and(|it| it > 0)
        });
        answers();
    }
    back.stop();
    let other = graph.run_edited(
        "back",
        &[("name: score, port", "name: score_2, port"), ("name: score\n", "name: score_2\n")],
    );
    front.sees("back", "other_graph");
    assert_eq!(score(&front).0, 503);
    other.stop();
    front.stop();
}

#[test]
fn what_crosses_is_shown_and_tests_run_as_on_one_host() {
    let graph = ours("graphs/http/two_hosts.yaml").display().to_string();
    let tested = sinew(["test", &graph]).ended_with(0);
    assert!(tested.out.contains("words_are_counted"), "{}", tested.out);
    let whole = sinew(["check", &graph]).ended_with(0).out;
    let crosses = "router.out[1] at front -> score.in at back, packets and their replies";
    assert!(whole.contains(crosses), "{whole}");
    let part = sinew(["graph", "--json", "--host", "back", &graph]).ended_with(0).json();
    assert_eq!(part["flow_links"][0]["from"], "zenoh.score.in", "{part}");
    assert_eq!(part["remote_calls"][0]["from"]["host"], "front", "{part}");
}

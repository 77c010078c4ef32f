//! `sinew tap`: people see and hold packets of a running graph, and others notice nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::api::Api;
use crate::control::Place;
use crate::program::{Over, Running, calm, graph_in, ours, send, wait_until};

const SCORE: &str = r#"{"text": "so far so good"}"#;
const HEADERS: &str = "content-type: application/json\r\nauthorization: Bearer let-me-in\r\n";

fn apart(place: &Place) -> (Running, String, Api) {
    let graph = ours("graphs/http/apart.yaml").display().to_string();
    let (running, pid) = place.run(&["--set", "listener.port=0", &graph]);
    let api = Api::of(place, &pid, "web");
    let scored = || api.ask_with("POST", "/score", HEADERS, SCORE).0 == 200;
    wait_until("the scripts answer", scored);
    (running, pid, api)
}

/// A running `sinew tap`.
struct Look {
    child: Child,
    keys: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Look {
    fn open(place: &Place, arguments: &[&str]) -> Look {
        let mut command = place.command(&[&["tap", "--json"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let keys = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Look { child, keys, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| {
            // Its other output.
            let _ = self.lines.read_to_string(&mut line);
            panic!("{error}: '{line}'")
        })
    }

    fn press(&mut self, key: &str) {
        writeln!(self.keys, "{key}").expect("it reads");
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_tap_shows_packets_in_the_domain_of_their_node_without_what_lets_people_in() {
    let place = Place::new("tap");
    let (running, pid, api) = apart(&place);
    let filter = "packet.body.text == 'so far so good'";
    let mut look = Look::open(&place, &["score", "--run", &pid, "--filter", filter]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Only its output shows that the tap is open.
        scope.spawn(|| {
            while !over.load(Relaxed) {
                api.ask_with("POST", "/score", HEADERS, r#"{"text": "bad"}"#);
                api.ask_with("POST", "/score", HEADERS, SCORE);
            }
        });
        let _over = Over(&over);
        let packet = look.next()["packet"].clone();
        assert_eq!((&packet["node"], &packet["input"]), (&"score".into(), &"in".into()));
        let text = packet["packet"].as_str().expect("a text");
        assert!(text.contains("so far so good") && !text.contains("let-me-in"), "{text}");
        assert!(text.contains(r#""authorization":"***""#), "{text}");
        let step = look.next()["step"].clone();
        assert_eq!((&step["outcome"], &step["packet"]), (&"out".into(), &r#"{"words":4}"#.into()));
    });
    drop(look);
    place.stop(running).ended_with(0);
}

#[test]
fn a_packet_is_held_until_a_key_and_goes_on_as_who_holds_it_dies() {
    let place = Place::new("tap_pause");
    let (running, pid, api) = apart(&place);
    let ping = || api.ask_with("GET", "/ping", "", "");
    for ends in ["g", "kill"] {
        let mut look = Look::open(&place, &["--pause", "router", "--run", &pid]);
        thread::scope(|scope| {
            let mut asked = Vec::new();
            // The first packet that comes while the tap is open is held. Packets before it pass.
            wait_until("a request is held", || {
                asked.push(scope.spawn(ping));
                let last = asked.last().expect("just asked");
                for _ in 0..100 {
                    thread::sleep(Duration::from_millis(5));
                    if last.is_finished() {
                        return false;
                    }
                }
                true
            });
            let held = look.next()["held"]["packet"].clone();
            assert_eq!(held["node"], "router", "{held}");
            look.press("s");
            assert_eq!(look.next()["step"]["outcome"], "out[0]");
            assert_eq!(look.next()["held"]["packet"]["node"], "pong");
            assert_eq!(ping().0, 200, "others pass");
            match ends {
                "g" => look.press("g"),
                _ => send(look.child.id(), Signal::KILL),
            }
            for asked in asked {
                assert_eq!(asked.join().expect("an answer").0, 200);
            }
        });
    }
    place.stop(running).ended_with(0);
}

#[test]
fn what_cannot_be_looked_at_is_said() {
    let place = Place::new("tap_bad");
    let text = std::fs::read_to_string(ours("graphs/http/apart.yaml")).expect("a graph");
    let text = text.replace("port: 8000", "port: 0, host: 0.0.0.0");
    let (running, pid) = place.run(&[&graph_in("tap_bad", &text)]);
    wait_until("the domain serves taps", || {
        place.sinew(&["tap", "--pause", "pong", "--run", &pid]).err.contains("loopback")
    });
    // Once its nodes have sent their figures.
    wait_until("it is known which nodes are of flows", || {
        place.sinew(&["tap", "scor", "--run", &pid]).err.contains("'score'")
    });
    for (arguments, status, expected) in [
        (&["scor"][..], 2, "no flow node 'scor'; did you mean 'score'?"),
        (&["--pause", "pong"], 2, "'listener' listens at '0.0.0.0'"),
        (&["--pause", "listener"], 2, "'listener'"),
        (&["pong", "--filter", "packet ="], 2, "filter: "),
        (&["pong", "--per-s", "0"], 2, "0 is not in 1..=1000"),
        (&["pong", "--way", "--pause"], 2, "cannot be used with"),
    ] {
        let arguments = [&["tap", "--run", &pid], arguments].concat();
        let answer = place.sinew(&arguments).ended_with(status);
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    }
    let unknown = place.sinew(&["tap", "pong", "--run", "nobody"]).ended_with(2);
    assert!(unknown.err.contains("no run 'nobody'"), "{}", unknown.err);
    place.stop(running).ended_with(0);
    let calm = place.run(&[&calm()]);
    for (node, expected) in [("pong", "no flow node 'pong'; there is none"), ("drives", "no flows")]
    {
        let answer = place.sinew(&["tap", node, "--run", &calm.1]).ended_with(2);
        assert!(answer.err.contains(expected), "{}", answer.err);
    }
    place.stop(calm.0);
}

//! HTTP/2, frame by frame (RFC 9113).

use std::cell::Cell;
use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

use super::server::{Client, Server, get, is_cancelled, post, until};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// SETTINGS_INITIAL_WINDOW_SIZE 0: no byte of an answer may be sent.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// A connection that can send any frames.
struct Frames(Client);

impl Frames {
    fn to(server: &Server) -> Frames {
        let mut client = server.client();
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(frame(SETTINGS, 0, 0, &[]));
        Frames(client)
    }

    /// The next frame: type, stream, payload. `None` if the other side has closed.
    fn next(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.stream.read_exact(&mut head).ok()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; len];
        self.0.stream.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some((head[3], stream, payload))
    }

    /// The next frame of this type.
    fn next_of(&mut self, wanted: u8) -> Option<(u32, Vec<u8>)> {
        loop {
            let (found, stream, payload) = self.next()?;
            if found == wanted {
                return Some((stream, payload));
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// GET, http, and a path without an index (RFC 7541); the stream ends with it.
fn request(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x01, 4];
    block.extend(b"test");
    block.extend([0x04, path.len() as u8]);
    block.extend(path.as_bytes());
    frame(HEADERS, 0x5, stream, &block)
}

#[test]
fn http2_is_spoken_at_the_same_port() {
    let server = Server::start("");
    let mut frames = Frames::to(&server);
    frames.0.send(request(1, "/json"));
    assert_eq!(frames.next_of(HEADERS).expect("an answer").0, 1);
    let (stream, body) = frames.next_of(DATA).expect("a body");
    let body = String::from_utf8(body).expect("text");
    assert_eq!(stream, 1);
    assert!(
        body.contains("\"protocol\":\"HTTP/2\"") && body.contains("\"host\":\"test\""),
        "{body}"
    );
    assert_eq!(server.ask(&get("/text")).text(), "pong");
}

#[test]
fn requests_of_a_connection_overlap() {
    let server = Server::start("");
    let mut frames = Frames::to(&server);
    frames.0.send(request(1, "/slow"));
    frames.0.send(request(3, "/text"));
    let (first, _) = frames.next_of(DATA).expect("a body");
    let (second, _) = frames.next_of(DATA).expect("a body");
    assert_eq!((first, second), (3, 1));
}

#[test]
fn a_reset_cancels_its_flow_alone() {
    let server = Server::start("");
    let mut frames = Frames::to(&server);
    frames.0.send(request(1, "/never?id=reset"));
    frames.0.send(request(3, "/text"));
    assert_eq!(frames.next_of(DATA).expect("a body").0, 3);
    frames.0.send(frame(RESET, 0, 1, &8u32.to_be_bytes()));
    assert!(is_cancelled("reset"));
    frames.0.send(request(5, "/text"));
    assert_eq!(frames.next_of(DATA).expect("a body").0, 5);
}

#[test]
fn who_resets_without_end_is_closed() {
    let server = Server::start("");
    // All requests at once, and one after the other.
    for pause in [false, true] {
        let frames = Frames::to(&server);
        let stream = Cell::new(1);
        let closed = until(|| {
            let mut wire = frames.0.stream.get_ref();
            let mut bytes = request(stream.get(), "/never?id=rapid");
            if pause {
                // A moment for the request to begin; until() pauses before the next.
                wire.write_all(&bytes).ok();
                sleep(Duration::from_micros(500));
                bytes.clear();
            }
            bytes.extend(frame(RESET, 0, stream.get(), &8u32.to_be_bytes()));
            stream.set(stream.get() + 2);
            wire.write_all(&bytes).is_err()
        });
        assert!(closed, "after {} resets", stream.get() / 2);
    }
    assert_eq!(server.ask(&get("/text")).status, 200);
}

#[test]
fn no_more_requests_at_a_time_than_allowed() {
    let server = Server::start("streams_max: 2");
    let mut frames = Frames::to(&server);
    frames.next_of(SETTINGS).expect("its settings");
    for stream in [1, 3, 5] {
        frames.0.send(request(stream, "/never?id=streams"));
    }
    let (stream, why) = frames.next_of(RESET).expect("a reset");
    assert_eq!((stream, why), (5, 7u32.to_be_bytes().to_vec()), "refused");
}

#[test]
fn who_gives_no_window_for_his_answer_is_closed() {
    let server = Server::start("stall_max: 300ms, requests_max: 1");
    let mut frames = Frames::to(&server);
    frames.0.send(frame(SETTINGS, 0, 0, &NO_WINDOW));
    frames.0.send(request(1, "/text"));
    assert_eq!(frames.next_of(HEADERS).expect("an answer").0, 1);
    assert!(until(|| server.ask(&get("/text")).status == 200), "its place is free again");
    assert!(frames.next_of(DATA).is_none(), "it is closed");
}

#[test]
fn who_gives_no_window_keeps_nobody_from_ending_the_run() {
    let server = Server::start("requests_max: 1");
    let mut held = server.client();
    held.send(get("/never?id=window"));
    assert!(until(|| server.ask(&get("/text")).status == 503));
    let mut frames = Frames::to(&server);
    frames.0.send(frame(SETTINGS, 0, 0, &NO_WINDOW));
    for stream in 0..20 {
        frames.0.send(request(2 * stream + 1, "/stop"));
        assert!(frames.next_of(HEADERS).is_some());
    }
    assert_eq!(server.ask(&post("/stop", "", "now")).text(), "stopped");
}

#[test]
fn frames_that_make_no_sense_end_the_connection() {
    let server = Server::start("");
    let senseless = [
        frame(HEADERS, 0x5, 1, &[0xff; 100]),
        frame(HEADERS, 0x5, 2, &[0x82]),
        frame(DATA, 0, 1, b"data of no request"),
        frame(SETTINGS, 0, 1, &[]),
        frame(9, 0, 1, &[0; 10]),
    ];
    for bytes in senseless {
        let mut frames = Frames::to(&server);
        frames.0.send(&bytes);
        assert!(frames.next_of(GOAWAY).is_some(), "{bytes:?}");
    }
    assert_eq!(server.ask(&get("/text")).status, 200);
}

#[test]
fn a_stop_says_goodbye() {
    let server = Server::start("");
    let mut frames = Frames::to(&server);
    frames.0.send(request(1, "/slow"));
    frames.next_of(SETTINGS).expect("its settings");
    assert_eq!(server.ask(&get("/text")).status, 200);
    server.stop();
    assert!(frames.next_of(GOAWAY).is_some());
}

//! A viewer that behaves like a browser, and requests that no browser makes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};
use sinew_services::dashboard::protocol::{IMAGE, MOTION, VALUES};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::{Error, Message, WebSocket};

use crate::stage::PATIENCE;

/// A viewer.
pub(crate) struct Viewer {
    socket: WebSocket<TcpStream>,
    /// The first message that it got.
    pub(crate) hello: Value,
}

/// A motion message, decoded; of a graph with one thread.
#[derive(Debug)]
pub(crate) struct Motion {
    pub(crate) sequence: u32,
    pub(crate) cycle: f64,
    pub(crate) flags: u32,
    pub(crate) signals: Vec<f32>,
    pub(crate) points: Vec<[f32; 3]>,
}

impl Viewer {
    /// Connects, and reads the greeting.
    pub(crate) fn open(address: &str) -> Viewer {
        let mut viewer = Viewer::knock(address);
        viewer.hello = viewer.text("hello");
        viewer
    }

    /// Connects; the first message may be anything.
    pub(crate) fn knock(address: &str) -> Viewer {
        let socket = connect(address, Some(&format!("http://{address}"))).expect("a WebSocket");
        Viewer { socket, hello: Value::Null }
    }

    /// The next message that `wanted` accepts.
    fn next<T>(&mut self, what: &str, mut wanted: impl FnMut(Message) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{error}, not {what}"));
            if let Some(found) = wanted(message) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        }
    }

    /// The next text of a type.
    pub(crate) fn text(&mut self, kind: &str) -> Value {
        self.text_that(kind, |_| true)
    }

    /// The next text of a type for which `is_it` holds.
    pub(crate) fn text_that(&mut self, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.next(kind, |message| {
            let Message::Text(text) = message else { return None };
            let json: Value = serde_json::from_str(&text).expect("JSON");
            (json["type"] == kind && is_it(&json)).then_some(json)
        })
    }

    /// The answer to the order with this id: done, or the error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<String, String> {
        self.next("an answer", |message| {
            let Message::Text(text) = message else { return None };
            let json: Value = serde_json::from_str(&text).expect("JSON");
            let text = || json["text"].as_str().expect("a text").to_owned();
            match json["type"].as_str() {
                _ if json["id"] != id => None,
                Some("done") => Some(Ok(text())),
                Some("error") => Some(Err(text())),
                _ => None,
            }
        })
    }

    /// The next motion for which `is_it` holds.
    pub(crate) fn motion_that(&mut self, what: &str, is_it: impl Fn(&Motion) -> bool) -> Motion {
        self.next(what, |message| {
            let Message::Binary(bytes) = message else { return None };
            let motion = (bytes[0] == MOTION).then(|| take_apart(&bytes))?;
            is_it(&motion).then_some(motion)
        })
    }

    /// The next motion.
    pub(crate) fn motion(&mut self) -> Motion {
        self.motion_that("a motion", |_| true)
    }

    /// The next image: its sequence and its JPEG.
    pub(crate) fn image(&mut self) -> (u32, Vec<u8>) {
        self.next("an image", |message| {
            let Message::Binary(bytes) = message else { return None };
            let sequence = u32::from_le_bytes(bytes[4..8].try_into().expect("four"));
            (bytes[0] == IMAGE).then(|| (sequence, bytes[16..].to_vec()))
        })
    }

    /// The next values of ports, as bytes.
    pub(crate) fn values(&mut self) -> Vec<u8> {
        self.next("values", |message| {
            let Message::Binary(bytes) = message else { return None };
            (bytes[0] == VALUES).then(|| bytes.to_vec())
        })
    }

    /// Sends a message.
    pub(crate) fn say(&mut self, message: impl Into<Message>) {
        self.socket.send(message.into()).expect("the server listens");
    }

    /// Gives an order with a token, and waits for the result.
    pub(crate) fn order(&mut self, token: &str, mut order: Value) -> Result<String, String> {
        const ID: u64 = 4711;
        order["id"] = json!(ID);
        order["token"] = json!(token);
        self.say(order.to_string());
        self.answer(ID)
    }

    /// Reads on until the server closes; returns why.
    pub(crate) fn closed(&mut self) -> Option<CloseFrame> {
        let begun = Instant::now();
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => return frame,
                Ok(_) => assert!(begun.elapsed() < PATIENCE, "it does not close"),
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return None,
                Err(error) => panic!("{error} before a good bye"),
            }
        }
    }

    /// Reads on until nothing more comes: what a viewer finds after it was away for too long.
    pub(crate) fn runs_dry(&mut self) {
        let begun = Instant::now();
        while self.socket.read().is_ok() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
        }
    }

    /// The TCP connection.
    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.socket.get_mut()
    }
}

fn take_apart(bytes: &[u8]) -> Motion {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let f32_at = |at: usize| f32::from_bits(u32_at(at));
    assert_eq!(bytes[2..4], [1, 0], "one thread");
    let path = 48 + 4 * SIGNALS;
    let points = usize::from(u16::from_le_bytes([bytes[path], bytes[path + 1]]));
    assert_eq!(bytes.len(), path + 2 + 12 * points);
    let point = |at: usize| [0, 4, 8].map(|of| f32_at(path + 2 + 12 * at + of));
    Motion {
        sequence: u32_at(4),
        cycle: f64::from_le_bytes(bytes[16..24].try_into().expect("eight")),
        flags: u32_at(44),
        signals: (0..SIGNALS).map(|at| f32_at(48 + 4 * at)).collect(),
        points: (0..points).map(point).collect(),
    }
}

/// Numbers that the probe shows.
pub(crate) const SIGNALS: usize = 8;

/// Opens a WebSocket, with this origin.
pub(crate) fn connect(address: &str, origin: Option<&str>) -> Result<WebSocket<TcpStream>, String> {
    let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let request = format!("ws://{address}/ws").into_client_request();
    let mut request = request.map_err(|error| error.to_string())?;
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().expect("a value"));
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(error) => Err(error.to_string()),
    }
}

/// Sends a request unchanged; returns the whole answer.
pub(crate) fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, and its end");
    String::from_utf8_lossy(&answer).into_owned()
}

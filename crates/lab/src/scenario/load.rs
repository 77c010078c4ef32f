//! A load of HTTP requests over several connections, each with at most one request under way. A
//! closed loop sends again as soon as it is answered, an open one when the time has come. The load
//! is made to cost less than any server: one thread, epoll, a request that is prepared once. Of an
//! answer it reads no more than it needs to find the end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use sinew_core::clock::now_ns;
use sinew_core::sys::timespec;
use sinew_figures::Distribution;
use sinew_figures::process::Taken;

/// A server that sends nothing for this long counts as not answering.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Longest answer, bytes: its head and a short body.
const ANSWER_LEN_MAX: usize = 4096;

/// At most this many bytes of an invalid answer are shown: its first line and its body.
const SHOWN_LEN_MAX: usize = 500;
/// Longest sleep, ns: within this time the load sees that the user wants to stop.
const LOOK_NS: u64 = 100_000_000;

/// What is requested from which server.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) connections: usize,
    /// The body that every answer must have.
    pub(super) expected: Vec<u8>,
    pub(super) arrivals: Arrivals,
    /// When the load has run enough.
    pub(super) enough: Enough,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrivals {
    /// On each connection as soon as the request before is answered.
    Closed,
    /// One every this many ns, whether answers come or not. A request that finds no free
    /// connection, or the client late, is sent later, and its latency counts from when it was due.
    Every(f64),
}

/// When a load has run enough; the last answers are still awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Enough {
    After(Duration),
    Requests(u64),
}

/// The result of a load.
#[derive(Default)]
pub(super) struct Answered {
    /// From the time when a request was sent, or was due, to the last byte of its answer, ns.
    pub(super) latency: Distribution,
    pub(super) answers: u64,
    /// Requests that got a wrong answer, or none.
    pub(super) failed: u64,
    /// Why the first of them failed.
    pub(super) failure: Option<String>,
    /// From the first request to the last answer.
    pub(super) time: Duration,
    /// CPU time and waiting time of the thread that made the load.
    pub(super) taken: Taken,
}

/// A connection, free or with a request under way.
struct Connection {
    stream: TcpStream,
    /// When the request was sent, or was due.
    asked_ns: u64,
    answer: Vec<u8>,
}

/// Opens the connections, sends requests until it is enough, and closes them.
pub(super) fn drive(load: &Demand, is_stopped: impl Fn() -> bool) -> Result<Answered, String> {
    let failed = |error: io::Error| format!("load on {}: {error}", load.address);
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", load.path, load.address);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut connections = Vec::with_capacity(load.connections);
    for at in 0..load.connections {
        let stream = connect(load.address).map_err(failed)?;
        epoll::add(&poll, &stream, EventData::new_u64(at as u64), EventFlags::IN)
            .map_err(|error| failed(error.into()))?;
        connections.push(Some(Connection { stream, asked_ns: 0, answer: Vec::new() }));
    }
    let (begun_ns, before) = (now_ns(), Taken::by_this_thread().map_err(failed)?);
    let (request, free) = (request.into_bytes(), (0..connections.len()).rev().collect());
    let mut client = Client { load, request, connections, free, begun_ns, asked: 0, open: 0 };
    let (mut answered, mut heard_ns) = (Answered::default(), begun_ns);
    let mut events = Vec::with_capacity(256);
    loop {
        let next_ns = client.ask().map_err(failed)?;
        if (client.open == 0 && next_ns.is_none()) || is_stopped() {
            break;
        }
        let sleep_ns = next_ns.map_or(u64::MAX, |next| next.saturating_sub(now_ns()));
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&timespec(sleep_ns.min(LOOK_NS))))
            .map_err(|error| failed(error.into()))?;
        if !events.is_empty() || client.open == 0 {
            heard_ns = now_ns();
        } else if now_ns() - heard_ns > SILENCE.as_nanos() as u64 {
            return Err(format!("{}: no answer for {} s", load.address, SILENCE.as_secs()));
        }
        for event in &events {
            client.hear(event.data.u64() as usize, &mut answered).map_err(failed)?;
            client.ask().map_err(failed)?;
        }
    }
    answered.time = Duration::from_nanos(now_ns() - begun_ns);
    let after = Taken::by_this_thread().map_err(failed)?;
    answered.taken.cpu = after.cpu.saturating_sub(before.cpu);
    answered.taken.waited = after.waited.saturating_sub(before.waited);
    Ok(answered)
}

/// The body of one answer, as text.
pub(super) fn ask_once(address: SocketAddr, path: &str) -> Result<String, String> {
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| format!("{address}{path}: {error}"))?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(format!("{address}{path} answered: {answer}")),
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// All connections, and what they share.
struct Client<'a> {
    load: &'a Demand,
    request: Vec<u8>,
    /// `None` for a connection that failed: bytes left on it could be taken for the next answer.
    connections: Vec<Option<Connection>>,
    /// Connections without a request under way, by index.
    free: Vec<usize>,
    begun_ns: u64,
    /// Requests so far.
    asked: u64,
    /// Requests under way.
    open: u64,
}

impl Client<'_> {
    /// Sends all requests that are due, as far as connections are free. Returns when the next one
    /// is due; `None` if it is enough, or if only an answer can free a connection for it.
    fn ask(&mut self) -> io::Result<Option<u64>> {
        while let Some(&at) = self.free.last() {
            let now_ns = now_ns();
            let due_ns = match self.load.arrivals {
                Arrivals::Closed => now_ns,
                Arrivals::Every(ns) => self.begun_ns + (self.asked as f64 * ns) as u64,
            };
            let is_enough = match self.load.enough {
                Enough::After(time) => due_ns - self.begun_ns >= time.as_nanos() as u64,
                Enough::Requests(count) => self.asked >= count,
            };
            if is_enough || due_ns > now_ns {
                return Ok((!is_enough).then_some(due_ns));
            }
            self.free.pop();
            let Some(connection) = &mut self.connections[at] else { continue };
            self.asked += 1;
            self.open += 1;
            connection.asked_ns = due_ns;
            connection.answer.clear();
            // A request this short always finds room: nothing else is under way on this connection.
            connection.stream.write_all(&self.request)?;
        }
        Ok(None)
    }

    /// Reads the bytes that have arrived. A whole answer is judged, and its connection is free
    /// again.
    fn hear(&mut self, at: usize, answered: &mut Answered) -> io::Result<()> {
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        let mut bytes = [0; ANSWER_LEN_MAX];
        let got = match connection.stream.read(&mut bytes) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(count) => {
                connection.answer.extend_from_slice(&bytes[..count]);
                judge(&connection.answer, &self.load.expected)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => Err(error.to_string()),
        };
        match got {
            Ok(false) => return Ok(()),
            Ok(true) => {
                answered.latency.add(now_ns() - connection.asked_ns);
                answered.answers += 1;
                self.free.push(at);
            }
            Err(why) => {
                answered.failed += 1;
                answered.failure.get_or_insert(why);
                self.connections[at] = None;
            }
        }
        self.open -= 1;
        Ok(())
    }
}

/// Whether an answer is whole and good, not whole yet, or bad.
fn judge(answer: &[u8], expected: &[u8]) -> Result<bool, String> {
    let shown = || {
        let text = String::from_utf8_lossy(&answer[..answer.len().min(SHOWN_LEN_MAX)]).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.lines().next().unwrap_or_default();
        format!("{status} {}", body.trim_end()).trim_end().to_owned()
    };
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        let is_too_long = answer.len() > ANSWER_LEN_MAX;
        return if is_too_long {
            Err(format!("a head without end: {}", shown()))
        } else {
            Ok(false)
        };
    };
    let body = &answer[head + 4..];
    if !answer.starts_with(b"HTTP/1.1 200 ") || body.len() > expected.len() {
        return Err(format!("answered: {}", shown()));
    }
    match body.len() == expected.len() {
        true if body == expected => Ok(true),
        true => Err(format!("another body: {}", shown())),
        false => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npong";
        for len in 0..answer.len() {
            assert_eq!(judge(&answer[..len], b"pong"), Ok(false), "{len}");
        }
        assert_eq!(judge(answer, b"pong"), Ok(true));
    }

    #[test]
    fn another_answer_is_a_failure() {
        for bad in [
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nping",
            "HTTP/1.1 200 OK\r\n\r\npongpong",
        ] {
            assert!(judge(bad.as_bytes(), b"pong").is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_that_closes_is_counted_and_does_not_hang() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            drop(stream);
        });
        let load = Demand {
            address,
            path: "/".into(),
            connections: 1,
            expected: b"pong".to_vec(),
            arrivals: Arrivals::Closed,
            enough: Enough::Requests(3),
        };
        // The kernel may refuse to send the request: then that is the failure.
        let failed = drive(&load, || false).map(|answered| answered.failed);
        assert!(failed.is_err() || failed == Ok(1), "{failed:?}");
        server.join().expect("it ends");
    }
}

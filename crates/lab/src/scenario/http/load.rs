//! A load of HTTP requests: so many connections, each with one request under way, answered and
//! asked again at once. It is made to cost less than any server: one thread, epoll, a request that
//! stands ready, and of an answer no more is read than tells where it ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use sinew_core::clock::now_ns;
use sinew_figures::Distribution;
use sinew_figures::process::Taken;

/// An answer without a word for so long is none.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest answer, bytes: its head and a short body.
const ANSWER_LEN_MAX: usize = 4096;

/// What is asked of whom.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) connections: usize,
    /// The body that every answer must have.
    pub(super) expected: &'static [u8],
    /// When it is enough.
    pub(super) enough: Enough,
}

/// When a load is enough; the last answers are awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Enough {
    After(Duration),
    Requests(u64),
}

/// What came of a load.
#[derive(Default)]
pub(super) struct Answered {
    /// From a request's first byte sent to its answer's last byte read, ns.
    pub(super) latency: Distribution,
    pub(super) answers: u64,
    /// Requests that got another answer, or none.
    pub(super) failed: u64,
    /// Why the first of them failed.
    pub(super) failure: Option<String>,
    /// From the first request to the last answer.
    pub(super) time: Duration,
    /// What the thread that made the load took.
    pub(super) taken: Taken,
}

/// A connection with a request under way.
struct Connection {
    stream: TcpStream,
    asked_ns: u64,
    answer: Vec<u8>,
}

/// Opens the connections, asks until it is enough, and closes them.
pub(super) fn drive(load: &Demand, is_stopped: impl Fn() -> bool) -> Result<Answered, String> {
    let failed = |error: io::Error| format!("load on {}: {error}", load.address);
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", load.path, load.address);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut connections = Vec::with_capacity(load.connections);
    for at in 0..load.connections {
        let stream = connect(load.address).map_err(failed)?;
        epoll::add(&poll, &stream, EventData::new_u64(at as u64), EventFlags::IN)
            .map_err(|error| failed(error.into()))?;
        connections.push(Connection { stream, asked_ns: 0, answer: Vec::new() });
    }
    let (begun_ns, before) = (now_ns(), Taken::by_this_thread().map_err(failed)?);
    let mut driver = Client { load, request: request.into_bytes(), begun_ns, asked: 0, open: 0 };
    let mut answered = Answered::default();
    for connection in &mut connections {
        driver.ask(connection).map_err(failed)?;
    }
    let mut events = Vec::with_capacity(256);
    let silence = Timespec { tv_sec: SILENCE.as_secs() as i64, tv_nsec: 0 };
    while driver.open > 0 && !is_stopped() {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&silence))
            .map_err(|error| failed(error.into()))?;
        if events.is_empty() {
            return Err(format!("{}: no answer for {} s", load.address, SILENCE.as_secs()));
        }
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            driver.hear(connection, &mut answered).map_err(failed)?;
        }
    }
    answered.time = Duration::from_nanos(now_ns() - begun_ns);
    let after = Taken::by_this_thread().map_err(failed)?;
    answered.taken.cpu = after.cpu.saturating_sub(before.cpu);
    answered.taken.waited = after.waited.saturating_sub(before.waited);
    Ok(answered)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// What all connections share.
struct Client<'a> {
    load: &'a Demand,
    request: Vec<u8>,
    begun_ns: u64,
    /// Requests so far.
    asked: u64,
    /// Requests under way.
    open: u64,
}

impl Client<'_> {
    /// Sends the next request, unless it is enough.
    fn ask(&mut self, connection: &mut Connection) -> io::Result<()> {
        let now_ns = now_ns();
        let is_enough = match self.load.enough {
            Enough::After(time) => now_ns - self.begun_ns >= time.as_nanos() as u64,
            Enough::Requests(count) => self.asked >= count,
        };
        if is_enough {
            return Ok(());
        }
        connection.asked_ns = now_ns;
        connection.answer.clear();
        self.asked += 1;
        self.open += 1;
        // So short a request always finds room: nothing else is under way on this connection.
        connection.stream.write_all(&self.request)
    }

    /// Reads what is there; a whole answer is judged, and the next request sent.
    fn hear(&mut self, connection: &mut Connection, answered: &mut Answered) -> io::Result<()> {
        let mut bytes = [0; ANSWER_LEN_MAX];
        let got = match connection.stream.read(&mut bytes) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(count) => {
                connection.answer.extend_from_slice(&bytes[..count]);
                judge(&connection.answer, self.load.expected)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => Err(error.to_string()),
        };
        match got {
            Ok(false) => return Ok(()),
            Ok(true) => {
                answered.latency.add(now_ns() - connection.asked_ns);
                answered.answers += 1;
            }
            Err(why) => {
                // What is left on it could be taken for the next answer: it asks no more.
                answered.failed += 1;
                answered.failure.get_or_insert(why);
                self.open -= 1;
                return connection.stream.shutdown(std::net::Shutdown::Both).or(Ok(()));
            }
        }
        self.open -= 1;
        self.ask(connection)
    }
}

/// Whether an answer is whole and good, not whole yet, or bad.
fn judge(answer: &[u8], expected: &[u8]) -> Result<bool, String> {
    let shown = || String::from_utf8_lossy(&answer[..answer.len().min(100)]).into_owned();
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
            expected: b"pong",
            enough: Enough::Requests(3),
        };
        // The kernel may refuse the request itself: then that is the failure.
        let failed = drive(&load, || false).map(|answered| answered.failed);
        assert!(failed.is_err() || failed == Ok(1), "{failed:?}");
        server.join().expect("it ends");
    }
}

//! Faults that hit a service from outside and last: a flood of requests, a full disk. A separate
//! thread makes them while the run is watched. Both are bounded in time, and a flood stays on
//! loopback.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sinew_control::client::{Connection, runs};
use sinew_control::{Answer, Request};
use sinew_core::clock::now_ns;

use super::seen::SeenHost;

/// Connections of a flood, each with one request at a time.
const CONNECTIONS: usize = 32;
/// Bytes of each request's body: many small requests and few large ones cost a listener the same.
const BODY_LEN: usize = 64 << 10;
/// How long a flood lasts. The second flood, in which the run is told to halt, lasts at most as
/// long.
const FLOOD: Duration = Duration::from_secs(1);
/// Time from the start of the second flood until the run is told to halt.
const BEFORE_HALT: Duration = Duration::from_millis(200);
/// An API that does not answer for this long after a flood counts as gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long files are watched: longer than a writer holds back its data.
const WRITES_WITHIN: Duration = Duration::from_millis(1500);
/// A writer whose files do not grow for this long after there is room again has given up.
const ROOM_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two requests during a full disk. The requests make the server write its log.
const PAUSE: Duration = Duration::from_millis(5);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct SeenOutside {
    /// What shows that the fault occurred.
    pub(super) proof: Option<String>,
    /// What was not as expected.
    pub(super) failures: Vec<String>,
    /// Why it is not known whether all was as expected.
    pub(super) not_shown: Vec<String>,
    /// Why there is nothing that the fault could strike.
    pub(super) void: Option<String>,
    /// When the run was told to halt, if it was.
    pub(super) told_ns: Option<u64>,
    /// How another host was seen during the fault.
    pub(super) host: Option<SeenHost>,
}

/// A fault from outside, under way.
pub(super) struct Outside {
    thread: JoinHandle<SeenOutside>,
    /// The process of the struck domain as it is now: after a restart it is another one.
    pub(super) process: Arc<AtomicU32>,
}

impl Outside {
    /// Floods the server at this address.
    pub(super) fn flood(address: Option<&str>) -> Outside {
        let address = address.and_then(loopback);
        Outside::begin(0, move |_| match address {
            Some(address) => flood_and_halt(address),
            None => void("it serves nothing over HTTP on loopback"),
        })
    }

    /// Fills the disk for process `process`, which may serve at this address.
    pub(super) fn full_disk(process: u32, address: Option<&str>) -> Outside {
        let address = address.and_then(loopback);
        Outside::begin(process, move |process| match address {
            Some(address) => flooded(address, 1, 0, PAUSE, || fill_disk(process)).0,
            None => fill_disk(process),
        })
    }

    /// Does `work` in a thread of its own.
    pub(super) fn begin(
        process: u32,
        work: impl FnOnce(&AtomicU32) -> SeenOutside + Send + 'static,
    ) -> Outside {
        let process = Arc::new(AtomicU32::new(process));
        let shared = Arc::clone(&process);
        Outside { thread: thread::spawn(move || work(&shared)), process }
    }

    /// Whether the fault is over.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// What was seen; blocks until the fault is over.
    pub(super) fn end(self) -> SeenOutside {
        let failed = |_| SeenOutside {
            not_shown: vec!["the process that strikes it failed".into()],
            ..SeenOutside::default()
        };
        self.thread.join().unwrap_or_else(failed)
    }
}

fn void(why: &str) -> SeenOutside {
    SeenOutside { void: Some(why.into()), ..SeenOutside::default() }
}

/// The address in an `http://` URL, if only this machine can reach it.
fn loopback(text: &str) -> Option<SocketAddr> {
    let (address, _) = text.strip_prefix("http://")?.split_once('/').unwrap_or((&text[7..], ""));
    let address: SocketAddr = address.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

/// Sends requests over this many connections, as fast as they are answered, while `work` is done.
/// Returns the result of `work`, and how many requests were answered.
fn flooded<T>(
    address: SocketAddr,
    connections: usize,
    body_len: usize,
    pause: Duration,
    work: impl FnOnce() -> T,
) -> (T, u64) {
    let (stops, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let one = || {
        while !stops.load(Relaxed) {
            // A listener may refuse or close a connection: go on with the next one.
            let _ = ask_on(address, body_len, pause, &stops, &answered);
            thread::sleep(PAUSE);
        }
    };
    let done = thread::scope(|scope| {
        (0..connections).for_each(|_| _ = scope.spawn(one));
        let done = work();
        stops.store(true, Relaxed);
        done
    });
    (done, answered.load(Relaxed))
}

/// Sends requests over one connection until it is closed.
fn ask_on(
    address: SocketAddr,
    body_len: usize,
    pause: Duration,
    stops: &AtomicBool,
    answered: &AtomicU64,
) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, FLOOD)?;
    stream.set_read_timeout(Some(FLOOD))?;
    stream.set_write_timeout(Some(FLOOD))?;
    let mut input = BufReader::new(stream.try_clone()?);
    let body = format!("\"{}\"", "x".repeat(body_len));
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    while !stops.load(Relaxed) {
        stream.write_all(request.as_bytes())?;
        read_answer(&mut input)?;
        answered.fetch_add(1, Relaxed);
        thread::sleep(pause);
    }
    Ok(())
}

/// Reads an answer with its body; returns its first line.
fn read_answer(input: &mut BufReader<TcpStream>) -> io::Result<String> {
    let (mut first, mut len) = (String::new(), 0_u64);
    input.read_line(&mut first)?;
    if first.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    io::copy(&mut input.take(len), &mut io::sink())?;
    Ok(first)
}

fn flood_and_halt(address: SocketAddr) -> SeenOutside {
    let mut seen = SeenOutside::default();
    let flood =
        |work: &mut dyn FnMut()| flooded(address, CONNECTIONS, BODY_LEN, Duration::ZERO, work).1;
    let answered = flood(&mut || thread::sleep(FLOOD));
    seen.proof = (answered > 0).then(|| {
        format!("{answered} requests of {BODY_LEN} B answered over {CONNECTIONS} connections")
    });
    let begun = Instant::now();
    let answers = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, FLOOD)?;
        stream.set_read_timeout(Some(FLOOD))?;
        stream.write_all(format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes())?;
        read_answer(&mut BufReader::new(stream))
    };
    while answers().is_err() {
        if begun.elapsed() > ANSWER_WITHIN {
            let within_s = ANSWER_WITHIN.as_secs();
            seen.failures.push(format!("it did not answer within {within_s} s after the flood"));
            break;
        }
        thread::sleep(PAUSE);
    }
    flood(&mut || {
        thread::sleep(BEFORE_HALT);
        seen.told_ns = Some(now_ns());
        if let Err(error) = halt() {
            seen.failures.push(format!("'halt' did not get through the flood: {error}"));
        }
    });
    seen
}

/// Sends a request to the run of this process, over its control socket as any client would.
pub(super) fn ask_run(request: &Request) -> io::Result<Answer> {
    let own = std::process::id();
    let found = runs().into_iter().find(|run| run.pid == own);
    let found = found.ok_or_else(|| io::Error::other("no control socket of this run"))?;
    Connection::open(&found.socket)?.ask(request)
}

/// Tells the run to halt.
fn halt() -> io::Result<()> {
    match ask_run(&Request::Halt { reason: Some("a drill".into()) })? {
        Answer::Done { .. } => Ok(()),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// Keeps the files of the process from growing for a while.
fn fill_disk(process: &AtomicU32) -> SeenOutside {
    let now = || process.load(Relaxed);
    let before = written(now());
    thread::sleep(WRITES_WITHIN);
    let at_work = written(now());
    if at_work.len <= before.len {
        return void("it writes to no file");
    }
    let pid = i32::try_from(now()).ok().and_then(Pid::from_raw);
    let full = |current| {
        let limit = Rlimit { current, maximum: None };
        prlimit(pid, Resource::Fsize, limit)
    };
    let mut seen = SeenOutside::default();
    let limit = match full(Some(0)) {
        Ok(limit) => limit,
        Err(error) => {
            let why =
                format!("this machine does not let a drill limit the files of a process: {error}");
            return SeenOutside { not_shown: vec![why], ..SeenOutside::default() };
        }
    };
    let (begun, struck) = (written(now()), now());
    thread::sleep(WRITES_WITHIN);
    let stood = written(now());
    let names: Vec<_> = at_work.names.iter().map(|it| it.display().to_string()).collect();
    let names = names.join(", ");
    // Data written before the limit came may be seen late; a writer at work grows by more than
    // that.
    let rate = at_work.len - before.len;
    if now() != struck {
        seen.proof = Some(format!("its process ended while {names} could not grow"));
    } else if stood.len.saturating_sub(begun.len) < rate / 2 {
        seen.proof = Some(format!("{names} grew no more"));
    }
    // If the process is another one by now, that one never had the limit.
    let _ = full(limit.current);
    let (begun, since) = (written(now()), Instant::now());
    let grows = || {
        let now = written(now());
        now.names != begun.names || now.len > begun.len
    };
    while !grows() {
        if since.elapsed() > ROOM_WITHIN {
            let within_s = ROOM_WITHIN.as_secs();
            let why = format!("{within_s} s after there is room again it still writes nothing");
            seen.failures.push(why);
            break;
        }
        thread::sleep(PAUSE);
    }
    seen
}

/// The files that a process writes.
struct Written {
    names: Vec<PathBuf>,
    /// Bytes in all of them.
    len: u64,
}

fn written(process: u32) -> Written {
    let mut written = Written { names: vec![], len: 0 };
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    for entry in entries {
        let Ok(name) = fs::read_link(entry.path()) else { continue };
        let number = entry.file_name().to_string_lossy().into_owned();
        let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}"));
        // The last digit of the flags, which are octal: 0 means for reading only.
        let flags = info.unwrap_or_default();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        let writes = flags.is_some_and(|flags| !flags.trim().ends_with(['0', '4']));
        let Ok(file) = fs::metadata(&name) else { continue };
        if writes && file.is_file() {
            written.len += file.len();
            written.names.push(name);
        }
    }
    written.names.sort();
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_flooded() {
        assert!(loopback("http://127.0.0.1:8080").is_some());
        assert!(loopback("http://127.0.0.1:8600/#token=1").is_some());
        for other in ["http://10.0.0.1:80/", "http://0.0.0.0:80", "https://127.0.0.1:1", "x"] {
            assert!(loopback(other).is_none(), "{other}");
        }
    }
}

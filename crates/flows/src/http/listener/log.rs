//! The access log: a line for each request. A thread writes it; a flow never waits for the disk.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write, stderr};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use humantime::format_rfc3339_millis;
use hyper::{Method, Request, StatusCode, Uri, Version};

use crate::http::request::protocol;

/// Lines that may wait for the disk; past that they are counted, and the count is written.
const LINES_MAX: usize = 8192;

/// Where the lines of a listener go. Clones share it.
#[derive(Clone)]
pub(super) struct AccessLog {
    lines: SyncSender<Line>,
    dropped: Arc<AtomicU64>,
}

/// A request that came.
pub(super) struct Line {
    came: SystemTime,
    begun: Instant,
    took: Duration,
    peer: SocketAddr,
    method: Method,
    uri: Uri,
    version: Version,
    status: Option<StatusCode>,
    bytes: u64,
}

impl AccessLog {
    /// Opens a log, to add to it.
    ///
    /// # Errors
    /// What the kernel says of the file, or of a thread more.
    pub(super) fn open(path: &Path) -> io::Result<AccessLog> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (lines, receiver) = sync_channel(LINES_MAX);
        let dropped = Arc::<AtomicU64>::default();
        let log = AccessLog { lines, dropped: Arc::clone(&dropped) };
        let path = path.to_owned();
        thread::Builder::new().name("access-log".into()).spawn(move || {
            if let Err(error) = write_all(file, &receiver, &dropped) {
                // Nobody listens: then there is no one to tell.
                let _ = writeln!(stderr(), "the access log {} ends: {error}", path.display());
            }
        })?;
        Ok(log)
    }

    fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            // Relaxed: a number that nothing goes with.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes what comes, until the last sender is gone.
fn write_all(file: File, lines: &Receiver<Line>, dropped: &AtomicU64) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    while let Ok(first) = lines.recv() {
        writeln!(file, "{first}")?;
        while let Ok(next) = lines.try_recv() {
            writeln!(file, "{next}")?;
        }
        // Relaxed: as above.
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            writeln!(file, "# {dropped} requests are not in this log: the disk is too slow")?;
        }
        file.flush()?;
    }
    Ok(())
}

impl Line {
    /// A request that comes now.
    pub(super) fn begin<B>(peer: SocketAddr, request: &Request<B>) -> Line {
        Line {
            came: SystemTime::now(),
            begun: Instant::now(),
            took: Duration::ZERO,
            peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            status: None,
            bytes: 0,
        }
    }

    /// It is answered.
    pub(super) fn answer(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Bytes of the body have gone.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// It is over.
    pub(super) fn end(mut self, log: &AccessLog) {
        self.took = self.begun.elapsed();
        log.write(self);
    }
}

/// Time, peer, what was asked, status, bytes of the body, time taken. 499, as nginx has it: the
/// client went away before there was an answer.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (came, peer) = (format_rfc3339_millis(self.came), self.peer);
        let target = self.uri.path_and_query().map_or("*", |it| it.as_str());
        let protocol = protocol(self.version);
        let status = self.status.map_or(499, |status| status.as_u16());
        write!(f, "{came} {peer} \"{} ", self.method)?;
        // What is within quotes must not end them.
        target.split('"').enumerate().try_for_each(|(at, part)| {
            f.write_str(if at == 0 { "" } else { "%22" })?;
            f.write_str(part)
        })?;
        write!(f, " {protocol}\" {status} {} {} us", self.bytes, self.took.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(target: &'static str) -> Line {
        let request = Request::get(target).body(()).expect("a request");
        let mut line = Line::begin(SocketAddr::from(([127, 0, 0, 1], 9)), &request);
        line.came = SystemTime::UNIX_EPOCH;
        line
    }

    #[test]
    fn a_line_says_who_asked_what_and_what_came_of_it() {
        let mut asked = line("/a\"?b=c");
        asked.answer(StatusCode::OK);
        asked.add(3);
        let expected = "1970-01-01T00:00:00.000Z 127.0.0.1:9 \"GET /a%22?b=c HTTP/1.1\" 200 3 0 us";
        assert_eq!(asked.to_string(), expected);
        assert!(line("/").to_string().ends_with("\" 499 0 0 us"));
    }

    #[test]
    fn lines_past_the_limit_are_counted_and_the_count_is_written() {
        let (lines, receiver) = sync_channel(1);
        let log = AccessLog { lines, dropped: Arc::default() };
        (0..3).for_each(|_| line("/").end(&log));
        let folder = std::env::temp_dir().join(format!("sinew-access-{}", std::process::id()));
        let file = File::create(&folder).expect("a file");
        let dropped = Arc::clone(&log.dropped);
        drop(log);
        write_all(file, &receiver, &dropped).expect("written");
        let text = std::fs::read_to_string(&folder).expect("the log");
        std::fs::remove_file(&folder).expect("removed");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], "# 2 requests are not in this log: the disk is too slow");
    }
}

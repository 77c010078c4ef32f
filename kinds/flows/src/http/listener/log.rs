//! The access log: a line for each request. A thread writes it; a flow never waits for the disk.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write, stderr};
use std::iter;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use humantime::format_rfc3339_millis;
use hyper::{Method, Request, StatusCode, Uri, Version};

use sinew_control::outside;

use crate::http::request::protocol;

/// Lines that may wait for the disk. Further ones are only counted, and the count is written.
const LINES_MAX: usize = 8192;

/// Lines are written in pieces of about so many bytes. The lines of a piece that cannot be written
/// are lost.
const PIECE_LEN: usize = 32 << 10;

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
    /// None before it is answered.
    pub(super) status: Option<StatusCode>,
    /// Bytes of the answer's body that have been sent.
    pub(super) bytes: u64,
    /// The flow that it became; 0 if none.
    pub(super) flow: u64,
}

impl AccessLog {
    /// Opens a log, to append to it.
    ///
    /// # Errors
    /// The file cannot be opened, or a thread cannot be started.
    pub(super) fn open(path: &Path) -> io::Result<AccessLog> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (lines, receiver) = sync_channel(LINES_MAX);
        let dropped = Arc::<AtomicU64>::default();
        let log = AccessLog { lines, dropped: Arc::clone(&dropped) };
        let name = path.display().to_string();
        thread::Builder::new().name("access-log".into()).spawn(move || {
            let say = |text: &str| {
                // If stderr is closed, there is nobody to tell.
                let _ = writeln!(stderr(), "the access log {name} {text}");
            };
            write_all(file, &receiver, &dropped, say);
        })?;
        Ok(log)
    }
}

/// Writes the lines that come, until the last sender is gone. Lines that cannot be written are
/// lost, counted and reported. Later lines are tried again.
fn write_all(
    mut file: impl Write,
    lines: &Receiver<Line>,
    dropped: &AtomicU64,
    mut say: impl FnMut(&str),
) {
    // Lines lost since the first failure, and how many of those the file does not mention yet.
    let (mut lost, mut untold) = (0_u64, 0_u64);
    let (mut text, mut is_torn) = (Vec::new(), false);
    while let Ok(first) = lines.recv() {
        text.clear();
        // Writing to a vector does not fail.
        if is_torn {
            text.push(b'\n');
        }
        if untold > 0 {
            let why = "it could not be written";
            let _ = writeln!(text, "# {untold} requests are not in this log: {why}");
        }
        let begin = text.len();
        let mut count = 0;
        for line in iter::once(first).chain(iter::from_fn(|| lines.try_recv().ok())) {
            let _ = writeln!(text, "{line}");
            count += 1;
            if text.len() >= PIECE_LEN {
                break;
            }
        }
        // Relaxed: no other data depends on this number.
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ =
                writeln!(text, "# {dropped} requests are not in this log: the disk is too slow");
        }
        let text = outside::hide_in(&text);
        let (written, result) = write(&mut file, &text);
        if written > 0 {
            is_torn = text[written - 1] != b'\n';
        }
        match result {
            Ok(()) => {
                if lost > 0 {
                    say(&format!("is written again; {lost} requests are not in it"));
                }
                (lost, untold) = (0, 0);
            }
            Err(error) => {
                if lost == 0 {
                    say(&format!(
                        "cannot be written: {error}; writing goes on when it is possible again"
                    ));
                }
                let whole = text[begin.min(written)..written].iter().filter(|it| **it == b'\n');
                let missing = dropped + count - count.min(whole.count() as u64);
                untold = if written < begin { untold + missing } else { missing };
                lost += missing;
            }
        }
    }
    if lost > 0 {
        say(&format!("ends without {lost} requests that could not be written"));
    }
}

/// Writes a text, and gives how much of it was written, with the error if that is not all.
fn write(file: &mut impl Write, text: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < text.len() {
        match file.write(&text[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, file.flush())
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
            flow: 0,
        }
    }

    /// The request is over: its line goes to the log.
    pub(super) fn end(mut self, log: &AccessLog) {
        self.took = self.begun.elapsed();
        if log.lines.try_send(self).is_err() {
            // Relaxed: no other data depends on this number.
            log.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Time, peer, what was asked, status, bytes of the body, time taken, number of the flow. Status
/// 499, as in nginx: the client went away before there was an answer.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (came, peer) = (format_rfc3339_millis(self.came), self.peer);
        let target = self.uri.path_and_query().map_or("*", |it| it.as_str());
        let protocol = protocol(self.version);
        let status = self.status.map_or(499, |status| status.as_u16());
        write!(f, "{came} {peer} \"{} ", self.method)?;
        // Quotes in the target must not end the quoted text.
        target.split('"').enumerate().try_for_each(|(at, part)| {
            f.write_str(if at == 0 { "" } else { "%22" })?;
            f.write_str(part)
        })?;
        write!(f, " {protocol}\" {status} {} {} us", self.bytes, self.took.as_micros())?;
        match self.flow {
            0 => f.write_str(" -"),
            flow => write!(f, " {flow}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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
        (asked.status, asked.bytes, asked.flow) = (Some(StatusCode::OK), 3, 17);
        let expected =
            "1970-01-01T00:00:00.000Z 127.0.0.1:9 \"GET /a%22?b=c HTTP/1.1\" 200 3 0 us 17";
        assert_eq!(asked.to_string(), expected);
        assert!(line("/").to_string().ends_with("\" 499 0 0 us -"));
    }

    #[test]
    fn lines_past_the_limit_are_counted_and_the_count_is_written() {
        let (lines, receiver) = sync_channel(1);
        let log = AccessLog { lines, dropped: Arc::default() };
        (0..3).for_each(|_| line("/").end(&log));
        let (mut text, dropped) = (Vec::new(), Arc::clone(&log.dropped));
        drop(log);
        write_all(&mut text, &receiver, &dropped, |said| panic!("{said}"));
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], "# 2 requests are not in this log: the disk is too slow");
    }

    /// A disk that is full for a while.
    #[derive(Clone)]
    struct Disk {
        text: Arc<Mutex<Vec<u8>>>,
        /// Bytes that it still takes; `None`: any number.
        room: Arc<Mutex<Option<usize>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock().expect("no panic");
            let taken = room.map_or(bytes.len(), |room| room.min(bytes.len()));
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room = room.map(|room| room - taken);
            self.text.lock().expect("no panic").extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A log whose disk is full after so many bytes, and what is said of it.
    struct Full {
        lines: SyncSender<Line>,
        disk: Disk,
        said: Receiver<String>,
        writer: thread::JoinHandle<()>,
    }

    impl Full {
        /// A log with a queue in which these lines wait already.
        fn after(bytes: usize, waiting: &[&'static str]) -> Full {
            let (lines, receiver) = sync_channel(waiting.len());
            waiting.iter().for_each(|target| lines.send(line(target)).expect("room"));
            let room = Arc::new(Mutex::new(Some(bytes)));
            let disk = Disk { text: Arc::default(), room };
            let (file, (says, said)) = (disk.clone(), sync_channel(4));
            let writer = thread::spawn(move || {
                let say = |text: &str| says.send(text.to_owned()).expect("the test listens");
                write_all(file, &receiver, &AtomicU64::new(0), say);
            });
            Full { lines, disk, said, writer }
        }

        fn ask(&self, target: &'static str) {
            self.lines.send(line(target)).expect("the writer lives");
        }

        fn fails(&self) {
            let said = self.said.recv().expect("a word");
            assert!(said.starts_with("cannot be written: "), "{said}");
        }

        /// Makes room for this line. Gives what is said after that, and the lines of the file.
        fn end(self, last: &'static str) -> (Vec<String>, Vec<String>) {
            *self.disk.room.lock().expect("no panic") = None;
            self.ask(last);
            drop(self.lines);
            self.writer.join().expect("no panic");
            let text = self.disk.text.lock().expect("no panic");
            let text = str::from_utf8(&text).expect("text");
            (self.said.iter().collect(), text.lines().map(str::to_owned).collect())
        }
    }

    #[test]
    fn of_a_piece_that_was_written_in_part_its_whole_lines_are_not_lost() {
        let len = line("/0").to_string().len() + 1;
        let full = Full::after(2 * len, &["/0", "/1", "/2"]);
        full.fails();
        let (said, lines) = full.end("/3");
        assert_eq!(said, ["is written again; 1 requests are not in it"]);
        assert!(lines[0].contains("/0") && lines[1].contains("/1"), "{lines:?}");
        assert_eq!(lines[2], "# 1 requests are not in this log: it could not be written");
        assert!(lines[3].contains("/3") && lines.len() == 4, "{lines:?}");
    }

    #[test]
    fn a_disk_that_was_full_is_written_again_and_what_is_missing_is_said() {
        // The queue has no room, so each line is taken before the next one is sent.
        let full = Full::after(10, &[]);
        full.ask("/torn");
        full.ask("/lost");
        full.fails();
        // The writer has taken '/lost', and may still be writing it. It takes this line after that.
        full.ask("/lost");
        let (said, lines) = full.end("/last");
        assert!(said.len() == 1 && said[0].starts_with("is written again; "), "{said:?}");
        assert!(!lines[0].contains("/torn"), "it was cut: {lines:?}");
        assert!(lines[1].ends_with("are not in this log: it could not be written"), "{lines:?}");
        assert!(lines.last().is_some_and(|line| line.contains("/last")), "{lines:?}");
    }
}

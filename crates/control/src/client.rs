//! The client's end of the control socket: finds the runs of this user, and talks to one.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, socket_with,
};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use sinew_core::clock::timespec;
use sinew_core::sys::peer_of;

use super::{Answer, HANDED_MAX, Line, Request, VERSION, place, to_line};
use crate::traces::RunLayout;

/// How long a run may take to accept and to answer. A run polls its socket many times a second, so
/// one that needs longer is stopped, or hangs.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Most bytes of an answer. A thousand domains take 1 MB; a peer that sends more is not a run.
const ANSWER_LEN_MAX: usize = 64 << 20;

/// A run that may exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// Its process.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
}

/// All runs of this user, by process. The sockets of runs that were killed are removed.
pub fn runs() -> Vec<FoundRun> {
    let mut runs: Vec<_> =
        place::folders().iter().flat_map(|folder| look(folder, place::ENDING)).collect();
    runs.sort_by_key(|run| run.pid);
    runs
}

pub(super) fn remove_stale(folder: &Path) {
    look(folder, place::ENDING);
    look(folder, place::TAP_ENDING);
}

/// The runs in a folder whose sockets have this ending. A socket is stale if its process is gone
/// and nobody listens. Stale sockets are removed.
fn look(folder: &Path, ending: &str) -> Vec<FoundRun> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let socket = entry.path();
        Some(FoundRun { pid: place::process_of(&socket, ending)?, socket })
    });
    let is_stale = |run: &FoundRun| {
        let is_refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
        !Path::new(&format!("/proc/{}", run.pid)).exists()
            && dial(&run.socket).is_err_and(is_refused)
    };
    let (stale, there): (Vec<_>, Vec<_>) = sockets.partition(is_stale);
    // Another process may have removed the socket just now.
    stale.iter().for_each(|run| drop(fs::remove_file(&run.socket)));
    there
}

fn dial(socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(ANSWER_WITHIN))?;
    connect(&stream, &address)?;
    Ok(UnixStream::from(stream))
}

/// A connection to a run.
#[derive(Debug)]
pub struct Connection {
    input: BufReader<UnixStream>,
    /// The part of a line that has arrived so far.
    line: Vec<u8>,
    /// The run's process, if it can be seen from here.
    process: Option<OwnedFd>,
}

impl Connection {
    /// Connects to a run.
    ///
    /// # Errors
    /// `ConnectionRefused` or `NotFound` if the run has ended; otherwise what is wrong.
    pub fn open(socket: &Path) -> io::Result<Connection> {
        let stream = dial(socket).map_err(explain)?;
        let (process, uid) = peer_of(stream.as_fd())?;
        let ours = geteuid().as_raw();
        if uid != ours {
            let socket = socket.display();
            let text = format!("{socket} is of user {uid}, expected {ours}; remove it");
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
        // `None`: the process is in another pid namespace, or has just ended; the connection will
        // tell.
        let pid = Pid::from_raw(process as i32);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Connection { input: BufReader::new(stream), line: Vec::new(), process })
    }

    /// A connection that the run itself has made to one of its services.
    pub fn over(stream: UnixStream) -> Connection {
        Connection { input: BufReader::new(stream), line: Vec::new(), process: None }
    }

    /// The same connection for another thread, which only sends requests.
    ///
    /// # Errors
    /// No file descriptor is left for it.
    pub fn to_ask(&self) -> io::Result<Connection> {
        Ok(Connection::over(self.input.get_ref().try_clone()?))
    }

    /// Sends a request and does not wait for the answer; [`Connection::next`] reads it.
    ///
    /// # Errors
    /// If the run has closed the connection. The run may have said why: that is the next line.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        self.input.get_mut().write_all(&to_line(request)).map_err(explain)
    }

    /// Sends a request and waits for the first line of the answer.
    ///
    /// # Errors
    /// If the run does not answer, or ends.
    pub fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        // A run that takes no more connections says so before it closes this one. Then only sending
        // fails, and the answer can still be read.
        let sent = self.send(request);
        match self.next(Some(ANSWER_WITHIN)) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                sent?;
                Err(io::Error::new(ErrorKind::UnexpectedEof, "the run ended before it answered"))
            }
            Err(error) => Err(explain(error)),
        }
    }

    /// The next line of an answer that has begun.
    ///
    /// # Errors
    /// As for [`Connection::ask`].
    pub fn next_in_time(&mut self) -> io::Result<Answer> {
        let next = self.next(Some(ANSWER_WITHIN)).map_err(explain)?;
        next.ok_or_else(|| {
            io::Error::new(ErrorKind::UnexpectedEof, "the run ended before it had answered")
        })
    }

    /// The next line. Waits for it at most `limit`. `None` if the run has closed the connection.
    ///
    /// # Errors
    /// `TimedOut` after `limit`; a line may still arrive later. After any other error the
    /// connection is over.
    pub fn next(&mut self, limit: Option<Duration>) -> io::Result<Option<Answer>> {
        // A timeout of zero would mean no limit.
        let limit = limit.map(|limit| limit.max(Duration::from_millis(1)));
        self.input.get_ref().set_read_timeout(limit)?;
        let room = ANSWER_LEN_MAX - self.line.len();
        let read = (&mut self.input).take(room as u64).read_until(b'\n', &mut self.line);
        match read {
            Ok(_) if self.line.last() == Some(&b'\n') => {}
            Ok(_) if self.line.len() >= ANSWER_LEN_MAX => {
                let text = format!("an answer is longer than {ANSWER_LEN_MAX} bytes");
                return Err(io::Error::other(text));
            }
            // The connection has ended, perhaps in the middle of a line that will never be
            // complete.
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
        let line = std::mem::take(&mut self.line);
        parse_answer(&line).map(Some)
    }

    /// Waits at most `limit` until the run's process has ended. Returns whether it has ended. A
    /// process that cannot be seen from here counts as ended.
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        let Some(process) = &self.process else { return true };
        let mut waits = [PollFd::new(process, PollFlags::IN)];
        let limit = timespec(limit.as_nanos() as u64);
        // Only a signal to this process ends the wait early, and then this process ends too.
        poll(&mut waits, Some(&limit)).is_ok_and(|ended| ended > 0)
    }
}

/// The layout of the records of a run, and for each of its threads a read-only descriptor of its
/// trace.
///
/// # Errors
/// As for [`Connection::ask`], or the run sends another answer.
pub fn traces(socket: &Path) -> io::Result<(RunLayout, Vec<OwnedFd>)> {
    let mut connection = Connection::open(socket)?;
    connection.send(&Request::Traces {})?;
    let stream = connection.input.get_ref();
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') && line.len() < ANSWER_LEN_MAX {
        let read = receive(stream, &mut line, &mut descriptors).map_err(explain)?;
        if read == 0 {
            let text = "the run ended before it answered";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
    }
    match parse_answer(&line)? {
        Answer::Traces(layout) if layout.threads.len() == descriptors.len() => {
            Ok((*layout, descriptors))
        }
        Answer::Traces(layout) => Err(io::Error::other(format!(
            "the run has {} threads and hands over {} traces; see the limit of open files \
             ('ulimit -n')",
            layout.threads.len(),
            descriptors.len()
        ))),
        Answer::Error(text) => Err(io::Error::other(text)),
        other => Err(io::Error::other(format!("asked for its traces it answers {other:?}"))),
    }
}

/// Receives the next bytes, with their descriptors. Returns 0 at the end.
fn receive(
    stream: &UnixStream,
    line: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    const SPACE: usize = rustix::cmsg_space!(ScmRights(HANDED_MAX));
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 16_384];
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(stream, &mut buffers, &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(handed) = message {
            descriptors.extend(handed);
        }
    }
    line.extend_from_slice(&bytes[..received.bytes]);
    Ok(received.bytes)
}

fn parse_answer(line: &[u8]) -> io::Result<Answer> {
    let other = |text| io::Error::new(ErrorKind::InvalidData, text);
    let parsed: Result<Line<Answer>, _> = serde_json::from_slice(line);
    match parsed {
        Ok(line) if line.sinew == VERSION => Ok(line.what),
        Ok(line) => Err(other(format!(
            "the run speaks version {} of the protocol, expected {VERSION}; use the sinew that it \
             was started with",
            line.sinew
        ))),
        Err(error) => Err(other(format!(
            "this sinew does not know the run's answer ({error}); use the sinew that it was \
             started with"
        ))),
    }
}

/// The same error in words for the user, if the kernel's own words do not say enough.
fn explain(error: io::Error) -> io::Error {
    let kind = error.kind();
    let text = match kind {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
            "it does not answer within {} s: its process is stopped or hangs; see 'ps', or kill it",
            ANSWER_WITHIN.as_secs()
        ),
        ErrorKind::BrokenPipe => "the run closed the connection".into(),
        _ => return error,
    };
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_version_is_refused() {
        let error = parse_answer(br#"{"sinew":2,"end":0}"#).expect_err("another version");
        assert!(error.to_string().contains("speaks version 2"), "{error}");
        let error = parse_answer(br#"{"sinew":1,"tide":0}"#).expect_err("no answer");
        assert!(error.to_string().contains("does not know the run's answer"), "{error}");
    }
}

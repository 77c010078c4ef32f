//! What a service writes to its standard output and error, line by line, without ever waiting.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::status::{EventKind, Events};

/// Bytes that one look takes from a service. What more it writes waits in the pipe, and in the end
/// the service waits too: it cannot keep the supervisor from watching.
const TAKEN_MAX: usize = 64 * 1024;
/// Bytes of a line; what is longer becomes two.
const LINE_MAX: usize = 1000;

/// The reading end.
#[derive(Debug)]
pub(in crate::run) struct Lines {
    file: std::fs::File,
    lines: Splitter,
    closed: bool,
}

/// Makes lines of bytes.
#[derive(Debug, Default)]
pub(in crate::run) struct Splitter {
    /// The beginning of a line.
    begun: Vec<u8>,
}

impl Splitter {
    pub(in crate::run) fn push(&mut self, byte: u8, each: &mut dyn FnMut(&str)) {
        if byte != b'\n' {
            self.begun.push(byte);
        }
        if byte == b'\n' || self.begun.len() >= LINE_MAX {
            self.end(each);
        }
    }

    /// No more comes: what was begun is a line too.
    pub(in crate::run) fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.end(each);
        }
    }

    /// What follows was lost.
    pub(in crate::run) fn forget(&mut self) {
        self.begun.clear();
    }

    /// What is no text becomes replacement characters; control characters would play with the
    /// terminal of whoever reads it.
    fn end(&mut self, each: &mut dyn FnMut(&str)) {
        let line =
            String::from_utf8_lossy(&self.begun).replace(|c: char| c.is_control(), "\u{fffd}");
        self.begun.clear();
        each(&line);
    }
}

impl Lines {
    /// A pipe, and its writing end for a child's output and error.
    pub(in crate::run) fn open() -> io::Result<(Lines, Stdio, Stdio)> {
        let (reader, writer): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only this end: a service expects that its output may take its time.
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        let second = writer.try_clone()?;
        let lines = Lines { file: reader.into(), lines: Splitter::default(), closed: false };
        Ok((lines, writer.into(), second.into()))
    }

    /// Whether anything can still come.
    pub(in crate::run) fn is_open(&self) -> bool {
        !self.closed
    }

    /// Hands every line that is there to `each`.
    pub(in crate::run) fn read(&mut self, each: &mut dyn FnMut(&str)) {
        let mut bytes = [0; 4096];
        let mut taken = 0;
        while !self.closed && taken < TAKEN_MAX {
            match self.file.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => {
                    taken += count;
                    bytes[..count].iter().for_each(|&byte| self.lines.push(byte, each));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.closed = true,
            }
        }
        if self.closed {
            self.lines.finish(each);
        }
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Lines of a service that become events, in a second; and orders. One that writes or asks without
/// end must not drive out what the others have to say.
const EVENTS_PER_S_MAX: u64 = 50;

/// What a service has to say, no more than is bearable.
pub(in crate::run) struct Talk {
    /// What it is counted in, in the plural.
    what: &'static str,
    /// End of the second under way.
    until_ns: u64,
    /// So many in it.
    count: u64,
}

impl Talk {
    /// Nothing was said yet.
    pub(in crate::run) fn of(what: &'static str) -> Talk {
        Talk { what, until_ns: 0, count: 0 }
    }

    /// A second is over: says how much was left out in it.
    pub(in crate::run) fn look(&mut self, now_ns: u64, name: &str, events: &mut Events) {
        if now_ns < self.until_ns {
            return;
        }
        let over = self.count.saturating_sub(EVENTS_PER_S_MAX);
        if over > 0 {
            let text = format!("{over} more {}, which are not kept", self.what);
            events.add(EventKind::Note, Some(name), text);
        }
        (self.until_ns, self.count) = (now_ns + 1_000_000_000, 0);
    }

    /// Whether it has said too much in this second.
    pub(in crate::run) fn is_over(&self) -> bool {
        self.count > EVENTS_PER_S_MAX
    }

    /// Makes an event of it; whether it is kept.
    pub(in crate::run) fn say(
        &mut self,
        what: EventKind,
        domain: Option<&str>,
        text: &str,
        events: &mut Events,
    ) -> bool {
        self.count += 1;
        if !self.is_over() {
            events.add(what, domain, text);
        }
        !self.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn said(script: &str) -> Vec<String> {
        let (mut lines, out, error) = Lines::open().expect("pipe");
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(out).stderr(error).spawn().expect("sh");
        // The command holds its own copies of the writing end.
        drop(command);
        child.wait().expect("it ends");
        let mut said = Vec::new();
        while lines.is_open() {
            lines.read(&mut |line| said.push(line.to_owned()));
        }
        said
    }

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_end() {
        assert_eq!(said("printf 'a\\n\\nb' ; printf c >&2"), ["a", "", "bc"]);
        assert_eq!(said("true"), [""; 0]);
    }

    #[test]
    fn what_is_no_text_harms_nobody() {
        assert_eq!(said("printf '\\377x\\033[2J\\n'"), ["\u{fffd}x\u{fffd}[2J"]);
        let long = said("head -c 2500 /dev/zero | tr '\\0' y");
        assert_eq!(long.iter().map(String::len).collect::<Vec<_>>(), [1000, 1000, 500]);
    }
}

//! The output of a service: read line by line, without ever waiting.

use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;

use rustix::fs::OFlags;

use super::{Lines, TAKEN_MAX};

#[derive(Debug)]
pub(crate) struct Pipe {
    reader: PipeReader,
    lines: Lines,
    closed: bool,
}

impl Pipe {
    /// A pipe, and its writing ends for a child's output and error.
    pub(crate) fn open() -> io::Result<(Pipe, [Stdio; 2])> {
        let (reader, writer) = io::pipe()?;
        // Only our end does not block: a service expects that its output may take its time.
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        let ends = [writer.try_clone()?.into(), writer.into()];
        Ok((Pipe { reader, lines: Lines::default(), closed: false }, ends))
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    pub(crate) fn read(&mut self, each: &mut dyn FnMut(&str)) {
        let mut bytes = [0; 4096];
        let mut taken = 0;
        while !self.closed && taken < TAKEN_MAX {
            match self.reader.read(&mut bytes) {
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

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn said(script: &str) -> Vec<String> {
        let (mut pipe, [out, error]) = Pipe::open().expect("pipe");
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(out).stderr(error).spawn().expect("sh");
        // The command holds its own copies of the writing end.
        drop(command);
        child.wait().expect("it ends");
        let mut said = Vec::new();
        while pipe.is_open() {
            pipe.read(&mut |line| said.push(line.to_owned()));
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

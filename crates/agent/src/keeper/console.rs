//! The output of a guest, line by line.

use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::ioctl_fionbio;

/// Most bytes of a line. Further bytes are dropped up to the end of the line.
const LINE_BYTES_MAX: usize = 1000;
/// Most bytes that are read in one call: as many as a pipe holds, so that the whole output of a
/// process that has ended is read.
const READ_BYTES_MAX: usize = 64 << 10;

/// The pipe that a guest prints to.
#[derive(Debug)]
pub(super) struct Console {
    /// `None` once no process can print any more.
    pipe: Option<PipeReader>,
    /// The line so far.
    line: Vec<u8>,
}

impl Console {
    pub(super) fn new(pipe: PipeReader) -> io::Result<Console> {
        ioctl_fionbio(&pipe, true)?;
        Ok(Console { pipe: Some(pipe), line: Vec::new() })
    }

    /// The descriptor that becomes readable when there is output.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Hands complete lines to `print`, and the last line when no process can complete it. Never
    /// waits. Reads little more than [`READ_BYTES_MAX`].
    pub(super) fn read(&mut self, print: &mut dyn FnMut(&str)) {
        let mut bytes = [0; 4096];
        for _ in 0..=READ_BYTES_MAX / bytes.len() {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut bytes) {
                Ok(0) => {
                    self.pipe = None;
                    self.flush(print);
                }
                Ok(read) => bytes[..read].iter().for_each(|byte| self.take(*byte, print)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // There is nothing yet. A pipe has no other errors.
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, byte: u8, print: &mut dyn FnMut(&str)) {
        match byte {
            b'\n' => self.flush(print),
            _ if self.line.len() < LINE_BYTES_MAX => self.line.push(byte),
            _ => {}
        }
    }

    fn flush(&mut self, print: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line);
        // Control characters are replaced, so that they cannot move the cursor of a terminal.
        let shown = |sign: char| if sign.is_control() && sign != '\t' { '\u{fffd}' } else { sign };
        let text: String = text.trim_end().chars().map(shown).collect();
        if !text.is_empty() {
            print(&text);
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(console: &mut Console) -> Vec<String> {
        let mut lines = Vec::new();
        console.read(&mut |line| lines.push(line.into()));
        lines
    }

    #[test]
    fn lines_are_handed_on_when_they_are_complete() {
        let (pipe, mut out) = io::pipe().expect("a pipe");
        let mut console = Console::new(pipe).expect("a console");
        out.write_all(b"one\r\n\ntwo\nthr").expect("room");
        assert_eq!(lines(&mut console), ["one", "two"]);
        assert_eq!(lines(&mut console), [""; 0]);
        out.write_all(b"ee\nfour").expect("room");
        assert_eq!(lines(&mut console), ["three"]);
        drop(out);
        assert_eq!(lines(&mut console), ["four"]);
        assert!(console.source().is_none(), "nobody can print any more");
    }

    #[test]
    fn a_line_without_end_is_cut_and_costs_no_memory() {
        let (pipe, mut out) = io::pipe().expect("a pipe");
        let mut console = Console::new(pipe).expect("a console");
        for _ in 0..20 {
            out.write_all(&[b'x'; 60_000]).expect("room");
            assert_eq!(lines(&mut console), [""; 0]);
        }
        out.write_all(b"\nnext\n").expect("room");
        assert_eq!(lines(&mut console), [&"x".repeat(LINE_BYTES_MAX), "next"]);
        assert!(console.line.capacity() <= 2 * LINE_BYTES_MAX);
    }

    #[test]
    fn what_would_move_a_cursor_is_made_visible() {
        let (pipe, mut out) = io::pipe().expect("a pipe");
        let mut console = Console::new(pipe).expect("a console");
        out.write_all(b"\x1b[2Jgone\xff\ta\n").expect("room");
        assert_eq!(lines(&mut console), ["\u{fffd}[2Jgone\u{fffd}\ta"]);
    }
}

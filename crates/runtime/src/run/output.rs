//! What domains write to their standard output and error: a service to a pipe, which makes it wait
//! if it writes faster than we read; a realtime domain to a file in memory, which never does.

mod memory_file;
mod pipe;

pub(super) use self::memory_file::MemoryFile;
pub(super) use self::pipe::Pipe;

/// Bytes that one look takes. If a service writes more, the rest waits in its pipe; if a realtime
/// domain has written more, the rest is lost and counted. Neither can keep the supervisor from
/// watching.
const TAKEN_MAX: usize = 64 * 1024;
/// Bytes of a line; a longer one becomes two.
const LINE_MAX: usize = 1000;

#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, byte: u8, each: &mut dyn FnMut(&str)) {
        if byte != b'\n' {
            self.begun.push(byte);
        }
        if byte == b'\n' || self.begun.len() >= LINE_MAX {
            self.end(each);
        }
    }

    /// Nothing more comes: the line that was begun counts as a line too.
    fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.end(each);
        }
    }

    /// The bytes that would follow were lost.
    fn forget(&mut self) {
        self.begun.clear();
    }

    /// Bytes that are no text become replacement characters; so do control characters, which would
    /// act on the terminal of the reader.
    fn end(&mut self, each: &mut dyn FnMut(&str)) {
        let line =
            String::from_utf8_lossy(&self.begun).replace(|c: char| c.is_control(), "\u{fffd}");
        self.begun.clear();
        each(&line);
    }
}

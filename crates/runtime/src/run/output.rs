//! What domains write to their standard output and error: a service to a pipe, which makes it wait
//! if it writes faster than we read; a realtime domain to a file in memory, which never does.

mod memory_file;
mod pipe;

pub(super) use self::memory_file::MemoryFile;
pub(super) use self::pipe::Pipe;

/// Bytes that one look takes. What more a service writes waits in its pipe; what more a realtime
/// domain has written is lost and counted. Neither can keep the supervisor from watching.
const TAKEN_MAX: usize = 64 * 1024;
/// Bytes of a line; what is longer becomes two.
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

    /// No more comes: what was begun is a line too.
    fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.end(each);
        }
    }

    /// What follows was lost.
    fn forget(&mut self) {
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

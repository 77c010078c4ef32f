//! The output of a realtime domain: a file in memory that only grows. A write never waits for a
//! reader, as one to a pipe would, and never fails for lack of room, which would be a panic of the
//! node that prints. Bytes that were read are given back to the kernel.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use rustix::fs::{
    FallocateFlags, MemfdFlags, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_setfl,
    memfd_create,
};
use sinew_control::status::{EventKind, Events};
use sinew_core::clock::now_ns;

use super::{Lines, TAKEN_MAX};
use crate::run::quota::Quota;

/// The file, and how far it was read. Each look, at least twice a second, reads the newest bytes; a
/// domain that writes faster than that loses the older ones. They are counted.
pub(crate) struct MemoryFile {
    file: File,
    /// How many bytes were read, or lost.
    read: u64,
    lines: Lines,
    quota: Quota,
}

impl MemoryFile {
    pub(crate) fn open() -> io::Result<MemoryFile> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("sinew-output", flags)?;
        // The domain has the file too, and could otherwise take back what was not read yet.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)?;
        // So output and error, and processes that the domain starts, do not overwrite each other.
        fcntl_setfl(&file, OFlags::APPEND)?;
        let (lines, quota) = (Lines::default(), Quota::of("lines"));
        Ok(MemoryFile { file: file.into(), read: 0, lines, quota })
    }

    pub(crate) fn ends(&self) -> io::Result<[Stdio; 2]> {
        Ok([self.file.try_clone()?.into(), self.file.try_clone()?.into()])
    }

    /// Makes events of the lines of domain `name` that came since the last look; a line that has no
    /// end yet counts only if the domain has ended.
    pub(crate) fn read(&mut self, name: &str, has_ended: bool, events: &mut Events) {
        let MemoryFile { file, read, lines, quota } = self;
        quota.look(now_ns(), name, events);
        let mut each = |line: &str| {
            quota.say(EventKind::Output, Some(name), line, events);
        };
        // The kernel tells the size of its own file, and frees what is before the end.
        let written = file.metadata().map_or(*read, |data| data.len());
        let lost = (written - *read).saturating_sub(TAKEN_MAX as u64);
        if lost > 0 {
            each(&format!("{lost} bytes of its output came too fast and are lost"));
            lines.forget();
        }
        let mut bytes = vec![0; (written - *read - lost) as usize];
        if !bytes.is_empty() && file.read_exact_at(&mut bytes, *read + lost).is_ok() {
            bytes.iter().for_each(|&byte| lines.push(byte, &mut each));
        }
        if written > *read {
            *read = written;
            let gone = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&*file, gone, 0, written);
        }
        if has_ended {
            lines.finish(&mut each);
        }
    }
}

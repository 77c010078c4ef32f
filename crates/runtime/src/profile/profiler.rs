//! Takes a profile of this process.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::RawFd;

use flate2::Compression;
use flate2::write::GzEncoder;
use pprof::protos::Message;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use signal_hook::consts::SIGPROF;

use sinew_core::sys::adopt;

/// A profile that is taken of this process.
pub(crate) struct Profiler {
    guard: ProfilerGuard<'static>,
    file: File,
}

impl Profiler {
    /// Begins; to be called before the process has other threads. `file` is a descriptor that the
    /// parent has left open.
    pub(crate) fn start(file: RawFd, frequency_hz: u32) -> io::Result<Profiler> {
        let file = File::from(adopt(file)?);
        let builder = || ProfilerGuardBuilder::default().frequency(frequency_hz as i32).build();
        // The first signal reads how to unwind this program, and allocates for that. In the middle
        // of an allocation it would wait for itself; here it comes while nothing else goes on, and
        // what it saw is dropped.
        let first = builder().map_err(io::Error::other)?;
        signal_hook::low_level::raise(SIGPROF)?;
        drop(first);
        Ok(Profiler { guard: builder().map_err(io::Error::other)?, file })
    }

    /// Ends, and writes what was seen.
    pub(crate) fn write(self) -> io::Result<()> {
        let report = self.guard.report().build().map_err(io::Error::other)?;
        let bytes = report.pprof().map_err(io::Error::other)?.encode_to_vec();
        drop(self.guard);
        let mut packed = GzEncoder::new(self.file, Compression::default());
        packed.write_all(&bytes)?;
        packed.finish()?.sync_all()
    }
}

//! CPU profiles of the processes that run flows, in pprof's format.
//!
//! A timer of the process's CPU time sends SIGPROF, and the thread that runs then notes where it
//! is. This happens only in services: no thread of the core ever gets the signal. An idle process
//! gets none.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

cfg_select! {
    feature = "profile" => {
        mod profiler;
        pub(crate) use profiler::Profiler;
    }
    _ => {
        mod without;
        pub(crate) use without::Profiler;
    }
}

/// Whether this program can take profiles: it is built with the feature `profile`.
pub const IS_BUILT: bool = cfg!(feature = "profile");

/// How much longer than its stop deadline a domain may take to stop if it writes a profile then: it
/// reads the names of functions from its own program, which takes seconds if that is large.
pub(crate) const WRITE_NS_MAX: u64 = 30_000_000_000;

/// A profile that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Where it goes.
    pub file: PathBuf,
    /// How often in a second of CPU time.
    pub frequency_hz: u32,
}

impl Profile {
    /// The file of a life of a domain; lives count from 1. The first life has the file that was
    /// asked for; later ones have their number before the extension. If several `domains` have
    /// flows, all files have the domain's name there.
    pub(crate) fn file_of(&self, domain: &str, domains: usize, life: u32) -> PathBuf {
        let name = (domains > 1).then(|| domain.into());
        let number = (life > 1).then(|| life.to_string().into());
        let extension = self.file.extension().map(OsStr::to_owned);
        let parts: Vec<OsString> = name.into_iter().chain(number).chain(extension).collect();
        self.file.with_extension(parts.join(OsStr::new(".")))
    }
}

/// Whether a profile has been written to its end.
pub(crate) fn is_whole(file: &Path) -> bool {
    let all =
        File::open(file).and_then(|file| io::copy(&mut GzDecoder::new(file), &mut io::sink()));
    all.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_life_of_each_domain_has_a_file_of_its_own() {
        let profile = |file: &str| Profile { file: file.into(), frequency_hz: 99 };
        let file = |file: &str, domains, life| profile(file).file_of("web", domains, life);
        assert_eq!(file("a/cpu.prof", 1, 1), Path::new("a/cpu.prof"));
        assert_eq!(file("a/cpu.prof", 1, 2), Path::new("a/cpu.2.prof"));
        assert_eq!(file("a/cpu.prof", 2, 1), Path::new("a/cpu.web.prof"));
        assert_eq!(file("cpu", 2, 3), Path::new("cpu.web.3"));
    }
}

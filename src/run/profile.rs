//! `--profile`: what must be right before the graph starts.

use std::fs::File;
use std::io;
use std::path::{Path, absolute};

use sinew_runtime::profile::Profile;
use sinew_spec::plan::Plan;

use crate::load::LoadError;

/// Whether there is something to profile, and the file can be written.
pub(super) fn check(file: &Path, plan: &Plan) -> Result<(), LoadError> {
    if !(0..plan.nodes.len()).any(|node| plan.is_flow(node)) {
        return Err(LoadError::Request(
            "--profile: this graph has no flows, and only processes with flows are profiled: the \
             signals of a profile would disturb a core; leave --profile out, or use 'perf record'"
                .into(),
        ));
    }
    let made = File::create(file).map(drop);
    made.map_err(|error| {
        let file = file.display();
        LoadError::Request(format!("--profile: cannot write '{file}': {error}; name another file"))
    })
}

/// The profile that was asked for.
pub(super) fn asked(file: &Path, frequency_hz: u32) -> io::Result<Profile> {
    Ok(Profile { file: absolute(file)?, frequency_hz })
}

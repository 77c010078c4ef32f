//! Recordings of several hosts, merged into one file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use sinew_recording::merge::merge;
use sinew_recording::recording::Recording;
use sinew_runtime::Kinds;

use super::refused;
use crate::answer::{FAULTED, print};
use crate::load::LoadError;

/// Merges the recordings into a new file.
pub(crate) fn merge_into(
    to: &Path,
    files: &[PathBuf],
    as_json: bool,
    nodes: &Kinds,
    stop: &AtomicBool,
) -> Result<ExitCode, LoadError> {
    let recordings = files.iter().map(|file| Recording::open(file).map_err(LoadError::Request));
    let recordings: Vec<Recording> = recordings.collect::<Result<_, _>>()?;
    let report = merge(&recordings, nodes, to, stop).map_err(refused)?;
    let status = if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = match as_json {
        true => format!("{:#}\n", report.to_json()),
        false => report.to_text(),
    };
    Ok(print(&text, status))
}

//! What OLD and NEW are: a program or a report. The file itself tells which.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::CannotCompare;
use crate::report::ScenarioReport;

/// What a program begins with: an ELF file, or a script that names its interpreter.
const PROGRAMS: [&[u8]; 2] = [b"\x7fELF", b"#!"];

/// A file that can be compared.
#[derive(Clone, Debug)]
pub enum Input {
    /// A program, by its full path.
    Program(PathBuf),
    /// A report.
    Report(Box<ScenarioReport>),
}

/// Looks at a file.
///
/// # Errors
/// What is wrong with it.
pub fn read(path: &Path) -> Result<Input, CannotCompare> {
    let name = path.display();
    let cannot = |error| CannotCompare(format!("cannot read '{name}': {error}"));
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(CannotCompare(format!(
            "'{name}' is not a file; expected a program or a report"
        )));
    }
    let bytes = fs::read(path).map_err(cannot)?;
    if PROGRAMS.iter().any(|beginning| bytes.starts_with(beginning)) {
        if about.permissions().mode() & 0o111 == 0 {
            return Err(CannotCompare(format!(
                "'{name}' is a program, but it is not executable; run chmod +x on it"
            )));
        }
        // A bare name would be looked for in PATH.
        return Ok(Input::Program(fs::canonicalize(path).map_err(cannot)?));
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(CannotCompare(format!(
            "'{name}' is neither a program (an ELF file or a script that begins with #!) nor a \
             report (the JSON of sinew lab SCENARIO --json)"
        )));
    }
    let report = ScenarioReport::read(&String::from_utf8_lossy(&bytes));
    let report = report.map_err(|why| CannotCompare(format!("'{name}' {why}")))?;
    Ok(Input::Report(Box::new(report)))
}

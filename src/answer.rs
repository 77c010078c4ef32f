//! What a command answers: text or one JSON object on standard output, the reason for a failure on
//! standard error, and the exit status that all commands share.

use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

use serde_json::{Value, json};
use sinew_control::outside;

/// The graph faulted, or a gate failed.
pub(crate) const FAULTED: u8 = 1;
/// The request or the spec is bad; nothing was run.
pub(crate) const BAD_REQUEST: u8 = 2;

/// Says why a command does not do what was asked, on standard error or as the one JSON object that
/// was asked for. Returns the exit status that goes with it.
pub(crate) fn refuse(why: &str, status: u8, as_json: bool) -> ExitCode {
    let status = ExitCode::from(status);
    if as_json {
        return print(&format!("{:#}\n", error_json(why)), status);
    }
    say(&format!("error: {why}"));
    status
}

/// The JSON object of a command that failed: `{"errors": [{"message": ...}]}`. For errors in a spec
/// the object has more fields.
pub(crate) fn error_json(why: &str) -> Value {
    json!({ "errors": [{ "message": why }] })
}

/// Writes to standard error. If standard error is closed, nobody reads it and no action is needed.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr(), "{}", outside::hide(text));
}

/// Writes to standard output, with secrets hidden. The exit status is `status` if writing went
/// well.
pub(crate) fn print(text: &str, status: ExitCode) -> ExitCode {
    let mut out = stdout().lock();
    let text = outside::hide(text);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if is_quiet(written) { status } else { ExitCode::from(FAULTED) }
}

/// Whether writing went well. Closing the output (`| head`) is the reader's own decision.
pub(crate) fn is_quiet(written: io::Result<()>) -> bool {
    match written {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => true,
        Err(error) => {
            say(&format!("error: cannot write to standard output: {error}"));
            false
        }
    }
}

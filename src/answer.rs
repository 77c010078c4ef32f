//! What a command answers: text or one JSON object on standard output, why it failed on standard
//! error, and the exit status that all commands share.

use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

use serde_json::{Value, json};
use sinew_control::outside;

/// The graph faulted, or a gate failed.
pub(crate) const FAULTED: u8 = 1;
/// The request or the spec is bad; nothing was run.
pub(crate) const BAD_REQUEST: u8 = 2;

/// Says why a command does not do what it was to, on standard error or as the one JSON object that
/// was asked for; the exit status that goes with it.
pub(crate) fn refuse(why: &str, status: u8, as_json: bool) -> ExitCode {
    let status = ExitCode::from(status);
    if as_json {
        return print(&format!("{:#}\n", error_json(why)), status);
    }
    say(&format!("error: {why}"));
    status
}

/// The JSON object of a command that failed: `{"errors": [{"message": ...}]}`. Errors in a spec say
/// more in it.
pub(crate) fn error_json(why: &str) -> Value {
    json!({ "errors": [{ "message": why }] })
}

/// Standard error; if it is closed, nobody wants to know.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr(), "{}", outside::hide(text));
}

/// Writes to standard output, without what nobody is shown; the exit status is `status` if that
/// went well.
pub(crate) fn print(text: &str, status: ExitCode) -> ExitCode {
    let mut out = stdout().lock();
    let text = outside::hide(text);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if is_quiet(written) { status } else { ExitCode::from(FAULTED) }
}

/// Whether the output went well. Output that was closed (`| head`) is the reader's own decision.
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

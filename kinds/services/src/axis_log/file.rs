//! The file of an axis log: a header, then whole lines only, written by one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sinew_core::{Fault, fault};

use sinew_robot::ethercat::DRIVES;
use sinew_robot::ethercat::cia402::DriveState;
use sinew_robot::messages::{AxisFeedback, FEEDBACK_VALID};

/// Longer than any line of a log: the end of the last whole line is searched this far back.
const LINE_BYTES_MAX: u64 = 1024;

/// A log that is open.
pub(super) struct LogFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The current line; it is written to the file as a whole.
    line: Vec<u8>,
    /// What the last line said of the axes when the log was opened; empty if there was no line.
    last: Vec<u8>,
}

impl LogFile {
    /// Opens the log at `path`, or begins a new one; also returns which of the two, in words.
    ///
    /// # Errors
    /// It cannot be written, is not an axis log, or another process writes it.
    pub(super) fn open(path: &Path) -> Result<(LogFile, &'static str), Fault> {
        let wrong = |error: io::Error| cannot_write(path, &error);
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(path).map_err(wrong)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                fault!("'{}' is written by another process; name another file", path.display())
            }
            TryLockError::Error(error) => wrong(error),
        })?;
        let (last, done) = match what_is_there(&mut file).map_err(wrong)? {
            There::Log { whole_bytes, last } => {
                file.set_len(whole_bytes).map_err(wrong)?;
                (last, "goes on with")
            }
            There::Nothing => {
                file.write_all(&header()).map_err(wrong)?;
                (Vec::new(), "begins")
            }
            There::SomethingElse => {
                return Err(fault!(
                    "'{}' is not an axis log of this version; name another file, or move it away",
                    path.display()
                ));
            }
        };
        let out = BufWriter::new(file);
        Ok((LogFile { path: path.into(), out, line: Vec::new(), last }, done))
    }

    /// Whether the last line was about this message when the log was opened.
    pub(super) fn ended_with(&self, message: &AxisFeedback) -> bool {
        let mut line = Vec::new();
        write_axes(&mut line, message).is_ok() && line == self.last
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(
        &mut self,
        unix_ms: u64,
        number: u64,
        message: &AxisFeedback,
    ) -> Result<(), Fault> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let written = write!(line, "{unix_ms},{number}");
        let written = written.and_then(|()| write_axes(&mut line, message));
        let written = written.and_then(|()| self.out.write_all(&line));
        self.line = line;
        written.map_err(|error| cannot_write(&self.path, &error))
    }

    /// Hands all lines to the kernel.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        self.out.flush().map_err(|error| cannot_write(&self.path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Fault {
    let path = path.display();
    fault!("cannot write '{path}': {error}; correct that, or name another file")
}

/// The contents of a file.
enum There {
    Nothing,
    /// A log: the bytes of its whole lines, and what the last line says of the axes.
    Log {
        whole_bytes: u64,
        last: Vec<u8>,
    },
    SomethingElse,
}

fn what_is_there(file: &mut File) -> io::Result<There> {
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(There::Nothing);
    }
    let (header, mut first) = (header(), Vec::new());
    (&mut *file).take(header.len() as u64).read_to_end(&mut first)?;
    if first.len() < header.len() && header.starts_with(&first) {
        // Its first line was cut off.
        file.set_len(0)?;
        return Ok(There::Nothing);
    }
    let (from, mut end) = (len.saturating_sub(LINE_BYTES_MAX), Vec::new());
    file.seek(SeekFrom::Start(from))?;
    file.read_to_end(&mut end)?;
    let newline = end.iter().rposition(|&byte| byte == b'\n').filter(|_| first == header);
    let Some(newline) = newline else { return Ok(There::SomethingElse) };
    end.truncate(newline + 1);
    Ok(There::Log { whole_bytes: from + end.len() as u64, last: axes_of_last(&end).to_vec() })
}

/// The last line without its time and number.
fn axes_of_last(lines: &[u8]) -> &[u8] {
    let before = lines.split_last().map_or(lines, |(_newline, before)| before);
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut commas = (start..lines.len()).filter(|&at| lines[at] == b',');
    commas.nth(1).map_or(&[], |second| &lines[second..])
}

/// The first line.
fn header() -> Vec<u8> {
    let axes = |before: &str, after: &str| {
        let axis = |axis| format!(",{before}_{axis}{after}");
        (1..=DRIVES).map(axis).collect::<String>()
    };
    let (positions, velocities) = (axes("position", "_rad"), axes("velocity", "_rad_per_s"));
    let states = axes("state", "");
    format!("time_unix_ms,message,target{positions}{velocities}{states},valid\n").into_bytes()
}

/// The part of a line about the axes, from the comma before it to the end.
fn write_axes(line: &mut Vec<u8>, message: &AxisFeedback) -> io::Result<()> {
    write!(line, ",{}", message.sequence)?;
    for position_rad in message.position_rad {
        write!(line, ",{position_rad:.7}")?;
    }
    for velocity_rad_per_s in message.velocity_rad_per_s {
        write!(line, ",{velocity_rad_per_s:.6}")?;
    }
    for status in message.status {
        match DriveState::from_status(status) {
            Some(state) => write!(line, ",{}", state.label())?,
            None => write!(line, ",0x{status:04x}")?,
        }
    }
    writeln!(line, ",{}", u32::from(message.flags & FEEDBACK_VALID != 0))
}

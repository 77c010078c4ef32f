//! What nodes log: lines in shared memory, put there when they are logged and without formatting.
//! The reader makes text of them. Lines that a process logged before it died are there too.
//!
//! The lines are a broadcast: the writer never waits. If there are more lines than it holds, the
//! newest are kept, because the last ones before a fault say how it came about.

use std::fmt::{self, Write};
use std::io;

use sinew_link::{RegionError, Shape, broadcast, create};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::sys::Region;

/// Numbers that a line can have; more are left out.
pub const NUMBERS_MAX: usize = 4;

/// Bytes of a line's text before its numbers are put in; a longer text is cut.
pub const TEXT_MAX: usize = 115;

/// Lines of a thread that are kept until they are read, 96 KiB. Lines are read within half a
/// second, and in that time a node that logs one in each cycle at 1 kHz leaves this many.
pub const LINES_MAX: u32 = 512;

/// Tells a region of lines from other regions.
const TYPE_HASH: u32 = u32::from_le_bytes(*b"line");

const SHAPE: Shape = Shape::broadcast(size_of::<LogLine>() as u32, TYPE_HASH, LINES_MAX);

/// Numbers from the first one on are written with an exponent, as are those that are smaller than
/// the second one: otherwise 1e300 would be 301 digits.
const WRITTEN_OUT: [f64; 2] = [1e16, 1e-6];

/// How serious a line is. The numbers are used in shared memory; do not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Something happened, as it should.
    Info = 1,
    /// Somebody should look at it.
    Warning = 2,
    /// Something failed, and the node goes on without it. If the node cannot go on, that is a
    /// fault.
    Error = 3,
}

impl Level {
    /// Each with its word.
    pub const ALL: &'static [(Level, &'static str)] =
        &[(Level::Info, "info"), (Level::Warning, "warning"), (Level::Error, "error")];

    /// The word for people.
    pub fn word(self) -> &'static str {
        Level::ALL[self as usize - 1].1
    }

    /// The level with this number, if there is one.
    fn of(number: u8) -> Option<Level> {
        Level::ALL.get(usize::from(number).checked_sub(1)?).map(|row| row.0)
    }
}

/// A line as it crosses: not yet text.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct LogLine {
    cycle: u64,
    numbers: [f64; NUMBERS_MAX],
    /// Place of the node in its thread.
    place: u16,
    level: u8,
    /// How many numbers there are.
    count: u8,
    /// Length of the text in bytes.
    len: u8,
    text: [u8; TEXT_MAX],
}

impl LogLine {
    /// What the node at `place` says in this cycle; does not allocate.
    fn new(cycle: u64, place: usize, level: Level, text: &str, numbers: &[f64]) -> LogLine {
        let mut line = LogLine { cycle, level: level as u8, ..LogLine::new_zeroed() };
        // The compiler puts no more nodes on a thread than a u16 counts.
        line.place = u16::try_from(place).unwrap_or(u16::MAX);
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_MAX)];
        line.text[..text.len()].copy_from_slice(text);
        line.len = text.len() as u8;
        let numbers = &numbers[..numbers.len().min(NUMBERS_MAX)];
        line.numbers[..numbers.len()].copy_from_slice(numbers);
        line.count = numbers.len() as u8;
        line
    }

    /// Number of the cycle in which it was said.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Place of the node in its thread. The writer of the line may have made it up.
    pub fn place(&self) -> usize {
        self.place.into()
    }

    /// How serious it is.
    pub fn level(&self) -> Level {
        Level::of(self.level).unwrap_or(Level::Error)
    }

    /// Whether a node can have said it.
    fn is_sound(&self) -> bool {
        let [len, count] = [self.len, self.count].map(usize::from);
        Level::of(self.level).is_some()
            && count <= NUMBERS_MAX
            && self.text.get(..len).is_some_and(|text| std::str::from_utf8(text).is_ok())
    }
}

/// The text of the line. Each number replaces a `{}`, or a `{:.3}` with that many digits. A
/// placeholder without a number stays as it is; a number without a placeholder is put at the end.
impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [len, count] = [self.len, self.count].map(usize::from);
        let mut numbers = self.numbers[..count.min(NUMBERS_MAX)].iter().copied();
        let text = String::from_utf8_lossy(&self.text[..len.min(TEXT_MAX)]);
        let mut rest = &*text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            f.write_str(before)?;
            match hole(from).and_then(|(digits, rest)| Some((digits, rest, numbers.next()?))) {
                Some((digits, after, number)) => {
                    write_number(f, number, digits)?;
                    rest = after;
                }
                None => {
                    f.write_char('{')?;
                    rest = &from[1..];
                }
            }
        }
        f.write_str(rest)?;
        for number in numbers {
            f.write_str(", ")?;
            write_number(f, number, None)?;
        }
        Ok(())
    }
}

/// The placeholder of a number at the beginning of a text: its digits, and the text after it.
fn hole(text: &str) -> Option<(Option<usize>, &str)> {
    if let Some(rest) = text.strip_prefix("{}") {
        return Some((None, rest));
    }
    let rest = text.strip_prefix("{:.")?;
    let digits = rest.chars().next()?.to_digit(10)?;
    Some((Some(digits as usize), rest[1..].strip_prefix('}')?))
}

fn write_number(f: &mut fmt::Formatter<'_>, number: f64, digits: Option<usize>) -> fmt::Result {
    let [most, least] = WRITTEN_OUT;
    let size = number.abs();
    match digits {
        _ if size >= most && number.is_finite() => write!(f, "{number:e}"),
        None if size < least && size > 0.0 => write!(f, "{number:e}"),
        None => write!(f, "{number}"),
        Some(digits) => write!(f, "{number:.digits$}"),
    }
}

/// Makes the region for the lines of a thread and reads it from its beginning.
///
/// # Errors
/// The kernel refuses a region of that size.
pub fn open() -> io::Result<(Region, Reader)> {
    open_in(Region::shared("sinew-log", SHAPE.region_len())?)
}

/// Both ends, for this process only.
///
/// # Errors
/// As for [`open`].
pub(crate) fn open_here() -> io::Result<(Writer, Reader)> {
    let (region, reader) = open_in(Region::anonymous(SHAPE.region_len())?)?;
    Ok((Writer::attach(region).map_err(refused)?, reader))
}

fn open_in(region: Region) -> io::Result<(Region, Reader)> {
    create(&region, &SHAPE).map_err(refused)?;
    let reader = broadcast::Reader::attach(region.clone(), &SHAPE).map_err(refused)?;
    Ok((region, Reader { reader, lost: 0 }))
}

fn refused(error: RegionError) -> io::Error {
    io::Error::other(error.to_string())
}

/// The thread's end.
pub struct Writer(broadcast::Writer<Region>);

impl Writer {
    /// Attaches to what [`open`] made, and goes on where a process before this one ended.
    ///
    /// # Errors
    /// The region is not one for lines.
    pub fn attach(region: Region) -> Result<Writer, RegionError> {
        broadcast::Writer::attach(region, &SHAPE).map(Writer)
    }

    /// Leaves a line; never waits.
    pub(crate) fn write(
        &mut self,
        cycle: u64,
        place: usize,
        level: Level,
        text: &str,
        numbers: &[f64],
    ) {
        self.0.send(LogLine::new(cycle, place, level, text, numbers).as_bytes());
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

/// The end that reads the lines and makes text of them.
pub struct Reader {
    reader: broadcast::Reader<Region>,
    lost: u64,
}

impl Reader {
    /// Hands the lines since the last call to `each`, no more than [`LINES_MAX`]: a node that logs
    /// more in that time cannot hold the reader up. Lines that no node can have logged count as
    /// lost.
    pub fn read(&mut self, each: &mut dyn FnMut(&LogLine)) {
        let mut line = LogLine::new_zeroed();
        for _ in 0..LINES_MAX {
            // A domain that overwrites its lines with nonsense only spoils these.
            let Ok(Some(received)) = self.reader.receive(line.as_mut_bytes()) else { break };
            self.lost += u64::from(received.lost);
            match line.is_sound() {
                true => each(&line),
                false => self.lost += 1,
            }
        }
    }

    /// Lines that were overwritten before they were read, or were no valid lines.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests;

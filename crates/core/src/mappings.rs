//! What is mapped in this process, as the kernel reports it.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Code is taken in pieces of this size. A linker puts the functions of a crate side by side, so a
/// process that has needed one function of a piece may need the others, also those that run only on
/// a fault.
const PIECE_BYTES: usize = 256 * 1024;

/// In an entry of /proc/PID/pagemap: the page is in memory.
const PRESENT: u64 = 1 << 63;

/// A mapping, as in /proc/PID/smaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Where it is.
    pub(crate) addresses: Range<usize>,
    /// Whether it is of this program, may not be written to, and has not been written to.
    pub(crate) is_code: bool,
    /// Size of its pages.
    pub(crate) page_bytes: usize,
    /// How much of it is in memory.
    pub(crate) resident_kib: u32,
    /// Whether what is in memory stays there.
    pub(crate) is_locked: bool,
}

/// All mappings of this process; none where the kernel does not report them.
pub(crate) fn all() -> Vec<Mapping> {
    let program = fs::read_link("/proc/self/exe");
    let (Ok(program), Ok(smaps)) = (program, fs::read_to_string("/proc/self/smaps")) else {
        return Vec::new();
    };
    parse(&program.display().to_string(), &smaps)
}

fn parse(program: &str, smaps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if !name.ends_with(':') {
            found.extend(head(program, name, value));
            continue;
        }
        let Some(mapping) = found.last_mut() else { continue };
        let kib = || value.trim().trim_end_matches(" kB").parse::<u32>().unwrap_or(0);
        match name {
            "KernelPageSize:" => mapping.page_bytes = kib() as usize * 1024,
            "Rss:" => mapping.resident_kib = kib(),
            // The loader or a debugger has written here.
            "Anonymous:" if kib() > 0 => mapping.is_code = false,
            "VmFlags:" => mapping.is_locked = value.split(' ').any(|flag| flag == "lo"),
            _ => {}
        }
    }
    found
}

fn head(program: &str, addresses: &str, rest: &str) -> Option<Mapping> {
    let (start, end) = addresses.split_once('-')?;
    let number = |digits| usize::from_str_radix(digits, 16).ok();
    let may_not_write = rest.starts_with("r-xp ") || rest.starts_with("r--p ");
    Some(Mapping {
        addresses: number(start)?..number(end)?,
        is_code: may_not_write && rest.ends_with(&format!(" {program}")),
        ..Mapping::default()
    })
}

/// The pieces of a mapping that are partly in memory, or that hold an address of `of_faults`,
/// ascending.
///
/// # Errors
/// The kernel does not report it.
pub(crate) fn needed(mapping: &Mapping, of_faults: &[usize]) -> io::Result<Vec<Range<usize>>> {
    let Mapping { addresses: Range { start, end }, page_bytes, .. } = *mapping;
    if !PIECE_BYTES.is_multiple_of(page_bytes) {
        return Err(io::Error::other("pages of an unknown size"));
    }
    let mut entries = vec![0; (end - start) / page_bytes * 8];
    let pagemap = File::open("/proc/self/pagemap")?;
    pagemap.read_exact_at(&mut entries, (start / page_bytes * 8) as u64)?;
    let is_here =
        |entry: &[u8]| entry.try_into().is_ok_and(|entry| u64::from_ne_bytes(entry) & PRESENT != 0);
    let pieces = (start..end).step_by(PIECE_BYTES).map(|at| at..end.min(at + PIECE_BYTES));
    let is_needed = |piece: &Range<usize>, entries: &[u8]| {
        of_faults.iter().any(|at| piece.contains(at)) || entries.chunks(8).any(is_here)
    };
    let needed = pieces.zip(entries.chunks(PIECE_BYTES / page_bytes * 8));
    Ok(needed
        .filter(|(piece, entries)| is_needed(piece, entries))
        .map(|(piece, _)| piece)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_of_the_program_and_nobody_has_written_to() {
        let mapping = |addresses: &str, rights: &str, program: &str, own_kib: u32, flags: &str| {
            format!(
                "{addresses} {rights} 00616bc0 fe:00 1049    {program}\nKernelPageSize:   4 kB\n\
                 Rss:   8 kB\nAnonymous:  {own_kib} kB\nVmFlags: rd ex mr mw me{flags}\n"
            )
        };
        let smaps = [
            mapping("1000-2a00", "r--p", "/bin/sinew", 0, ""),
            mapping("3000-4000", "r-xp", "/bin/sinew", 0, " lo sd"),
            // The loader has written here, before it took the right to write away.
            mapping("5000-6000", "r--p", "/bin/sinew", 12, ""),
            mapping("7000-8000", "rw-p", "/bin/sinew", 0, ""),
            mapping("9000-a000", "r-xp", "/bin/sh", 0, ""),
        ];
        let found = parse("/bin/sinew", &smaps.concat());
        assert!(found.iter().all(|it| (it.resident_kib, it.page_bytes) == (8, 4096)), "{found:?}");
        let locked = found.iter().filter(|mapping| mapping.is_locked);
        assert_eq!(locked.map(|mapping| mapping.addresses.start).collect::<Vec<_>>(), [0x3000]);
        let code = found.into_iter().filter(|mapping| mapping.is_code);
        let code: Vec<_> = code.map(|mapping| mapping.addresses).collect();
        assert_eq!(code, [0x1000..0x2a00, 0x3000..0x4000]);
    }

    #[test]
    fn the_piece_that_runs_is_needed() {
        let here = the_piece_that_runs_is_needed as fn() as usize;
        let code = all().into_iter().find(|mapping| mapping.addresses.contains(&here));
        let code = code.expect("this function is somewhere");
        assert!(code.is_code && code.resident_kib > 0, "{code:?}");
        let pieces = needed(&code, &[]).expect("the kernel tells");
        assert!(pieces.iter().any(|piece| piece.contains(&here)), "{here:x} is in no {pieces:x?}");
        assert!(pieces.iter().all(|piece| code.addresses.end >= piece.end), "{pieces:x?}");
    }

    #[test]
    fn a_piece_is_needed_when_somebody_says_so() {
        // Address space of a mapping of which nothing is in memory.
        let nothing =
            Mapping { addresses: 0x1000_0000..0x1010_0000, page_bytes: 4096, ..all()[0].clone() };
        assert_eq!(needed(&nothing, &[]).expect("the kernel tells"), []);
        let told = needed(&nothing, &[0x1004_0123]).expect("the kernel tells");
        assert_eq!((told.len(), &told[0]), (1, &(0x1004_0000..0x1008_0000)));
    }
}

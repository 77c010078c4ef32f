//! The boards that a guest can run on: one table, a row for each.

mod virt;

use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::path::Path;
use std::process::Command;

use sinew_plan::plan::Board;

/// Every board, one row each.
pub const BOARDS: &[BoardRow] = &[virt::ROW];

/// A board.
#[derive(Debug)]
pub struct BoardRow {
    /// Its name in the spec.
    pub board: Board,
    /// What it is, in one sentence.
    pub doc: &'static str,
    /// The machine that its images are built for.
    pub machine: ElfMachine,
    /// Allowed sizes of its carve-out, in bytes; a power of two.
    pub memory_bytes: RangeInclusive<usize>,
    /// The command that runs the emulator with such an image.
    pub command: fn(&EmulatorStart<'_>) -> Command,
    /// What is missing on this machine, and the next step; `None` if nothing is missing.
    pub missing: fn() -> Option<String>,
}

/// The inputs of an emulator's start.
#[derive(Clone, Copy, Debug)]
pub struct EmulatorStart<'a> {
    /// The ELF file to run.
    pub image: &'a Path,
    /// Number of the descriptor from which the emulator takes memory and bells; see
    /// [`crate::ivshmem`].
    pub bells: RawFd,
    /// Count of bells in each direction.
    pub vectors: usize,
}

/// The machine that a program is built for, as in an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfMachine {
    /// Number of the processor family: `e_machine`.
    pub family: u16,
    /// Bits of an address, 32 or 64.
    pub bits: u8,
    /// Whether the lowest byte of a number comes first.
    pub is_little_endian: bool,
}

impl fmt::Display for ElfMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            3 | 62 => write!(f, "x86")?,
            40 | 183 => write!(f, "Arm")?,
            243 => write!(f, "RISC-V")?,
            family => write!(f, "ELF machine {family}")?,
        }
        let order = if self.is_little_endian { "" } else { ", big-endian" };
        write!(f, " with {} bits{order}", self.bits)
    }
}

impl BoardRow {
    /// The row of a board.
    pub fn of(board: Board) -> &'static BoardRow {
        BOARDS.iter().find(|row| row.board == board).expect("every board has a row")
    }

    /// What is wrong with a carve-out of `bytes` bytes on this board.
    pub fn refuses_memory(&self, bytes: usize) -> Option<String> {
        let (least, most) = self.memory_bytes.clone().into_inner();
        let fits = self.memory_bytes.contains(&bytes) && bytes.is_power_of_two();
        (!fits).then(|| {
            let name = self.board.word();
            format!(
                "the carve-out has {bytes} bytes; board '{name}' takes a power of two from {least} \
                 to {most}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_has_a_row() {
        assert_eq!(BOARDS.len(), Board::ALL.len());
        for (board, _) in Board::ALL {
            assert_eq!(BoardRow::of(*board).board, *board);
        }
    }

    #[test]
    fn memory_that_a_board_cannot_show_is_refused() {
        let virt = BoardRow::of(Board::Virt);
        for bytes in [128 << 10, 16 << 20, 256 << 20] {
            assert_eq!(virt.refuses_memory(bytes), None);
        }
        for bytes in [0, 64 << 10, 96 << 10, 512 << 20] {
            let why = virt.refuses_memory(bytes).expect("refused");
            assert!(why.contains(&format!("{bytes} bytes; board 'virt' takes")), "{why}");
        }
    }

    #[test]
    fn a_machine_is_said_in_words() {
        let machine = |family, bits| ElfMachine { family, bits, is_little_endian: true };
        assert_eq!(machine(40, 32).to_string(), "Arm with 32 bits");
        assert_eq!(machine(62, 64).to_string(), "x86 with 64 bits");
        let big = ElfMachine { is_little_endian: false, ..machine(8, 32) };
        assert_eq!(big.to_string(), "ELF machine 8 with 32 bits, big-endian");
    }
}

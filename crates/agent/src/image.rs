//! Reads the image of a guest before it runs: its machine, and the kinds of nodes in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectKind, ObjectSection};
use sinew_carve_out::image::{ImageKind, SECTION, records};

use crate::boards::{BoardRow, ElfMachine};

/// Most bytes of an image. With all debug information an image has a few MiB.
const BYTES_MAX: u64 = 64 << 20;

/// An image that a board can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// The machine that it is built for.
    pub machine: ElfMachine,
    table: Vec<u8>,
}

impl ImageFile {
    /// The bytes of its table of kinds; [`records`] reads them.
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    /// Its kinds.
    pub fn kinds(&self) -> impl Iterator<Item = ImageKind<'_>> + Clone {
        records(&self.table).expect("it was checked when it was read")
    }
}

/// Reads the image at `path`, which is to run on this board. Blocks on the disk.
///
/// # Errors
/// A sentence for the author of the graph: there is no such file, the board cannot run it, or it
/// has no table of kinds of this version.
pub fn read(path: &Path, board: &BoardRow) -> Result<ImageFile, String> {
    let place = path.display();
    let bytes = bytes(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{place}: no such file; build it: cargo build --release in guest/")
        }
        _ => format!("{place}: cannot be read: {error}"),
    })?;
    take(&bytes, board).map_err(|why| format!("{place}: {why}"))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe without a writer would block.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB", BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

fn take(bytes: &[u8], board: &BoardRow) -> Result<ImageFile, String> {
    let file = match bytes.get(..5) {
        Some(b"\x7fELF\x01" | b"\x7fELF\x02") => object::File::parse(bytes),
        _ => return Err("is not an ELF file; expected the image of a guest".into()),
    };
    let file = file.map_err(|error| format!("its ELF headers are damaged: {error}"))?;
    let machine = match &file {
        object::File::Elf32(file) => machine(file, 32),
        object::File::Elf64(file) => machine(file, 64),
        _ => return Err("is not an ELF file; expected the image of a guest".into()),
    };
    let BoardRow { board, machine: expected, .. } = board;
    let name = board.word();
    if machine != *expected {
        return Err(format!("is a program for {machine}; board '{name}' runs {expected}"));
    }
    if file.kind() == ObjectKind::Relocatable {
        return Err("is an object file; expected a linked program".into());
    }
    let Some(section) = file.section_by_name(SECTION) else {
        return Err(format!("has no section {SECTION}, so it is not an image of a guest of Sinew"));
    };
    let table = section.data().map_err(|error| format!("its section {SECTION}: {error}"))?;
    if let Err(bad) = records(table) {
        return Err(format!("{bad}; build it again with this version of Sinew"));
    }
    Ok(ImageFile { machine, table: table.to_vec() })
}

fn machine<F: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, F>, bits: u8) -> ElfMachine {
    let endian = file.endian();
    ElfMachine {
        family: file.elf_header().e_machine(endian).0,
        bits,
        is_little_endian: endian == Endianness::Little,
    }
}

#[cfg(test)]
mod tests;

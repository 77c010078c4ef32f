//! Images that the tests write: a good one, and one for each possible mistake.

use std::fs;

use object::write::Object as Written;
use object::{Architecture, BinaryFormat, SectionKind};
use sinew_carve_out::image::{KindRecord, text};
use sinew_plan::plan::Board;

use super::*;

/// Offset of `e_type`, and its value for a linked program.
const TYPE: usize = 16;
const LINKED: u8 = 2;

fn virt() -> &'static BoardRow {
    BoardRow::of(Board::Virt)
}

/// A table of one kind without ports, as the image's compiler lays it out.
fn table(name: &str) -> Vec<u8> {
    let mut table = vec![0; size_of::<KindRecord>()];
    let words = [sinew_carve_out::image::RECORD_MAGIC, sinew_carve_out::image::RECORD_VERSION];
    for (at, word) in words.into_iter().enumerate() {
        table[at * 4..][..4].copy_from_slice(&word.to_le_bytes());
    }
    table[32..64].copy_from_slice(&text::<32>(name));
    table
}

/// An ELF file with these bytes in this section.
fn elf(machine: (Architecture, Endianness), section: &str, bytes: &[u8]) -> Vec<u8> {
    let mut written = Written::new(BinaryFormat::Elf, machine.0, machine.1);
    let section = written.add_section(vec![], section.into(), SectionKind::ReadOnlyData);
    written.append_section_data(section, bytes, 8);
    let mut file = written.write().expect("an ELF file");
    if machine.1 == Endianness::Little {
        file[TYPE] = LINKED;
    }
    file
}

const ARM: (Architecture, Endianness) = (Architecture::Arm, Endianness::Little);

#[track_caller]
fn refuses(bytes: &[u8], words: &str) {
    let why = take(bytes, virt()).expect_err("refused");
    assert!(why.contains(words), "expected '{words}', found: {why}");
}

#[test]
fn an_image_says_which_kinds_it_has() {
    let image = take(&elf(ARM, SECTION, &table("guard")), virt()).expect("good");
    assert_eq!(image.machine, virt().machine);
    assert_eq!(image.table(), table("guard"));
    let names: Vec<_> = image.kinds().map(|kind| kind.name()).collect();
    assert_eq!(names, ["guard"]);
}

#[test]
fn a_program_for_another_machine_is_refused_by_name() {
    let of = |machine, endian| elf((machine, endian), SECTION, &table("guard"));
    let found = of(Architecture::X86_64, Endianness::Little);
    refuses(&found, "is a program for x86 with 64 bits; board 'virt' runs Arm with 32 bits");
    let found = of(Architecture::Aarch64, Endianness::Little);
    refuses(&found, "is a program for Arm with 64 bits;");
    let found = of(Architecture::Arm, Endianness::Big);
    refuses(&found, "Arm with 32 bits, big-endian;");
}

#[test]
fn a_program_that_is_no_image_of_ours_is_refused() {
    let found = elf(ARM, ".rodata", &table("guard"));
    refuses(&found, "has no section .sinew_kinds, so it is not an image of a guest of Sinew");
    let mut found = elf(ARM, SECTION, &table("guard"));
    found[TYPE] = 1;
    refuses(&found, "is an object file; expected a linked program");
}

#[test]
fn a_table_of_another_version_is_refused_with_both_numbers() {
    let mut other = table("guard");
    other[4] = 9;
    let found = elf(ARM, SECTION, &other);
    refuses(&found, "version 9, expected 0x4b574e53 and 2; build it again with this version");
    refuses(&elf(ARM, SECTION, &other[1..]), "bytes, expected 1 to 32 records of 13408");
    refuses(&elf(ARM, SECTION, &[]), "0 bytes, expected 1 to 32 records");
}

#[test]
fn bytes_that_are_no_elf_file_are_refused() {
    for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x03 of another class", &[0; 64]] {
        refuses(bytes, "is not an ELF file");
    }
    let whole = elf(ARM, SECTION, &table("guard"));
    refuses(&whole[..40], "its ELF headers are damaged");
}

#[test]
fn no_byte_that_is_spoilt_brings_the_reader_down() {
    let whole = elf(ARM, SECTION, &table("guard"));
    let headers = (0..52).chain(whole.len() - 400..whole.len());
    for (at, value) in headers.flat_map(|at| [0, 1, 0x7f, 0xff].map(|value| (at, value))) {
        let mut spoilt = whole.clone();
        spoilt[at] = value;
        // Any result is right, as long as it does not panic.
        let _ = take(&spoilt, virt());
    }
    for len in (0..whole.len()).step_by(13) {
        let _ = take(&whole[..len], virt());
    }
}

#[test]
fn a_file_that_is_missing_says_how_to_build_it() {
    let why = read(Path::new("/nowhere/guard"), virt()).expect_err("missing");
    let next = "no such file; build it: cargo build --release in guest/";
    assert_eq!(why, format!("/nowhere/guard: {next}"));
    let why = read(Path::new("/dev/null"), virt()).expect_err("no file");
    assert_eq!(why, "/dev/null: cannot be read: it is not a regular file");
}

#[test]
fn an_image_is_read_from_its_file() {
    let path = std::env::temp_dir().join(format!("sinew-image-{}", std::process::id()));
    fs::write(&path, elf(ARM, SECTION, &table("guard"))).expect("a file");
    let image = read(&path, virt());
    let room = fs::OpenOptions::new().write(true).open(&path).expect("the file");
    room.set_len(BYTES_MAX + 1).expect("a hole takes no room");
    let larger = read(&path, virt());
    fs::remove_file(&path).expect("it is ours");
    assert_eq!(image.expect("good").kinds().count(), 1);
    assert!(larger.expect_err("too large").ends_with("it has more than 64 MiB"));
}

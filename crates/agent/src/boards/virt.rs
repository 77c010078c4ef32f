//! QEMU's machine `virt`: an emulated 32-bit Arm core beside Linux.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sinew_plan::plan::Board;

use super::{BoardRow, ElfMachine, EmulatorStart};

pub(super) const ROW: BoardRow = BoardRow {
    board: Board::Virt,
    doc: "An Arm Cortex-A15 that QEMU emulates, with the carve-out as a PCI device.",
    machine: ElfMachine { family: 40, bits: 32, is_little_endian: true },
    // The minimum holds the tables. The maximum still gets an aligned place in the window of PCI.
    memory_bytes: 128 << 10..=256 << 20,
    command,
    missing,
};

const PROGRAM: &str = "qemu-system-arm";

fn command(start: &EmulatorStart<'_>) -> Command {
    let EmulatorStart { image, bells, vectors } = start;
    let mut command = Command::new(PROGRAM);
    // GICv2 has the message frame that turns bells into interrupts. Without highmem all of PCI is
    // within 32-bit addresses.
    command.args(["-M", "virt,highmem=off,gic-version=2", "-cpu", "cortex-a15", "-m", "64M"]);
    // If the machine can never have two cores, QEMU leaves out the guest's barriers. But here Linux
    // is the second one.
    command.args(["-smp", "1,maxcpus=2"]);
    // Memory for translated code, MiB: more than an image needs. The default depends on the
    // machine, up to 1 GiB, and so would the memory that the domain needs.
    command.args(["-accel", "tcg,tb-size=32"]);
    command.args(["-nodefaults", "-display", "none", "-monitor", "none", "-serial", "stdio"]);
    // A guest that resets itself has ended: the keeper starts its next life.
    command.arg("-no-reboot");
    command.args(["-chardev", &format!("socket,id=bells,fd={bells}")]);
    command.args(["-device", &format!("ivshmem-doorbell,chardev=bells,vectors={vectors}")]);
    command.arg("-kernel").arg(image);
    command
}

fn missing() -> Option<String> {
    let is_there = is_in(PROGRAM, env::var_os("PATH").as_deref());
    (!is_there).then(|| {
        format!("'{PROGRAM}' is not on the PATH; install it, on Debian: apt-get install {PROGRAM}")
    })
}

/// Whether a folder of this search path has the program.
fn is_in(program: &str, path: Option<&OsStr>) -> bool {
    let is_program = |file: &Path| {
        let found = file.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.is_some_and(|path| env::split_paths(path).any(|folder| is_program(&folder.join(program))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_gets_its_memory_its_bells_and_barriers_that_count() {
        let start = EmulatorStart { image: Path::new("a b/guard"), bells: 7, vectors: 8 };
        let command = command(&start);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let all = words.join(" ");
        assert_eq!(command.get_program(), PROGRAM);
        assert!(all.contains("-smp 1,maxcpus=2"), "{all}");
        assert!(all.contains("-accel tcg,tb-size=32"), "{all}");
        assert!(all.contains("-chardev socket,id=bells,fd=7"), "{all}");
        assert!(all.contains("-device ivshmem-doorbell,chardev=bells,vectors=8"), "{all}");
        assert_eq!(words[words.len() - 2..], ["-kernel", "a b/guard"]);
    }

    #[test]
    fn a_program_is_sought_on_the_path() {
        let nowhere = Some(OsStr::new("/nowhere:/etc"));
        assert!(is_in("sh", Some(OsStr::new("/nowhere:/bin:/usr/bin"))));
        assert!(!is_in("sh", nowhere));
        // The file exists, but is not a program.
        assert!(!is_in("passwd", nowhere));
        assert!(!is_in("sh", None));
    }
}

//! The options that the kernel was built with, and those that it was booted with.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::place::Place;
use crate::root::{Root, Unread};

/// Where a kernel that publishes its options keeps them, compressed.
const BUILT_IN: &str = "/proc/config.gz";
/// The kernel's command line.
pub(crate) const COMMAND_LINE: &str = "/proc/cmdline";
/// All options of a kernel are some 300 KiB of text.
const TEXT_LEN_MAX: u64 = 4 << 20;

/// The options that a kernel was built with.
pub(crate) struct Built {
    /// The file that says so.
    pub(crate) path: String,
    text: String,
}

impl Built {
    /// From the kernel itself, or else from the file in /boot.
    pub(crate) fn read(root: &Root) -> Result<Built, Unread> {
        if let Ok(bytes) = root.bytes(BUILT_IN) {
            let mut text = String::new();
            let unpacked = GzDecoder::new(&bytes[..]).take(TEXT_LEN_MAX).read_to_string(&mut text);
            return match unpacked {
                Ok(_) => Ok(Built { path: BUILT_IN.into(), text }),
                Err(_) => Err(Unread::odd(BUILT_IN, "bytes", "a text, compressed by gzip")),
            };
        }
        let release = root.text("/proc/sys/kernel/osrelease")?;
        let path = format!("/boot/config-{release}");
        let text = root.text(&path)?;
        Ok(Built { path, text })
    }

    /// The value of an option, if it is set.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let mut values = self.text.lines().filter_map(|line| line.strip_prefix(option));
        values.find_map(|rest| rest.strip_prefix('='))
    }

    /// Whether an option is built in.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.value(option) == Some("y")
    }
}

/// The value of a parameter that the kernel was booted with; the last one counts.
pub(crate) fn booted(root: &Root, parameter: &str) -> Option<String> {
    let line = root.text(COMMAND_LINE).ok()?;
    // What follows two hyphens is for the first process.
    let words = line.split_whitespace().take_while(|word| *word != "--");
    let values = words.filter_map(|word| word.strip_prefix(parameter)?.strip_prefix('='));
    values.last().map(Into::into)
}

/// How to add a parameter to those that the kernel is booted with, and how to remove it again. Both
/// take effect at the next boot.
pub(crate) fn boot_with(root: &Root, parameter: &str) -> (String, String) {
    const REBOOT: &str = "    # from the next boot on";
    const GRUB: &str = "/etc/default/grub";
    const FIRMWARE: &str = "/boot/firmware/cmdline.txt";
    // The files of a container are those of its image, not of what boots the machine.
    let has = |file| root.has(file) && !Place::read(root).is_container();
    if has("/usr/sbin/grubby") {
        let edit = |verb| format!("grubby --update-kernel=ALL --{verb}='{parameter}'{REBOOT}");
        return (edit("args"), edit("remove-args"));
    }
    let edit = |script: String, file, then| format!("sed -i '{script}' {file}{then}{REBOOT}");
    if has(GRUB) {
        let add = format!(r#"s/^GRUB_CMDLINE_LINUX="/&{parameter} /"#);
        let edit = |script| edit(script, GRUB, " && update-grub");
        return (edit(add), edit(format!("s/{parameter} //")));
    }
    if has(FIRMWARE) {
        let edit = |script| edit(script, FIRMWARE, "");
        return (edit(format!("s/$/ {parameter}/")), edit(format!("s/ {parameter}//")));
    }
    let line = "on the kernel's command line, where the boot loader or the hypervisor keeps it";
    (format!("add '{parameter}' {line}"), format!("take '{parameter}' out again {line}"))
}

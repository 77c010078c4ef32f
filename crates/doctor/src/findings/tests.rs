//! Machines that are folders: each reader is run on each of them, and on garbage.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Aim, FINDINGS, Finding, Found, Grade, examine};
use crate::root::Root;

mod allowed;
mod machines;
mod surroundings;

/// A folder that looks like the root of a machine; removed when it is dropped.
struct Fake(PathBuf);

impl Fake {
    /// An empty root; each test gives a `name` of its own.
    fn new(name: &str) -> Fake {
        let folder = format!("sinew-doctor-{}-{name}", process::id());
        let root = std::env::temp_dir().join(folder);
        fs::create_dir_all(&root).expect("a folder for the test");
        Fake(root)
    }

    /// A root with these files.
    fn with(name: &str, files: &[(&str, &str)]) -> Fake {
        let fake = Fake::new(name);
        files.iter().for_each(|(path, text)| fake.put(path, text));
        fake
    }

    /// Adds a file, or replaces it.
    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    /// The options of its kernel, compressed as the kernel has them.
    fn built(&self, options: &str) {
        let mut packed = GzEncoder::new(vec![], Compression::fast());
        packed.write_all(options.as_bytes()).expect("memory");
        self.put("/proc/config.gz", packed.finish().expect("memory"));
    }

    fn found(&self, aim: &Aim) -> Vec<Found> {
        examine(&Root::at(&self.0), aim)
    }

    /// What the row `name` finds.
    fn row(&self, name: &str, aim: &Aim) -> Finding {
        let mut found = self.found(aim).into_iter();
        found.find(|row| row.name == name).unwrap_or_else(|| panic!("no row '{name}'")).finding
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // Anything left over is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn aim(cpus: &[u32]) -> Aim {
    Aim { cpus: cpus.into(), period_ns: 1_000_000 }
}

/// The two commands of a finding.
fn commands(finding: &Finding) -> (&str, &str) {
    let remedy = finding.remedy.as_ref().unwrap_or_else(|| panic!("no remedy: {finding:?}"));
    (&remedy.mend, &remedy.undo)
}

#[test]
fn a_row_has_a_name_of_its_own_and_one_sentence_that_says_why() {
    for (at, row) in FINDINGS.iter().enumerate() {
        assert!(FINDINGS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        assert!(row.why.len() > 20 && !row.why.contains(". "), "{}: {}", row.name, row.why);
    }
}

#[test]
fn a_machine_without_files_is_unknown_and_nothing_else() {
    let fake = Fake::new("nothing");
    for Found { name, finding, .. } in fake.found(&aim(&[0, 1])) {
        assert_eq!(finding.grade, Grade::Unknown, "{name}: {finding:?}");
        assert!(finding.remedy.is_none() && !finding.from.is_empty(), "{name}: {finding:?}");
    }
}

#[test]
fn garbage_is_never_taken_for_good() {
    let long = "9".repeat(10_000);
    for (number, garbage) in ["", "\0\u{ff}\n", "(", "x y z", "-", ",,", &long].iter().enumerate() {
        let fake = machines::robot(&format!("garbage-{number}"));
        machines::paths(&fake.0).iter().for_each(|path| {
            fs::write(path, garbage).expect("a file of ours");
        });
        for Found { name, finding, .. } in fake.found(&aim(&[1])) {
            assert_ne!(finding.grade, Grade::Good, "{name}, {garbage:?}: {finding:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_says_which_command_shows_it() {
    let fake = Fake::new("refused");
    // A folder in the place of a file cannot be read by any user.
    fs::create_dir_all(fake.0.join("proc/swaps")).expect("a folder");
    fs::create_dir_all(fake.0.join("dev/cpu_dma_latency")).expect("a folder");
    let swap = fake.row("swap", &aim(&[0]));
    assert!(swap.read.contains("cannot be read: Is a directory"), "{swap:?}");
    assert_eq!(swap.show.as_deref(), Some("sudo cat /proc/swaps"));
    let held = fake.row("cpu_dma_latency", &aim(&[0]));
    assert!(held.show.is_some_and(|show| show.starts_with("sudo od -An -td4 /dev/cpu_dma_lat")));
}

#[test]
fn a_loop_of_links_is_not_followed_for_ever() {
    let fake = Fake::new("loop");
    fs::create_dir_all(fake.0.join("proc")).expect("a folder");
    symlink("swaps", fake.0.join("proc/swaps")).expect("a link");
    assert_eq!(fake.row("swap", &aim(&[0])).grade, Grade::Unknown);
}

#[test]
fn the_last_word_of_the_command_line_counts_and_what_is_for_init_does_not() {
    let fake = machines::robot("words");
    fake.put("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC");
    fake.put("/sys/kernel/realtime", "0");
    let read = |line: &str| {
        fake.put("/proc/cmdline", line);
        fake.row("preemption", &aim(&[1])).read
    };
    assert!(read("preempt=none preempt=full -- preempt=lazy").starts_with("full "));
    assert!(read("xpreempt=none preemptx=full").starts_with("PREEMPT_DYNAMIC, but not which"));
}

#[test]
fn a_boot_parameter_is_added_where_the_machine_keeps_its_own() {
    for (file, mend, undo) in [
        ("/usr/sbin/grubby", "grubby --update-kernel=ALL --args='nohz_full=1'", "--remove-args='n"),
        ("/boot/firmware/cmdline.txt", "sed -i 's/$/ nohz_full=1/'", "sed -i 's/ nohz_full=1//'"),
        ("/nowhere", "add 'nohz_full=1' on the kernel's", "take 'nohz_full=1' out"),
    ] {
        let fake = machines::robot("boots");
        fake.put("/sys/devices/system/cpu/nohz_full", "");
        fake.put(file, "");
        let finding = fake.row("nohz_full", &aim(&[1]));
        let commands = commands(&finding);
        assert!(commands.0.contains(mend) && commands.1.contains(undo), "{commands:?}");
    }
}

#[test]
fn a_thread_of_others_at_our_priority_is_named_with_the_way_back() {
    let fake = machines::robot("fifo");
    let stat = |name: &str, flags: u32, priority: u32, policy: u32| {
        let zeros = "0 ".repeat(30);
        format!("9 ({name}) S 1 1 1 0 -1 {flags} {zeros}{priority} {policy} 0 0\n")
    };
    fake.put("/proc/9/stat", "9 (a) S");
    fake.put("/proc/9/task/9/stat", stat("plain", 0, 0, 0));
    fake.put("/proc/9/task/10/stat", stat("migration/0", 0x0020_0000, 99, 1));
    fake.put("/proc/9/task/11/stat", stat("low", 0, 10, 1));
    let row = || fake.row("FIFO threads", &aim(&[1]));
    assert_eq!((row().grade, row().read.as_str()), (Grade::Good, "low (11) at 10: all below 80"));
    fake.put("/proc/9/task/12/stat", stat("a (b) c) d", 0, 90, 2));
    let found = row();
    assert_eq!(found.read, "low (11) at 10, a (b) c) d (12) at 90");
    assert_eq!(commands(&found), ("chrt -r -p 79 12", "chrt -r -p 90 12"));
    fs::remove_file(fake.0.join("proc/1/stat")).expect("a file of ours");
    assert_eq!(row().grade, Grade::Unknown, "processes are hidden");
}

#[test]
fn an_older_kernel_has_no_fair_server_and_throttles_by_the_limit() {
    let fake = machines::robot("older");
    fake.put("/proc/sys/kernel/osrelease", "5.15.0-91-generic");
    fake.put("/proc/sys/kernel/sched_rt_runtime_us", "950000");
    let fair = fake.row("fair server", &aim(&[1]));
    assert_eq!((fair.grade, fair.read.as_str()), (Grade::Good, "Linux 5.15.0-91-generic has none"));
    assert_eq!(fake.row("RT throttling", &aim(&[1])).grade, Grade::Better);
}

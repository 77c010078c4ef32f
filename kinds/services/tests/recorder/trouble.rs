//! Kills, full disks, and folders that cannot be written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, getuid, kill_process};
use sinew_control::status::EventKind;

use super::assert_events_are_whole;
use super::files::{Recorded, empty_folder, events, folder, python, said, start, start_in, stop};
use super::{CYCLES, TOPICS};
use crate::stage::{Stage, skip};

pub(super) fn a_recorder_that_is_killed_mends_its_part_and_misses_nothing() {
    let Some(python) = python() else { return };
    let mut stage = start("killed", "", &[]);
    let size = |stage: &Stage| {
        let files = fs::read_dir(folder(&stage.base)).expect("the folder");
        files.map(|file| file.expect("a file").metadata().expect("its size").len()).sum::<u64>()
    };
    stage.until("messages are in the file", |stage| size(stage) > 400_000);
    stage.signal("recorder", Signal::KILL);
    stage.until("the kill is seen", |stage| !events(stage, EventKind::Faulted).is_empty());
    // A copy, before the file is mended.
    let copy = empty_folder("killed_copy");
    for file in fs::read_dir(folder(&stage.base)).expect("the folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), copy.join(file.file_name())).expect("a copy");
    }
    let broken = python.read_broken(&copy);
    assert_eq!((broken.len(), &broken[0]["whole"]), (1, &false.into()), "it has no end");
    let before = Recorded(&broken).numbers(TOPICS[0]);
    assert!(
        before.len() > 100 && broken[0]["wrong"] == 0,
        "a streaming reader reads what is whole"
    );

    stage.until("it records again", |stage| said(stage, "goes on in '") == 1);
    let cycles = stage.cycles(1);
    stage.until("more cycles have run", |stage| stage.cycles(1) > cycles + 200);
    assert_eq!(said(&stage, "mended '"), 1, "{}", stage.story());
    assert!(events(&stage, EventKind::Faulted)[0].contains("signal 9"), "the kill has landed");
    let ran = stop(&mut stage);
    let parts = python.read(&folder(&stage.base));
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part["wrong"] == 0));
    assert_events_are_whole(&parts);
    assert!(Recorded(&parts[..1]).numbers(TOPICS[0]).starts_with(&before), "nothing whole is lost");
    let missing = gaps(&parts);
    for (topic, (numbers, missing)) in CYCLES.iter().zip(ran.iter().zip(missing)) {
        let left = numbers.iter().copied().filter(|number| !missing.contains(number));
        assert_eq!(Recorded(&parts).numbers(topic), left.collect::<Vec<_>>(), "{topic}");
    }
}

pub(super) fn a_core_that_is_reset_while_the_recorder_stands() {
    let Some(python) = python() else { return };
    let mut stage = start("stands", "", &["hold: true"]);
    stage.until("it has recorded", |stage| said(stage, "begins '") == 1 && stage.cycles(1) > 600);
    stage.signal("recorder", Signal::STOP);
    stage.run.halt("a test");
    stage.until("the core is held", |stage| stage.run.reset().is_ok());
    let before = stage.cycles(0);
    // More than the core keeps, and more than the first life had: otherwise the cycle numbers alone
    // could be those of one life.
    stage.until("it has forgotten", |stage| stage.cycles(1) > 2 * before + 1500);
    // It may have been killed for its silence and restarted: that is as good.
    let _ = kill_process(stage.process("recorder"), Signal::CONT);
    stage.until("it records again", |stage| said(stage, "goes on in '") == 1);
    let cycles = stage.cycles(1);
    stage.until("more cycles have run", |stage| stage.cycles(1) > cycles + 300);
    let ran = stop(&mut stage);
    let parts = python.read(&folder(&stage.base));
    let of_life = |life: &str| -> Vec<_> {
        parts.iter().filter(|part| part["head"]["life"] == life).cloned().collect()
    };
    assert_eq!(of_life("0").len() + of_life("1").len(), parts.len());
    let (first, second) = ran[0].split_at(before);
    let numbers = Recorded(&of_life("0")).numbers(CYCLES[0]);
    assert!(!numbers.is_empty() && first.starts_with(&numbers), "the first life, as far as it is");
    let later = of_life("1");
    let gaps = later.iter().flat_map(|part| part["gaps"].as_array().expect("a list"));
    let gaps: Vec<_> = gaps.filter(|gap| gap["domain"] == "control").collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!((&gaps[0]["life"], &gaps[0]["first"]), (&"1".into(), &"0".into()));
    let missing: usize =
        gaps[0]["cycles"].as_str().and_then(|it| it.parse().ok()).expect("a count");
    assert_eq!(Recorded(&later).numbers(CYCLES[0]), second[missing..]);
}

pub(super) fn a_folder_that_another_recorder_writes() {
    let mut first = start("shared", "", &[]);
    first.until("it records", |stage| said(stage, "begins '") == 1);
    let base = first.base.clone();
    let mut second = start_in(base, "", &[]);
    second.until("it is refused", |stage| !events(stage, EventKind::Faulted).is_empty());
    let started = events(&first, EventKind::Started)[0].to_owned();
    let reason = events(&second, EventKind::Faulted)[0].to_owned();
    let expected = format!("in node 'recorder': another recorder, {started}, writes into '");
    assert!(reason.starts_with(&expected) && reason.contains("name another 'folder'"), "{reason}");
    second.until("its core runs", |stage| stage.cycles(1) > 10);
    // A kill releases the folder.
    first.signal("recorder", Signal::KILL);
    first.stop();
    second.until("it records", |stage| said(stage, "begins '") == 1);
    second.stop();
}

pub(super) fn a_file_that_is_removed_while_it_is_written() {
    let Some(python) = python() else { return };
    let mut stage = start("removed", "", &[]);
    stage.until("it records", |stage| said(stage, "begins '") == 1 && stage.cycles(1) > 600);
    let mut files = fs::read_dir(folder(&stage.base)).expect("the folder");
    fs::remove_file(files.next().expect("a file").expect("a name").path()).expect("it can go");
    stage.until("it is said", |stage| {
        stage.story().contains("was removed while it was written, and ")
    });
    let cycles = stage.cycles(1);
    stage.until("more cycles have run", |stage| stage.cycles(1) > cycles + 300);
    let ran = stop(&mut stage);
    let parts = python.read(&folder(&stage.base));
    assert_eq!(parts.len(), 1, "another one");
    let missing = gaps(&parts);
    for (topic, (numbers, missing)) in CYCLES.iter().zip(ran.iter().zip(missing)) {
        assert!(missing.starts_with(&[0, 1]), "{missing:?}");
        let left = numbers.iter().copied().filter(|number| !missing.contains(number));
        assert_eq!(Recorded(&parts).numbers(topic), left.collect::<Vec<_>>(), "{topic}");
    }
}

/// The missing cycles in the gaps of the parts, by thread: if a machine is busy for two seconds,
/// the recorder may be back too late.
fn gaps(parts: &[serde_json::Value]) -> [Vec<u64>; 2] {
    ["control", "plant"].map(|domain| {
        let gaps = parts.iter().flat_map(|part| part["gaps"].as_array().expect("a list"));
        let number = |gap: &serde_json::Value, key: &str| -> u64 {
            gap[key].as_str().and_then(|text| text.parse().ok()).expect("a number")
        };
        let of_domain = gaps.filter(|gap| gap["domain"] == domain);
        of_domain
            .flat_map(|gap| {
                let first = number(gap, "first");
                first..first + number(gap, "cycles")
            })
            .collect()
    })
}

/// A disk of two megabytes, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        let mounted = getuid().is_root()
            && Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
                .arg(at)
                .status()
                .is_ok_and(|status| status.success());
        mounted.then(|| SmallDisk(at.into()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "'{}' stays", self.0.display());
    }
}

pub(super) fn a_full_disk_is_borne() {
    let Some(python) = python() else { return };
    let base = empty_folder("full");
    let folder = base.join("recordings");
    fs::create_dir(&folder).expect("a folder");
    let Some(_disk) = SmallDisk::mount(&folder) else {
        return skip("mounting a small disk needs root; run this test as root");
    };
    fs::write(folder.join("ballast"), vec![0; 1 << 20]).expect("room for it");
    let mut stage = start_in(base, "", &[]);
    stage.until("the disk is full", |stage| said(stage, "no room for recordings in '") == 1);
    let first = python.read(&folder);
    assert_eq!(first.len(), 1, "what there was room for can be read");
    let before = Recorded(&first).numbers(CYCLES[0]);
    assert!(!before.is_empty() && first[0]["wrong"] == 0);
    let cycles = stage.cycles(1);
    stage.until("the core has run on", |stage| stage.cycles(1) > cycles + 200);
    fs::remove_file(folder.join("ballast")).expect("it can go");
    stage.until("it records again", |stage| said(stage, "goes on in '") > 0);
    assert_eq!(said(&stage, "no room for"), 1, "said once");
    let ran = stop(&mut stage);
    let parts = python.read(&folder);
    assert!(parts.len() >= 2 && parts.iter().all(|part| part["wrong"] == 0));
    let missing = gaps(&parts);
    for (topic, (numbers, missing)) in CYCLES.iter().zip(ran.iter().zip(missing)) {
        let recorded = Recorded(&parts).numbers(topic);
        let last = recorded.last().copied().expect("some");
        let there = numbers.iter().copied().filter(|number| !missing.contains(number));
        // The disk may be full again at the end.
        let left: Vec<_> = there.take_while(|&number| number <= last).collect();
        assert_eq!(recorded, left, "{topic}: what is not there is in a gap");
        assert!(!missing.is_empty());
    }
}

pub(super) fn a_folder_that_cannot_be_written() {
    let base = empty_folder("unwritable");
    File::create(base.join("file")).expect("a file");
    let mut stage = start_in(base, "folder: file/recordings", &[]);
    stage.until("it has been restarted", |stage| events(stage, EventKind::Started).len() > 1);
    let reason = events(&stage, EventKind::Faulted)[0].to_owned();
    assert!(reason.starts_with("in node 'recorder': cannot write recordings to '"), "{reason}");
    assert!(reason.contains("Not a directory") && reason.contains("name another 'folder'"));
    assert!(reason.ends_with(" (graph.yaml:14)"), "where the node stands: {reason}");
    stage.until("the core runs", |stage| stage.cycles(1) > 10);
    stage.stop();
}

//! Tests of the axis log without a run.

use std::fs;
use std::path::{Path, PathBuf};

use sinew_core::catalogue::ParameterValue;
use sinew_core::zerocopy::FromZeros;
use tempfile::TempDir;

use super::*;

/// The path of a file that does not exist yet, in a folder that is removed with the test.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("axes.csv");
    (folder, path)
}

fn open(path: &Path, every: u64) -> Log {
    Log::new(LogFile::open(path).unwrap_or_else(|fault| panic!("{fault}")).0, every)
}

fn refusal(path: &Path) -> String {
    LogFile::open(path).err().expect("it is refused").to_string()
}

fn feedback() -> AxisFeedback {
    let mut message = AxisFeedback::new_zeroed();
    message.position_rad = [0.5, -0.25, 0.0, 1.0, 2.0, 3.0];
    message.velocity_rad_per_s[5] = -0.125;
    message.status = [0x0237, 0x0250, 0x0237, 0x0237, 0x0237, 0xFFFF];
    (message.sequence, message.flags) = (77, FEEDBACK_VALID_AND_MORE);
    message
}

/// Valid, and also operational.
const FEEDBACK_VALID_AND_MORE: u32 = 3;

/// The numbers of the messages that have lines.
fn numbers(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).expect("the log");
    let number = |line: &str| line.split(',').nth(1).and_then(|cell| cell.parse().ok());
    text.lines().skip(1).map(|line| number(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn a_line_says_when_which_and_what_each_axis_did() {
    let (_folder, path) = place();
    open(&path, 1).take(1_700_000_000_123, 4, &feedback()).expect("writes");
    let text = fs::read_to_string(&path).expect("the log");
    let [header, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let of_first = "time_unix_ms,message,target,position_1_rad,position_2_rad,";
    assert!(header.starts_with(of_first) && header.ends_with(",state_6,valid"), "{header}");
    assert_eq!(header.split(',').count(), line.split(',').count());
    assert_eq!(
        line,
        "1700000000123,5,77,0.5000000,-0.2500000,0.0000000,1.0000000,2.0000000,3.0000000,\
         0.000000,0.000000,0.000000,0.000000,0.000000,-0.125000,operation enabled,\
         switch on disabled,operation enabled,operation enabled,operation enabled,0xffff,1"
    );
}

#[test]
fn every_so_many_messages_get_a_line_also_when_some_were_lost() {
    let (_folder, path) = place();
    let mut log = open(&path, 10);
    (0..25).for_each(|_| log.take(0, 0, &feedback()).expect("writes"));
    (0..25).for_each(|_| log.take(0, 17, &feedback()).expect("writes"));
    drop(log);
    assert_eq!(numbers(&path), [1, 11, 21, 43, 53, 63]);
}

#[test]
fn what_was_lost_is_told_once() {
    let (_folder, path) = place();
    let mut log = open(&path, 10);
    assert_eq!(log.lost(0), None);
    let told = log.lost(12).expect("a line");
    assert!(told.starts_with("lost 12 messages, 12 since the start; raise 'capacity'"), "{told}");
    assert_eq!(log.lost(12), None);
    assert!(log.lost(15).expect("a line").starts_with("lost 3 messages, 15 since"));
}

#[test]
fn a_log_goes_on_after_a_restart_and_loses_only_the_line_that_was_cut_off() {
    let (_folder, path) = place();
    let done = |path: &Path| LogFile::open(path).expect("opens").1;
    assert_eq!(done(&path), "begins");
    open(&path, 1).take(0, 0, &feedback()).expect("writes");
    let whole = fs::read(&path).expect("the log");
    for cut in [1, 20, whole.len() - header_len(&whole) - 1] {
        fs::write(&path, &whole[..whole.len() - cut]).expect("is cut off");
        assert_eq!(done(&path), "goes on with");
        assert_eq!(fs::read(&path).expect("the log").len(), header_len(&whole), "cut {cut}");
    }
    fs::write(&path, &whole).expect("is whole again");
    open(&path, 1).take(0, 8, &feedback()).expect("writes");
    assert_eq!(numbers(&path), [1, 9]);
}

#[test]
fn what_the_link_still_holds_is_caught_up_on_without_a_line_twice() {
    let (_folder, path) = place();
    let message = |sequence| AxisFeedback { sequence, ..feedback() };
    let mut log = open(&path, 10);
    (100..=125).for_each(|sequence| log.take(0, 0, &message(sequence)).expect("writes"));
    drop(log);
    let held: Vec<_> = (115..=145).map(|sequence| (0, message(sequence))).collect();
    open(&path, 10).catch_up(0, &held).expect("writes");
    let targets = |path: &Path| {
        let text = fs::read_to_string(path).expect("the log");
        let target = |line: &str| line.split(',').nth(2).map(str::to_owned);
        text.lines().skip(1).filter_map(target).collect::<Vec<_>>()
    };
    assert_eq!(targets(&path), ["100", "110", "120", "130", "140"]);
    // None of these messages is in the log: they are from another run, or the service was away too
    // long.
    let later: Vec<_> = (300..=311).map(|sequence| (7, message(sequence))).collect();
    open(&path, 10).catch_up(0, &later).expect("writes");
    assert_eq!(targets(&path)[5..], ["300", "310"]);
}

fn header_len(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').expect("a header") + 1
}

#[test]
fn a_header_that_was_cut_off_is_written_again() {
    let (_folder, path) = place();
    drop(open(&path, 1));
    let header = fs::read(&path).expect("the log");
    for keep in [1, header.len() - 1] {
        fs::write(&path, &header[..keep]).expect("is cut off");
        drop(open(&path, 1));
        assert_eq!(fs::read(&path).expect("the log"), header);
    }
}

#[test]
fn a_file_of_somebody_else_is_left_as_it_is() {
    let (_folder, path) = place();
    let other = format!("{}\nno newline at the end", "time,x\n1,2".repeat(1000));
    for text in ["x", "time_unix_ms\n", &other] {
        fs::write(&path, text).expect("is written");
        let why = refusal(&path);
        assert!(why.contains("is not an axis log of this version; name another file"), "{why}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), text);
    }
    // It begins like a log, but no line ends within the longest allowed length.
    drop(fs::remove_file(&path));
    drop(open(&path, 1));
    let strange = fs::read_to_string(&path).expect("the log") + &"x".repeat(5000);
    fs::write(&path, &strange).expect("is written");
    assert!(refusal(&path).contains("is not an axis log"));
    assert_eq!(fs::read_to_string(&path).expect("the file"), strange);
}

#[test]
fn two_do_not_write_one_log() {
    let (_folder, path) = place();
    let first = open(&path, 1);
    let why = refusal(&path);
    assert!(why.ends_with("is written by another process; name another file"), "{why}");
    drop(first);
    drop(open(&path, 1));
}

#[test]
fn a_file_that_cannot_be_written_is_a_fault_that_names_it() {
    let (_folder, path) = place();
    let missing = path.with_file_name("nowhere").join("axes.csv");
    let folder = path.parent().expect("a folder");
    for (path, why) in [
        (missing.as_path(), "No such file or directory"),
        (folder, "Is a directory"),
        (Path::new("/dev/full"), "No space left on device"),
    ] {
        let refusal = refusal(path);
        let named = format!("cannot write '{}': {why}", path.display());
        assert!(refusal.starts_with(&named) && refusal.ends_with("another file"), "{refusal}");
    }
}

#[test]
fn making_it_writes_nothing() {
    let (_folder, path) = place();
    let base = path.parent().expect("a folder");
    let values = [ParameterValue::Text("axes.csv".to_owned()), ParameterValue::Integer(10)];
    let parameters = Parameters {
        kind: &INFO,
        values: &values,
        base,
        spans: &[],
        period_ns: 0,
        messages: vec![],
        home: None,
    };
    let mut service = (NODE.make)(&parameters).expect("makes");
    assert!(!path.exists());
    service.start().expect("starts");
    assert!(path.exists());
    service.stop();
}

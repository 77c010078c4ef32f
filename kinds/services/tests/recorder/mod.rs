//! Tests of the recorder; its files are read by the Python package of MCAP.

mod files;
pub(crate) mod kinds;
mod trouble;

use std::fs;

use serde_json::json;

use self::files::{Recorded, folder, python, said, start, stop};
use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    (
        "every_cycle_and_message_is_there_once_bit_by_bit",
        every_cycle_and_message_is_there_once_bit_by_bit,
    ),
    ("parts_follow_each_other_and_the_oldest_go", parts_follow_each_other_and_the_oldest_go),
    ("a_core_that_is_reset_begins_a_new_part", a_core_that_is_reset_begins_a_new_part),
    (
        "a_core_that_is_reset_while_the_recorder_stands_has_a_life_of_its_own",
        trouble::a_core_that_is_reset_while_the_recorder_stands,
    ),
    (
        "a_folder_that_another_recorder_writes_is_refused_until_that_one_ends",
        trouble::a_folder_that_another_recorder_writes,
    ),
    (
        "a_file_that_is_removed_while_it_is_written_is_a_gap_in_the_next",
        trouble::a_file_that_is_removed_while_it_is_written,
    ),
    (
        "a_recorder_that_is_killed_mends_its_part_and_misses_nothing",
        trouble::a_recorder_that_is_killed_mends_its_part_and_misses_nothing,
    ),
    ("a_full_disk_is_borne_until_there_is_room", trouble::a_full_disk_is_borne),
    ("a_folder_that_cannot_be_written_is_a_fault", trouble::a_folder_that_cannot_be_written),
];

/// Topics of the graph of these tests, for messages.
const TOPICS: [&str; 3] = ["/source/out", "/relay/out", "/sink/in"];
/// Topics of the graph of these tests, for cycles.
const CYCLES: [&str; 2] = ["/control/0/cycle", "/plant/0/cycle"];

fn every_cycle_and_message_is_there_once_bit_by_bit() {
    let Some(python) = python() else { return };
    let mut stage = start("once", "", &[]);
    stage.until("some hundred cycles have run", |stage| stage.cycles(1) > 300);
    let ran = stop(&mut stage);
    let parts = python.read(&folder(&stage.base));
    assert_eq!(parts.len(), 1, "{parts:?}");
    let part = &parts[0];
    assert_eq!(part["wrong"], 0);
    assert_eq!(
        (&part["counts_agree"], part["gaps"].as_array().map(Vec::len)),
        (&true.into(), Some(0))
    );
    for (topic, numbers) in CYCLES.iter().zip(&ran) {
        assert_eq!(&Recorded(&parts).numbers(topic), numbers, "{topic}");
    }
    // Each cycle of the source sends; the sink's last cycles may have run without a message.
    let sent = &ran[0];
    assert_eq!(&Recorded(&parts).numbers(TOPICS[0]), sent);
    assert_eq!(&Recorded(&parts).numbers(TOPICS[1]), sent);
    let taken = Recorded(&parts).numbers(TOPICS[2]);
    assert!(taken.len() > 100 && taken.iter().all(|number| sent.contains(number)));
    is_described(part, &stage.base);
    let text = "warning: cycle 100: in node 'source': a third of 100.0";
    let events = part["events"].as_array().expect("a list");
    assert!(events.contains(&json!([30, "control.source", "log", text])), "{events:?}");
    assert!(events.contains(&json!([20, "control", "ready", "runs"])), "{events:?}");
    assert_events_are_whole(&parts);
    let signals = part["signals"].as_array().expect("a list");
    let thirds = |number: u64| -> String {
        let number = number as f64;
        let values = [number, number / 3.0, -number].map(f64::to_le_bytes);
        values.as_flattened().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert!(signals.iter().zip(sent).all(|(signals, &number)| *signals == thirds(number)));
}

/// Checks that there are all events from the first one on, each once.
fn assert_events_are_whole(parts: &[serde_json::Value]) {
    let numbers = Recorded(parts).numbers("/@events");
    assert!(
        numbers.len() > 3 && numbers.iter().copied().eq(1..=numbers.len() as u64),
        "{numbers:?}"
    );
}

/// Checks what the part says of itself and of its topics.
fn is_described(part: &serde_json::Value, base: &std::path::Path) {
    let head = &part["head"];
    assert_eq!(
        (&head["version"], &head["part"], &head["life"]),
        (&"2".into(), &"1".into(), &"0".into())
    );
    assert_eq!((&head["graph"], &head["file"]), (&"noise".into(), &"graph.yaml".into()));
    assert_eq!(head["base"], base.to_str().expect("text"));
    assert_eq!(part["attachments"]["notes.txt"], "what the source reads");
    assert!(part["attachments"]["spec.yaml"].as_str().expect("text").contains("name: noise"));
    let schemas = ["ControlThread0Cycle", "Noise", "PlantThread0Cycle"];
    let schemas = schemas.map(|name| format!("sinew/msg/{name}"));
    let log = "rcl_interfaces/msg/Log".to_owned();
    assert_eq!(part["schemas"], json!([vec![log], schemas.to_vec()].concat()));
    let topic = &part["metadata"]["/sink/in"];
    assert_eq!(
        (&topic["direction"], &topic["links"]),
        (&"in".into(), &"relay.out -> sink.in".into())
    );
    assert_eq!(
        (&topic["domain"], &topic["thread"], &topic["tap"]),
        (&"plant".into(), &"0".into(), &"0".into())
    );
}

fn parts_follow_each_other_and_the_oldest_go() {
    let Some(python) = python() else { return };
    let mut stage = start("rotation", "part_mib: 1, keep: 2", &[]);
    let folder = folder(&stage.base);
    let others = ["mine.mcap", "noise-20260101T000000.000Z-0001.mcap", "noise.txt"];
    for other in others {
        fs::write(folder.join(other), "not a recording").expect("a file");
    }
    stage.until("parts have been removed", |stage| said(stage, "removed '") > 1);
    let ran = stop(&mut stage);
    for other in others {
        let text = fs::read_to_string(folder.join(other)).expect("it is still there");
        assert_eq!(text, "not a recording");
        fs::remove_file(folder.join(other)).expect("it can go");
    }
    let parts = python.read(&folder);
    // A file that no recorder wrote counted as a part because of its name, and was not removed.
    assert!((1..=2).contains(&parts.len()), "{}", parts.len());
    let last = ran[0].last();
    let numbers = Recorded(&parts).numbers(CYCLES[0]);
    assert_eq!(numbers.last(), last);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "nothing between parts is lost");
    let number = |part: &serde_json::Value| part["head"]["part"].as_str().map(str::to_owned);
    assert!(number(&parts[0]).is_some_and(|number| number.parse::<u32>().is_ok_and(|it| it > 2)));
}

fn a_core_that_is_reset_begins_a_new_part() {
    let Some(python) = python() else { return };
    let mut stage = start("reset", "", &["hold: true"]);
    stage.until("the core runs", |stage| stage.cycles(1) > 100);
    stage.run.halt("a test");
    stage.until("the core is held", |stage| stage.run.reset().is_ok());
    let before = [0, 1].map(|thread| stage.cycles(thread));
    stage.until("the core runs again", |stage| stage.cycles(1) > before[1] + 100);
    let ran = stop(&mut stage);
    let parts = python.read(&folder(&stage.base));
    assert_eq!(parts.len(), 2);
    assert_eq!((&parts[0]["head"]["life"], &parts[1]["head"]["life"]), (&"0".into(), &"1".into()));
    for (thread, topic) in CYCLES.iter().enumerate() {
        let (first, second) = ran[thread].split_at(before[thread]);
        assert_eq!(Recorded(&parts[..1]).numbers(topic), first, "{topic}");
        assert_eq!(Recorded(&parts[1..]).numbers(topic), second, "{topic}");
    }
    assert!(parts.iter().all(|part| part["wrong"] == 0));
}

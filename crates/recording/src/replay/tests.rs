//! Faulty recordings: written here message by message, with messages of zeros, so that nothing in
//! them is what the arm would compute; also cut, with changed bits, or of other graphs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use mcap::records::{MessageHeader, Metadata};
use mcap::{Attachment, Compression, WriteOptions, Writer};
use sinew_core::clock::Clock;
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Past, Record, taps};
use sinew_runtime::Kinds;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{SpecSource, compile};

use super::*;
use crate::cycle::CycleLayout;
use crate::fixture::OBSERVER;
use crate::format::{CDR_HEAD, ENCODING, GAP, HEAD, RecordedGap, SCHEMA_ENCODING, SPEC, first};
use crate::recording::Recording;
use crate::topics::{Topic, TopicContent, TopicHead, topics};

/// The arm, recorded.
const SPEC_TEXT: &str = "
name: arm
domains:
  control: {realtime: {period: 1ms}}
  plant: {realtime: {trigger: input}}
  recorder: {}
nodes:
  - {kind: path_planner, name: planner, domain: control, path: square.csv, arm: irb120.urdf,
     laps: 0, ports: {out: [{name: ik, port: in}]}}
  - {kind: ik, name: ik, domain: control, arm: irb120.urdf,
     ports: {out: [{name: ethercat, port: in}]}}
  - kind: ethercat_master
    name: ethercat
    domain: control
    ports:
      out: [{name: drives, port: in, delivery: latest}]
      feedback: [{name: planner, port: feedback, delay: 1}]
  - kind: drives
    name: drives
    domain: plant
    safe: {in: {value: quick_stop, after: 50}}
    ports: {out: [{name: ethercat, port: frame, delivery: latest, delay: 1}]}
  - {kind: recorder, name: recorder, domain: recorder}
";

fn nodes() -> Kinds {
    let nodes = sinew_robot::NODES.to_vec();
    Kinds { nodes, services: vec![OBSERVER], ..Kinds::default() }
}

fn plan() -> Plan {
    let kinds = nodes().catalogue();
    let source = SpecSource::of("arm.yaml", SPEC_TEXT);
    let plan = compile(&source, &kinds, &TargetMachine::of(vec![0, 1]));
    plan.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

/// What is wrong with a recording.
#[derive(Clone, Default)]
struct Flaws {
    /// Metadata that replace the right ones.
    metadata: Vec<(&'static str, &'static str)>,
    spec: Option<&'static str>,
    /// Topic whose messages are one byte too short.
    short: Option<&'static str>,
    left_out: Option<&'static str>,
    /// A cycle, and the number that replaces its own.
    number: Option<(u64, u64)>,
    foreign_topic: bool,
    /// Number of the first cycle.
    first: u64,
    /// Schemas of all topics.
    schema: Option<&'static str>,
    /// Gaps at the end.
    gaps: Vec<RecordedGap>,
    /// A thread, and how many cycles it lacks at its end.
    behind: Option<(usize, u64)>,
}

/// A recording of some cycles of both threads.
fn recording(cycles: u64, flaws: &Flaws) -> Vec<u8> {
    let plan = plan();
    let options = WriteOptions::new().compression(Some(Compression::Lz4)).chunk_size(Some(4096));
    let mut writer = options.create(Cursor::new(Vec::new())).expect("memory");
    write_head(&mut writer, flaws);
    let (threads, topics): (Vec<_>, _) = (ThreadId::all(&plan).collect(), topics(&plan));
    let mut channels = BTreeMap::new();
    let mut add = |writer: &mut Writer<_>, topic: String, name: &str, text: &str| {
        let text = flaws.schema.unwrap_or(text);
        let schema = writer.add_schema(name, SCHEMA_ENCODING, text.as_bytes()).expect("few");
        let id = writer.add_channel(schema, &topic, ENCODING, &BTreeMap::new()).expect("few");
        channels.insert(topic, id);
    };
    for TopicHead { name, schema, .. } in topics.iter().map(|it| &it.head) {
        if flaws.left_out != Some(name) {
            add(&mut writer, name.clone(), &schema.0, &schema.1);
        }
    }
    if flaws.foreign_topic {
        add(&mut writer, "/weather".into(), "weather", "float64 rain");
    }
    for at in flaws.first..flaws.first + cycles {
        for (thread, &id) in threads.iter().enumerate() {
            let ends = |(behind, fewer): (usize, u64)| {
                thread == behind && at + fewer >= flaws.first + cycles
            };
            if flaws.behind.is_some_and(ends) {
                continue;
            }
            let topics = topics.iter().filter(|topic| topic.thread == thread);
            let topics: Vec<_> = topics
                .filter_map(|topic| Some((topic, *channels.get(&topic.head.name)?)))
                .collect();
            write_cycle(&mut writer, &plan, id, at, &topics, flaws);
        }
    }
    for gap in &flaws.gaps {
        let metadata = gap.to_metadata();
        writer.write_metadata(&Metadata { name: GAP.into(), metadata }).expect("memory");
    }
    writer.finish().expect("memory");
    writer.into_inner().into_inner()
}

fn write_head(writer: &mut Writer<Cursor<Vec<u8>>>, flaws: &Flaws) {
    let mut metadata = first().to_metadata();
    let flawed = flaws.metadata.iter();
    metadata.extend(flawed.map(|&(key, value)| (key.to_owned(), value.to_owned())));
    writer.write_metadata(&Metadata { name: HEAD.into(), metadata }).expect("memory");
    let text = flaws.spec.unwrap_or(SPEC_TEXT).as_bytes().to_vec();
    let mut files = vec![(SPEC, text)];
    for name in ["square.csv", "irb120.urdf"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm").join(name);
        files.push((name, fs::read(path).expect("a file of ours")));
    }
    for (name, data) in files {
        let attachment = Attachment {
            log_time: 0,
            create_time: 0,
            name: name.into(),
            media_type: "".into(),
            data: data.into(),
        };
        writer.attach(&attachment).expect("memory");
    }
}

fn write_cycle(
    writer: &mut Writer<Cursor<Vec<u8>>>,
    plan: &Plan,
    id: ThreadId,
    at: u64,
    topics: &[(&Topic, u16)],
    flaws: &Flaws,
) {
    let nodes = &plan.domains[id.domain].threads()[0].nodes;
    let mut record = Record::of(plan, nodes);
    let (nodes_len, signals_len) = (record.nodes(), record.signals().len());
    let number = flaws.number.filter(|&(from, _)| from == at).map_or(at, |(_, to)| to);
    record.restore(&Past {
        number,
        start_ns: at * 1_000_000,
        execution_ticks: vec![0; nodes_len],
        signals: vec![0.0; signals_len],
        ..Past::default()
    });
    let mut data = Vec::new();
    CycleLayout::of(plan, id).write(&record, Clock::from_rate(1.0), &mut data);
    let taps = taps(plan, nodes);
    for &(topic, channel_id) in topics {
        let mut data = match topic.what {
            TopicContent::Cycle => data.clone(),
            TopicContent::Tap(at) => [&CDR_HEAD[..], &vec![0; taps[at].size as usize]].concat(),
        };
        if flaws.short == Some(&topic.head.name) {
            data.pop();
        }
        let time = at * 1_000_000;
        let sequence = number as u32;
        let header = MessageHeader { channel_id, sequence, log_time: time, publish_time: time };
        writer.write_to_known_channel(&header, &data).expect("memory");
    }
}

/// The result of a replay.
#[derive(Debug)]
struct Result {
    cycles: u64,
    differing: u64,
    stops: Vec<String>,
    notes: Vec<String>,
    text: String,
    json: serde_json::Value,
}

/// Replays these bytes as a file of their own.
fn replay(bytes: &[u8], until: Option<Until>) -> std::result::Result<Result, String> {
    replay_all(&[bytes], until)
}

/// The same with several files. The first one is named.
fn replay_all(files: &[&[u8]], until: Option<Until>) -> std::result::Result<Result, String> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (at, bytes) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{at}.mcap")), bytes).expect("our folder");
    }
    play(&folder.path().join("0.mcap"), until)
}

fn play(file: &Path, until: Option<Until>) -> std::result::Result<Result, String> {
    let nodes = nodes();
    let recording = Recording::open(file)?;
    let graphs = Graphs::make(&recording, &nodes, Changes::default());
    let graphs = graphs.map_err(|refused| format!("{refused:?}"))?;
    let stop = AtomicBool::new(false);
    let mut player = Player::new(&recording, &graphs, &nodes, until, &stop)?;
    player.play()?;
    let sum = |of: fn(&tally::Tally) -> u64| player.threads.iter().map(|it| of(&it.tally)).sum();
    // Every result can be shown.
    let report = ReplayReport::new(&player, true, Some(1.0));
    let (text, json) = (report.to_text(), report.to_json());
    let (cycles, differing) = (sum(|tally| tally.cycles), sum(|tally| tally.differing));
    let (stops, notes) = (player.stops.clone(), player.notes.clone());
    Ok(Result { cycles, differing, stops, notes, text, json })
}

#[track_caller]
fn refused(flaws: &Flaws, expected: &str) {
    let text = replay(&recording(3, flaws), None).expect_err("it cannot be replayed");
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_recording_of_zeros_is_replayed_and_differs() {
    let result = replay(&recording(20, &Flaws::default()), None).expect("it is whole");
    assert_eq!((result.cycles, result.stops.len()), (40, 0), "{result:?}");
    assert!(result.differing > 10, "{result:?}");
}

#[test]
fn a_replay_ends_where_it_is_told_to() {
    let bytes = recording(20, &Flaws::default());
    let cycles = |until| replay(&bytes, Some(until)).expect("it is whole").cycles;
    let time = |ms| Until::Time(Duration::from_millis(ms));
    let ends = [Until::Cycle(4), time(4), Until::Cycle(0), time(9_000)];
    assert_eq!(ends.map(cycles), [10, 10, 2, 40]);
}

#[test]
fn what_is_no_recording_is_refused_in_words() {
    for bytes in [&b""[..], b"name: arm\n", &[0; 4096], mcap::MAGIC] {
        let text = replay(bytes, None).expect_err("no recording");
        assert!(text.contains("not an MCAP file"), "{text}");
    }
    let mut writer = Writer::new(Cursor::new(Vec::new())).expect("memory");
    writer.finish().expect("memory");
    let foreign = writer.into_inner().into_inner();
    let text = replay(&foreign, None).expect_err("somebody else's");
    assert!(text.contains("not one of ours"), "{text}");
    let text = Recording::open(Path::new("/")).expect_err("a folder");
    assert!(text.contains("is not a file"), "{text}");
}

#[test]
fn what_another_program_recorded_is_refused_in_words() {
    let flaws = |metadata| Flaws { metadata, ..Flaws::default() };
    refused(&flaws(vec![("version", "7")]), "version 7, expected 2");
    refused(&flaws(vec![("cpus", "[]")]), "'cpus' is empty");
    refused(&flaws(vec![("part", "one")]), "expected a number");
    let spec = "nodes: [{kind: flux_capacitor, name: it}]";
    refused(&Flaws { spec: Some(spec), ..Flaws::default() }, "flux_capacitor");
    refused(&Flaws { schema: Some("float64 x"), ..Flaws::default() }, "other fields");
    refused(
        &Flaws { left_out: Some("/ethercat/frame"), ..Flaws::default() },
        "'/ethercat/frame' is missing",
    );
}

#[test]
fn garbage_within_ends_the_replay_where_it_stands() {
    let short = Flaws { short: Some("/ik/out"), ..Flaws::default() };
    let result = replay(&recording(5, &short), None).expect("the beginning is sound");
    assert_eq!(result.cycles, 0);
    assert!(result.stops[0].contains("/ik/out") && result.stops[0].contains("bytes"), "{result:?}");
    for (number, expected) in [(2, "cycle 2 comes again"), (9, "cycles 5 to 8 are missing")] {
        let flaws = Flaws { number: Some((5, number)), ..Flaws::default() };
        let result = replay(&recording(8, &flaws), None).expect("the beginning is sound");
        assert_eq!((result.cycles, result.stops.len()), (10, 2), "{result:?}");
        assert!(result.stops[0].contains(expected), "{result:?}");
    }
}

#[test]
fn a_topic_of_somebody_else_is_left_out_with_a_note() {
    let flaws = Flaws { foreign_topic: true, ..Flaws::default() };
    let result = replay(&recording(3, &flaws), None).expect("it is whole");
    assert_eq!(result.cycles, 6);
    assert!(result.notes.iter().any(|note| note.contains("/weather")), "{result:?}");
}

#[test]
fn a_part_that_is_missing_ends_what_cannot_be_known_without_it() {
    let part = |number, life, first| {
        let metadata = vec![("part", number), ("life", life)];
        recording(10, &Flaws { metadata, first, ..Flaws::default() })
    };
    let parts = [part("1", "0", 0), part("2", "0", 10), part("3", "0", 20), part("4", "1", 0)];
    let [one, two, three, reset] = parts.each_ref().map(Vec::as_slice);
    let other = recording(10, &Flaws { metadata: vec![("run", "b2")], ..Flaws::default() });
    let play = |files: &[&[u8]]| replay_all(files, None).expect("each part is sound");
    let whole = play(&[two, three, &other, reset, one]);
    assert_eq!((whole.cycles, whole.stops.len()), (80, 0), "{whole:?}");
    let gap = play(&[one, three]);
    assert_eq!((gap.cycles, gap.stops.len()), (20, 3), "{gap:?}");
    assert!(gap.stops[0].starts_with("part 2 is not in the folder of '"), "{gap:?}");
    assert!(gap.stops[1].contains("cycles 10 to 19 are missing"), "{gap:?}");
    let late = play(&[two, three, reset]);
    assert_eq!(late.cycles, 20, "{late:?}");
    assert!(late.stops[1].contains("cycles 0 to 9 are missing"), "{late:?}");
    let twice = play(&[one, one]);
    assert!(twice.cycles == 20 && twice.notes[0].contains("once more"), "{twice:?}");
}

#[test]
fn where_each_thread_ends_is_said() {
    let result = replay(&recording(20, &Flaws::default()), None).expect("it is whole");
    let line = "\nup to: control/0 cycle 19, still running; plant/0 cycle 19, still running\n";
    assert!(result.text.contains(line), "{}", result.text);
    let behind = Flaws { behind: Some((1, 150)), ..Flaws::default() };
    let result = replay(&recording(200, &behind), None).expect("it is whole");
    let line = "; plant/0 cycle 49, still running, 0.150 s before the others\n";
    assert!(result.text.contains(line), "{}", result.text);
    assert_eq!((result.cycles, result.stops.len()), (250, 0), "nothing is known to be missing");
    let end = &result.json["ends"][1];
    assert_eq!((&end["thread"], &end["life"]), (&"plant/0".into(), &0.into()));
    assert_eq!((&end["first"], &end["last"]), (&0.into(), &49.into()));
    assert_eq!((&end["state"], &end["behind_s"]), (&"still running".into(), &0.15.into()));
    let result = replay(&recording(20, &Flaws::default()), Some(Until::Cycle(4)));
    assert_eq!(result.expect("it is whole").json["ends"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_tail_that_the_recorder_missed_is_named_whatever_part_says_so() {
    let gap = |life| RecordedGap {
        life,
        domain: "plant".into(),
        thread: 0,
        first: 10,
        cycles: 5,
        reason: "the disk could not be written".into(),
    };
    let part = |number, life, gaps| {
        let metadata = vec![("part", number), ("life", life)];
        recording(10, &Flaws { metadata, gaps, ..Flaws::default() })
    };
    let (first, second) = (part("1", "0", vec![]), part("2", "1", vec![gap(0), gap(1)]));
    let result = replay_all(&[&first, &second], None).expect("each part is sound");
    let stops = ["", " (after reset 1)"].map(|life| {
        format!(
            "thread plant/0{life}: cycles 10 to 14, its last ones, are missing (the disk could not \
             be written)"
        )
    });
    assert_eq!((result.cycles, result.stops), (40, stops.to_vec()));
}

#[test]
fn a_life_that_is_not_there_is_named() {
    let part = |number, life| {
        recording(
            10,
            &Flaws { metadata: vec![("part", number), ("life", life)], ..Flaws::default() },
        )
    };
    for (life, expected) in [
        ("2", "the core after reset 1 is not in the recording"),
        ("4", "the core after reset 1 to after reset 3 is not in the recording"),
    ] {
        let result = replay_all(&[&part("1", "0"), &part("2", life)], None).expect("sound");
        assert_eq!((result.cycles, result.stops), (40, vec![expected.to_owned()]));
    }
    let result = replay(&part("1", "1"), None).expect("sound");
    assert_eq!(result.stops, ["the core before its first reset is not in the recording"]);
}

#[test]
fn a_recording_that_is_cut_anywhere_replays_up_to_the_cut() {
    let whole = recording(60, &Flaws::default());
    let (mut dice, mut most) = (Rng::with_seed(1), 0);
    for _ in 0..60 {
        let len = dice.usize(..whole.len());
        if let Ok(result) = replay(&whole[..len], None) {
            assert!(result.cycles <= 120, "{result:?}");
            most = most.max(result.cycles);
        }
    }
    assert!(most > 20, "no cut left a chunk");
}

#[test]
fn a_recording_with_other_bits_is_never_the_end_of_the_program() {
    let whole = recording(12, &Flaws::default());
    let mut dice = Rng::with_seed(2);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..1 + dice.usize(..4) {
            let at = dice.usize(..bytes.len());
            bytes[at] ^= 1 << dice.u32(..8);
        }
        if let Ok(result) = replay(&bytes, None) {
            assert!(result.cycles <= 24, "{result:?}");
        }
    }
}

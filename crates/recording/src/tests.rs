//! Parts on disks that become full, and parts that break off anywhere.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcap::records::op;

use super::disk::{Disk, is_full};
use super::format::{ENCODING, LIBRARY, RecordedGap, SCHEMA_ENCODING, first};
use super::mend::{head, is_finished, scan};
use super::messages::{Messages, Stamp};
use super::summary::write_end;
use super::topics::TopicHead;
use super::writer::{Opening, PartWriter};

/// The variable with the file that the process to be killed writes.
const FILE: &str = "SINEW_TEST_PART";
/// A kill that has not hit a write within this time never will.
const PATIENCE: Duration = Duration::from_secs(60);

fn opening() -> Opening {
    let topic = |name: &str| TopicHead {
        name: name.into(),
        schema: ("sinew/msg/A".into(), "uint8[4] a\n".into()),
        metadata: BTreeMap::new(),
    };
    Opening {
        head: first(),
        attachments: vec![("spec.yaml".into(), b"name: g".to_vec())],
        topics: vec![topic("/a"), topic("/b")],
    }
}

/// Messages with these numbers, on both topics.
fn messages(numbers: std::ops::Range<u32>, data: &[u8]) -> Messages {
    let mut messages = Messages::default();
    for number in numbers {
        for topic in 0..2 {
            let time_ns = u64::from(number) * 1000;
            let (start_ns, release_ns) = (time_ns, time_ns);
            messages.add(Stamp { topic, sequence: number, start_ns, release_ns }, &[data]);
        }
    }
    messages
}

fn gap() -> RecordedGap {
    RecordedGap {
        life: 0,
        domain: "d".into(),
        thread: 0,
        first: 3,
        cycles: 2,
        reason: "a test".into(),
    }
}

/// The numbers on topic `/a`, as the library reads them through the index and from the beginning.
/// Both must give the same.
fn numbers(bytes: &[u8]) -> Vec<u32> {
    let streamed = mcap::MessageStream::new(bytes).expect("it begins as it must");
    let streamed: Vec<_> = streamed.map(|message| message.expect("a whole message")).collect();
    let summary = mcap::Summary::read(bytes).expect("it ends as it must").expect("a summary");
    let mut indexed = 0;
    for chunk in &summary.chunk_indexes {
        indexed += summary.stream_chunk(bytes, chunk).expect("a chunk").count();
        let places = summary.read_message_indexes(bytes, chunk).expect("places");
        let placed: usize = places.values().map(Vec::len).sum();
        for (topic, entries) in &places {
            for entry in entries {
                let message = summary.seek_message(bytes, chunk, entry).expect("a place");
                assert_eq!(message.channel.id, topic.id);
            }
        }
        assert!(placed > 0, "each chunk says where its messages are");
    }
    let statistics = summary.stats.expect("statistics");
    assert_eq!((indexed, statistics.message_count), (streamed.len(), streamed.len() as u64));
    assert_eq!(statistics.metadata_count as usize, summary.metadata_indexes.len());
    for index in &summary.metadata_indexes {
        mcap::read::metadata(bytes, index).expect("metadata where the index says");
    }
    for index in &summary.attachment_indexes {
        mcap::read::attachment(bytes, index).expect("an attachment where the index says");
    }
    let on_a = streamed.iter().filter(|message| message.channel.topic == "/a");
    on_a.map(|message| message.sequence).collect()
}

/// A disk with limited room.
#[derive(Debug)]
struct Small {
    bytes: Vec<u8>,
    room: usize,
}

impl Disk for Small {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fits = bytes.len().min(self.room - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.bytes.truncate(usize::try_from(len).expect("it is in memory"));
        Ok(())
    }

    fn is_nameless(&self) -> bool {
        false
    }
}

/// A part with room enough.
fn part() -> PartWriter<Small> {
    let disk = Small { bytes: Vec::new(), room: 1 << 20 };
    PartWriter::begin(disk, opening(), 0).expect("room")
}

#[test]
fn a_part_on_a_disk_that_fills_up_can_be_read_whatever_room_there_was() {
    let begin_len = part().len() as usize;
    let mut most = 0;
    for room in begin_len..begin_len + 6000 {
        let disk = Small { bytes: Vec::new(), room };
        let mut part = PartWriter::begin(disk, opening(), 0).expect("room for the beginning");
        let mut written = 0;
        while written < 8 {
            match part.add(&[gap()], &messages(written * 4..written * 4 + 4, b"data")) {
                Ok(()) => written += 1,
                Err(error) => {
                    assert!(is_full(&error));
                    break;
                }
            }
        }
        let (finished, given_up) = part.finish();
        let Ok(disk) = finished else {
            assert!(written < 3, "where chunks were, there is room for an end");
            assert_eq!(given_up, written as usize, "what is not there any more is known");
            continue;
        };
        let kept = written - given_up as u32;
        assert_eq!(numbers(&disk.bytes), (0..kept * 4).collect::<Vec<_>>(), "room for {room}");
        most = most.max(kept);
    }
    assert_eq!(most, 8, "with room enough, all is there");
}

/// A file of this test.
fn file(name: &str, bytes: &[u8]) -> (PathBuf, File) {
    let path = env::temp_dir().join(format!("sinew-{}-{name}.mcap", std::process::id()));
    fs::write(&path, bytes).expect("a file");
    let file = OpenOptions::new().read(true).append(true).open(&path).expect("the same file");
    (path, file)
}

#[test]
fn a_part_that_breaks_off_anywhere_can_be_mended() {
    let mut part = part();
    let mut ends = vec![(part.len(), 0)];
    for at in 0..3 {
        part.add(&[gap()], &messages(at * 4..at * 4 + 4, b"data")).expect("room");
        ends.push((part.len(), (at + 1) * 4));
    }
    let whole = part.finish().0.expect("room").bytes;
    for len in 0..=whole.len() {
        let (path, file) = file("mend", &whole[..len]);
        let finished = is_finished(&file).expect("it can be read");
        assert_eq!(finished, len == whole.len());
        if !finished {
            let scan = scan(&file).expect("it can be read").expect("it is ours");
            scan.mend(&file).unwrap_or_else(|error| panic!("cut at {len}: {error}"));
        }
        assert!(is_finished(&file).expect("it can be read"), "cut at {len}");
        let mended = fs::read(&path).expect("the file");
        let found = numbers(&mended);
        let least = ends.iter().rfind(|(end, _)| *end <= len as u64).map_or(0, |end| end.1);
        assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>());
        assert!(found.len() as u32 >= least, "cut at {len}: {} of {least}", found.len());
        let head = head(&file).expect("it can be read").and_then(Result::ok);
        assert!(head.is_some() || found.is_empty(), "who has messages says of which run");
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn what_is_whole_in_a_part_makes_no_room_for_the_end_that_mends_it() {
    let mut part = part();
    part.add(&[gap()], &messages(0..400, b"data")).expect("room");
    let whole = usize::try_from(part.len()).expect("it is in memory");
    let bytes = part.finish().0.expect("room").bytes[..whole].to_vec();
    let (path, file) = file("no_room", &bytes);
    let scan = scan(&file).expect("it can be read").expect("it is ours");
    fs::remove_file(path).expect("it is there");
    assert_eq!(scan.len, whole as u64);
    let mut disk = Small { bytes: bytes.clone(), room: whole + 10 };
    let ended = write_end(&mut disk, scan.len, &scan.summary);
    assert!(ended.is_err_and(|error| is_full(&error)));
    assert_eq!(disk.bytes, bytes);
}

#[test]
fn a_part_of_another_version_is_still_one_of_ours() {
    let mut bytes = part().finish().0.expect("room").bytes;
    let key = b"version";
    let at = bytes.windows(key.len()).position(|it| it == key).expect("it says its version");
    // The length of the value follows the key.
    bytes[at + key.len() + 4] = b'9';
    let (path, file) = file("version", &bytes);
    let head = head(&file).expect("it can be read").expect("it may go when it is old");
    assert!(head.is_err_and(|text| text.contains("version 9")), "but nobody reads it");
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_part_whose_topics_stand_before_its_chunks_keeps_them_when_it_is_mended() {
    let options = mcap::WriteOptions::new().library(LIBRARY).use_chunks(false);
    let mut writer = options.create(io::Cursor::new(Vec::new())).expect("memory");
    let schema = writer.add_schema("sinew/msg/A", SCHEMA_ENCODING, b"uint8 a\n").expect("few");
    writer.add_channel(schema, "/a", ENCODING, &BTreeMap::new()).expect("few");
    let (path, file) = file("older", &writer.into_inner().into_inner());
    let scan = scan(&file).expect("it can be read").expect("it is ours");
    assert_eq!(scan.mend(&file).expect("room"), 0);
    let mended = fs::read(&path).expect("the file");
    let summary = mcap::Summary::read(&mended).expect("it ends as it must").expect("a summary");
    let topic = summary.channels.values().next().expect("a topic");
    assert_eq!((&*topic.topic, topic.schema.is_some()), ("/a", true));
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_file_that_no_recorder_wrote_is_left_alone() {
    let foreign = mcap::WriteOptions::new().library("other").compression(None);
    let mut bytes = io::Cursor::new(Vec::new());
    foreign.create(&mut bytes).expect("memory").finish().expect("memory");
    for bytes in [b"not a recording".as_slice(), b"\x89MCAQ", &bytes.into_inner()] {
        let (path, file) = file("foreign", bytes);
        assert!(scan(&file).expect("it can be read").is_none());
        assert!(head(&file).expect("it can be read").is_none());
        fs::remove_file(path).expect("it is there");
    }
}

/// A file that claims a terabyte takes no memory, and its holes take no room on the disk.
#[test]
fn a_length_that_only_a_header_claims_is_not_believed() {
    const CLAIMED: u64 = 1 << 40;
    let claim = |op: u8| [&[op][..], &CLAIMED.to_le_bytes()].concat();
    let mut part = part();
    part.add(&[], &messages(0..4, b"data")).expect("room");
    let whole = usize::try_from(part.len()).expect("it is in memory");
    let bytes = part.finish().0.expect("room").bytes[..whole].to_vec();
    let (path, file) = file("claims", &[mcap::MAGIC, &claim(op::HEADER)].concat());
    file.set_len(CLAIMED + 100).expect("a hole");
    assert!(scan(&file).expect("it can be read").is_none());
    assert!(head(&file).expect("it can be read").is_none());

    for op in [op::METADATA, op::CHUNK] {
        fs::write(&path, [&bytes[..], &claim(op), &[0; 64]].concat()).expect("ours");
        file.set_len(CLAIMED + whole as u64 + 9).expect("a hole");
        let scan = scan(&file).expect("it can be read").expect("it is ours");
        assert!(scan.mend(&file).expect("room") > CLAIMED, "{op}");
        assert_eq!(numbers(&fs::read(&path).expect("it is short now")), [0, 1, 2, 3]);
    }
    fs::remove_file(path).expect("it is there");
}

/// Not a test by itself: the next test starts and kills this process.
#[test]
#[ignore = "writes until it is killed"]
fn writes_until_killed() {
    let Some(path) = env::var_os(FILE) else { return };
    let file = OpenOptions::new().append(true).create_new(true).open(path).expect("a file");
    let mut part = PartWriter::begin(file, opening(), 0).expect("room");
    // Noise, so that the time goes into writing.
    let noise: Vec<u8> = (0..1_u32 << 18).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    for at in 0.. {
        part.add(&[], &messages(at * 4..at * 4 + 4, &noise)).expect("room");
    }
}

#[test]
fn a_kill_inside_a_write_leaves_all_that_was_whole() {
    let path = env::temp_dir().join(format!("sinew-{}-killed.mcap", std::process::id()));
    let begun = Instant::now();
    let (file, bytes) = loop {
        assert!(begun.elapsed() < PATIENCE, "no kill has landed inside a write");
        // The file may be left over from the previous kill.
        let _ = fs::remove_file(&path);
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "tests::writes_until_killed"])
            .env(FILE, &path)
            .stdout(Stdio::null())
            .spawn()
            .expect("this program starts");
        let len = || fs::metadata(&path).map_or(0, |file| file.len());
        while len() < 4 << 20 {
            assert!(begun.elapsed() < PATIENCE, "nothing is written");
        }
        child.kill().expect("it is there");
        child.wait().expect("it is ours");
        let file = OpenOptions::new().read(true).append(true).open(&path).expect("the file");
        let bytes = file.metadata().expect("its length").len();
        let whole = scan(&file).expect("it can be read").expect("it is ours").len;
        if whole < bytes {
            break (file, bytes);
        }
    };
    let before = python_numbers(&path, "NonSeekingReader(file)");
    let cut = scan(&file).expect("it can be read").expect("it is ours").mend(&file);
    let cut = cut.expect("room");
    assert!(cut > 0 && cut < bytes, "{cut} bytes of {bytes} were not whole");
    let found = numbers(&fs::read(&path).expect("the file"));
    assert!(found.len() > 4 && found == (0..found.len() as u32).collect::<Vec<_>>());
    let after = python_numbers(&path, "make_reader(file, validate_crcs=True)");
    if let (Some(before), Some(after)) = (before, after) {
        assert_eq!(after, found);
        assert!(after.starts_with(&before) && !before.is_empty());
    }
    fs::remove_file(path).expect("it is there");
}

/// The numbers on topic `/a` that a reader of the Python package finds. `None` if it is not
/// installed.
fn python_numbers(path: &Path, reader: &str) -> Option<Vec<u32>> {
    let script = format!(
        "import sys\nfrom mcap.reader import NonSeekingReader, make_reader\nnumbers = []\n\
         with open(sys.argv[1], 'rb') as file:\n  try:\n    for _, channel, message in \
         {reader}.iter_messages(log_time_order=False):\n      if channel.topic == '/a':\n        \
         numbers.append(message.sequence)\n  except Exception as error:\n    \
         print(error, file=sys.stderr)\nprint(*numbers)"
    );
    let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_mcap = Command::new(&python).args(["-c", "import mcap"]).output();
    if !has_mcap.is_ok_and(|output| output.status.success()) {
        let missing = format!("'{python}' cannot import mcap; name another in SINEW_TEST_PYTHON");
        assert!(env::var("CI").is_err_and(|_| true), "{missing}");
        writeln!(io::stderr(), "skipped: {missing}").expect("somebody listens");
        return None;
    }
    let output = Command::new(python).args(["-c", &script]).arg(path).output().expect("python");
    let text = String::from_utf8(output.stdout).expect("numbers");
    Some(text.split_whitespace().map(|number| number.parse().expect("a number")).collect())
}

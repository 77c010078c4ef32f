//! Recordings of two hosts whose clocks are known here to the nanosecond: they are written and
//! merged. Also recordings that do not belong together.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use fastrand::Rng;
use serde_json::Value;
use sinew_control::status::HostClock;
use tempfile::TempDir;

use super::*;
use crate::clock;
use crate::fixture::{OBSERVER, STAND_IN};
use crate::format::{CDR_HEAD, PartHead, first};
use crate::messages::{Messages, Stamp};
use crate::topics::{TopicHead, clock_topics, cycle_topic, topics};
use crate::writer::{Opening, PartWriter};
use sinew_core::trace::ThreadId;
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};

/// The office plans, the cell moves. The hall has no links.
const SPEC_TEXT: &str = "
name: pair
hosts:
  cell: {address: 'cell.local:7447'}
  office: {}
  hall: {}
domains:
  control: {host: cell, realtime: {period: 5ms}}
  plant: {host: cell, realtime: {trigger: input}}
  rec: {host: cell}
  planning: {host: office, realtime: {period: 20ms}}
  rec2: {host: office}
  rec3: {host: hall}
nodes:
  - {kind: pose_limiter, name: limiter, domain: control, arm: irb120.urdf,
     ports: {out: [{name: ik, port: in}]}}
  - {kind: ik, name: ik, domain: control, arm: irb120.urdf,
     ports: {out: [{name: ethercat, port: in}]}}
  - kind: ethercat_master
    name: ethercat
    domain: control
    ports:
      out: [{name: drives, port: in, delivery: latest}]
      feedback: [{name: planner, port: feedback}]
  - kind: drives
    name: drives
    domain: plant
    safe: {in: {value: quick_stop, after: 50}}
    ports: {out: [{name: ethercat, port: frame, delivery: latest, delay: 1}]}
  - {kind: path_planner, name: planner, domain: planning, path: square.csv, arm: irb120.urdf,
     laps: 0, ports: {out: [{name: limiter, port: in, after: 100ms}]}}
  - {kind: recorder, name: r, domain: rec}
  - {kind: recorder, name: r2, domain: rec2}
  - {kind: recorder, name: r3, domain: rec3}
";

const S: i64 = 1_000_000_000;
/// When the recordings begin, since 1970.
const BEGIN_NS: i64 = 1_700_000_000 * S;
/// How long a message is on its way.
const WAY_NS: i64 = 1_000_000;
/// The possible error that estimates state.
const UNSURE_NS: i64 = 200_000;

/// A host with its clocks: what they show at a time that no host knows.
#[derive(Clone)]
struct Told {
    host: &'static str,
    graph: &'static str,
    spec: String,
    run: &'static str,
    monotonic_ns: i64,
    drift_ppm: i64,
    /// How far its wall clock is ahead.
    ahead_ns: i64,
    /// Seconds in which it records.
    from_s: i64,
    to_s: i64,
    /// Estimates are wrong by this amount, plus up to the error that they state.
    lie_ns: i64,
    has_estimates: bool,
}

fn cell() -> Told {
    Told {
        host: "cell",
        graph: "pair",
        spec: SPEC_TEXT.into(),
        run: "a",
        monotonic_ns: 1000 * S,
        drift_ppm: 0,
        ahead_ns: 0,
        from_s: 0,
        to_s: 10,
        lie_ns: 0,
        has_estimates: true,
    }
}

fn office() -> Told {
    let (run, monotonic_ns, ahead_ns) = ("b", 7 * S, 3600 * S);
    Told { host: "office", run, monotonic_ns, drift_ppm: 50, ahead_ns, from_s: 1, ..cell() }
}

/// It knows only the office's clock.
fn hall() -> Told {
    let (run, monotonic_ns, ahead_ns) = ("c", 90 * S, -7200 * S);
    Told { host: "hall", run, monotonic_ns, drift_ppm: -30, ahead_ns, ..cell() }
}

impl Told {
    /// Its monotonic clock at a time.
    fn monotonic_ns(&self, true_ns: i64) -> i64 {
        self.monotonic_ns + true_ns + true_ns / 1_000_000 * self.drift_ppm
    }

    fn offset_ns(&self) -> i64 {
        BEGIN_NS - self.monotonic_ns + self.ahead_ns
    }

    /// Writes its recording. Returns the path.
    fn write(&self, folder: &TempDir, other: &Told) -> PathBuf {
        let kinds = kinds().catalogue();
        let source = SpecSource { host: Some(self.host), ..SpecSource::of("pair.yaml", SPEC_TEXT) };
        let plan = compile(&source, &kinds, &TargetMachine::of(vec![0, 1]));
        let plan = plan.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
        let heads: Vec<_> = topics(&plan).into_iter().map(|topic| topic.head).collect();
        let mut heads = [heads, clock_topics(&plan)].concat();
        // The hall has no core, so it has no topic of its own.
        heads.push(TopicHead { name: "/watch/out".into(), ..heads[0].clone() });
        let topic = |name: &str| {
            let at = heads.iter().position(|head| head.name == name);
            at.unwrap_or_else(|| panic!("no topic '{name}'")) as u16
        };
        let cycles = (self.host != "hall")
            .then(|| topic(&cycle_topic(&plan, ThreadId { domain: 0, thread: 0 })));
        let mut random = Rng::with_seed(9);
        let mut messages = Messages::default();
        let mut add = |topic: u16, true_ns: i64, data: &[u8]| {
            let start_ns = (self.monotonic_ns(true_ns) + self.offset_ns()) as u64;
            let stamp = Stamp { topic, sequence: 7, start_ns, release_ns: start_ns - 5 };
            messages.add(stamp, &[data]);
        };
        // As a recorder writes them: one pass with many cycles of one topic, then those of the
        // next.
        for s in self.from_s..self.to_s {
            for at in (0..50).map(|at| s * S + at * S / 50) {
                let message = [&CDR_HEAD[..], &at.to_le_bytes()].concat();
                match self.host {
                    "office" => add(topic("/planner/out"), at, &message),
                    "hall" => add(topic("/watch/out"), at, &message),
                    _ => add(topic("/limiter/in"), at + WAY_NS, &message),
                }
            }
            for at in (0..200).filter(|_| cycles.is_some()) {
                add(cycles.unwrap_or_default(), s * S + at * S / 200 + WAY_NS, b"a cycle");
            }
            let now_ns = s * S + S / 3;
            let truth_ns = other.monotonic_ns(now_ns) - self.monotonic_ns(now_ns);
            let wrong_ns = self.lie_ns + random.i64(-UNSURE_NS..=UNSURE_NS);
            let clock = HostClock {
                at_ns: 0,
                // An error in the estimate of one side has the opposite sign on the other side.
                monotonic_offset_ns: truth_ns
                    + if self.host == "cell" { wrong_ns } else { -wrong_ns },
                day_offset_ns: 0,
                uncertainty_ns: UNSURE_NS as u64,
            };
            if self.has_estimates {
                add(topic(&clock::topic(other.host)), now_ns, &clock::write(clock));
            }
        }
        let head = PartHead {
            run: self.run.into(),
            graph: self.graph.into(),
            file: "pair.yaml".into(),
            part_of: Some(self.host.into()).filter(|host: &String| !host.is_empty()),
            clock_offset_ns: self.offset_ns(),
            ..first()
        };
        let attachments = vec![("spec.yaml".into(), self.spec.as_bytes().to_vec())];
        let path = folder.path().join(format!("{}-{}.mcap", self.host, self.run));
        let file = File::create(&path).expect("our folder");
        let opening = Opening { head, attachments, topics: heads };
        let mut part = PartWriter::begin(file, opening, BEGIN_NS as u64).expect("room");
        part.add(&[], &messages).expect("room");
        part.finish().0.expect("room");
        path
    }
}

fn kinds() -> Kinds {
    let nodes = sinew_robot::NODES.to_vec();
    Kinds { nodes, services: vec![OBSERVER, STAND_IN], ..Kinds::default() }
}

fn merged(files: &[PathBuf], to: &Path) -> Result<MergeReport, String> {
    let recordings: Result<Vec<_>, _> = files.iter().map(|file| Recording::open(file)).collect();
    let merged = merge(&recordings?, &kinds(), to, &AtomicBool::new(false));
    merged.map_err(|refused| match refused {
        Refused::Words(text) => text,
        Refused::Spec(_, diagnostics) => panic!("{diagnostics:?}"),
    })
}

/// The result of merging two recordings, and the folder.
fn pair(cell: &Told, office: &Told) -> (TempDir, Result<MergeReport, String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [cell.write(&folder, office), office.write(&folder, cell)];
    let merged = merged(&files, &folder.path().join("both.mcap"));
    (folder, merged)
}

fn json(report: &Result<MergeReport, String>) -> Value {
    report.as_ref().expect("they are merged").to_json()
}

#[test]
fn every_message_stands_where_it_belongs_or_no_further_away_than_is_said() {
    let (folder, report) = pair(&cell(), &office());
    let value = json(&report);
    let most_ns = value["hosts"][1]["uncertainty_ns"]["most"].as_i64().expect("a number");
    assert!(most_ns < 2 * UNSURE_NS, "{value}");
    let bytes = fs::read(folder.path().join("both.mcap")).expect("it was written");
    let (mut last_ns, mut messages) = (0, 0);
    for message in mcap::MessageStream::new(&bytes).expect("an MCAP file") {
        let message = message.expect("a message");
        assert!(message.log_time >= last_ns);
        (last_ns, messages) = (message.log_time, messages + 1);
        assert_eq!(message.log_time - message.publish_time, 5);
        let host = message.channel.metadata["host"].as_str();
        assert!(message.channel.topic.starts_with(&format!("/{host}/")));
        let (of_office, of_cell) = ("/office/planner/out", "/cell/limiter/in");
        let topic = message.channel.topic.as_str();
        if topic == of_office || topic == of_cell {
            let word = message.data[4..].try_into().expect("eight bytes");
            let way_ns = if topic == of_cell { WAY_NS } else { 0 };
            let truth_ns = BEGIN_NS + i64::from_le_bytes(word) + way_ns;
            let wrong_ns = (message.log_time as i64 - truth_ns).abs();
            assert!(wrong_ns <= if topic == of_office { most_ns } else { 0 }, "{topic} {wrong_ns}");
        }
    }
    assert_eq!(value["messages"], messages);
    let link = &value["links"][0];
    assert_eq!(link["link"], "planner.out at office -> limiter.in at cell");
    let counts = ["received", "found", "before_sent", "beyond_uncertainty"].map(|it| &link[it]);
    // The office began a second later.
    assert_eq!(counts, [500, 450, 0, 0].map(Value::from).each_ref(), "{value}");
    assert!(value["unsure"].as_u64() < value["neighbours"].as_u64() && value["unsure"] != 0);
    assert!(report.expect("merged").is_good());
}

/// The counterpart: estimates that are wrong by more than they state are detected.
#[test]
fn estimates_that_lie_are_found_out_by_what_was_received_before_it_was_sent() {
    let lie_ns = 30_000_000;
    let (_folder, report) =
        pair(&Told { lie_ns: -lie_ns, ..cell() }, &Told { lie_ns: -lie_ns, ..office() });
    let value = json(&report);
    assert!(value["links"][0]["beyond_uncertainty"].as_u64() > Some(400), "{value}");
    let report = report.expect("merged");
    assert!(!report.is_good());
    assert!(report.to_text().contains("do not trust the order"), "{}", report.to_text());
}

#[test]
fn a_host_that_knows_only_another_one_is_placed_by_what_that_one_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cell, office, hall] = [cell(), office(), hall()];
    let files = [cell.write(&folder, &office), office.write(&folder, &cell)];
    let files = [files[0].clone(), files[1].clone(), hall.write(&folder, &office)];
    let value = json(&merged(&files, &folder.path().join("all.mcap")));
    let most = |host: usize| value["hosts"][host]["uncertainty_ns"]["most"].as_i64();
    let (of_office_ns, of_hall_ns) = (most(1).expect("a number"), most(2).expect("a number"));
    assert!(of_hall_ns > of_office_ns && of_hall_ns < 4 * UNSURE_NS, "{value}");
    let bytes = fs::read(folder.path().join("all.mcap")).expect("it was written");
    let messages = mcap::MessageStream::new(&bytes).expect("an MCAP file");
    let messages = messages.map(|it| it.expect("a message"));
    let mut found = 0;
    for message in messages.filter(|it| it.channel.topic == "/hall/watch/out") {
        let word = message.data[4..].try_into().expect("eight bytes");
        let truth_ns = BEGIN_NS + i64::from_le_bytes(word);
        let wrong_ns = (message.log_time as i64 - truth_ns).abs();
        assert!(wrong_ns <= of_hall_ns, "{wrong_ns}");
        found += 1;
    }
    assert_eq!(found, 500);
}

#[test]
fn without_estimates_clocks_of_day_are_trusted_and_nothing_is_shown() {
    let [cell, office] =
        [cell(), office()].map(|it| Told { has_estimates: false, ahead_ns: 0, ..it });
    let (_folder, report) = pair(&cell, &office);
    let value = json(&report);
    assert_eq!(value["hosts"][1]["clock"], "trusted");
    assert_eq!((&value["unsure"], &value["not_shown"]), (&0.into(), &value["neighbours"]));
    let text = report.expect("merged").to_text();
    assert!(text.contains("clocks of day are trusted") && text.contains("not shown"), "{text}");
    // It is enough if one side knows the other.
    let (_folder, report) = pair(&Told { has_estimates: true, ..cell }, &office);
    assert_eq!(json(&report)["hosts"][1]["estimates"], 10);
}

#[test]
fn a_file_that_breaks_off_is_merged_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [cell().write(&folder, &office()), office().write(&folder, &cell())];
    let whole = json(&merged(&files, &folder.path().join("whole.mcap")));
    let file = OpenOptions::new().write(true).open(&files[1]).expect("ours");
    let len = file.metadata().expect("ours").len();
    // The end is missing, and a part of the index of its messages.
    file.set_len(len - 20_000).expect("ours");
    let report = merged(&files, &folder.path().join("cut.mcap"));
    let value = json(&report);
    assert_eq!(value["messages"], whole["messages"]);
    assert!(value["notes"][0].as_str().is_some_and(|it| it.contains("has no end")), "{value}");
    file.set_len(200).expect("ours");
    let error = merged(&files, &folder.path().join("none.mcap")).expect_err("nothing is left");
    assert!(error.contains("ends before it says which run it is of"), "{error}");
}

#[test]
fn what_does_not_belong_together_is_refused_in_words() {
    let other_links = SPEC_TEXT.replace("after: 100ms", "delivery: queue");
    let of = |change: fn(&mut Told)| {
        let mut told = office();
        change(&mut told);
        told
    };
    let cases: [(Told, &str); 7] = [
        (of(|it| it.host = "cell"), "two runs of host 'cell'"),
        (of(|it| (it.host, it.run) = ("cell", "a")), "name one of them"),
        (of(|it| it.graph = "other"), "give recordings of one graph"),
        (Told { spec: other_links, ..office() }, "different versions of graph 'pair'"),
        (of(|it| (it.from_s, it.to_s) = (20, 30)), "not recorded at the same time"),
        (of(|it| (it.from_s, it.to_s) = (3, 3)), "has no messages"),
        (of(|it| (it.from_s, it.to_s, it.has_estimates) = (-20, -10, false)), "same time"),
    ];
    for (second, expected) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let first = cell().write(&folder, &office());
        let kept = folder.path().join("cell-kept.mcap");
        fs::rename(&first, &kept).expect("ours");
        let other = if second.host == "cell" { office() } else { cell() };
        let second = second.write(&folder, &other);
        let to = folder.path().join("both.mcap");
        let error = merged(&[kept, second], &to).expect_err(expected);
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!to.exists());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = cell().write(&folder, &office());
    let error = merged(std::slice::from_ref(&file), &folder.path().join("x")).expect_err("one");
    assert!(error.contains("one recording cannot be merged"), "{error}");
    let error = merged(std::slice::from_ref(&file), &file).expect_err("it is there");
    assert!(error.contains("exists already"), "{error}");
    let names = fs::read_dir(folder.path()).expect("ours").count();
    assert_eq!(names, 1, "nothing is left behind");
}

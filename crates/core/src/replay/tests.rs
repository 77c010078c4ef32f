//! Runs of a small core, recorded cycle by cycle without threads or clocks, and replayed: what the
//! two threads did with late, lost and closed links, with safe values and with failures.

mod kinds;

use sinew_plan::plan::{Release, TargetMachine};
use sinew_spec::{SpecSource, compile};

use self::kinds::{NODES, SERVICES};
use super::*;
use crate::clock::now_ns;
use crate::cycle::assemble::{Assembly, Carriers};
use crate::fault::Cause;
use crate::trace::CycleHead;
use crate::transport::{LinkShape, Sender, Sent, row};

const CONTROL: ThreadId = ThreadId { domain: 0, thread: 0 };
const PLANT: ThreadId = ThreadId { domain: 1, thread: 0 };

/// A loop over two domains, a delayed loop within the first one, a mailbox, an actuator.
const GRAPH: &str = "
name: test
domains:
  control: {realtime: {period: 1ms}}
  plant: {realtime: {trigger: input}}
  outside: {}
nodes:
  - {kind: source, name: source, domain: control, ports: {out: [{name: filter, port: in}]}}
  - kind: filter
    name: filter
    domain: control
    ports:
      out:
        - {name: motor, port: in, delivery: latest}
        - {name: source, port: trim, delay: 1}
  - kind: motor
    name: motor
    domain: plant
    safe: {in: {value: stand, after: 2}}
    ports: {out: [{name: source, port: feedback, delivery: latest, delay: 1}]}
  - {kind: writer, name: writer, domain: outside, ports: {out: [{name: source, port: wish}]}}
  - {kind: observer, name: observer, domain: outside}
";

fn plan(overrides: &[(&str, &str)]) -> Plan {
    let overrides: Vec<_> =
        overrides.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let kinds: Vec<_> = NODES.iter().map(|row| row.kind).chain(SERVICES).collect();
    let source = SpecSource { overrides: &overrides, ..SpecSource::of("test.yaml", GRAPH) };
    let plan = compile(&source, &kinds, &TargetMachine::of(vec![0, 1]));
    let plan = plan.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    assert!(matches!(plan.domains[1].threads()[0].release, Release::Input(_)));
    plan
}

/// A thread that runs as a domain's would, but for the clock.
struct Live {
    executor: Executor,
    number: u64,
    fallen_back: bool,
    records: Vec<Record>,
}

impl Live {
    fn new(plan: &Plan, id: ThreadId, carriers: &mut Carriers) -> Live {
        let assembly = Assembly {
            plan,
            table: NODES,
            base: Path::new(""),
            clock: Clock::from_rate(1.0),
            wrap: None,
        };
        let made = assembly.thread(id.domain, id.thread, carriers);
        let (executor, _) = made.unwrap_or_else(|at| panic!("{}", at.fault));
        Live { executor, number: 0, fallen_back: false, records: Vec::new() }
    }

    /// A cycle, with what `Cyclic::pass` does around it.
    fn cycle(&mut self, skipped: u64, stopping: bool) {
        let mut cycle = Cycle::new(self.number, 1_000_000);
        (cycle.skipped, cycle.stopping) = (skipped, stopping);
        let executor = &mut self.executor;
        let result = panics::caught(|| executor.cycle(&cycle, 0)).unwrap_or_else(Err);
        let failed = result.err().map(|fault| executor.failed(fault.cause));
        let fallen_back = self.fallen_back;
        if failed.is_some() {
            executor.safe_outputs();
            executor.tap(&cycle);
            self.fall_back();
        }
        let number = self.number;
        let head =
            CycleHead { number, skipped, stopping, failed, fallen_back, ..CycleHead::default() };
        self.executor.record.head(&head, &self.executor.values);
        self.records.push(self.executor.record.clone());
        self.number += 1;
    }

    fn fall_back(&mut self) {
        self.executor.keep_actuators().expect("no node panics as it stops");
        self.fallen_back = true;
    }
}

/// Both threads, and the service's end of its link.
struct Core {
    control: Live,
    plant: Live,
    wish: Box<dyn Sender>,
}

impl Core {
    fn new(plan: &Plan) -> Core {
        let (mut carriers, mut wish) = (Carriers::default(), None);
        for (at, link) in plan.links.iter().enumerate().filter(|(_, link)| !link.fused) {
            let row = row(link.transport);
            let (writer, reader) = (row.open)(&LinkShape::of(link)).expect("memory");
            if plan.is_service(link.from.node) {
                wish = Some((row.sender)(writer, &LinkShape::of(link)).expect("new bytes"));
            } else {
                carriers.writers.insert(at, writer);
            }
            carriers.readers.insert(at, reader);
        }
        let control = Live::new(plan, CONTROL, &mut carriers);
        let plant = Live::new(plan, PLANT, &mut carriers);
        assert!(carriers.writers.is_empty() && carriers.readers.is_empty());
        Core { control, plant, wish: wish.expect("the service writes") }
    }

    /// Runs this many cycles, in which the plant misses some, periods are lost and wishes come.
    fn run(&mut self, cycles: u64) {
        for at in 0..cycles {
            // Primes, so that the events share no rhythm.
            if at % 7 == 3 {
                self.wish.send(&(at as f64).to_le_bytes()).expect("the reader keeps the rules");
            }
            self.control.cycle(u64::from(at % 11 == 5), false);
            if at % 13 > 3 {
                self.plant.cycle(0, false);
            }
        }
    }

    /// The orderly end: the controller first, then the plant, which sees the link closed.
    fn stop(mut self) -> Recording {
        self.control.cycle(0, true);
        self.control.executor.stop().expect("no node panics as it stops");
        for _ in 0..3 {
            self.plant.cycle(0, false);
        }
        self.plant.cycle(0, true);
        self.plant.cycle(0, true);
        vec![(CONTROL, self.control.records), (PLANT, self.plant.records)]
    }
}

type Recording = Vec<(ThreadId, Vec<Record>)>;

/// The record, reduced to what a recording keeps, so that nothing else decides.
fn kept(record: &Record, replayer: &Replayer) -> Record {
    let past = Past {
        number: record.number(),
        skipped: record.skipped(),
        flags: record.flags(),
        execution_ticks: vec![1; record.nodes()],
        signals: record.signals().collect(),
        ..Past::default()
    };
    let mut kept = replayer.record();
    kept.restore(&past);
    for at in 0..replayer.taps().len() {
        kept.restore_message(at, record.message(at), record.is_closed(at));
    }
    kept
}

fn all(replayer: &Replayer) -> Known {
    let signals = replayer.record().signals().len();
    Known { taps: vec![true; replayer.taps().len()], signals: vec![true; signals] }
}

fn replayer(plan: &Plan, id: ThreadId) -> Replayer {
    let made = Replayer::new(plan, NODES, Path::new(""), id, Clock::from_rate(1.0));
    made.unwrap_or_else(|at| panic!("{}", at.fault))
}

/// The first cycle that differs, with all that differs in it.
fn first_difference(plan: &Plan, id: ThreadId, past: &[Record]) -> Option<(u64, Vec<Difference>)> {
    let mut replayer = replayer(plan, id);
    let known = all(&replayer);
    past.iter().find_map(|record| {
        let record = kept(record, &replayer);
        replayer.cycle(&record).expect("no gap");
        let differences = replayer.differences(plan, &record, &known);
        assert_eq!(replayer.is_same(&record, &known), differences.is_empty());
        (!differences.is_empty()).then_some((record.number(), differences))
    })
}

fn assert_same(plan: &Plan, recording: &Recording) {
    for (id, records) in recording {
        assert_eq!(first_difference(plan, *id, records), None, "{id:?}");
    }
}

#[test]
fn a_run_replays_bit_for_bit_until_its_orderly_end() {
    let plan = plan(&[]);
    let mut core = Core::new(&plan);
    core.run(500);
    let recording = core.stop();
    let moved = recording[1].1.iter().filter(|record| record.signals().any(|it| it != 0.0));
    assert!(moved.count() > 300, "the motor hardly moved");
    assert!(recording[1].1.iter().any(|record| record.is_closed(0)), "no link was closed");
    assert_same(&plan, &recording);
}

#[test]
fn a_replay_fails_in_the_same_node_and_goes_on_with_its_actuators() {
    for (failure, cause, place) in
        [("error", Cause::Error, 0), ("panic", Cause::Panic, 0), ("nan", Cause::NotFinite, 0)]
    {
        let plan = plan(&[("source.fail_at", "40"), ("source.failure", failure)]);
        let mut core = Core::new(&plan);
        core.run(41);
        let failed = core.control.records[40].failed().expect("told to fail");
        assert_eq!(failed, Failed { cause, place: Some(place), in_link: false });
        let recording = core.stop();
        assert!(recording[0].1[41].is_fallen_back());
        assert_same(&plan, &recording);
        let mut replayer = replayer(&plan, CONTROL);
        recording[0].1.iter().take(41).for_each(|it| replayer.cycle(it).expect("no gap"));
        assert_eq!(replayer.failed(), Some(failed));
        assert!(replayer.fault().is_some_and(|fault| fault.text().contains("told to fail")
            || failure == "nan" && fault.text().contains("not finite")));
    }
}

/// As if another host wrote to the mailbox: messages older than this are dropped.
const AFTER_NS: u64 = 30_000_000_000;

fn stamped() -> Plan {
    let mut plan = plan(&[]);
    let at = plan.links.iter().position(|link| plan.is_service(link.from.node));
    plan.links[at.expect("the service writes")].after_ns = Some(AFTER_NS);
    plan
}

fn with_stamp(stamp_ns: u64, wish: f64) -> Vec<u8> {
    [stamp_ns.to_le_bytes(), wish.to_le_bytes()].concat()
}

/// What is sent before a cycle, what comes through, and how many are lost.
type Case<'a> = (&'a [(u64, f64)], Option<f64>, u64);

#[test]
fn a_mailbox_takes_what_bears_a_young_stamp_and_the_replay_needs_none() {
    let plan = stamped();
    let mut core = Core::new(&plan);
    let tap = replayer(&plan, CONTROL).taps().iter().position(|tap| tap.size == 8);
    let tap = tap.expect("the wish is the one port of eight bytes that leads in");
    let fresh = now_ns();
    let old = fresh.checked_sub(2 * AFTER_NS).expect("the machine runs for a minute");
    let to_come = fresh + AFTER_NS;
    let cases: [Case<'_>; 7] = [
        (&[(fresh, 1.0)], Some(1.0), 0),
        (&[(old, 2.0)], None, 1),
        (&[(to_come, 2.0)], None, 1),
        (&[(u64::MAX, 3.0)], None, 1),
        (&[(fresh, f64::NAN)], None, 1),
        // Only one message passes in a cycle; messages that cannot be obeyed do not hold it up.
        (&[(old, 4.0), (to_come, 5.0), (fresh, 6.0)], Some(6.0), 2),
        (&[], None, 0),
    ];
    let mut lost = 0;
    for (sent, through, lost_now) in cases {
        for &(stamp_ns, wish) in sent {
            let sent = core.wish.send(&with_stamp(stamp_ns, wish));
            assert_eq!(sent.expect("the reader keeps the rules"), Sent::Done);
        }
        core.run(1);
        let record = core.control.records.last().expect("a cycle");
        let came = record.message(tap).map(|it| f64::from_le_bytes(it.try_into().expect("8")));
        lost += lost_now;
        assert_eq!((came, record.totals().messages_lost), (through, lost), "{sent:?}");
    }
    assert_same(&plan, &core.stop());
}

#[test]
fn a_link_that_failed_fails_again_behind_the_same_node() {
    let plan = plan(&[]);
    let mut core = Core::new(&plan);
    core.run(21);
    // A full queue: the node has done its work, the nodes after it have not.
    core.control.executor.steps[1].outputs[0].sender = Box::new(Full);
    core.control.cycle(0, false);
    let failed = core.control.records[21].failed().expect("the link is full");
    assert_eq!(failed, Failed { cause: Cause::Full, place: Some(1), in_link: true });
    assert_same(&plan, &core.stop());
}

struct Full;

impl Sender for Full {
    fn send(&mut self, _: &[u8]) -> Result<Sent, Fault> {
        Ok(Sent::Full)
    }

    fn wait_room(&mut self, _: u64) -> bool {
        false
    }

    fn close(&mut self) {}
}

#[test]
fn a_thread_that_fell_back_for_another_one_keeps_only_its_actuators() {
    let plan = plan(&[]);
    let mut core = Core::new(&plan);
    core.run(30);
    core.control.fall_back();
    core.plant.fall_back();
    let recording = core.stop();
    assert!(recording[1].1.iter().any(Record::is_fallen_back));
    assert_same(&plan, &recording);
}

#[test]
fn another_gain_differs_first_where_it_is_used_first() {
    let mut core = Core::new(&plan(&[]));
    core.run(50);
    let recording = core.stop();
    let other = plan(&[("filter.gain", "0.25")]);
    let (number, differences) =
        first_difference(&other, CONTROL, &recording[0].1).expect("another gain");
    // In the first cycle everything is zero.
    assert_eq!((number, differences[0].place), (1, 1));
    let node = other.nodes.iter().position(|node| node.name == "filter").expect("in the graph");
    let is_field =
        |site| matches!(site, Site::Field { node: at, port: 1, field: 0, at: 0 } if at == node);
    assert!(is_field(differences[0].site), "{differences:?}");
    assert_eq!(
        differences[0].old.map(Number::to_f64),
        differences[0].new.map(|it| 2.0 * it.to_f64())
    );
    assert_eq!(first_difference(&other, PLANT, &recording[1].1), None, "it was fed the old ones");
}

#[test]
fn a_failure_that_is_new_ends_the_comparison_and_one_that_is_gone_does_not() {
    let failing = plan(&[("source.fail_at", "10")]);
    let sound = plan(&[]);
    let mut core = Core::new(&sound);
    core.run(20);
    let records = core.control.records;
    let mut now = replayer(&failing, CONTROL);
    records.iter().for_each(|record| now.cycle(record).expect("no gap"));
    assert!(now.is_over());
    let (number, differences) = first_difference(&failing, CONTROL, &records).expect("it fails");
    assert_eq!((number, differences[0].site), (10, Site::Failure));

    let mut core = Core::new(&failing);
    core.run(20);
    let records = core.control.records;
    let mut now = replayer(&sound, CONTROL);
    records.iter().for_each(|record| now.cycle(record).expect("no gap"));
    assert!(!now.is_over());
    let (number, differences) = first_difference(&sound, CONTROL, &records).expect("it failed");
    assert_eq!((number, differences[0].site), (10, Site::Failure));
}

#[test]
fn a_cycle_that_does_not_follow_is_a_gap() {
    let plan = plan(&[]);
    let mut core = Core::new(&plan);
    core.run(5);
    let mut replayer = replayer(&plan, CONTROL);
    assert_eq!(replayer.cycle(&core.control.records[1]), Err(Gap { expected: 0, found: 1 }));
    replayer.cycle(&core.control.records[0]).expect("it follows");
    assert_eq!(replayer.cycle(&core.control.records[0]), Err(Gap { expected: 1, found: 0 }));
}

#[test]
fn one_bit_of_an_input_is_enough_to_differ() {
    let plan = plan(&[]);
    let mut core = Core::new(&plan);
    core.run(30);
    let mut replayer = replayer(&plan, CONTROL);
    let known = all(&replayer);
    let wish =
        replayer.taps().iter().position(|tap| tap.direction == Direction::In && tap.size == 8);
    let wish = wish.expect("the mailbox is a tap");
    let mut differ = vec![];
    for record in &core.control.records {
        let mut past = kept(record, &replayer);
        if past.number() == 10 {
            let mut message = past.message(wish).expect("a wish came in cycle 10").to_vec();
            message[0] ^= 1;
            past.restore_message(wish, Some(&message), false);
        }
        replayer.cycle(&past).expect("no gap");
        if !replayer.is_same(&past, &known) {
            differ.push(past.number());
        }
    }
    assert_eq!(differ.first(), Some(&10));
}

#[test]
fn numbers_show_the_bits_that_tell_them_apart() {
    let texts = [Number::Double(0.1 + 0.2), Number::Double(-0.0), Number::Single(0.1)];
    assert_eq!(texts.map(|it| it.to_string()), ["0.30000000000000004", "-0.0", "0.1"]);
    let nan = f64::from_bits(0x7ff8_0000_0000_0001);
    assert_eq!(Number::Double(nan).to_string(), "NaN 0x7ff8000000000001");
}

#[test]
fn the_flags_of_a_cycle_come_back_from_a_recording() {
    for place in [None, Some(0), Some(7)] {
        for in_link in [false, true] {
            let failed = Some(Failed { cause: Cause::Full, place, in_link });
            let mut record = Record::new(8, 0, 0, &[]);
            record.head(&CycleHead { failed, fallen_back: true, ..CycleHead::default() }, &[]);
            let execution_ticks = vec![0; 8];
            let past = Past { flags: record.flags(), execution_ticks, ..Past::default() };
            let mut restored = Record::new(8, 0, 0, &[]);
            restored.restore(&past);
            assert_eq!((restored.failed(), restored.is_fallen_back()), (failed, true));
        }
    }
}

//! Both sides of a carve-out, in one process.

use std::fmt::Write;
use std::string::ToString;
use std::vec::Vec;

use fastrand::Rng;
use sinew_core::sys::Region;

use super::image::{KindRecord, numbers, port, records};
use super::*;
use sinew_link::message::{Field, MessageType, Scalar, type_hash};
use zerocopy::IntoBytes;

const SIZE: usize = 1 << 20;

fn name(text: &str) -> Name {
    Name::new(text).expect("a short name")
}

fn node() -> NodeRow {
    let mut values = [0.0; VALUES_MAX];
    values[..2].copy_from_slice(&[-1.5, 1e300]);
    let (kind, trial) = (name("guard"), (Trial::Loop, 77));
    NodeRow { kind, name: kind, period_us: 1000, values, value_count: 2, trial }
}

fn row() -> RegionRow {
    let link = LinkRow {
        node: 0,
        port: 1,
        direction: Direction::Out,
        delivery: Delivery::Latest,
        capacity: 1,
        message_size: 192,
        bell: 0,
    };
    let offset = DATA as u32;
    let mut row = RegionRow { name: name("guard.out>drives.in"), offset, size: 0, hash: 77, link };
    row.size = row.shape().region_len() as u32;
    row
}

fn header_of(row: RegionRow) -> Header {
    let named_from = (row.offset + row.size).next_multiple_of(PAGE as u32);
    Header { size: SIZE as u32, epoch: 7, nodes: 1, rows: 1, named_from }
}

/// A carve-out that Linux has begun, as Linux and as the guest see it.
fn both() -> (CarveOut<Region>, CarveOut<Region>, Header) {
    let memory = Region::anonymous(SIZE).expect("memory");
    let linux = CarveOut::create(memory.clone()).expect("long enough");
    linux.begin(7, &[node()], &[row()]);
    let (guest, header) = CarveOut::open(memory).expect("as it was made");
    (linux, guest, header)
}

#[test]
fn the_guest_finds_what_linux_wrote() {
    let (linux, guest, header) = both();
    assert_eq!(header, header_of(row()));
    assert_eq!(guest.node(0), Some(node()));
    assert_eq!(guest.row(0), Some(row()));
    assert_eq!((guest.ordered(), guest.beats_of_linux()), (Order::Wait, 0));
    linux.order(Order::Run);
    linux.beat_of_linux();
    assert_eq!((guest.ordered(), guest.beats_of_linux()), (Order::Run, 1));
}

#[test]
fn linux_finds_what_the_guest_wrote_until_a_new_life_begins() {
    let (linux, guest, _) = both();
    assert_eq!(linux.state(7), Some(GuestState::Absent));
    guest.reached(GuestState::Running, 7);
    guest.beat_of_guest(1000);
    let status = NodeTally { cycles: 3, messages: [1, 2, 3, 4], ..NodeTally::default() };
    guest.set_tally(0, &status);
    guest.set_side(0, SideState::Attached);
    let mut fault = GuestFault::new(FaultKind::DataAbort, name("guard"));
    (fault.pc, fault.address, fault.status) = (0x4000_0010, 0x7100_0000, 0x5);
    write!(fault, "one byte past").expect("it is cut, never refused");
    guest.set_fault(&fault);
    assert_eq!(linux.state(7), Some(GuestState::Running));
    assert_eq!(linux.state(8), Some(GuestState::Absent), "it speaks of another life");
    assert_eq!((linux.beats_of_guest(), linux.tally(0)), (1, status));
    assert_eq!(linux.side(0), Some(SideState::Attached));
    assert_eq!(linux.fault(), Some(fault));
    let text = "data abort in 'guard' at 0x40000010: address 0x71000000, status 0x5: one \
                byte past";
    assert_eq!(fault.to_string(), text);
    linux.begin(8, &[node()], &[row()]);
    assert_eq!((linux.state(8), linux.fault()), (Some(GuestState::Absent), None));
    assert_eq!((linux.tally(0), linux.side(0)), (NodeTally::default(), Some(SideState::Free)));
}

#[test]
fn what_is_no_carve_out_is_refused() {
    let memory = |len| Region::anonymous(len).expect("memory");
    let short = CarveOut::open(memory(SIZE_MIN / 2)).map(drop);
    assert_eq!(short, Err(BadCarveOut::Size(SIZE_MIN / 2)));
    let empty = CarveOut::open(memory(SIZE_MIN)).map(drop).expect_err("nobody made it");
    assert_eq!(empty, BadCarveOut::Header { what: "magic", found: 0, expected: MAGIC });
    let made = memory(SIZE);
    CarveOut::create(made.clone()).expect("long enough").words.set(20, 65);
    let many = CarveOut::open(made).map(drop);
    assert_eq!(many, Err(BadCarveOut::TooMany { what: "rows", found: 65 }));
}

#[test]
fn a_row_lies_inside_and_behind_the_tables() {
    let mut row = row();
    assert!(row.lies_in(SIZE));
    row.offset = SIZE as u32 - PAGE as u32;
    row.size = PAGE as u32;
    assert!(row.lies_in(SIZE));
    row.size += 1;
    assert!(!row.lies_in(SIZE), "one byte past");
    for (offset, size) in [(0, 8), (DATA as u32 + 4, 8), (!4095, 8192), (DATA as u32, 0)] {
        assert!(!RegionRow { offset, size, ..row }.lies_in(SIZE), "{offset} {size}");
    }
}

/// Every word of the tables is overwritten with garbage, again and again, while both sides read all
/// of it. Each answer must be a valid one, and there is no panic.
#[test]
fn garbage_is_read_as_nothing_or_as_something_within_bounds() {
    let (linux, guest, _) = both();
    let mut rng = Rng::with_seed(15);
    let mut faults = 0;
    for _ in 0..2000 {
        for at in (0..DATA).step_by(4) {
            let word = if rng.bool() { rng.u32(0..12) } else { rng.u32(..) };
            linux.words.set(at, word);
        }
        let read = CarveOut::open(linux.memory().clone());
        assert!(read.is_err(), "a magic by chance");
        guest.ordered();
        linux.state(7);
        for node in 0..NODES_MAX {
            assert!(guest.node(node).is_none_or(|it| it.value_count as usize <= VALUES_MAX));
            linux.tally(node);
        }
        for at in 0..ROWS_MAX {
            assert!(guest.row(at).is_none_or(|row| row.lies_in(SIZE)));
            linux.side(at);
        }
        faults += usize::from(linux.fault().is_some_and(|fault| !fault.to_string().is_empty()));
    }
    assert!(faults > 0, "no garbage was ever read as a fault: the test saw nothing");
}

const FRAME: MessageType = {
    const FIELDS: &[Field] = &[
        Field { name: "bytes", scalar: Scalar::U8, count: 188, offset: 0, labels: &[] },
        Field { name: "length", scalar: Scalar::U32, count: 1, offset: 188, labels: &[] },
    ];
    let hash = type_hash("Frame", 192, FIELDS);
    MessageType { name: "Frame", size: 192, align: 4, fields: FIELDS, hash }
};

static GUARD: KindRecord = KindRecord::new(
    "guard",
    "Watches.",
    4096,
    &[port("in", "What is asked.", 0, &FRAME), port("out", "What may be.", 1, &FRAME)],
    &[numbers("speed_max", "Limit.", "rad/s", "[1, 2]", 2, (0.0, 10.0))],
    &["silent"],
);

#[test]
fn a_table_is_read_as_it_was_made() {
    let section = [GUARD.as_bytes(), GUARD.as_bytes()].concat();
    let kinds: Vec<_> = records(&section).expect("a good table").collect();
    assert_eq!(kinds.len(), 2);
    let kind = kinds[1];
    assert_eq!((kind.name(), kind.doc(), kind.stack()), ("guard", "Watches.", 4096));
    assert_eq!(kind.counters().collect::<Vec<_>>(), ["silent"]);
    let ports: Vec<_> =
        kind.ports().map(|port| (port.name(), port.writes(), port.hash())).collect();
    assert_eq!(ports, [("in", false, FRAME.hash), ("out", true, FRAME.hash)]);
    let fields: Vec<_> = kind.ports().flat_map(|port| port.fields().map(|it| it.count)).collect();
    assert_eq!(fields, [188, 1, 188, 1]);
    let parameter = kind.parameters().next().expect("one");
    assert_eq!(
        (parameter.name(), parameter.unit(), parameter.default()),
        ("speed_max", "rad/s", "[1, 2]")
    );
    assert_eq!((parameter.ty(), parameter.count(), parameter.range()), (3, 2, (0.0, 10.0)));
}

#[test]
fn a_table_with_any_word_turned_is_refused_or_within_bounds() {
    let good = GUARD.as_bytes();
    assert!(records(&good[1..]).is_err() && records(&[]).is_err());
    let mut refused = 0;
    for at in (0..good.len()).step_by(4) {
        for word in [0, 1, 0x7f, u32::MAX, 0x8000_0000] {
            let mut section = good.to_vec();
            section[at..at + 4].copy_from_slice(&word.to_le_bytes());
            let Ok(kinds) = records(&section) else {
                refused += 1;
                continue;
            };
            for kind in kinds {
                let ends = kind.ports().flat_map(|port| {
                    port.fields()
                        .map(move |it| it.offset + it.count * it.scalar.bytes() <= port.size())
                });
                assert!(ends.into_iter().all(|inside| inside), "word {at}");
                let values: u32 = kind.parameters().map(|it| it.count()).sum();
                assert!(values as usize <= VALUES_MAX, "word {at}");
            }
        }
    }
    assert!(refused > 50, "only {refused} were refused");
}

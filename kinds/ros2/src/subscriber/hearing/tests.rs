//! What is heard of a topic whose messages are made up.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::sleep;
use std::time::SystemTime;

use ros2_client::MessageInfo;
use sinew_core::catalogue::{Field, MessageType, Scalar, type_hash};
use sinew_spec::{Data, Item, Span};

use super::*;
use crate::fields::map;
use crate::messages::{Header, Twist, TwistStamped, Vector3};
use crate::topics::inward::{INWARD, Inward};

const FIELDS: &[Field] =
    &[Field { name: "velocity_m_per_s", scalar: Scalar::F64, count: 3, offset: 0, labels: &[] }];
static MESSAGE: MessageType =
    MessageType { name: "M", size: 24, align: 8, fields: FIELDS, hash: type_hash("M", 24, FIELDS) };

/// Longer than any look takes, and short.
const AFTER: Duration = Duration::from_millis(200);

struct Made(Receiver<Option<(f64, Origin)>>);

impl Intake for Made {
    fn take(&self, wanted: &Wanted) -> Result<Taken, Fault> {
        let Ok(next) = self.0.try_recv() else { return Ok(Taken::Nothing) };
        let Some((speed, info)) = next else { return Ok(Taken::Unreadable) };
        let linear = Vector3 { x: speed, y: 0.0, z: 0.0 };
        let header = Header { frame_id: "base".into(), ..Header::default() };
        let twist = Twist { linear, ..Twist::default() };
        Ok(Taken::Message(TwistStamped { header, twist }.heard(wanted), info))
    }
}

/// The gid of the writer with this number.
fn gid(writer: u8) -> Gid {
    let bytes = ros2_client::dds::rustdds::GUID::from_bytes([writer; 16]);
    Gid::from(bytes)
}

/// The origin of a message that arrived so long ago.
fn info(writer: u8, number: i64, ago: Duration) -> Origin {
    let arrived = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") - ago;
    let arrived = ROSTime::from_nanos(arrived.as_nanos() as i64);
    let info = MessageInfo::new(Some(arrived), None, number, gid(writer), None);
    Origin { info, said: None, took_ns: None }
}

fn hearing() -> (Sender<Option<(f64, Origin)>>, Hearing) {
    let ty = &INWARD[1];
    assert_eq!(ty.name, "geometry_msgs/msg/TwistStamped");
    let fields = Item::new(Span::default(), Data::Map(Vec::new()));
    let mapping = map(ty.slots, &fields, &MESSAGE, 0).expect("it maps");
    let (sender, receiver) = mpsc::channel();
    let of_writers = |writer: Gid| match writer {
        it if it == gid(9) => None,
        it if it == gid(8) => Some(("other", None)),
        it if it == gid(7) => Some(("geometry_msgs::msg::dds_::TwistStamped_", Some("RIHS01_1"))),
        _ => Some(("geometry_msgs::msg::dds_::TwistStamped_", None)),
    };
    let ask = Box::new(move |writer| {
        of_writers(writer).map(|(name, hash)| Foreign {
            type_name: name.to_owned(),
            hash: hash.map(str::to_owned),
        })
    });
    let wanted = Wanted { names: Vec::new(), points: 0 };
    let intake = Box::new(Made(receiver));
    let hearing = Hearing::new(ty, ask, intake, wanted, mapping, 24)
        .of_frame("base".into())
        .no_older_than(AFTER);
    (sender, hearing)
}

fn speed(message: Option<Vec<u8>>) -> Option<f64> {
    message.map(|bytes| f64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes")))
}

fn refused(hearing: &Hearing, why: Refused) -> u64 {
    hearing.tally.refused[why as usize]
}

#[test]
fn the_newest_message_enters_once() {
    let (sender, mut hearing) = hearing();
    for number in 1..=5 {
        sender.send(Some((number as f64, info(1, number, Duration::ZERO)))).expect("it listens");
    }
    hearing.look().expect("it looks");
    assert_eq!(speed(hearing.next()), Some(5.0));
    assert_eq!(speed(hearing.next()), None);
    assert_eq!(refused(&hearing, Refused::Overtaken), 4);
    assert_eq!(hearing.figures()[..3], [("taken", 5), ("entered", 1), ("lost", 0)]);
}

#[test]
fn a_bad_message_does_not_hide_a_good_one() {
    let (sender, mut hearing) = hearing();
    let bad = [
        Some((f64::NAN, info(1, 2, Duration::ZERO))),
        Some((2.0, info(7, 1, Duration::ZERO))),
        Some((2.0, info(8, 1, Duration::ZERO))),
        Some((2.0, info(9, 1, Duration::ZERO))),
        Some((2.0, info(1, 3, AFTER * 2))),
        None,
    ];
    sender.send(Some((1.0, info(1, 1, Duration::ZERO)))).expect("it listens");
    bad.into_iter().for_each(|bad| sender.send(bad).expect("it listens"));
    hearing.look().expect("it looks");
    assert_eq!(speed(hearing.next()), Some(1.0));
    let counts = [Refused::NotFinite, Refused::Type, Refused::Late, Refused::Bytes]
        .map(|why| refused(&hearing, why));
    assert_eq!(counts, [1, 3, 1, 1]);
}

#[test]
fn a_message_that_took_longer_than_others_of_its_writer_is_late() {
    let (sender, mut hearing) = hearing();
    let mut hear = |number, took_ms: i64| {
        let origin = info(1, number, Duration::ZERO);
        let origin = Origin { took_ns: Some(took_ms * 1_000_000), ..origin };
        sender.send(Some((1.0, origin))).expect("it listens");
        hearing.look().expect("it looks");
        hearing.next().is_some()
    };
    // The times are of two clocks, which may be far apart.
    let first = -1_000_000_000;
    assert!(hear(1, first));
    assert!(hear(2, first + 150));
    assert!(!hear(3, first + 250), "it was held somewhere on its way");
    assert!(hear(4, first + 20));
}

#[test]
fn a_message_that_the_graph_does_not_take_in_time_is_dropped() {
    let (sender, mut hearing) = hearing();
    sender.send(Some((1.0, info(1, 1, Duration::ZERO)))).expect("it listens");
    hearing.look().expect("it looks");
    sleep(AFTER * 2);
    assert_eq!(hearing.next(), None);
    assert_eq!(refused(&hearing, Refused::Late), 1);
}

#[test]
fn after_a_pause_nothing_is_taken_until_all_that_waited_is_gone() {
    let (sender, mut hearing) = hearing();
    sleep(AFTER * 2);
    let mut look = |number| {
        // The message is marked as just arrived: the thread that marks it was away, too.
        sender.send(Some((1.0, info(1, number, Duration::ZERO)))).expect("it listens");
        hearing.look().expect("it looks");
        hearing.next().is_some()
    };
    assert!(!look(1) && !look(2));
    let begun = Instant::now();
    while begun.elapsed() < AFTER * 2 {
        hearing.look().expect("it looks");
        sleep(Duration::from_millis(10));
    }
    sender.send(Some((1.0, info(1, 3, Duration::ZERO)))).expect("it listens");
    hearing.look().expect("it looks");
    assert_eq!(speed(hearing.next()), Some(1.0));
}

#[test]
fn gaps_in_the_numbers_of_a_writer_are_counted() {
    let (sender, mut hearing) = hearing();
    for number in [1, 2, 5, 4, i64::MAX, i64::MIN] {
        sender.send(Some((1.0, info(1, number, Duration::ZERO)))).expect("it listens");
    }
    hearing.look().expect("it looks");
    assert_eq!(hearing.tally.lost, 2 + (i64::MAX - 6) as u64);
}

#[test]
fn one_look_takes_no_more_than_so_many_and_few_writers_are_remembered() {
    let (sender, mut hearing) = hearing();
    for number in 0..=255 {
        sender.send(Some((1.0, info(number, 1, Duration::ZERO)))).expect("it listens");
        sender.send(Some((1.0, info(number, 2, Duration::ZERO)))).expect("it listens");
    }
    hearing.look().expect("it looks");
    assert_eq!(hearing.tally.taken, TAKEN_MAX as u64);
    assert!(hearing.writers.len() <= WRITERS_MAX);
}

#[test]
fn what_a_stranger_says_is_one_short_line() {
    assert_eq!(shown("a::dds_::B_"), "a::dds_::B_");
    assert_eq!(
        shown("a\nROS asked at '/halt': done\u{1b}[2J"),
        r"a\nROS asked at \'/halt\': done\u{1b}[2J"
    );
    assert_eq!(shown(&"ä".repeat(70_000)).chars().count(), SHOWN_MAX);
}

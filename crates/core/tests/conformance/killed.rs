//! Across processes: the same messages, and what is left when a side is killed.
//!
//! A stream ends with its process. A region does not: the party that started the process and sees
//! it die has to close it; until then the survivor finds nothing new, or no room.

use std::collections::BTreeSet;
use std::fs;

use fastrand::Rng;
use rustix::process::{WaitOptions, waitpid};
use sinew_core::clock::now_ns;
use sinew_core::transport::{Carrier, Received, Receiver, Sender, Sent};
use sinew_spec::plan::{Delivery, Sync, Wait};

use super::child::{HELD_AFTER, Part, Peer};
use super::{
    CAPACITY, Case, cases, expect, fill, limit, number, receive, region, send, serial, short, text,
};

/// Rounds of each killing, for each transport and sync.
const ROUNDS: u32 = 50;

/// Waits of the rounds, in turn. A spinning side would gain nothing here.
const WAITS: [Wait; 3] = [Wait::Park, Wait::Yield, Wait::SpinThenPark];

/// The transports that cross processes.
fn crossing(delivery: Delivery, wait: Wait, message_size: u32) -> impl Iterator<Item = Case> {
    cases(delivery, wait, message_size).filter(|case| case.row.crosses_processes)
}

/// The case and the chance of round `round`, the same in every run, for every transport and sync.
fn rounds() -> impl Iterator<Item = (Case, Rng)> {
    (0..ROUNDS).flat_map(|round| {
        let mut random = Rng::with_seed(round.into());
        let size = [8, 64, 4096, 65536][random.usize(..4)];
        let delivery = Delivery::ALL[(round % 3) as usize].0;
        let wait = WAITS[random.usize(..3)];
        crossing(delivery, wait, size).map(move |case| (case, random.fork()))
    })
}

/// The same region again, for the side that takes a dead one's place; a stream has died with its
/// side.
fn again(carrier: &Carrier) -> Option<Carrier> {
    carrier.region().cloned().map(Carrier::Region)
}

/// What must not grow: descriptors, children, names in /dev/shm.
#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    descriptors: usize,
    shared: BTreeSet<String>,
}

impl Belongings {
    fn count() -> Belongings {
        let none = waitpid(None, WaitOptions::NOHANG).expect_err("there is a child left");
        assert_eq!(none, rustix::io::Errno::CHILD);
        let names = |folder| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let shared = names("/dev/shm").collect();
        Belongings { descriptors: names("/proc/self/fd").count(), shared }
    }
}

#[test]
fn messages_cross_processes_in_both_directions() {
    let _serial = serial();
    let before = Belongings::count();
    let count = 100;
    for size in [1, 64, 65536] {
        for case in crossing(Delivery::Queue, Wait::Park, size) {
            let (writer, reader) = case.carriers();
            let peer = Peer::start(&case, Part::Write(count), writer);
            let mut receiver = case.receiver(reader);
            let mut message = case.buffer();
            for number in 0..count {
                expect(&case, &mut *receiver, number);
            }
            assert_eq!(receive(&case, &mut *receiver, &mut message), Received::Closed, "{case}");
            peer.join();

            let (writer, reader) = case.carriers();
            let mut peer = Peer::start(&case, Part::Read, reader);
            peer.attached();
            let mut sender = case.sender(writer);
            for number in 0..count {
                send(&case, &mut *sender, number);
            }
            drop(sender);
            peer.join();
        }
    }
    assert_eq!(Belongings::count(), before);
}

/// Receives what there is of `next` and later, until nothing more comes. Gives the number after
/// the last.
fn drain(case: &Case, receiver: &mut dyn Receiver, mut next: u32) -> u32 {
    let mut message = case.buffer();
    loop {
        match receiver.receive(&mut message).unwrap_or_else(|fault| panic!("{case}: {fault}")) {
            Received::New { lost } => {
                let found = number(&message, next + lost).expect("a whole message");
                let skips = case.shape.delivery == Delivery::Latest;
                assert!(found == next + lost || skips && found > next, "{case}: {found} at {next}");
                next = found + 1;
            }
            Received::None if case.is_region() => return next,
            Received::None => assert!(receiver.wait(limit()), "{case}: not told of the death"),
            Received::Closed if case.is_region() => panic!("{case}: nobody closed it"),
            Received::Closed => return next,
        }
    }
}

#[test]
fn a_killed_writer_leaves_whole_messages_only() {
    let _serial = serial();
    let before = Belongings::count();
    for (case, mut random) in rounds() {
        let (writer, reader) = case.carriers();
        let region = again(&writer);
        let peer = Peer::start(&case, Part::Write(u32::MAX), writer);
        let mut receiver = case.receiver(reader);
        let mut message = case.buffer();
        let mut next = 0;
        for _ in 0..=random.u32(..40) {
            let found = receive(&case, &mut *receiver, &mut message);
            let Received::New { lost } = found else { panic!("{case}: {found:?}") };
            next = 1 + number(&message, next + lost).expect("a whole message");
        }
        peer.kill();
        next = drain(&case, &mut *receiver, next);
        assert!(!receiver.wait(short()) || !case.is_region(), "{case}: more after the end");
        // The next writer goes on where the last whole message ended.
        if let Some(region) = region {
            let mut sender = case.sender(region);
            send(&case, &mut *sender, next);
            let found = receive(&case, &mut *receiver, &mut message);
            assert!(matches!(found, Received::New { .. }), "{case}: {found:?}");
            assert_eq!(number(&message, next), Ok(next), "{case}");
            drop(sender);
            assert_eq!(receive(&case, &mut *receiver, &mut message), Received::Closed, "{case}");
        }
    }
    assert_eq!(Belongings::count(), before);
}

/// Goes on sending after the reader's death: a stream ends, a region has no room or goes on.
fn outlive(case: &Case, sender: &mut dyn Sender) {
    let mut message = case.buffer();
    let until_ns = limit();
    for number in 0.. {
        fill(&mut message, number);
        match sender.send(&message).unwrap_or_else(|fault| panic!("{case}: {fault}")) {
            Sent::Done if case.is_region() && number > 10 * CAPACITY => return,
            Sent::Done => assert!(now_ns() < until_ns, "{case}: not told of the death"),
            Sent::Full if case.is_region() => {
                assert!(!sender.wait_room(short()), "{case}: the dead make no room");
                return;
            }
            Sent::Full => assert!(sender.wait_room(limit()), "{case}: not told of the death"),
            Sent::Closed => return assert!(!case.is_region(), "{case}: nobody closed it"),
        }
    }
}

#[test]
fn a_killed_reader_leaves_its_writer_unharmed() {
    let _serial = serial();
    let before = Belongings::count();
    for (case, mut random) in rounds() {
        let (writer, reader) = case.carriers();
        let region = again(&reader);
        let mut peer = Peer::start(&case, Part::Read, reader);
        peer.attached();
        let mut sender = case.sender(writer);
        let mut message = case.buffer();
        for number in 0..=random.u32(..100) {
            send(&case, &mut *sender, number);
        }
        peer.kill();
        outlive(&case, &mut *sender);
        if let Some(region) = region {
            let mut receiver = case.receiver(region);
            let mut found = 0;
            while let Received::New { .. } = receiver.receive(&mut message).expect("no fault") {
                let whole = number(&message, 0);
                assert!(whole.is_ok(), "{case}: {whole:?}");
                found += 1;
            }
            assert!(found > 0, "{case}: the next reader finds nothing");
        }
    }
    assert_eq!(Belongings::count(), before);
}

#[test]
fn a_writer_killed_with_the_lock_leaves_whole_messages_only() {
    let _serial = serial();
    let before = Belongings::count();
    for &(delivery, _) in Delivery::ALL {
        let cases = crossing(delivery, Wait::Park, 64);
        for case in cases.filter(|case| case.shape.sync == Sync::Mutex) {
            let (writer, reader) = case.carriers();
            let region = Carrier::Region(region(&reader).clone());
            let mut receiver = case.receiver(reader);
            let peer = Peer::start(&case, Part::Hold, writer);
            peer.stopped();

            let mut message = case.buffer();
            let fault = text(receiver.receive(&mut message));
            assert!(fault.starts_with("lost_peer") && fault.contains("mutex"), "{case}: {fault}");
            peer.kill();

            let first = if delivery == Delivery::Latest { HELD_AFTER - 1 } else { 0 };
            for number in first..HELD_AFTER {
                expect(&case, &mut *receiver, number);
            }
            assert_eq!(receiver.receive(&mut message).expect("no fault"), Received::None, "{case}");
            let mut sender = case.sender(region);
            send(&case, &mut *sender, HELD_AFTER);
            expect(&case, &mut *receiver, HELD_AFTER);
        }
    }
    assert_eq!(Belongings::count(), before);
}

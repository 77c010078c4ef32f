//! Messages written and read in place: whole, in order, and nothing that was not committed.

use std::sync::atomic::Ordering;
use std::thread;

use sinew_core::transport::{Carrier, Received, Receiver, Sender, Sent};
use sinew_spec::plan::{Delivery, Sync, Wait};

use super::child::{HELD_AFTER, Part, Peer};
use super::{
    CAPACITY, Case, all_cases, cases, expect, fill, limit, number, region, send, serial, text,
};

/// Bytes of a picture of 640 x 480 points with its header.
const FRAME: u32 = 3 * 640 * 480 + 16;

/// Bytes of a part of a message; the last part may be shorter.
const PART: usize = 1920;

/// The links that have places.
fn places(message_size: u32) -> impl Iterator<Item = Case> {
    cases(Delivery::Queue, Wait::Park, message_size).filter(has_places)
}

pub(super) fn has_places(case: &Case) -> bool {
    let shape = &case.shape;
    case.is_region() && shape.sync == Sync::LockFree && shape.delivery == Delivery::Queue
}

/// Sends message `number` part by part, the last part first; there is room.
pub(super) fn send_in_place(case: &Case, sender: &mut dyn Sender, number: u32) {
    let mut message = case.buffer();
    fill(&mut message, number);
    let claim = sender.claim().unwrap_or_else(|fault| panic!("{case}: {fault}"));
    let mut claim = claim.unwrap_or_else(|| panic!("{case}: no room for {number}"));
    assert_eq!(claim.len(), message.len());
    for (at, part) in message.chunks(PART).enumerate().rev() {
        claim.write_at(at * PART, part);
    }
    claim.commit();
}

/// Reads the next message part by part, which is `expected`, and frees its place.
fn expect_in_place(case: &Case, receiver: &mut dyn Receiver, expected: u32) {
    let peek = receiver.peek().unwrap_or_else(|fault| panic!("{case}: {fault}"));
    let peek = peek.unwrap_or_else(|| panic!("{case}: message {expected} is not there"));
    let mut message = case.buffer();
    assert_eq!(peek.len(), message.len());
    for (at, part) in message.chunks_mut(PART).enumerate() {
        peek.read_at(at * PART, part);
    }
    assert_eq!(number(&message, expected), Ok(expected), "{case}");
    peek.release();
}

#[test]
fn messages_written_in_place_arrive_whole_and_in_order() {
    let _serial = serial();
    for size in [1, 8, 64, 4096, FRAME] {
        for case in places(size) {
            let (mut sender, mut receiver) = case.open();
            for number in (0..40).step_by(4) {
                // Both ways to write and both to read, mixed.
                send_in_place(&case, &mut *sender, number);
                send(&case, &mut *sender, number + 1);
                send_in_place(&case, &mut *sender, number + 2);
                send(&case, &mut *sender, number + 3);
                expect_in_place(&case, &mut *receiver, number);
                expect_in_place(&case, &mut *receiver, number + 1);
                expect(&case, &mut *receiver, number + 2);
                expect(&case, &mut *receiver, number + 3);
            }
        }
    }
}

#[test]
fn who_waits_is_woken_by_what_is_done_in_place() {
    let _serial = serial();
    for &(wait, _) in Wait::ALL {
        for case in cases(Delivery::Queue, wait, 4096).filter(has_places) {
            let (mut sender, mut receiver) = case.open();
            let count = 5 * CAPACITY;
            thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..count {
                        while receiver.peek().expect("no fault").is_none() {
                            assert!(receiver.wait(limit()), "{case}: never woken");
                        }
                        expect_in_place(&case, &mut *receiver, number);
                    }
                });
                for number in 0..count {
                    while sender.claim().expect("no fault").is_none() {
                        assert!(sender.wait_room(limit()), "{case}: never woken");
                    }
                    send_in_place(&case, &mut *sender, number);
                }
            });
        }
    }
}

#[test]
fn without_room_there_is_no_place() {
    let _serial = serial();
    for case in places(FRAME) {
        let (mut sender, mut receiver) = case.open();
        for number in 0..CAPACITY {
            send_in_place(&case, &mut *sender, number);
        }
        assert!(sender.claim().expect("no fault").is_none(), "{case}");
        assert_eq!(sender.send(&case.buffer()).expect("no fault"), Sent::Full, "{case}");
        for number in 0..CAPACITY {
            expect_in_place(&case, &mut *receiver, number);
        }
        assert!(receiver.peek().expect("no fault").is_none(), "{case}");
        drop(receiver);
        assert!(sender.claim().expect("no fault").is_none(), "{case}: the reader has left");
    }
}

#[test]
fn a_reader_in_place_gets_what_was_sent_before_the_close() {
    let _serial = serial();
    for case in places(64) {
        let (mut sender, mut receiver) = case.open();
        send_in_place(&case, &mut *sender, 0);
        sender.close();
        assert!(sender.claim().expect("no fault").is_none(), "{case}: it has closed");
        expect_in_place(&case, &mut *receiver, 0);
        assert!(receiver.peek().expect("no fault").is_none(), "{case}");
        let mut message = case.buffer();
        assert_eq!(receiver.receive(&mut message).expect("no fault"), Received::Closed, "{case}");
    }
}

#[test]
fn links_without_places_say_what_to_change() {
    let _serial = serial();
    for case in all_cases(64).filter(|case| !has_places(case)) {
        let (mut sender, mut receiver) = case.open();
        for refusal in [text(sender.claim().map(|_| ())), text(receiver.peek().map(|_| ()))] {
            assert!(refusal.starts_with("error"), "{case}: {refusal}");
            assert!(refusal.contains("shared_memory"), "{case}: {refusal}");
            assert!(refusal.contains("delivery: queue"), "{case}: {refusal}");
        }
    }
}

#[test]
fn a_peer_that_overwrites_what_is_read_changes_no_more_than_what_is_read() {
    let _serial = serial();
    for case in places(64) {
        let (writer, reader) = case.carriers();
        let region = region(&writer).clone();
        let (mut sender, mut receiver) = (case.sender(writer), case.receiver(reader));
        send_in_place(&case, &mut *sender, 0);
        let peek = receiver.peek().expect("no fault").expect("a message");
        let (mut before, mut after) = ([0; 64], [0; 64]);
        peek.read_at(0, &mut before);
        region.words().iter().for_each(|word| word.store(u32::MAX, Ordering::Relaxed));
        peek.read_at(0, &mut after);
        assert_eq!((number(&before, 0), after), (Ok(0), [0xff; 64]), "{case}");
        peek.release();
        let refusal = text(receiver.peek().map(|_| ()));
        assert!(refusal.starts_with("bad_peer"), "{case}: {refusal}");
    }
}

#[test]
fn a_writer_killed_between_claim_and_commit_leaves_whole_messages_only() {
    let _serial = serial();
    for size in [64, FRAME] {
        for case in places(size).filter(|case| case.row.crosses_processes) {
            let (writer, reader) = case.carriers();
            let region = Carrier::Region(region(&reader).clone());
            let mut receiver = case.receiver(reader);
            let peer = Peer::start(&case, Part::Claim, writer);
            peer.stopped();
            peer.kill();
            for number in 0..HELD_AFTER {
                expect_in_place(&case, &mut *receiver, number);
            }
            assert!(receiver.peek().expect("no fault").is_none(), "{case}");
            let mut sender = case.sender(region);
            send_in_place(&case, &mut *sender, HELD_AFTER);
            expect_in_place(&case, &mut *receiver, HELD_AFTER);
        }
    }
}

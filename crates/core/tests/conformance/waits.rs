//! Waits end: at their deadline, with a message, when the peer leaves.

use std::thread;
use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_core::transport::{Received, Sent};
use sinew_spec::plan::{Delivery, Wait};

use super::{all_cases, cases, expect, fill, limit, receive, send, serial, short};

/// Long enough for the other thread to fall asleep, as a rule; the tests hold if it does not.
const NAP: Duration = Duration::from_millis(1);

#[test]
fn a_wait_ends_at_its_deadline() {
    let _serial = serial();
    for case in all_cases(64) {
        let (_sender, mut receiver) = case.open();
        assert!(!receiver.wait(0), "{case}: waited for a time that is past");
        assert!(!receiver.wait(short()), "{case}: nothing came");
        assert_eq!(
            receiver.receive(&mut case.buffer()).expect("no fault"),
            Received::None,
            "{case}"
        );
    }
}

#[test]
fn a_message_and_a_close_wake_the_reader() {
    let _serial = serial();
    for case in all_cases(64) {
        let (mut sender, mut receiver) = case.open();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut message = case.buffer();
                assert!(receiver.wait(limit()), "{case}: not woken by a message");
                expect(&case, &mut *receiver, 7);
                assert!(receiver.wait(limit()), "{case}: not woken by the close");
                let found = receiver.receive(&mut message).expect("no fault");
                assert_eq!(found, Received::Closed, "{case}");
            });
            thread::sleep(NAP);
            let mut message = case.buffer();
            // A broadcast tells of messages lost before the first one, so there are none.
            fill(&mut message, 7);
            assert_eq!(sender.send(&message).expect("no fault"), Sent::Done, "{case}");
            thread::sleep(NAP);
            sender.close();
            reader.join().expect("the reader has no complaint");
        });
        assert_eq!(sender.send(&case.buffer()).expect("no fault"), Sent::Closed, "{case}");
    }
}

#[test]
fn parked_sides_wake_each_other() {
    let _serial = serial();
    // A side that only looks again by itself, now and then, does not get through this many round
    // trips before the limit.
    let count = 2000;
    for case in cases(Delivery::Queue, Wait::Park, 64) {
        let ((mut there, mut here), (mut back, mut home)) = (case.open(), case.open());
        let until_ns = limit();
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..count {
                    expect(&case, &mut *here, number);
                    send(&case, &mut *back, number);
                }
            });
            for number in 0..count {
                assert!(now_ns() < until_ns, "{case}: nobody wakes the other side");
                send(&case, &mut *there, number);
                expect(&case, &mut *home, number);
            }
        });
    }
}

#[test]
fn what_was_sent_before_the_close_still_arrives() {
    let _serial = serial();
    for case in all_cases(4096) {
        let (mut sender, mut receiver) = case.open();
        let mut message = case.buffer();
        send(&case, &mut *sender, 0);
        drop(sender);
        expect(&case, &mut *receiver, 0);
        for _ in 0..2 {
            assert_eq!(receive(&case, &mut *receiver, &mut message), Received::Closed, "{case}");
        }
    }
}

#[test]
fn a_writer_sees_that_its_reader_left() {
    let _serial = serial();
    for delivery in [Delivery::Queue, Delivery::Latest] {
        for case in cases(delivery, Wait::Park, 64) {
            let (mut sender, receiver) = case.open();
            drop(receiver);
            let until_ns = limit();
            while sender.send(&case.buffer()).expect("no fault") != Sent::Closed {
                assert!(now_ns() < until_ns, "{case}: never told");
                // TCP learns it from the answer to the first message.
                thread::yield_now();
            }
        }
    }
}

#[test]
fn waiting_for_room_does_not_hold_a_writer_that_never_waits() {
    let _serial = serial();
    for delivery in [Delivery::Latest, Delivery::Broadcast] {
        for case in cases(delivery, Wait::Park, 65536) {
            let (mut sender, _receiver) = case.open();
            let mut message = case.buffer();
            for number in 0..200 {
                fill(&mut message, number);
                assert_eq!(sender.send(&message).expect("no fault"), Sent::Done, "{case}");
                assert!(sender.wait_room(short()), "{case}");
            }
        }
    }
}

//! Full is an answer, and nothing that was taken is lost.

use std::ops::Range;
use std::thread;

use sinew_core::transport::{Receiver, Sender, Sent};
use sinew_spec::plan::{Delivery, Wait};

use super::{Case, cases, expect, fill, limit, send, serial, short};

/// More messages than any kernel takes before it says that it is full.
const TAKEN_MAX: u32 = 1_000_000;

/// Sends until the link is full; returns how many messages it took.
fn fill_up(case: &Case, sender: &mut dyn Sender) -> u32 {
    let mut message = case.buffer();
    for number in 0..TAKEN_MAX {
        fill(&mut message, number);
        match sender.send(&message).expect("no fault") {
            Sent::Done => {}
            // TCP moves bytes from one buffer to the other at any time, so there may be room later.
            Sent::Full if !sender.wait_room(short()) => return number,
            Sent::Full => send(case, sender, number),
            Sent::Closed => panic!("{case}: closed at message {number}"),
        }
    }
    panic!("{case}: {TAKEN_MAX} messages and not full");
}

/// Receives these messages, while the writer sends the rest of what it had taken.
fn take(case: &Case, sender: &mut dyn Sender, receiver: &mut dyn Receiver, numbers: Range<u32>) {
    for number in numbers {
        while !receiver.wait(short()) {
            sender.flush().expect("no fault");
        }
        expect(case, receiver, number);
    }
}

#[test]
fn a_full_queue_says_so_and_loses_nothing() {
    let _serial = serial();
    for size in [64, 4096, 65536] {
        for case in cases(Delivery::Queue, Wait::Park, size) {
            let (mut sender, mut receiver) = case.open();
            let taken = fill_up(&case, &mut *sender);
            if case.is_region() {
                assert_eq!(taken, case.shape.capacity, "{case}");
            }
            assert!(taken > 0, "{case}");
            take(&case, &mut *sender, &mut *receiver, 0..taken);
            send(&case, &mut *sender, taken);
            take(&case, &mut *sender, &mut *receiver, taken..taken + 1);
        }
    }
}

#[test]
fn kernel_buffers_hold_the_capacity() {
    let _serial = serial();
    // More than pipe and socket hold by default, and less than any kernel allows.
    for (size, capacity) in [(8, 512), (64, 512), (2100, 64), (4096, 32)] {
        for mut case in cases(Delivery::Queue, Wait::Park, size) {
            case.shape.capacity = capacity;
            let (mut sender, _receiver) = case.open();
            let taken = fill_up(&case, &mut *sender);
            assert!(taken >= capacity, "{case}: took {taken} of {capacity} messages");
        }
    }
}

#[test]
fn a_writer_waits_for_room() {
    let _serial = serial();
    for &(wait, _) in Wait::ALL {
        for case in cases(Delivery::Queue, wait, 4096) {
            let (mut sender, mut receiver) = case.open();
            let taken = fill_up(&case, &mut *sender);
            assert!(!sender.wait_room(short()), "{case}: room in a full queue");
            thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    for number in 0..=taken {
                        expect(&case, &mut *receiver, number);
                    }
                });
                send(&case, &mut *sender, taken);
                sender.close();
                reader.join().expect("the reader has no complaint");
            });
        }
    }
}

#[test]
fn a_writer_that_waits_for_room_learns_that_the_reader_left() {
    let _serial = serial();
    for &(wait, _) in Wait::ALL {
        for case in cases(Delivery::Queue, wait, 4096) {
            let (mut sender, receiver) = case.open();
            fill_up(&case, &mut *sender);
            thread::scope(|scope| {
                scope.spawn(|| drop(receiver));
                let mut sent = Sent::Full;
                while sent == Sent::Full {
                    assert!(sender.wait_room(limit()), "{case}: never woken");
                    sent = sender.send(&case.buffer()).expect("no fault");
                }
                // TCP reports at the second send what it has learnt at the first.
                while sent == Sent::Done && sender.wait_room(limit()) {
                    sent = sender.send(&case.buffer()).expect("no fault");
                }
                assert_eq!(sent, Sent::Closed, "{case}");
            });
        }
    }
}

//! Peers of another shape, streams that are cut, regions that lie: a fault with a text or the end
//! of the link, and no message that was not sent.

use std::sync::atomic::Ordering;

use rustix::io::write;
use sinew_core::sys::{Locked, Region, SHARED_MUTEX_LEN, SharedMutex};
use sinew_core::transport::{Carrier, Received, Receiver, Sent};
use sinew_spec::plan::{Delivery, Sync, Wait};

use super::{Case, all_cases, cases, expect, fill, limit, receive, send, serial, short, text};

#[test]
fn a_link_of_another_shape_is_refused_with_a_text() {
    let _serial = serial();
    for case in all_cases(136) {
        let mut smaller = case;
        smaller.shape.message_size = 128;
        let mut other = case;
        other.shape.type_hash ^= 1;
        for (wrong, word) in [(smaller, "size"), (other, "hash")] {
            let (writer, reader) = case.carriers();
            let _sender = case.sender(writer);
            let refusal = match (wrong.row.receiver)(reader, &wrong.shape) {
                Err(fault) => format!("{fault:?}"),
                // A stream tells its shape with its first bytes.
                Ok(mut receiver) => {
                    assert!(!receiver.wait(short()), "{case}: a greeting is no message");
                    text(receiver.receive(&mut wrong.buffer()))
                }
            };
            assert!(refusal.starts_with("bad_peer") && refusal.contains(word), "{case}: {refusal}");
        }
    }
}

#[test]
fn a_capacity_that_is_no_power_of_two_is_refused_with_a_text() {
    let _serial = serial();
    for mut case in cases(Delivery::Queue, Wait::Park, 64).filter(Case::is_region) {
        case.shape.capacity = 12;
        let error = (case.row.open)(&case.shape).expect_err("it cannot be laid out").to_string();
        assert!(error.contains("12") && error.contains("power of two"), "{case}: {error}");
    }
}

#[test]
fn ends_refuse_carriers_of_another_transport() {
    let _serial = serial();
    let all: Vec<Case> = cases(Delivery::Queue, Wait::Park, 8).collect();
    for (region, stream) in all.iter().flat_map(|one| all.iter().map(move |two| (one, two))) {
        if region.is_region() && !stream.is_region() {
            let (writer, reader) = region.carriers();
            assert!(text((stream.row.sender)(writer, &stream.shape)).contains("region"));
            assert!(text((stream.row.receiver)(reader, &stream.shape)).contains("region"));
            let (writer, reader) = stream.carriers();
            assert!(text((region.row.sender)(writer, &region.shape)).contains("stream"));
            assert!(text((region.row.receiver)(reader, &region.shape)).contains("stream"));
        }
    }
}

/// A stream whose writer sent message 0; then, past the writer, came `bytes`, and with `cut` the
/// end.
fn written(case: &Case, bytes: &[u8], cut: bool) -> Box<dyn Receiver> {
    let (writer, reader) = case.carriers();
    let Carrier::Stream(stream) = &writer else { panic!("{case}: no stream") };
    let copy = stream.try_clone().expect("a copy");
    let (mut sender, receiver) = (case.sender(writer), case.receiver(reader));
    send(case, &mut *sender, &mut case.buffer(), 0);
    assert_eq!(write(&copy, bytes).expect("there is room"), bytes.len());
    if !cut {
        // To drop it would tell the reader.
        std::mem::forget(sender);
    }
    receiver
}

/// The streams, for every delivery.
fn streams() -> impl Iterator<Item = Case> {
    all_cases(64).filter(|case| !case.is_region() && case.shape.wait == Wait::Park)
}

#[test]
fn a_stream_that_ends_within_a_message_is_closed() {
    let _serial = serial();
    for case in streams() {
        for len in [1, 4, 5, 67] {
            let mut frame = [0; 68];
            fill(&mut frame[4..], 1);
            frame[0] = 1;
            let mut receiver = written(&case, &frame[..len], true);
            let mut message = case.buffer();
            expect(&case, &mut *receiver, &mut message, 0);
            assert_eq!(receive(&case, &mut *receiver, &mut message), Received::Closed, "{case}");
        }
    }
}

#[test]
fn a_number_that_cannot_be_is_a_fault_with_a_text() {
    let _serial = serial();
    for case in streams() {
        // A queue loses nothing; the others cannot go back.
        let number: u32 = if case.shape.delivery == Delivery::Queue { 2 } else { 0 };
        let mut frame = [0; 68];
        frame[..4].copy_from_slice(&number.to_le_bytes());
        let mut receiver = written(&case, &frame, false);
        let mut message = case.buffer();
        let fault = loop {
            match receiver.receive(&mut message) {
                Err(fault) => break text::<()>(Err(fault)),
                Ok(Received::Closed) => panic!("{case}: closed"),
                Ok(_) => assert!(receiver.wait(limit()), "{case}: no fault"),
            }
        };
        assert!(fault.starts_with("bad_peer"), "{case}: {fault}");
    }
}

/// The regions behind a mutex, with both ends and the bytes.
fn mutex_regions(delivery: Delivery) -> impl Iterator<Item = (Case, Region)> {
    let cases = cases(delivery, Wait::Park, 64).filter(|case| case.shape.sync == Sync::Mutex);
    cases.map(|case| {
        let (Carrier::Region(region), _) = case.carriers() else { panic!("{case}: no region") };
        (case, region)
    })
}

/// Where the layout of `sync: mutex` has its tail and its head.
const TAIL: usize = SHARED_MUTEX_LEN / 4 + 32;
const HEAD: usize = TAIL + 1;

#[test]
fn positions_that_cannot_be_are_a_fault_with_a_text() {
    let _serial = serial();
    for &(delivery, _) in Delivery::ALL {
        for (case, region) in mutex_regions(delivery) {
            let mut sender = case.sender(Carrier::Region(region.clone()));
            let mut receiver = case.receiver(Carrier::Region(region.clone()));
            let mut message = case.buffer();
            send(&case, &mut *sender, &mut message, 0);
            expect(&case, &mut *receiver, &mut message, 0);
            // Every value gives a fault, a message or none: never a look outside the region.
            for tail in [0, 2, 8, 9, 10, 1000, 1 << 31, u32::MAX] {
                region.words()[TAIL].store(tail, Ordering::Relaxed);
                if let Err(fault) = receiver.receive(&mut message) {
                    assert!(text::<()>(Err(fault)).starts_with("bad_peer"), "{case}: tail {tail}");
                }
            }
            region.words()[TAIL].store(u32::MAX / 2 + 100, Ordering::Relaxed);
            let queue = delivery == Delivery::Queue;
            if queue {
                assert!(text(receiver.receive(&mut message)).contains("tail"), "{case}");
                region.words()[HEAD].store(77, Ordering::Relaxed);
                assert!(text(sender.send(&message)).contains("head"), "{case}");
            } else {
                assert_eq!(sender.send(&message).expect("no fault"), Sent::Done, "{case}");
            }
        }
    }
}

#[test]
fn positions_wrap() {
    let _serial = serial();
    for &(delivery, _) in Delivery::ALL {
        for (case, region) in mutex_regions(delivery) {
            let start = u32::MAX - 20;
            region.words()[TAIL].store(start, Ordering::Relaxed);
            region.words()[HEAD].store(start, Ordering::Relaxed);
            let mut sender = case.sender(Carrier::Region(region.clone()));
            let mut receiver = case.receiver(Carrier::Region(region));
            let mut message = case.buffer();
            // Those that a reader takes to have been there before it came.
            while let Ok(Received::New { .. }) = receiver.receive(&mut message) {}
            for number in 0..100 {
                send(&case, &mut *sender, &mut message, number);
                expect(&case, &mut *receiver, &mut message, number);
            }
        }
    }
}

#[test]
fn a_lock_that_is_held_keeps_nobody_waiting_who_may_not_wait() {
    let _serial = serial();
    for case in cases(Delivery::Queue, Wait::Park, 8).filter(|it| it.shape.sync == Sync::Mutex) {
        let (writer, reader) = case.carriers();
        let Carrier::Region(region) = &writer else { panic!("{case}: a mutex lies in a region") };
        let mutex = SharedMutex::attach(region.clone());
        let (mut sender, mut receiver) = (case.sender(writer), case.receiver(reader));
        assert_eq!(mutex.lock(limit()), Locked::Clean);
        assert!(sender.try_send(&case.buffer()).is_none(), "{case}: the lock is held");
        sender.hang_up();
        mutex.unlock();
        let found = |receiver: &mut dyn Receiver| receiver.receive(&mut case.buffer()).ok();
        assert_eq!(found(&mut *receiver), Some(Received::None), "{case}");
        drop(sender);
        assert_eq!(found(&mut *receiver), Some(Received::Closed), "{case}: it is told at last");
    }
}

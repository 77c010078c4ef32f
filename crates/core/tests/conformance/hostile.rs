//! Peers of another shape, streams that are cut, regions that lie: a fault with a text or the end
//! of the link, and no message that was not sent.

use std::sync::atomic::Ordering;

use rustix::io::write;
use sinew_core::sys::Locked;
use sinew_core::transport::{Carrier, Received, Receiver, Sent};
use sinew_spec::plan::{Delivery, SlotLayout, Sync, Wait};

use super::in_place::has_places;
use super::{
    Case, all_cases, cases, expect, fill, limit, mutex_of, receive, region, send, serial, short,
    text,
};

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
                    assert!(!receiver.wait(short()), "{case}: a greeting is not a message");
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

/// A stream whose writer sent message 0; then `bytes` came without the writer, and with `cut` the
/// end of the stream.
fn written(case: &Case, bytes: &[u8], cut: bool) -> Box<dyn Receiver> {
    let (writer, reader) = case.carriers();
    let Carrier::Stream(stream) = &writer else { panic!("{case}: no stream") };
    let copy = stream.try_clone().expect("a copy");
    let (mut sender, receiver) = (case.sender(writer), case.receiver(reader));
    send(case, &mut *sender, 0);
    assert_eq!(write(&copy, bytes).expect("there is room"), bytes.len());
    if !cut {
        // Dropping it would tell the reader.
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
            expect(&case, &mut *receiver, 0);
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

/// Where a queue has its tail and its head (`crates/link/src/lib.rs`).
const TAIL: usize = 128 / 4;
const HEAD: usize = 256 / 4;
/// Where, with messages of 4096 bytes, slot 1 of the sequence layout has its sequence.
const SEQUENCE: usize = (640 + 2 * 4160 - 4) / 4;

#[test]
fn positions_that_cannot_be_are_a_fault_with_a_text() {
    let _serial = serial();
    for case in cases(Delivery::Queue, Wait::Park, 4096).filter(Case::is_region) {
        let (writer, reader) = case.carriers();
        let region = region(&writer).clone();
        let (mut sender, mut receiver) = (case.sender(writer), case.receiver(reader));
        let mut message = case.buffer();
        send(&case, &mut *sender, 0);
        expect(&case, &mut *receiver, 0);
        // Every value gives a fault, a message or none: never a look outside the region.
        for tail in [0, 2, 8, 9, 10, 1000, 1 << 31, u32::MAX] {
            region.words()[TAIL].store(tail, Ordering::Relaxed);
            if let Err(fault) = receiver.receive(&mut message) {
                assert!(text::<()>(Err(fault)).starts_with("bad_peer"), "{case}: tail {tail}");
            }
            if let Err(fault) = receiver.peek() {
                let fault = text::<()>(Err(fault));
                let has_no_places = fault.starts_with("error") && !has_places(&case);
                assert!(has_no_places || fault.starts_with("bad_peer"), "{case}: tail {tail}");
            }
        }
        let has_sequence = case.shape.tuning.is_some_and(|it| it.layout == SlotLayout::Sequence);
        let goes_by = if has_sequence { SEQUENCE } else { TAIL };
        region.words()[goes_by].store(u32::MAX / 2 + 100, Ordering::Relaxed);
        assert!(text(receiver.receive(&mut message)).starts_with("bad_peer"), "{case}");
        while sender.send(&message).is_ok_and(|sent| sent == Sent::Done) {}
        region.words()[HEAD].store(77, Ordering::Relaxed);
        assert!(text(sender.send(&message)).starts_with("bad_peer"), "{case}");
        if has_places(&case) {
            assert!(text(sender.claim().map(|_| ())).starts_with("bad_peer"), "{case}");
        }
    }
}

#[test]
fn a_lock_that_is_held_keeps_nobody_waiting_who_may_not_wait() {
    let _serial = serial();
    for case in cases(Delivery::Queue, Wait::Park, 8).filter(|it| it.shape.sync == Sync::Mutex) {
        let (writer, reader) = case.carriers();
        let mutex = mutex_of(region(&writer).clone());
        let (mut sender, mut receiver) = (case.sender(writer), case.receiver(reader));
        assert_eq!(mutex.lock(limit()), Locked::Clean);
        assert!(sender.try_send(&case.buffer()).is_none(), "{case}: the lock is held");
        sender.hang_up();
        assert!(receiver.wait(limit()), "{case}: to be told takes no lock");
        mutex.unlock();
        let found = receiver.receive(&mut case.buffer()).expect("no fault");
        assert_eq!(found, Received::Closed, "{case}");
    }
}

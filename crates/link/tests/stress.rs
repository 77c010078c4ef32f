//! Two threads on each link, with counts as bounds, for ThreadSanitizer and for plain runs. A side
//! that finds nothing gives its CPU away.
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
//!   CARGO_TARGET_DIR=target/tsan TSAN_OPTIONS="suppressions=$PWD/crates/link/tests/tsan.supp" \
//!   cargo test -p sinew-link --target x86_64-unknown-linux-gnu --test stress
//! ```
//!
//! The same with `-- --ignored` must fail: it runs a race that ThreadSanitizer reports.
#![cfg(unix)]

use std::cell::UnsafeCell;
use std::thread;

use sinew_link::broadcast::{self, Arrived};
use sinew_link::latest::{self, Fresh};
use sinew_link::{Layout, Os, Shape, Wait, counter, queue};

mod support;
use support::{Guarded, Linux, number, pattern};

/// Messages on each link.
const MESSAGES: u32 = 20_000;
/// Bytes of a message; not a multiple of anything.
const N: usize = 21;
/// Far beyond what any of these waits takes, so that a lost wake-up fails instead of hanging.
const LIMIT_NS: u64 = 60_000_000_000;

fn through_a_queue(layout: Layout, wait: Wait, capacity: u32) {
    let shape = Shape { layout, ..Shape::queue(N as u32, 0, capacity) }.parking();
    let memory = Guarded::made(&shape);
    let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = queue::Reader::attach(memory, &shape).expect("made");
    let deadline_ns = Some(Linux.now_ns() + LIMIT_NS);
    thread::scope(|scope| {
        scope.spawn(move || {
            for i in 0..MESSAGES {
                while writer.try_send(&pattern::<N>(i)).is_err() {
                    assert!(writer.wait_room(wait, deadline_ns, &Linux), "never woken for room");
                }
                writer.wake(&Linux);
            }
        });
        for i in 0..MESSAGES {
            let mut message = [0; N];
            while !reader.try_receive(&mut message).expect("an honest writer") {
                assert!(reader.wait(wait, deadline_ns, &Linux), "never woken for message {i}");
            }
            reader.wake(&Linux);
            assert_eq!(number(&message), i);
        }
    });
}

#[test]
fn queues_deliver_everything_in_order_with_every_wait() {
    for layout in [Layout::Index, Layout::Sequence] {
        for capacity in [1, 8] {
            for wait in [Wait::Yield, Wait::Park, Wait::SpinThenPark] {
                through_a_queue(layout, wait, capacity);
            }
        }
    }
}

#[test]
fn latest_never_goes_back_and_ends_with_the_last() {
    let shape = Shape::latest(N as u32, 0).parking();
    let memory = Guarded::made(&shape);
    let mut writer = latest::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = latest::Reader::attach(memory, &shape).expect("made");
    let deadline_ns = Some(Linux.now_ns() + LIMIT_NS);
    thread::scope(|scope| {
        scope.spawn(move || {
            for i in 1..=MESSAGES {
                writer.send(&pattern::<N>(i));
                writer.wake(&Linux);
            }
        });
        let (mut before, mut message) = (0, [0; N]);
        while before != MESSAGES {
            assert!(reader.wait(Wait::SpinThenPark, deadline_ns, &Linux), "after {before}");
            match reader.read(&mut message).expect("an honest writer") {
                Fresh::New => assert!(number(&message) > before),
                Fresh::Old => assert_eq!(number(&message), before),
                Fresh::None => panic!("ready without a message"),
            }
            before = number(&message);
        }
    });
}

#[test]
fn broadcast_readers_get_or_count_every_message() {
    let shape = Shape::broadcast(N as u32, 0, 8).parking();
    let memory = Guarded::made(&shape);
    let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("made");
    let deadline_ns = Some(Linux.now_ns() + LIMIT_NS);
    thread::scope(|scope| {
        for wait in [Wait::Park, Wait::Yield] {
            let memory = memory.clone();
            let mut reader = broadcast::Reader::attach(memory, &shape).expect("made");
            scope.spawn(move || {
                let (mut before, mut message) = (0, [0; N]);
                while before != MESSAGES {
                    assert!(reader.wait(wait, deadline_ns, &Linux), "after {before}");
                    let received = reader.receive(&mut message).expect("an honest writer");
                    if let Some(Arrived { lost }) = received {
                        assert_eq!(number(&message), before + lost + 1);
                        before = number(&message);
                    }
                }
            });
        }
        for i in 1..=MESSAGES {
            writer.send(&pattern::<N>(i));
            writer.wake(&Linux);
        }
        // Dropping the writer here would end the waits of readers that still have messages to
        // look at; those are found first, so closing is harmless.
        writer.close();
        writer.wake(&Linux);
    });
}

#[test]
fn counters_never_fall_while_they_pass_32_bits() {
    let shape = counter::shape(1, 0);
    let memory = Guarded::made(&shape);
    let mut writer = counter::Writer::attach(memory.clone(), &shape).expect("made");
    let reader = counter::Reader::attach(memory, &shape).expect("made");
    let step = u64::from(u32::MAX / 3);
    thread::scope(|scope| {
        scope.spawn(move || (0..MESSAGES).for_each(|_| writer.add(0, step)));
        let mut before = 0;
        while before != step * u64::from(MESSAGES) {
            // A figure every few hundred steps is torn for longer than a read may take.
            if let Ok(value) = reader.read(0) {
                assert!(value >= before && value % step == 0, "{value} after {before}");
                before = value;
            }
            thread::yield_now();
        }
    });
}

#[test]
fn a_wait_ends_at_its_deadline_and_when_the_peer_closes() {
    let shape = Shape::queue(1, 0, 1).parking();
    let memory = Guarded::made(&shape);
    let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = queue::Reader::attach(memory, &shape).expect("made");
    for wait in [Wait::Spin, Wait::Yield, Wait::Park, Wait::SpinThenPark] {
        assert!(!reader.wait(wait, Some(Linux.now_ns() + 1_000_000), &Linux));
    }
    writer.try_send(&[1]).expect("room");
    assert!(!writer.wait_room(Wait::Park, Some(0), &Linux));
    assert_eq!(reader.try_receive(&mut [0]), Ok(true));
    thread::scope(|scope| {
        scope.spawn(move || {
            writer.close();
            writer.wake(&Linux);
        });
        assert!(!reader.wait(Wait::Park, None, &Linux));
    });
}

struct Racy(UnsafeCell<u64>);
// SAFETY: none: this is the race that the sanitizer must report.
unsafe impl Sync for Racy {}

#[test]
#[ignore = "a race on purpose: run it under ThreadSanitizer, which must report it"]
fn a_race_is_reported() {
    let racy = Racy(UnsafeCell::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let racy = &racy;
                for _ in 0..1000 {
                    // SAFETY: none, see above.
                    unsafe { racy.0.get().write_volatile(racy.0.get().read_volatile() + 1) };
                }
            });
        }
    });
}

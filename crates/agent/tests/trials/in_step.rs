//! The emulator's caches are always in step, so it cannot show that a cache operation is missing.
//! So the port layer of the guest counts the operations, and prints the counts when it stops.

use std::hint::spin_loop;
use std::time::Instant;

use sinew_carve_out::DATA;
use sinew_link::Wait;

use crate::life::{Life, PATIENCE};
use crate::ring::{RingEnd, ring_len};

const MESSAGES: u32 = 500;
const SIZE: usize = 64;

/// How often the guest has put links in step before a read, and after a write.
pub(crate) fn steps(printed: &str) -> [u32; 2] {
    let line = printed.lines().find_map(|line| line.split_once("links put in step "));
    let (_, words) = line.unwrap_or_else(|| panic!("it does not say it:\n{printed}"));
    let mut numbers = words.split(' ').filter_map(|word| word.parse().ok());
    std::array::from_fn(|_| numbers.next().expect("two numbers"))
}

#[test]
fn a_link_is_invalidated_before_each_receive_and_cleaned_after_each_send() {
    let Some(life) = Life::start(&format!("answer_{SIZE}"), &[0.0, 50.0, 1.0, SIZE as f64], 2)
    else {
        return;
    };
    let (mut writer, mut reader) = (life.writer(), life.reader());
    let [there, back] = [1, 2].map(|bell| life.keeper.bells().doorbell(bell).expect("bells"));
    let mut message = [0; SIZE];
    for number in 0..MESSAGES {
        message[..4].copy_from_slice(&number.to_le_bytes());
        assert_eq!(writer.try_send(&message), Ok(()));
        writer.wake(&there);
        let begun = Instant::now();
        while !reader.try_receive(&mut message).expect("a whole link") {
            assert!(begun.elapsed() < PATIENCE, "message {number} does not come back");
            reader.wait(Wait::Park, None, &back);
        }
        reader.wake(&back);
        assert_eq!(message[..4], number.to_le_bytes());
    }
    let [reads, writes] = steps(&life.stop());
    // Before reads: the index that says that there is a message, the message itself, and the room
    // for its answer.
    assert!(reads >= 3 * MESSAGES, "{MESSAGES} messages, {reads} before a read");
    // After writes: the message, the index that says that it is there, and the index that frees the
    // slot of the message received.
    assert!(writes >= 3 * MESSAGES, "{MESSAGES} messages, {writes} after a write");
}

#[test]
fn a_guest_that_forgets_its_caches_is_noticed() {
    let polls = 1000.0;
    let Some(life) = Life::start("ring", &[polls, DATA as f64, SIZE as f64, 0.0], 2) else {
        return;
    };
    let len = ring_len(SIZE) / 4;
    let words = &life.memory.words()[DATA / 4..];
    let mut there = RingEnd::resume(&words[..len], SIZE, (), 0);
    let mut back = RingEnd::resume(&words[len..2 * len], SIZE, (), 0);
    let mut message = [0; SIZE];
    for number in 0..MESSAGES {
        assert!(there.send(&message), "the ring has room");
        let begun = Instant::now();
        while !back.receive(&mut message) {
            assert!(begun.elapsed() < PATIENCE, "message {number} does not come back");
            spin_loop();
        }
    }
    // The emulator works all the same; only the counts show it.
    assert_eq!(steps(&life.stop()), [0, 0]);
}

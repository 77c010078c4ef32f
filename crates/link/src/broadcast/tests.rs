//! Broadcast: every size, losses, where readers begin, writers cut short.

use std::vec;

use super::*;
use crate::heap::{Heap, pattern};

fn reader(heap: &Heap, shape: &Shape) -> Reader<Heap> {
    Reader::attach(heap.clone(), shape).expect("a good region")
}

#[test]
fn messages_of_every_size_reach_every_reader_past_the_wrap() {
    for size in 1..=130 {
        let shape = Shape::broadcast(size, 7, 4);
        let heap = Heap::made(&shape, u32::MAX - 5);
        let mut writer = Writer::attach(heap.clone(), &shape).expect("a good region");
        let mut readers = [(); 2].map(|()| reader(&heap, &shape));
        let (mut sent, mut got) = (vec![0; size as usize], vec![0; size as usize]);
        for i in 0..20 {
            pattern(i, &mut sent);
            writer.send(&sent);
            for reader in &mut readers {
                assert_eq!(reader.receive(&mut got), Ok(Some(Arrived { lost: 0 })));
                assert_eq!(got, sent, "{size} bytes, message {i}");
                assert_eq!(reader.receive(&mut got), Ok(None));
            }
        }
    }
}

#[test]
fn what_was_overwritten_is_counted() {
    let shape = Shape::broadcast(1, 7, 4);
    for start in [0, u32::MAX - 6, i32::MAX as u32 - 3] {
        let heap = Heap::made(&shape, start);
        let mut writer = Writer::attach(heap.clone(), &shape).expect("a good region");
        let mut reader = reader(&heap, &shape);
        for i in 0..11 {
            writer.send(&[i]);
        }
        let mut got = [0];
        for (i, lost) in [(7, 7), (8, 0), (9, 0), (10, 0)] {
            assert_eq!(reader.receive(&mut got), Ok(Some(Arrived { lost })));
            assert_eq!(got, [i]);
        }
        assert_eq!(reader.receive(&mut got), Ok(None));
    }
}

#[test]
fn what_was_there_before_a_reader_came_is_no_loss_of_its_own() {
    let shape = Shape::broadcast(1, 7, 4);
    for start in [0, u32::MAX - 6, i32::MAX as u32 - 3] {
        let heap = Heap::made(&shape, start);
        let mut writer = Writer::attach(heap.clone(), &shape).expect("a good region");
        (0..6).for_each(|i| writer.send(&[i]));
        // Messages 2 to 5 are there. While the readers begin, the writer goes on.
        let mut soon = reader(&heap, &shape);
        let mut late = reader(&heap, &shape);
        (6..8).for_each(|i| writer.send(&[i]));
        let mut got = [0];
        assert_eq!(soon.receive(&mut got), Ok(Some(Arrived { lost: 0 })));
        assert_eq!(got, [4]);
        (8..14).for_each(|i| writer.send(&[i]));
        // From now on everything that it misses counts, also what was there already: 5 to 9.
        assert_eq!(soon.receive(&mut got), Ok(Some(Arrived { lost: 5 })));
        assert_eq!(got, [10]);
        // 6 to 9 were written after `late` had attached.
        assert_eq!(late.receive(&mut got), Ok(Some(Arrived { lost: 4 })));
        assert_eq!(got, [10]);
    }
}

#[test]
fn readers_begin_with_the_oldest_that_is_there() {
    let shape = Shape::broadcast(1, 7, 4);
    let heap = Heap::made(&shape, u32::MAX - 1);
    let mut writer = Writer::attach(heap.clone(), &shape).expect("a good region");
    let first = || {
        let mut got = [0];
        reader(&heap, &shape).receive(&mut got).expect("good").map(|_| got[0])
    };
    assert_eq!(first(), None);
    for i in 0..9 {
        writer.send(&[i]);
        assert_eq!(first(), Some(i.saturating_sub(3)));
    }
}

#[test]
fn a_message_cut_short_is_not_there_and_its_writers_successor_goes_on() {
    let shape = Shape::broadcast(1, 7, 2);
    let heap = Heap::made(&shape, 0);
    let sequence = |position: usize| 640 + position % 2 * 64 + 60;
    let mut writer = Writer::attach(heap.clone(), &shape).expect("a good region");
    let mut late = reader(&heap, &shape);
    let mut prompt = reader(&heap, &shape);
    let mut got = [0];
    for i in 0..4 {
        writer.send(&[i]);
        assert!(prompt.receive(&mut got).expect("good").is_some());
    }
    // Killed in the middle of message 4, which takes the place of message 2.
    heap.set_word(sequence(4), writing(4));
    core::mem::forget(writer);
    assert_eq!(prompt.receive(&mut got), Ok(None));
    assert_eq!(late.receive(&mut got), Ok(Some(Arrived { lost: 3 })));
    assert_eq!((got, late.receive(&mut got)), ([3], Ok(None)));
    let mut writer = Writer::attach(heap.clone(), &shape).expect("goes on");
    writer.send(&[4]);
    // Killed between the sequence of message 4 and the tail.
    heap.set_word(128, 4);
    core::mem::forget(writer);
    assert_eq!((prompt.receive(&mut got), got), (Ok(Some(Arrived { lost: 0 })), [4]));
    let mut writer = Writer::attach(heap.clone(), &shape).expect("goes on");
    writer.send(&[5]);
    for reader in [&mut prompt, &mut late] {
        while reader.receive(&mut got).expect("good").is_some() {}
        assert_eq!(got, [5]);
    }
    assert!(!prompt.is_peer_closed());
    drop(writer);
    assert!(prompt.is_peer_closed());
}

#[test]
fn a_tail_that_falls_back_is_corrupt() {
    let shape = Shape::broadcast(1, 7, 2);
    let heap = Heap::made(&shape, 0);
    let mut reader = reader(&heap, &shape);
    heap.set_word(128, u32::MAX - 5);
    heap.set_word(640 + 60, 77);
    assert_eq!(reader.receive(&mut [0]), Err(Corrupt));
}

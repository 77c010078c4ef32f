//! Latest: every size, new and old, fresh ends, words that lie.

use std::vec;

use super::*;
use crate::heap::{Heap, pattern};

fn ends(heap: &Heap, shape: &Shape) -> (Writer<Heap>, Reader<Heap>) {
    let writer = Writer::attach(heap.clone(), shape).expect("a good region");
    (writer, Reader::attach(heap.clone(), shape).expect("a good region"))
}

#[test]
fn the_newest_message_of_every_size_is_read_new_once_and_then_old() {
    for size in 1..=130 {
        let shape = Shape::latest(size, 7);
        let (mut writer, mut reader) = ends(&Heap::made(&shape, 0), &shape);
        let (mut sent, mut got) = (vec![0; size as usize], vec![0; size as usize]);
        assert_eq!(reader.read(&mut got), Ok(Fresh::None));
        for i in 1..20 {
            for burst in 0..i % 4 {
                pattern(i * 4 + burst, &mut sent);
                writer.send(&sent);
            }
            assert_eq!(reader.has_new(), i % 4 != 0);
            let fresh = if i % 4 == 0 { Fresh::Old } else { Fresh::New };
            for fresh in [fresh, Fresh::Old] {
                got.fill(0);
                assert_eq!(reader.read(&mut got), Ok(fresh));
                assert_eq!(got, sent, "{size} bytes, message {i}");
            }
        }
    }
}

#[test]
fn fresh_ends_find_the_last_message() {
    let shape = Shape::latest(4, 7);
    let heap = Heap::made(&shape, 0);
    let mut got = [0; 4];
    for i in 1..9 {
        let (mut writer, mut reader) = ends(&heap, &shape);
        if i > 1 {
            assert_eq!(reader.read(&mut got), Ok(Fresh::New));
            assert_eq!(got, [i - 1; 4]);
        }
        writer.send(&[i; 4]);
        assert_eq!(reader.read(&mut got), Ok(Fresh::New));
        assert_eq!(got, [i; 4]);
    }
}

#[test]
fn a_message_whose_writer_was_killed_before_announcing_it_is_found_by_a_reader_in_need() {
    let shape = Shape::latest(4, 7);
    let heap = Heap::made(&shape, 0);
    let (mut writer, mut reader) = ends(&heap, &shape);
    let mut got = [0; 4];
    writer.send(&[1; 4]);
    assert_eq!(reader.read(&mut got), Ok(Fresh::New));
    writer.send(&[2; 4]);
    // Killed before it announced the second message: the first one, of sequence 2 in pair 1, still
    // is announced.
    heap.set_word(128, 2 << 1 | 1);
    core::mem::forget(writer);
    // The next writer is in the middle of overwriting the first message: pair 1, slot 1.
    heap.set_word(640 + 3 * 64 + 60, 0);
    assert_eq!(reader.read(&mut got), Ok(Fresh::New));
    assert_eq!(got, [2; 4]);
    assert_eq!(reader.read(&mut got), Ok(Fresh::Old));
    assert_eq!(got, [2; 4]);
    let mut writer = Writer::attach(heap, &shape).expect("goes on");
    writer.send(&[3; 4]);
    assert_eq!((reader.read(&mut got), got), (Ok(Fresh::New), [3; 4]));
}

#[test]
fn sequences_wrap_past_zero() {
    let shape = Shape::latest(4, 7);
    let heap = Heap::made(&shape, 0);
    heap.set_word(128, ((u32::MAX >> 1) - 3) << 1);
    let (mut writer, mut reader) = ends(&heap, &shape);
    for i in 0..9 {
        writer.send(&[i; 4]);
        let mut got = [0; 4];
        assert_eq!(reader.read(&mut got), Ok(Fresh::New));
        assert_eq!((got, reader.read(&mut got)), ([i; 4], Ok(Fresh::Old)));
    }
}

#[test]
fn a_slot_that_does_not_exist_is_corrupt() {
    let shape = Shape::latest(4, 7);
    let heap = Heap::made(&shape, 0);
    let (mut writer, mut reader) = ends(&heap, &shape);
    writer.send(&[1; 4]);
    heap.set_word(132, 2);
    heap.set_word(136, u32::MAX);
    assert_eq!(reader.read(&mut [0; 4]), Err(Corrupt));
    heap.set_word(256, u32::MAX);
    writer.send(&[1; 4]);
}

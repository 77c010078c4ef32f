//! Counters: 64 bits from words, words that lie.

use super::*;
use crate::heap::Heap;

#[test]
fn each_counter_counts_for_itself() {
    let shape = shape(3, 5);
    let heap = Heap::made(&shape, 0);
    let mut writer = Writer::attach(heap.clone(), &shape).expect("made");
    let reader = Reader::attach(heap, &shape).expect("made");
    for i in 0..3 {
        writer.add(i, u64::from(i));
        writer.add(i, 10);
        assert_eq!(reader.read(i), Ok(u64::from(i) + 10));
    }
    assert_eq!(reader.read(4), Err(Corrupt));
}

#[test]
fn counters_pass_32_bits_and_never_fall() {
    let shape = shape(1, 0);
    let heap = Heap::made(&shape, 0);
    let mut writer = Writer::attach(heap.clone(), &shape).expect("made");
    let reader = Reader::attach(heap.clone(), &shape).expect("made");
    writer.raise(0, u64::from(u32::MAX));
    writer.add(0, 1);
    assert_eq!(reader.read(0), Ok(1 << 32));
    writer.raise(0, 5);
    assert_eq!(reader.read(0), Ok(1 << 32));
    // Killed while the high word changed.
    heap.set_word(640, 2);
    core::mem::forget(writer);
    assert_eq!(reader.read(0), Err(Corrupt));
    let mut writer = Writer::attach(heap, &shape).expect("made");
    writer.add(0, 3);
    assert_eq!(reader.read(0), Ok((2 << 32) + 3));
}

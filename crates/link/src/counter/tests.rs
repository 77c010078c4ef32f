//! Counters: names, 64 bits from words, words that lie.

use std::string::String;

use super::*;
use crate::heap::Heap;

#[test]
fn counters_are_found_by_name_and_count() {
    let names =
        ["cycles", "overruns", "a_name_that_is_as_long_as_a_name_may_be_0123456789_abcdefghij"];
    let shape = shape(3, 5);
    let heap = Heap::of(&shape);
    let mut writer = Writer::create(heap.clone(), &names, 5).expect("long enough");
    let reader = Reader::attach(heap, &shape).expect("made");
    for (i, name) in (0..).zip(names) {
        assert_eq!(reader.find(name), Some(i));
        writer.add(i, u64::from(i));
        writer.add(i, 10);
        assert_eq!(reader.read(i), Ok(u64::from(i) + 10));
    }
    assert_eq!(reader.find("absent"), None);
    assert_eq!(reader.read(4), Err(Corrupt));
    assert_eq!(reader.name(4, &mut [0; 64]), Ok(""));
}

#[test]
fn a_long_name_is_cut_at_a_character() {
    let shape = shape(1, 0);
    let heap = Heap::of(&shape);
    let long: String = core::iter::once('a').chain(core::iter::repeat_n('µ', 40)).collect();
    drop(Writer::create(heap.clone(), &[&long], 0).expect("long enough"));
    let reader = Reader::attach(heap, &shape).expect("made");
    assert_eq!(reader.name(0, &mut [0; 64]), Ok(&long[..63]));
    assert!(reader.is_peer_closed());
}

#[test]
fn counters_pass_32_bits_and_never_fall() {
    let shape = shape(1, 0);
    let heap = Heap::of(&shape);
    let mut writer = Writer::create(heap.clone(), &["bytes"], 0).expect("long enough");
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

#[test]
fn names_that_lie_are_corrupt() {
    let shape = shape(1, 0);
    let heap = Heap::of(&shape);
    drop(Writer::create(heap.clone(), &["n"], 0).expect("long enough"));
    let reader = Reader::attach(heap.clone(), &shape).expect("made");
    for (word, value) in [(3, u32::MAX), (3, 65), (4, u32::MAX)] {
        heap.set_word(640 + word * 4, value);
        assert_eq!(reader.name(0, &mut [0; 64]), Err(Corrupt));
        assert_eq!(reader.find("n"), None);
        heap.set_word(640 + 12, 1);
    }
}

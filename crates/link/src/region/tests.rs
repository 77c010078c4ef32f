//! Regions: what is refused, and what each side sees of the other.

use std::format;
use std::string::ToString;

use super::*;
use crate::heap::Heap;
use crate::memory::RawMemory;
use crate::queue;
use crate::shape::{CAPACITY_MAX, MESSAGE_SIZE_MAX};

const SHAPE: Shape = Shape::queue(24, 7, 8);

#[test]
fn a_header_that_differs_in_any_word_is_refused_with_both_figures() {
    let heap = Heap::made(&SHAPE, 0);
    for (word, (what, expected)) in SHAPE.header().into_iter().enumerate() {
        heap.set_word(word * 4, expected ^ 0x8000_0001);
        let error = queue::Reader::attach(heap.clone(), &SHAPE).err();
        let found = expected ^ 0x8000_0001;
        assert_eq!(error, Some(RegionError::Header { what, found, expected }));
        heap.set_word(word * 4, expected);
    }
    assert!(queue::Reader::attach(heap, &SHAPE).is_ok());
}

#[test]
fn who_attaches_takes_the_layout_that_the_header_says() {
    let stated = Shape { layout: Layout::Index, ..Shape::queue(8, 7, 4) };
    let made = Shape { layout: Layout::Sequence, ..stated };
    let heap = Heap::made(&made, 0);
    let mut writer = queue::Writer::attach(heap.clone(), &stated).expect("either layout");
    let mut reader = queue::Reader::attach(heap.clone(), &made).expect("either layout");
    let mut message = [0; 8];
    writer.try_send(&[9; 8]).expect("room");
    assert_eq!((reader.try_receive(&mut message), message), (Ok(true), [9; 8]));
    // A header that lies: the region is too short for what it says.
    let heap = Heap::made(&stated, 0);
    heap.set_word(LAYOUT_WORD * 4, Layout::Sequence as u32);
    let (found, expected) = (heap.len(), made.region_len());
    let error = queue::Reader::attach(heap, &stated).err();
    assert_eq!(error, Some(RegionError::Length { found, expected }));
}

#[test]
fn shapes_out_of_range_are_refused() {
    let heap = Heap::of(&SHAPE);
    let refused = |shape: Shape| create(&heap, &shape).expect_err("refused").to_string();
    assert!(refused(Shape { message_size: 0, ..SHAPE }).contains("message size 0"));
    assert!(refused(Shape { message_size: u32::MAX, ..SHAPE }).contains("message size 4294967295"));
    assert!(refused(Shape { capacity: 0, ..SHAPE }).contains("capacity 0"));
    assert!(refused(Shape { capacity: 6, ..SHAPE }).contains("use 8"));
    assert!(refused(Shape { capacity: 1 << 31, ..SHAPE }).contains("use 16777216"));
    assert!(refused(Shape { capacity: 8, ..Shape::latest(4, 0) }).contains("latest: 4"));
    let long = Shape { message_size: MESSAGE_SIZE_MAX, capacity: CAPACITY_MAX, ..SHAPE };
    assert!(refused(long).contains(&format!("{} bytes, the shape needs", heap.len())));
}

#[test]
fn memory_that_is_short_or_askew_is_refused() {
    let heap = Heap::of(&Shape::queue(24, 7, 16));
    let at = |offset, len| {
        // SAFETY: inside the heap, which outlives the test's use of it.
        unsafe { RawMemory::new(heap.base().byte_add(offset), len) }
    };
    let len = SHAPE.region_len();
    let error = create(&at(0, len - 1), &SHAPE);
    assert_eq!(error, Err(RegionError::Length { found: len - 1, expected: len }));
    assert_eq!(create(&at(8, len), &SHAPE), Err(RegionError::Alignment { past: 8 }));
    assert_eq!(create(&at(128, len), &SHAPE), Ok(()));
}

#[test]
fn each_side_sees_the_other_come_go_and_come_again() {
    let heap = Heap::made(&SHAPE, 0);
    let end = |side| End::open(Region::attach(heap.clone(), &SHAPE).expect("made"), side);
    let mut writer = end(Side::Writer);
    assert_eq!((writer.peer_epoch(), writer.is_peer_closed()), (0, false));
    let reader = end(Side::Reader);
    assert_eq!((writer.peer_epoch(), writer.is_peer_closed()), (1, false));
    drop(reader);
    assert_eq!((writer.peer_epoch(), writer.is_peer_closed()), (2, true));
    let reader = end(Side::Reader);
    // A killed side does not close; its successor counts on.
    core::mem::forget(reader);
    let reader = end(Side::Reader);
    assert_eq!((writer.peer_epoch(), writer.is_peer_closed()), (5, false));
    writer.close();
    assert!(reader.is_peer_closed());
    writer.close();
    assert_eq!(reader.peer_epoch(), 2);
}

//! Queue, both layouts: every size, full and empty, the wrap, fresh ends, words that lie.

use std::vec;

use super::*;
use crate::Layout;
use crate::heap::{Heap, pattern};
use crate::observe::look;

const LAYOUTS: [Layout; 2] = [Layout::Index, Layout::Sequence];

fn shape(layout: Layout, message_size: u32, capacity: u32) -> Shape {
    Shape { layout, ..Shape::queue(message_size, 7, capacity) }
}

fn ends(heap: &Heap, shape: &Shape) -> (Writer<Heap>, Reader<Heap>) {
    let writer = Writer::attach(heap.clone(), shape).expect("a good region");
    (writer, Reader::attach(heap.clone(), shape).expect("a good region"))
}

#[test]
fn messages_of_every_size_cross_whole_and_in_order_past_the_wrap() {
    for layout in LAYOUTS {
        for size in 1..=130 {
            let shape = shape(layout, size, 4);
            let heap = Heap::made(&shape, u32::MAX - 5);
            let (mut writer, mut reader) = ends(&heap, &shape);
            let (mut sent, mut got) = (vec![0; size as usize], vec![0; size as usize]);
            for round in 0..5 {
                for i in 0..4 {
                    assert_eq!(look(heap.clone(), &shape).expect("good").fill, i);
                    pattern(round * 4 + i, &mut sent);
                    assert_eq!(writer.try_send(&sent), Ok(()));
                }
                assert_eq!(writer.try_send(&sent), Err(SendError::Full));
                for i in 0..4 {
                    pattern(round * 4 + i, &mut sent);
                    assert_eq!(reader.try_receive(&mut got), Ok(true));
                    assert_eq!(got, sent, "{layout:?}, {size} bytes, message {}", round * 4 + i);
                }
                assert_eq!(reader.try_receive(&mut got), Ok(false));
                assert_eq!(look(heap.clone(), &shape).expect("good").fill, 0);
            }
        }
    }
}

#[test]
fn a_capacity_of_one_is_a_queue() {
    for layout in LAYOUTS {
        let shape = shape(layout, 4, 1);
        let heap = Heap::made(&shape, u32::MAX);
        let (mut writer, mut reader) = ends(&heap, &shape);
        for i in 0..9_u32 {
            assert_eq!(writer.try_send(&i.to_le_bytes()), Ok(()));
            assert_eq!(writer.try_send(&[9; 4]), Err(SendError::Full));
            let mut got = [0; 4];
            assert_eq!(reader.try_receive(&mut got), Ok(true));
            assert_eq!(u32::from_le_bytes(got), i);
            assert_eq!(reader.try_receive(&mut got), Ok(false));
        }
    }
}

#[test]
fn in_place_a_dropped_claim_sends_nothing_and_a_dropped_peek_frees_nothing() {
    for layout in LAYOUTS {
        let shape = shape(layout, 3, 2);
        let (mut writer, mut reader) = ends(&Heap::made(&shape, 0), &shape);
        assert_eq!(writer.claim().expect("room").len(), 3);
        assert!(reader.peek().expect("good").is_none());
        let mut claim = writer.claim().expect("room");
        assert_eq!(claim.len(), 3);
        claim.write_at(1, b"bc");
        claim.write_at(0, b"a");
        claim.commit();
        for _ in 0..2 {
            let peek = reader.peek().expect("good").expect("a message");
            assert_eq!(peek.len(), 3);
            let mut got = [0; 3];
            peek.read_at(2, &mut got[2..]);
            peek.read_at(0, &mut got[..2]);
            assert_eq!(&got, b"abc");
        }
        reader.peek().expect("good").expect("a message").release();
        assert!(reader.peek().expect("good").is_none());
    }
}

#[test]
fn several_places_are_filled_and_several_messages_read_at_a_time() {
    for layout in LAYOUTS {
        let shape = shape(layout, 3, 4);
        let heap = Heap::made(&shape, u32::MAX - 2);
        let (mut writer, mut reader) = ends(&heap, &shape);
        for round in 0..5_u8 {
            let places: [_; 4] = core::array::from_fn(|ahead| writer.place_ahead(ahead as u32));
            let next = writer.next_at();
            assert_eq!(places[0], Ok(next.start..next.start + 3), "the first is the next");
            assert!((1..4).all(|at| places[at].is_ok() && places[at] != places[at - 1]));
            assert_eq!(writer.place_ahead(4), Err(SendError::Full), "past the capacity");
            assert_eq!(writer.place_ahead(u32::MAX), Err(SendError::Full));
            for number in 0..3 {
                assert!(reader.ahead(number).expect("good").is_none(), "not yet sent");
                let mut claim = writer.claim().expect("room");
                claim.write_at(0, &[10 * round + number as u8; 3]);
                claim.commit();
            }
            let mut got = [0; 3];
            for (ahead, number) in [(2, 2), (0, 0), (1, 1)] {
                reader.ahead(ahead).expect("good").expect("sent").read_at(0, &mut got);
                assert_eq!(got, [10 * round + number; 3]);
            }
            assert!(reader.ahead(3).expect("good").is_none());
            assert!(reader.ahead(u32::MAX).expect("good").is_none());
            reader.peek().expect("good").expect("sent").release();
            assert_eq!(writer.place_ahead(2), Err(SendError::Full), "two are still there");
            assert!(writer.place_ahead(1).is_ok());
            for _ in 0..2 {
                assert_eq!(reader.try_receive(&mut got), Ok(true));
            }
            assert_eq!(got, [10 * round + 2; 3]);
        }
    }
}

#[test]
fn a_position_that_goes_back_while_it_is_read_ahead_is_corrupt() {
    let shape = shape(Layout::Index, 4, 4);
    let heap = Heap::made(&shape, 0);
    let (mut writer, mut reader) = ends(&heap, &shape);
    (0..2).for_each(|_| assert_eq!(writer.try_send(&[1; 4]), Ok(())));
    assert!(reader.ahead(1).expect("good").is_some());
    for lie in [1, 0, 5, u32::MAX] {
        heap.set_word(128, lie);
        assert!(reader.ahead(2).is_err(), "{lie}");
        assert!(reader.ahead(1).expect("it was there").is_some());
    }
}

#[test]
fn fresh_ends_go_on_where_the_last_ones_ended() {
    for layout in LAYOUTS {
        let shape = shape(layout, 4, 4);
        let heap = Heap::made(&shape, u32::MAX - 1);
        let mut got = [0; 4];
        for i in 0..9_u8 {
            let (mut writer, mut reader) = ends(&heap, &shape);
            assert_eq!(writer.try_send(&[i; 4]), Ok(()));
            assert_eq!(writer.try_send(&[i + 100; 4]), Ok(()));
            if i > 0 {
                assert_eq!(reader.try_receive(&mut got), Ok(true));
                assert_eq!(got, [i + 99; 4]);
            }
            assert_eq!(reader.try_receive(&mut got), Ok(true));
            assert_eq!(got, [i; 4]);
        }
    }
}

#[test]
fn a_writer_killed_between_sequence_and_tail_has_sent() {
    let shape = shape(Layout::Sequence, 4, 2);
    let heap = Heap::made(&shape, u32::MAX);
    let (mut writer, mut reader) = ends(&heap, &shape);
    assert_eq!(writer.try_send(&[1; 4]), Ok(()));
    heap.set_word(128, u32::MAX); // as if the store of the tail were missing
    core::mem::forget(writer);
    let mut got = [0; 4];
    assert_eq!(reader.try_receive(&mut got), Ok(true));
    assert_eq!(look(heap.clone(), &shape).expect("good").fill, 0);
    drop(reader);
    let mut reader = Reader::attach(heap.clone(), &shape).expect("the tail may lag by one");
    let mut writer = Writer::attach(heap, &shape).expect("recovers");
    assert_eq!(writer.try_send(&[2; 4]), Ok(()));
    assert_eq!(reader.try_receive(&mut got), Ok(true));
    assert_eq!(got, [2; 4]);
}

#[test]
fn positions_outside_the_queue_are_corrupt() {
    for layout in LAYOUTS {
        let shape = shape(layout, 4, 2);
        let heap = Heap::made(&shape, 0);
        let (mut writer, mut reader) = ends(&heap, &shape);
        assert_eq!(writer.try_send(&[1; 4]), Ok(()));
        assert_eq!(writer.try_send(&[1; 4]), Ok(()));
        heap.set_word(256, 3);
        assert_eq!(writer.try_send(&[1; 4]), Err(SendError::Corrupt));
        heap.set_word(256, 0x8000_0000);
        assert_eq!(writer.try_send(&[1; 4]), Err(SendError::Corrupt));
        heap.set_word(128, 3);
        // A sequence that no message has, and the position itself: a reader that took it for no
        // message would wait for ever.
        for lie in [9, 0] {
            heap.set_word(640 + 60, lie);
            // The same answer however often it looks: a wait looks first, and must not turn the lie
            // into a message.
            for _ in 0..2 {
                assert_eq!(reader.try_receive(&mut [0; 4]), Err(Corrupt));
            }
        }
        let refused = RegionError::Positions { tail: 3, head: 0x8000_0000, capacity: 2 };
        assert_eq!(Writer::attach(heap.clone(), &shape).err(), Some(refused));
        assert_eq!(Reader::attach(heap, &shape).err(), Some(refused));
    }
}

#[test]
#[should_panic(expected = "the part reaches past the end of the message")]
fn a_part_past_the_end_is_a_bug_of_the_caller() {
    let shape = Shape::queue(4, 0, 2);
    let (mut writer, _reader) = ends(&Heap::made(&shape, 0), &shape);
    writer.claim().expect("room").write_at(usize::MAX, &[0; 2]);
}

#[test]
#[should_panic(expected = "the slice is not as long as a message")]
fn a_slice_of_another_length_is_a_bug_of_the_caller() {
    let shape = Shape::queue(4, 0, 2);
    let (mut writer, _reader) = ends(&Heap::made(&shape, 0), &shape);
    let _ = writer.try_send(&[0; 5]);
}

#[test]
fn both_ends_name_the_bytes_of_the_next_message() {
    for layout in LAYOUTS {
        let shape = shape(layout, 40, 2);
        let stride = shape.stride();
        let (mut writer, mut reader) = ends(&Heap::made(&shape, 0), &shape);
        let mut got = [0; 40];
        for lap in [640, 640 + stride, 640] {
            let expected = lap..lap + stride;
            assert_eq!((writer.next_at(), reader.next_at()), (expected.clone(), expected));
            assert_eq!(writer.try_send(&got), Ok(()));
            assert_eq!(reader.try_receive(&mut got), Ok(true));
        }
        assert!(writer.next_at().end <= shape.region_len());
    }
}

//! Lines keep their order, and a packet that leaves a line leaves nothing behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use futures_util::FutureExt;

use super::*;
use crate::testing::run;

/// Whether the packet is inside.
fn is_in(place: &mut InLine) -> bool {
    place.wait().now_or_never().is_some()
}

#[test]
fn a_line_keeps_its_order_and_others_go_on() {
    let lines = Arc::<Lines>::default();
    let mut places: Vec<_> = (0..4).map(|_| lines.enter("a", 1, 9).expect("room")).collect();
    let mut other = lines.enter("b", 1, 9).expect("room");
    assert!(is_in(&mut other));
    for _ in 0..4 {
        let inside: Vec<bool> = places.iter_mut().map(is_in).collect();
        let first = std::iter::once(true).chain(std::iter::repeat(false));
        assert!(inside.iter().copied().eq(first.take(places.len())), "{inside:?}");
        drop(places.remove(0));
    }
    drop(other);
    assert!(lines.is_empty());
}

#[test]
fn who_leaves_the_line_frees_his_place_also_when_it_was_just_his_turn() {
    let lines = Arc::<Lines>::default();
    let mut places: Vec<_> = (0..4).map(|_| lines.enter("a", 1, 3).expect("room")).collect();
    assert!(lines.enter("a", 1, 3).is_none() && lines.enter("b", 1, 3).is_some());
    // Drops one in the middle of the line, then the one inside, and then the next, whose turn it is
    // but which never looked.
    drop(places.remove(2));
    drop(places.remove(0));
    drop(places.remove(0));
    assert!(is_in(&mut places[0]));
    drop(places);
    assert!(lines.is_empty());
}

#[test]
fn so_many_are_inside_over_all_workers() {
    let (lines, inside) = (Arc::<Lines>::default(), AtomicUsize::new(0));
    let (most, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        run(async {
            for round in 0..500 {
                let mut place = lines.enter("a", 2, 100).expect("room");
                // Some leave while they wait.
                if round % 7 == 0 && !is_in(&mut place) {
                    continue;
                }
                place.wait().await;
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(worker))));
    assert!(most.into_inner() <= 2 && done.into_inner() >= 4 * 428 && lines.is_empty());
}

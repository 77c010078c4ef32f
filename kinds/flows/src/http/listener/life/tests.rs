//! When connections end, round by round.

use super::*;

const PATIENCE: Patience = Patience { head: 4, idle: 10, stall: 6 };

fn judged(life: &Life, now: Round) -> Verdict {
    life.judge(now, &PATIENCE);
    life.verdict.get()
}

#[test]
fn an_idle_connection_drains_and_is_closed_if_that_does_not_end_it() {
    let life = Life::new(0);
    assert_eq!(judged(&life, 10), Verdict::Live);
    assert_eq!(judged(&life, 11), Verdict::Drain);
    assert_eq!(judged(&life, 15), Verdict::Drain);
    assert_eq!(judged(&life, 16), Verdict::Close);
}

#[test]
fn a_slow_head_is_closed_however_many_bytes_come() {
    let life = Life::new(0);
    life.read(2);
    life.read(5);
    assert_eq!(judged(&life, 6), Verdict::Live);
    life.read(6);
    assert_eq!(judged(&life, 7), Verdict::Close);
}

#[test]
fn a_request_may_take_its_time_while_its_client_takes_bytes() {
    let life = Life::new(0);
    life.read(0);
    life.begin(false);
    assert_eq!(judged(&life, 1000), Verdict::Live);
    life.stalls(1000);
    life.wrote(1002);
    life.stalls(1004);
    assert_eq!(judged(&life, 1010), Verdict::Live);
    assert_eq!(judged(&life, 1011), Verdict::Close);
}

#[test]
fn a_connection_is_idle_from_its_last_answer() {
    let life = Life::new(0);
    life.begin(false);
    life.end(true, 100);
    assert_eq!(judged(&life, 110), Verdict::Live);
    assert_eq!(judged(&life, 111), Verdict::Drain);
}

#[test]
fn an_answer_is_awaited_from_the_end_of_the_request_to_its_own() {
    let life = Life::new(0);
    life.begin(false);
    assert!(!life.awaits_answer(), "its body may still come");
    life.is_whole.set(true);
    assert!(life.awaits_answer());
    life.end(true, 0);
    assert!(!life.awaits_answer());
    life.begin(true);
    life.is_whole.set(true);
    assert!(!life.awaits_answer(), "HTTP/2 reads on by itself");
}

#[test]
fn who_only_resets_is_closed_and_who_resets_now_and_then_is_not() {
    let life = Life::new(0);
    for at in 0..3 * CANCELLED_MAX {
        life.begin(true);
        life.end(at % 3 == 0, 0);
        if at % 3 != 0 {
            life.begin(true);
            life.end(true, 0);
        }
    }
    assert_eq!(judged(&life, 1), Verdict::Live);
    for _ in 0..=CANCELLED_MAX {
        life.begin(true);
        life.end(false, 0);
    }
    assert_eq!(judged(&life, 1), Verdict::Close);
}

#[test]
fn at_a_stop_a_first_request_and_a_head_have_a_moment_to_come() {
    let used = Life::new(0);
    used.begin(false);
    used.end(true, 0);
    used.stop(1, false);
    assert_eq!(used.verdict.get(), Verdict::Drain, "it may be told between two requests");
    let in_head = |life: &Life| life.read(1);
    for (begins, ends) in [(in_head as fn(&Life), Verdict::Close), (|_| {}, Verdict::Drain)] {
        let (comes, silent) = (Life::new(0), Life::new(0));
        [&comes, &silent].into_iter().for_each(begins);
        [&comes, &silent].into_iter().for_each(|life| life.stop(1, false));
        assert_eq!(judged(&comes, 2), Verdict::Live);
        comes.begin(true);
        assert_eq!(judged(&comes, 1000), Verdict::Drain, "it is answered, and nothing else");
        assert_eq!(judged(&silent, 2), Verdict::Live);
        assert_eq!(judged(&silent, 3), ends);
    }
}

#[test]
fn after_an_edit_the_next_answer_of_a_kept_connection_says_that_it_closes() {
    let (asks, silent, streams) = (Life::new(0), Life::new(0), Life::new(0));
    for life in [&asks, &silent, &streams] {
        life.begin(false);
        assert!(!life.answers(), "nothing was said of a stop");
    }
    [&asks, &silent].into_iter().for_each(|life| life.end(true, 0));
    // The head of the answer of `streams` has gone out already.
    [&asks, &silent, &streams].into_iter().for_each(|life| life.stop(1, true));
    let judged = |life: &Life, now: Round| {
        life.judge(now, &Patience { idle: 1000, ..PATIENCE });
        life.verdict.get()
    };
    assert_eq!(judged(&asks, 1 + LAST_CALL_AFTER_EDIT), Verdict::Live);
    asks.begin(false);
    assert!(asks.answers());
    assert_eq!(judged(&silent, 2 + LAST_CALL_AFTER_EDIT), Verdict::Drain);
    assert_eq!(judged(&streams, 1000), Verdict::Live);
    streams.end(true, 1000);
    assert_eq!(judged(&streams, 1000 + LAST_CALL_AFTER_EDIT), Verdict::Live);
    streams.hurry(1001);
    assert_eq!(judged(&streams, 1003), Verdict::Drain);
    let http2 = Life::new(0);
    http2.begin(true);
    http2.end(true, 0);
    http2.stop(1, true);
    assert_eq!(http2.verdict.get(), Verdict::Drain, "HTTP/2 says so at once");
}

#[test]
fn who_holds_an_answer_for_long_is_slow_however_many_bytes_it_takes() {
    let life = Life::new(0);
    life.begin(false);
    let held = life.held();
    held.store(7, Ordering::Relaxed);
    life.judge(1, &PATIENCE);
    life.wrote(1);
    life.judge(2, &PATIENCE);
    assert_eq!((life.slow_since(1 + SLOW), life.slow_since(2 + SLOW)), (None, Some(1)));
    held.store(0, Ordering::Relaxed);
    life.judge(3, &PATIENCE);
    assert_eq!(life.slow_since(1000), None);
}

#[test]
fn a_slow_answer_goes_on_while_its_client_takes_bytes_and_is_idle_after_that() {
    let (writes, holds) = (Life::new(0), Life::new(0));
    for life in [&writes, &holds] {
        life.begin(false);
        life.end(true, 0);
    }
    writes.stalls(0);
    holds.held().store(7, Ordering::Relaxed);
    for now in (1..1000).step_by(5) {
        assert_eq!([judged(&writes, now), judged(&holds, now)], [Verdict::Live; 2], "{now}");
        writes.wrote(now);
        writes.stalls(now);
        holds.wrote(now);
    }
    writes.is_writing.set(false);
    writes.wrote(1000);
    holds.held().store(0, Ordering::Relaxed);
    for life in [&writes, &holds] {
        assert_eq!(judged(life, 1006), Verdict::Live);
        assert_eq!(judged(life, 1007), Verdict::Drain);
    }
    holds.held().store(7, Ordering::Relaxed);
    assert_eq!(judged(&holds, 1010), Verdict::Drain);
    assert_eq!(judged(&holds, 1016), Verdict::Drain);
    assert_eq!(judged(&holds, 1017), Verdict::Close, "it takes nothing");
}

#[test]
fn who_gives_no_window_for_a_part_of_an_answer_is_closed_whatever_else_he_takes() {
    let life = Life::new(0);
    life.begin(true);
    let (first, second) = (life.hands_over(0), life.hands_over(5));
    life.wrote(6);
    assert_eq!(judged(&life, 6), Verdict::Live);
    life.took_over(first);
    assert_eq!(judged(&life, 11), Verdict::Live, "the other one waits since later");
    life.wrote(12);
    assert_eq!(judged(&life, 12), Verdict::Close);
    life.took_over(second);
}

#[test]
fn a_spare_place_is_kept_by_a_whole_request_alone() {
    let life = Life::new(0);
    assert!(!life.gives_way(), "its place is its own");
    life.seat.set(Seat::Spare);
    assert!(life.gives_way());
    life.begin(false);
    assert!(life.gives_way(), "its body is still to come");
    life.is_whole.set(true);
    assert!(!life.gives_way());
}

#[test]
fn no_deadline_is_early() {
    assert!(ROUND * (rounds(Duration::from_millis(999)) - 1) >= Duration::from_millis(999));
    assert_eq!(rounds(Duration::MAX), Round::MAX);
}

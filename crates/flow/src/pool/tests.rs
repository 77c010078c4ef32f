//! Pools with real threads: which thread does which work when, and when threads begin and end.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::testing::run;
use futures_util::FutureExt;
use futures_util::future::join_all;

/// A thread that takes longer than this to begin was not woken.
const HANGS_AFTER: Duration = Duration::from_secs(20);

#[test]
fn work_is_done_elsewhere_and_answered() {
    let pool = Pool::start(2).expect("threads");
    let here = thread::current().id();
    let there = run(pool.run(|| thread::current().id())).expect("an answer");
    assert_ne!(there, here);
}

#[test]
fn a_panic_is_an_error_of_that_work_alone() {
    let pool = Pool::start(1).expect("a thread");
    let answer: Result<(), Error> = run(pool.run(|| panic!("boom")));
    assert!(answer.expect_err("a panic").text().contains("panicked: boom"));
    assert_eq!(run(pool.run(|| 7)), Ok(7), "the thread goes on");
}

#[test]
fn a_full_pool_refuses_and_goes_on_when_there_is_room() {
    let pool = Pool::start(1).expect("a thread");
    let (go_on, wait) = mpsc::channel::<()>();
    let (says, begun) = mpsc::channel();
    // The first piece keeps the thread, and the others fill the queue.
    let mut first = Box::pin(pool.run(move || {
        says.send(()).expect("the test waits");
        wait.recv()
    }));
    assert!((&mut first).now_or_never().is_none());
    begun.recv().expect("the thread has begun");
    let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(pool.run(|| ()))).collect();
    for work in &mut waiting {
        assert!(work.now_or_never().is_none());
    }
    let error = run(pool.run(|| ())).expect_err("no room");
    assert_eq!(error.status(), 503);
    go_on.send(()).expect("the thread waits");
    run(first).expect("an answer").expect("the word to go on");
    assert!(run(join_all(waiting)).iter().all(Result::is_ok));
    assert_eq!(run(pool.run(|| 7)), Ok(7));
}

#[test]
fn a_full_pool_still_takes_what_goes_first_and_does_it_next() {
    let pool = Pool::start(1).expect("a thread");
    run(pool.run(|| ())).expect("done");
    // Soon the thread waits for more. If it does not wait yet, the test shows less, but does not
    // fail.
    thread::sleep(Duration::from_millis(20));
    let (woken, is_woken) = mpsc::channel();
    let mut wakes = Box::pin(pool.run_first(move || woken.send(())));
    // The work may be done by now.
    let _ = (&mut wakes).now_or_never();
    is_woken.recv_timeout(HANGS_AFTER).expect("a thread that waits is woken");
    let (go_on, wait) = mpsc::channel::<()>();
    let (says, done) = mpsc::channel();
    let mut holds = Box::pin(pool.run(move || wait.recv()));
    assert!((&mut holds).now_or_never().is_none());
    let work = |name: &'static str| {
        let says = says.clone();
        move || says.send(name).expect("the test waits")
    };
    // The thread may or may not have taken the first piece already.
    let mut others: Vec<_> = (0..=WAITING_MAX).map(|_| Box::pin(pool.run(work("x")))).collect();
    let full = others.iter_mut().filter_map(|it| it.now_or_never()).count();
    assert!(full > 0, "the queue is full");
    // `first` work has a thread of its own.
    run(pool.run_first(work("first"))).expect("done");
    assert_eq!(done.recv(), Ok("first"));
    go_on.send(()).expect("the thread waits");
}

#[test]
fn slow_work_leaves_half_of_the_threads_to_others() {
    let pool = Pool::start(2).expect("threads");
    let (go_on, wait) = mpsc::channel::<()>();
    let mut slow = Box::pin(pool.run_slow(move || wait.recv()));
    assert!((&mut slow).now_or_never().is_none());
    let mut next = Box::pin(pool.run_slow(|| 8));
    assert!((&mut next).now_or_never().is_none(), "it waits for the other");
    assert_eq!(run(pool.run(|| 7)), Ok(7), "a thread is left");
    // A cancelled piece keeps its thread until its end.
    drop(slow);
    assert!((&mut next).now_or_never().is_none());
    go_on.send(()).expect("the thread waits");
    assert_eq!(run(next), Ok(8));
}

#[test]
fn the_threads_end_with_the_last_handle() {
    let pool = Pool::start(2).expect("threads");
    let other = pool.clone();
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    drop(pool);
    // Work that is under way is finished, even if nobody waits for it any more.
    let ((go_on, wait), (says, done)) = (mpsc::channel(), mpsc::channel());
    let work = other.run(move || {
        wait.recv().expect("the test tells it");
        drop(held);
        says.send(()).expect("the test waits");
    });
    assert!(Box::pin(work).now_or_never().is_none());
    drop(other);
    go_on.send(()).expect("the thread waits");
    done.recv().expect("it was done");
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn threads_begin_and_end_as_the_size_changes_and_no_work_is_lost() {
    let (pool, keeper) = Pool::start_kept(PoolSize { start: 2, min: 2, max: 9 }).expect("threads");
    let (hold, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (says, begun) = mpsc::channel();
    let mut kept: Vec<_> = (0..6)
        .map(|_| {
            let (says, held) = (says.clone(), Arc::clone(&held));
            Box::pin(pool.run(move || {
                says.send(()).expect("the test waits");
                held.lock().expect("no piece panics").recv()
            }))
        })
        .collect();
    for work in &mut kept {
        assert!(work.now_or_never().is_none());
    }
    let begins = || begun.recv_timeout(HANGS_AFTER).expect("a thread begins it");
    (0..2).for_each(|_| begins());
    assert!(begun.try_recv().is_err(), "there are two threads");
    keeper.shared.resize(5).expect("threads");
    (0..3).for_each(|_| begins());
    assert_eq!(keeper.shared.lock().threads, 5);
    keeper.shared.resize(2).expect("fewer are no matter");
    // Work that is under way is finished, and waiting work is done by the threads that stay.
    (0..6).for_each(|_| hold.send(()).expect("a thread waits"));
    assert!(run(join_all(kept)).into_iter().all(|done| done.expect("an answer").is_ok()));
    begins();
    let begun = std::time::Instant::now();
    while keeper.shared.lock().threads > 2 {
        assert!(begun.elapsed() < HANGS_AFTER, "those that are too many end");
        thread::yield_now();
    }
    assert_eq!(run(pool.run(|| 7)), Ok(7));
    // The answer of the seventh piece may come before the piece is counted.
    assert!(keeper.shared.lock().spent.pieces >= 6);
}

#[test]
fn slow_work_that_nobody_waits_for_is_not_begun() {
    let pool = Pool::start(1).expect("a thread");
    let (go_on, wait) = mpsc::channel::<()>();
    let mut keeps = Box::pin(pool.run_slow(move || wait.recv()));
    assert!((&mut keeps).now_or_never().is_none());
    let (says, said) = mpsc::channel();
    let mut cancelled = Box::pin(pool.run_slow(move || says.send("begun")));
    assert!((&mut cancelled).now_or_never().is_none());
    drop(cancelled);
    go_on.send(()).expect("the thread waits");
    assert_eq!(run(pool.run_slow(|| 7)), Ok(7));
    assert!(said.recv().is_err(), "its sender is gone unused");
}

#[test]
fn time_in_line_for_another_pool_is_told_while_it_lasts() {
    let (pool, keeper) = Pool::start_kept(PoolSize::fixed(1)).expect("a thread");
    let (go_on, wait) = mpsc::channel::<()>();
    let (says, begun) = mpsc::channel();
    let mut waits = Box::pin(pool.run(move || {
        queued_elsewhere(|| {
            says.send(()).expect("the test waits");
            wait.recv()
        })
    }));
    assert!((&mut waits).now_or_never().is_none());
    begun.recv_timeout(HANGS_AFTER).expect("it has begun");
    let before = keeper.now();
    thread::sleep(Duration::from_millis(5));
    let (running_ns, elsewhere_ns) = keeper.now().occupied.since(before.occupied);
    assert!(running_ns > 0 && running_ns == elsewhere_ns, "{running_ns} {elsewhere_ns}");
    go_on.send(()).expect("the thread waits");
    run(waits).expect("an answer").expect("the word to go on");
    assert_eq!(keeper.shared.lock().elsewhere, 0);
    // On other threads it only calls its argument, and a panic goes through.
    assert_eq!(queued_elsewhere(|| 7), 7);
    let panics: Result<(), Error> = run(pool.run(|| queued_elsewhere(|| panic!("boom"))));
    assert!(panics.expect_err("a panic").text().contains("boom"));
    assert_eq!(keeper.shared.lock().elsewhere, 0);
}

//! Loom on the code that ships: every schedule of small scenes, with every value that a load may
//! still see. Each proof runs again with one ordering weakened, and must then fail; so a proof that
//! checks nothing is noticed.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
//!   cargo test -p sinew-link --release --lib proofs
//! ```

use core::ptr::NonNull;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec;

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::broadcast::{self, Arrived};
use crate::cells::{AtomicU32, Region, Site, WEAKENED};
use crate::latest::{self, Fresh};
use crate::memory::{LoomCells, Memory};
use crate::queue::{self, SendError};
use crate::region::create_at;
use crate::semaphore::{SEMAPHORE_BYTES, Semaphore};
use crate::shape::{Layout, Shape};
use crate::wait::{Os, Wait};

/// Bounds the thread switches that nothing forces, so that all proofs end within a minute.
const PREEMPTIONS_MAX: usize = 6;
/// The same, where payloads are words, each of which may be seen old or new.
const PREEMPTIONS_OF_WORDS_MAX: usize = 3;
/// The same, in the scene of three threads.
const PREEMPTIONS_OF_THREE_MAX: usize = 2;

#[derive(Clone)]
struct LoomMemory {
    cells: Arc<LoomCells>,
    len: usize,
}

// SAFETY: under loom a region reaches words and payloads through `cells` only, never the base.
unsafe impl Memory for LoomMemory {
    fn base(&self) -> NonNull<u8> {
        NonNull::without_provenance(core::num::NonZero::new(128).expect("not zero"))
    }

    fn len(&self) -> usize {
        self.len
    }

    fn cells(&self) -> &LoomCells {
        &self.cells
    }
}

impl LoomMemory {
    /// Words alone.
    fn words(len: usize) -> LoomMemory {
        let words = (0..len).step_by(4).map(|at| (at, AtomicU32::new(0))).collect();
        let cells = LoomCells { words, payloads: HashMap::new() };
        LoomMemory { cells: Arc::new(cells), len }
    }

    fn made(shape: &Shape, start: u32) -> LoomMemory {
        let cells = LoomCells { words: HashMap::new(), payloads: HashMap::new() };
        let empty = LoomMemory { cells: Arc::new(cells), len: shape.region_len() };
        let (words, payloads) = Region::new(&empty, shape).offsets();
        let size = shape.message_size as usize;
        let cells = LoomCells {
            words: words.into_iter().map(|at| (at, AtomicU32::new(0))).collect(),
            payloads: payloads.into_iter().map(|at| (at, UnsafeCell::new(vec![0; size]))).collect(),
        };
        let memory = LoomMemory { cells: Arc::new(cells), len: empty.len };
        create_at(&memory, shape, start).expect("the shape is good");
        memory
    }
}

/// Runs `scene` under loom; then again with each of `sites` weakened, which must fail.
fn prove(sites: &[Site], scene: fn()) {
    prove_within(PREEMPTIONS_MAX, sites, scene);
}

fn prove_within(preemptions_max: usize, sites: &[Site], scene: fn()) {
    let run = || {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions_max);
        builder.max_branches = 100_000;
        builder.check(scene);
    };
    run();
    for &site in sites {
        WEAKENED.set(Some(site));
        let outcome = catch_unwind(AssertUnwindSafe(run));
        WEAKENED.set(None);
        assert!(outcome.is_err(), "loom does not notice that {site:?} is weakened");
    }
}

fn queue_scene(layout: Layout) {
    let shape = Shape { layout, ..Shape::queue(4, 0, 2) };
    let memory = LoomMemory::made(&shape, u32::MAX);
    let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = queue::Reader::attach(memory, &shape).expect("made");
    let sending = thread::spawn(move || {
        let mut sent = 0_u8;
        // The third meets a full queue, or a slot that the reader has freed.
        for _ in 0..3 {
            match writer.try_send(&[sent + 1; 4]) {
                Ok(()) => sent += 1,
                Err(error) => assert_eq!(error, SendError::Full),
            }
        }
        sent
    });
    let mut received = 0;
    let mut receive = |reader: &mut queue::Reader<LoomMemory>| {
        let mut message = [0; 4];
        let there = reader.try_receive(&mut message).expect("the writer is honest");
        if there {
            received += 1;
            assert_eq!(message, [received; 4]);
        }
        there
    };
    receive(&mut reader);
    receive(&mut reader);
    let sent = sending.join().expect("no panic");
    while receive(&mut reader) {}
    assert_eq!(received, sent);
}

#[test]
fn queue_index_layout() {
    prove(&[Site::QueuePublish, Site::QueueFree], || queue_scene(Layout::Index));
}

#[test]
fn queue_sequence_layout() {
    prove(&[Site::QueuePublish, Site::QueueFree], || queue_scene(Layout::Sequence));
}

/// The second message is read before the first is freed, and stays unchanged until it is freed too.
fn ahead_scene(layout: Layout) {
    let shape = Shape { layout, ..Shape::queue(4, 0, 2) };
    let memory = LoomMemory::made(&shape, u32::MAX);
    let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = queue::Reader::attach(memory, &shape).expect("made");
    let sending = thread::spawn(move || {
        // The third finds room only where the first was freed.
        for number in 1..4 {
            if writer.try_send(&[number; 4]).is_err() {
                return number - 1;
            }
        }
        3
    });
    let mut message = [0; 4];
    let mut received = 0;
    let mut ahead = |reader: &mut queue::Reader<LoomMemory>, by: u8| {
        if let Some(found) = reader.ahead(by.into()).expect("the writer is honest") {
            found.read_at(0, &mut message);
            assert_eq!(message, [received + by + 1; 4]);
        }
        if let Some(next) = reader.peek().expect("the writer is honest") {
            next.read_at(0, &mut message);
            received += 1;
            assert_eq!(message, [received; 4]);
            next.release();
        }
        received
    };
    ahead(&mut reader, 1);
    let sent = sending.join().expect("no panic");
    while ahead(&mut reader, 1) != sent {}
}

#[test]
fn queue_read_ahead_in_the_index_layout() {
    prove(&[Site::QueuePublish, Site::QueueFree], || ahead_scene(Layout::Index));
}

#[test]
fn queue_read_ahead_in_the_sequence_layout() {
    prove(&[Site::QueuePublish, Site::QueueFree], || ahead_scene(Layout::Sequence));
}

/// Reads while three messages are sent: the slot that is read may be overwritten by the third.
fn latest_scene<const N: usize>() {
    let shape = Shape::latest(N as u32, 0);
    let memory = LoomMemory::made(&shape, 0);
    let mut writer = latest::Writer::attach(memory.clone(), &shape).expect("made");
    let mut reader = latest::Reader::attach(memory, &shape).expect("made");
    writer.send(&[1; N]);
    let sending = thread::spawn(move || {
        for number in 2..5 {
            writer.send(&[number; N]);
        }
    });
    let mut before = 0;
    let mut read = || {
        let mut message = [0; N];
        let fresh = reader.read(&mut message).expect("the writer is honest");
        assert_eq!(message, [message[0]; N], "torn");
        match fresh {
            Fresh::New => assert!(message[0] > before, "{} after {before}", message[0]),
            Fresh::Old => assert_eq!(message[0], before),
            Fresh::None => panic!("one was sent before"),
        }
        before = message[0];
    };
    read();
    read();
    sending.join().expect("no panic");
    read();
    assert_eq!(before, 4);
}

#[test]
fn latest_taken_reads_whole_messages_that_never_go_back() {
    prove(&[Site::LatestFence, Site::LatestPublish], latest_scene::<12>);
}

#[test]
fn latest_copied_first_reads_whole_messages_that_never_go_back() {
    // Two words, so that a message can be torn.
    let sites = [Site::LatestFence, Site::LatestPublish, Site::LatestOvertaken];
    prove_within(PREEMPTIONS_OF_WORDS_MAX, &sites, latest_scene::<8>);
}

#[test]
fn broadcast_readers_get_whole_messages_and_count_the_lost() {
    prove(&[Site::BroadcastFence, Site::BroadcastPublish], || {
        // Two words, so that a message can be torn.
        let shape = Shape::broadcast(8, 0, 2);
        let memory = LoomMemory::made(&shape, u32::MAX);
        let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("made");
        let mut reader = broadcast::Reader::attach(memory, &shape).expect("made");
        writer.send(&[1; 8]);
        let sending = thread::spawn(move || {
            for number in 2..4 {
                writer.send(&[number; 8]);
            }
        });
        let mut before = 0;
        let mut receive = || {
            let mut message = [0; 8];
            let received = reader.receive(&mut message).expect("the writer is honest");
            if let Some(Arrived { lost }) = received {
                assert_eq!(message, [message[0]; 8], "torn");
                assert_eq!(u32::from(message[0]), u32::from(before) + lost + 1);
                before = message[0];
            }
            received.is_some()
        };
        receive();
        sending.join().expect("no panic");
        while receive() {}
        assert_eq!(before, 3);
    });
}

/// A futex made of loom's parts: the lock acts as the kernel's lock of the wait queue.
#[derive(Clone)]
struct LoomOs(Arc<(Mutex<()>, Condvar)>);

impl Os for LoomOs {
    fn yield_now(&self) {
        thread::yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, _timeout_ns: u64) {
        // No timeout: a lost wake-up is a deadlock, which loom reports.
        let guard = self.0.0.lock().expect("not poisoned");
        if word.load(Ordering::Relaxed) == expected {
            drop(self.0.1.wait(guard));
        }
    }

    fn futex_wake(&self, _word: &AtomicU32) {
        let _guard = self.0.0.lock().expect("not poisoned");
        self.0.1.notify_all();
    }

    fn now_ns(&self) -> u64 {
        0
    }
}

#[test]
fn a_parked_reader_is_always_woken() {
    prove(&[Site::BellFence], || {
        let shape = Shape::queue(1, 0, 2).parking();
        let memory = LoomMemory::made(&shape, 0);
        let os = LoomOs(Arc::new((Mutex::new(()), Condvar::new())));
        let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
        let mut reader = queue::Reader::attach(memory, &shape).expect("made");
        // The first ring goes through in any case; what counts are those after it.
        writer.wake(&os);
        let waker = os.clone();
        let sending = thread::spawn(move || {
            for number in 1..3 {
                writer.try_send(&[number]).expect("there is room");
                writer.wake(&waker);
            }
            // Not dropped here: closing would end the wait, too.
            writer
        });
        for number in 1..3 {
            assert!(reader.wait(Wait::Park, None, &os));
            let mut message = [0];
            assert_eq!(reader.try_receive(&mut message), Ok(true));
            assert_eq!(message, [number]);
        }
        drop(sending.join().expect("no panic"));
    });
}

#[test]
fn a_parked_writer_is_always_woken() {
    prove(&[Site::BellFence], || {
        let shape = Shape::queue(1, 0, 1).parking();
        let memory = LoomMemory::made(&shape, 0);
        let os = LoomOs(Arc::new((Mutex::new(()), Condvar::new())));
        let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
        let mut reader = queue::Reader::attach(memory, &shape).expect("made");
        reader.wake(&os);
        writer.try_send(&[1]).expect("there is room");
        let waker = os.clone();
        let receiving = thread::spawn(move || {
            assert_eq!(reader.try_receive(&mut [0]), Ok(true));
            reader.wake(&waker);
            reader
        });
        assert!(writer.wait_room(Wait::Park, None, &os));
        writer.try_send(&[2]).expect("there is room");
        drop(receiving.join().expect("no panic"));
    });
}

#[test]
fn every_parked_reader_of_a_broadcast_is_woken() {
    // No run with a weakened ordering: loom cannot unwind two threads that sleep. The fence is that
    // of the proofs above.
    prove_within(PREEMPTIONS_OF_THREE_MAX, &[], || {
        let shape = Shape::broadcast(1, 0, 2).parking();
        let memory = LoomMemory::made(&shape, 0);
        let os = LoomOs(Arc::new((Mutex::new(()), Condvar::new())));
        let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("made");
        writer.wake(&os);
        let readers: [_; 2] = core::array::from_fn(|_| {
            let (memory, os) = (memory.clone(), os.clone());
            let mut reader = broadcast::Reader::attach(memory, &shape).expect("made");
            thread::spawn(move || {
                assert!(reader.wait(Wait::Park, None, &os));
                assert_eq!(reader.receive(&mut [0]), Ok(Some(Arrived { lost: 0 })));
            })
        });
        writer.send(&[1]);
        writer.wake(&os);
        for reader in readers {
            reader.join().expect("no panic");
        }
    });
}

/// Two sides share one token, and write a cell only while they have it: loom finds any overlap, and
/// any write that was not published. At the end the token is with one of them.
#[test]
fn a_token_is_with_one_side_at_a_time() {
    prove_within(PREEMPTIONS_OF_WORDS_MAX, &[Site::SemaphoreGive], || {
        let memory = LoomMemory::words(SEMAPHORE_BYTES);
        let guarded = Arc::new(UnsafeCell::new(0));
        let one = Semaphore::new(memory.clone(), 0);
        one.create(1, false);
        let act = |side: &Semaphore<LoomMemory>, guarded: &UnsafeCell<i32>| {
            side.begin_wait();
            let mut took = false;
            for _ in 0..2 {
                took = took || side.try_take().expect("the peer is honest");
            }
            side.end_wait();
            if took {
                // SAFETY: the side that has the token has the cell; that is what is proven.
                guarded.with_mut(|it| unsafe { *it += 1 });
                side.post().expect("room");
            }
            side.serve().expect("the peer is honest");
            i32::from(took)
        };
        let (two, cell) = (Semaphore::new(memory, 1), guarded.clone());
        let other = thread::spawn(move || (act(&two, &cell), two));
        let took = act(&one, &guarded);
        let (theirs, two) = other.join().expect("no panic");
        // SAFETY: the other thread has ended.
        guarded.with(|it| assert_eq!(unsafe { *it }, took + theirs));
        let (mine, peers) = two.tokens().expect("both are honest");
        assert_eq!(mine + peers, 1, "a token was lost or made");
    });
}

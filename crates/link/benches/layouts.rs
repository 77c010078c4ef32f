//! What the two slot layouts of the queue cost: round trip and stream on two pinned threads. Two
//! references are measured too. A *token* is one word that goes to and fro: the least that any link
//! can cost here. A *pair* is a word on a line of its own for each way: the least that two links
//! can cost whose readers poll all the time, because each message moves its line twice, to be
//! written and to be read.
//!
//! Every round trip is measured twice: with one PAUSE between polls, and with so many that polls
//! are [`GAP_NS`] apart; the runtime begins with the first way and goes on with the second. Every
//! poll takes the line from the core that is about to write it, so fewer may be faster. A stream is
//! polled [`STREAM_GAP_NS`] apart, as in the runtime, and timed from its first message until the
//! reader has its last one: the time that a writer waits for room is included.
//!
//! `cargo bench -p sinew-link --bench layouts`; a few seconds. All contenders run in every round,
//! one after the other, because the machine under them may change; ratios are to the token of the
//! same round. Needs two CPUs: both sides spin.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::alloc::{Layout as Bytes, alloc_zeroed};
use std::hint::{black_box, spin_loop};
use std::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sinew_link::{Layout, RawMemory, Shape, create, queue};

const ROUNDS: usize = 9;
const TRIPS: u32 = 20_000;
const MESSAGES: u32 = 100_000;
/// Messages before those that are timed: every slot was touched, both threads run.
const WARM_UP: u32 = 4096;
/// Round trips between two looks at the clock.
const BATCH: u32 = 200;
const CAPACITY: u32 = 8;
/// Capacity of the queues that carry a stream.
const CAPACITY_STREAM: u32 = 1024;
/// Between two polls of a round trip.
const GAP_NS: f64 = 50.0;
/// Between two polls of a stream.
const STREAM_GAP_NS: f64 = 500.0;

fn main() {
    let cpus = cpus();
    if cpus.len() < 2 {
        println!("skipped: both sides spin, so this bench needs two CPUs, and there is one");
        return;
    }
    let ends = [cpus[0], cpus[1]];
    let pause_ns = pause_ns();
    let pauses = |gap_ns: f64| (gap_ns / pause_ns).ceil().max(1.0) as u32;
    let (gap, stream_gap) = (pauses(GAP_NS), pauses(STREAM_GAP_NS));
    println!("CPUs {} and {}, PAUSE takes {pause_ns:.0} ns, {ROUNDS} rounds", ends[0], ends[1]);
    println!("least/median over rounds, ns; x: median ratio to the token of the same round");
    for (pauses, name) in [(1, "one PAUSE"), (gap, "the gap")] {
        println!("\nround trip, capacity {CAPACITY}, {name} between polls ({pauses} PAUSE)");
        println!("{:>5} {:>9} {:>16} {:>16} {:>16}", "bytes", "token", "pair", "index", "sequence");
        macro_rules! sizes {
            ($($size:literal)*) => { $( round_trips::<$size>(ends, pauses); )* };
        }
        sizes!(8 48 64 120 128 256 1024);
    }
    println!("\nper message of a stream, capacity {CAPACITY_STREAM}");
    println!("{:>5} {:>16} {:>16}", "bytes", "index", "sequence");
    macro_rules! sizes {
        ($($size:literal)*) => { $( streams::<$size>(ends, stream_gap); )* };
    }
    sizes!(8 48 64 120 128 256 1024);
}

fn round_trips<const N: usize>(ends: [usize; 2], pauses: u32) {
    let (mut tokens, mut rows) = (vec![], [vec![], vec![], vec![]]);
    for _ in 0..ROUNDS {
        // The token always runs as fast as possible.
        tokens.push(token(ends, 0, 1));
        rows[0].push(token(ends, 1, pauses));
        rows[1].push(round_trip::<N>(Layout::Index, ends, pauses));
        rows[2].push(round_trip::<N>(Layout::Sequence, ends, pauses));
    }
    let with_ratio = |round: &Vec<f64>| {
        let ratios = round.iter().zip(&tokens).map(|(trip, token)| trip / token).collect();
        format!("{} {:.2}x", figures(round), median(ratios))
    };
    let [pair, index, sequence] = rows.each_ref().map(with_ratio);
    println!("{N:>5} {:>9} {pair:>16} {index:>16} {sequence:>16}", figures(&tokens));
}

fn streams<const N: usize>(ends: [usize; 2], pauses: u32) {
    let mut rows = [vec![], vec![]];
    for _ in 0..ROUNDS {
        rows[0].push(stream::<N>(Layout::Index, ends, pauses));
        rows[1].push(stream::<N>(Layout::Sequence, ends, pauses));
    }
    println!("{N:>5} {:>16} {:>16}", figures(&rows[0]), figures(&rows[1]));
}

fn figures(figures: &[f64]) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let median = median(figures.to_vec());
    if median < 100.0 {
        format!("{least:.1}/{median:.1}")
    } else {
        format!("{least:.0}/{median:.0}")
    }
}

/// A word to and fro, the way back `back` lines further; ns per round trip.
fn token(ends: [usize; 2], back: usize, pauses: u32) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU32);
    let words = [Line(AtomicU32::new(0)), Line(AtomicU32::new(0))];
    let wait = |word: &Line, number| {
        while word.0.load(Ordering::Acquire) != number {
            (0..pauses).for_each(|_| spin_loop());
        }
    };
    let send = |word: &Line, number| word.0.store(number, Ordering::Release);
    let near = |trip| {
        send(&words[0], trip * 2 + 1);
        wait(&words[back], trip * 2 + 2);
    };
    let far = || {
        for trip in 0..TRIPS {
            wait(&words[0], trip * 2 + 1);
            send(&words[back], trip * 2 + 2);
        }
    };
    timed(ends, TRIPS, near, far)
}

fn round_trip<const N: usize>(layout: Layout, ends: [usize; 2], pauses: u32) -> f64 {
    let (mut there_w, mut there_r) = queue::<N>(layout, CAPACITY);
    let (mut back_w, mut back_r) = queue::<N>(layout, CAPACITY);
    let near = move |_| {
        let mut message = [1; N];
        send(&mut there_w, &message, pauses);
        receive(&mut back_r, &mut message, pauses);
    };
    let far = move || {
        let mut message = [0; N];
        for _ in 0..TRIPS {
            receive(&mut there_r, &mut message, pauses);
            send(&mut back_w, &message, pauses);
        }
    };
    timed(ends, TRIPS, near, far)
}

/// Many different messages; ns per message.
fn stream<const N: usize>(layout: Layout, ends: [usize; 2], pauses: u32) -> f64 {
    let (mut writer, mut reader) = queue::<N>(layout, CAPACITY_STREAM);
    let (both, done) = (Barrier::new(2), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(ends[1]);
            both.wait();
            for _ in 0..WARM_UP + MESSAGES {
                let mut message = [0; N];
                receive(&mut reader, &mut message, pauses);
                black_box(message);
            }
            done.store(1, Ordering::Release);
        });
        pin(ends[0]);
        both.wait();
        let mut send = |number: u32| send(&mut writer, &[number as u8; N], pauses);
        (0..WARM_UP).for_each(&mut send);
        let start = Instant::now();
        (0..MESSAGES).for_each(&mut send);
        while done.load(Ordering::Acquire) == 0 {
            spin_loop();
        }
        start.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
    })
}

fn queue<const N: usize>(
    layout: Layout,
    capacity: u32,
) -> (queue::Writer<RawMemory>, queue::Reader<RawMemory>) {
    let shape = Shape { layout, ..Shape::queue(N as u32, 0, capacity) };
    let bytes = Bytes::from_size_align(shape.region_len(), 128).expect("a small region");
    // SAFETY: not of size zero, and never given back: a bench may leak some megabytes.
    let memory = unsafe {
        let base = NonNull::new(alloc_zeroed(bytes)).expect("memory");
        RawMemory::new(base, bytes.size())
    };
    create(&memory, &shape).expect("a good shape");
    let writer = queue::Writer::attach(memory, &shape).expect("made");
    (writer, queue::Reader::attach(memory, &shape).expect("made"))
}

#[inline]
fn send<const N: usize>(writer: &mut queue::Writer<RawMemory>, message: &[u8; N], pauses: u32) {
    while writer.try_send(message).is_err() {
        (0..pauses).for_each(|_| spin_loop());
    }
}

#[inline]
fn receive<const N: usize>(
    reader: &mut queue::Reader<RawMemory>,
    message: &mut [u8; N],
    pauses: u32,
) {
    while !reader.try_receive(message).expect("an honest writer") {
        (0..pauses).for_each(|_| spin_loop());
    }
}

/// Runs both sides, each pinned; ns per step of the first, the median over batches: the kernel
/// may take the CPU away in some of them.
fn timed(
    ends: [usize; 2],
    steps: u32,
    mut near: impl FnMut(u32),
    far: impl FnOnce() + Send,
) -> f64 {
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(ends[1]);
            both.wait();
            far();
        });
        pin(ends[0]);
        both.wait();
        let batch = |batch| {
            let start = Instant::now();
            (batch * BATCH..(batch + 1) * BATCH).for_each(&mut near);
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        };
        median((0..steps / BATCH).map(batch).collect())
    })
}

/// How long a PAUSE takes; the least of several tries.
fn pause_ns() -> f64 {
    let lasts = |_| {
        let start = Instant::now();
        (0..1000).for_each(|_| spin_loop());
        start.elapsed().as_nanos() as f64 / 1000.0
    };
    (0..8).map(lasts).fold(f64::INFINITY, f64::min)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The CPUs that we may use.
fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("a thread may ask for its own");
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("it is one that we may use");
}

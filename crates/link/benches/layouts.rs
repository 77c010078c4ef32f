//! What the two slot layouts of the queue cost: round trip and throughput on two pinned threads,
//! beside a *token*, one word that goes to and fro, the least that any link can cost here, and a
//! *pair*, a word on a line of its own for each way, the least that two queues can cost.
//!
//! `cargo bench -p sinew-link --bench layouts`; a few seconds. All contenders run in every round,
//! one after the other, because the machine under them may change; ratios are to the token of the
//! same round. Needs two CPUs: both sides spin.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::alloc::{Layout as Bytes, alloc_zeroed};
use std::hint::spin_loop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use sinew_link::{Layout, RawMemory, Shape, create, queue};

const ROUNDS: usize = 9;
const TRIPS: u32 = 20_000;
const MESSAGES: u32 = 100_000;
/// Steps between two looks at the clock; several times round the queue.
const BATCH: u32 = 200;
const CAPACITY: u32 = 16;

fn main() {
    let cpus = cpus();
    if cpus.len() < 2 {
        println!("skipped: both sides spin, so this bench needs two CPUs, and there is one");
        return;
    }
    println!("CPUs {} and {}, capacity {CAPACITY}, {ROUNDS} rounds", cpus[0], cpus[1]);
    println!("least/median over rounds, ns; x: median ratio to the token of the same round");
    println!("      round trip, {TRIPS} per round {:>38} per message", "");
    println!(
        "{:>5} {:>9} {:>15} {:>15} {:>15} {:>9} {:>9}",
        "bytes", "token", "pair", "index", "sequence", "index", "sequence"
    );
    let ends = [cpus[0], cpus[1]];
    macro_rules! sizes {
        ($($size:literal)*) => { $( row::<$size>(ends); )* };
    }
    sizes!(8 16 32 48 56 64 128 256 1024);
}

fn row<const N: usize>(ends: [usize; 2]) {
    let (mut tokens, mut pairs) = (vec![], vec![]);
    let (mut trips, mut flows) = ([vec![], vec![]], [vec![], vec![]]);
    let layouts = [Layout::Index, Layout::Sequence];
    for _ in 0..ROUNDS {
        tokens.push(token(ends, 0));
        pairs.push(token(ends, 1));
        for (i, layout) in layouts.into_iter().enumerate() {
            trips[i].push(round_trip::<N>(layout, ends));
            flows[i].push(throughput::<N>(layout, ends));
        }
    }
    let figures = |figures: &[f64]| {
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        format!("{least:.0}/{:.0}", median(figures.to_vec()))
    };
    let with_ratio = |round: &[f64]| {
        let ratios = round.iter().zip(&tokens).map(|(trip, token)| trip / token).collect();
        format!("{} {:.2}x", figures(round), median(ratios))
    };
    println!(
        "{N:>5} {:>9} {:>15} {:>15} {:>15} {:>9} {:>9}",
        figures(&tokens),
        with_ratio(&pairs),
        with_ratio(&trips[0]),
        with_ratio(&trips[1]),
        figures(&flows[0]),
        figures(&flows[1]),
    );
}

/// A word to and fro, the way back `back` lines further; ns per round trip.
fn token(ends: [usize; 2], back: usize) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU32);
    let words = [Line(AtomicU32::new(0)), Line(AtomicU32::new(0))];
    let wait = |word: &Line, number| {
        while word.0.load(Ordering::Acquire) != number {
            spin_loop();
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

fn round_trip<const N: usize>(layout: Layout, ends: [usize; 2]) -> f64 {
    let (mut there_w, mut there_r) = queue::<N>(layout);
    let (mut back_w, mut back_r) = queue::<N>(layout);
    let near = move |_| {
        let mut message = [1; N];
        send(&mut there_w, &message);
        receive(&mut back_r, &mut message);
    };
    let far = move || {
        let mut message = [0; N];
        for _ in 0..TRIPS {
            receive(&mut there_r, &mut message);
            send(&mut back_w, &message);
        }
    };
    timed(ends, TRIPS, near, far)
}

fn throughput<const N: usize>(layout: Layout, ends: [usize; 2]) -> f64 {
    let (mut writer, mut reader) = queue::<N>(layout);
    let near = move |_| send(&mut writer, &[1; N]);
    let far = move || (0..MESSAGES).for_each(|_| receive(&mut reader, &mut [0; N]));
    timed(ends, MESSAGES, near, far)
}

fn queue<const N: usize>(layout: Layout) -> (queue::Writer<RawMemory>, queue::Reader<RawMemory>) {
    let shape = Shape { layout, ..Shape::queue(N as u32, 0, CAPACITY) };
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
fn send<const N: usize>(writer: &mut queue::Writer<RawMemory>, message: &[u8; N]) {
    while writer.try_send(message).is_err() {
        spin_loop();
    }
}

#[inline]
fn receive<const N: usize>(reader: &mut queue::Reader<RawMemory>, message: &mut [u8; N]) {
    while !reader.try_receive(message).expect("an honest writer") {
        spin_loop();
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
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(ends[1]);
            far();
        });
        pin(ends[0]);
        let batch = |batch| {
            let start = Instant::now();
            (batch * BATCH..(batch + 1) * BATCH).for_each(&mut near);
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        };
        median((0..steps / BATCH).map(batch).collect())
    })
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The CPUs that we may use.
fn cpus() -> Vec<usize> {
    // SAFETY: the set is plain data that the call fills; CPU_ISSET stays below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

fn pin(cpu: usize) {
    // SAFETY: `cpu` came from `cpus`, so it is below the size of the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

//! kill -9 at every machine instruction of a write and of a read, over a memfd: what remains is the
//! old message or the new one, whole; the other side goes on, and so does a fresh end.
//!
//! A child is traced and stepped n instructions into the operation, then killed; n runs until the
//! operation is over. Unoptimised code takes thousands of instructions for what is a hundred
//! otherwise, so there n takes only those values after which the region looks different: a kill in
//! between leaves the same bytes. Every instruction, in a few seconds: `cargo test -p sinew-link
//! --release --test kill`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::print_stderr, reason = "a proof says what it did not run")]

use std::fs::read_dir;
use std::mem::forget;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use sinew_link::broadcast::{self, Arrived};
use sinew_link::latest::{self, Fresh};
use sinew_link::{Layout, Shape, create, queue};

mod support;
use support::{Guarded, number, pattern, skip};

/// Bytes of a message.
const N: usize = 16;
/// Exit status of a child that may not be traced.
const NOT_PERMITTED: i32 = 77;
/// No operation takes so many instructions; past it the proof fails instead of running on.
const STEPS_MAX: u32 = 50_000;

type Message = [u8; N];

/// How far a child got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reached {
    Before,
    Within,
    After,
}

/// A word of shared memory in which the child says how far it is.
fn progress() -> Guarded {
    Guarded::of(&Shape::queue(4, 0, 1))
}

/// A traced child that has stopped just before the operation.
struct Traced<'a> {
    child: libc::pid_t,
    progress: &'a Guarded,
}

impl Traced<'_> {
    /// `None`: the system does not let us trace.
    fn start<'a>(progress: &'a Guarded, operation: &mut dyn FnMut()) -> Option<Traced<'a>> {
        progress.word(0).store(0, Ordering::SeqCst);
        // SAFETY: the child only calls ptrace, raise, _exit and the operation, which neither
        // allocates nor locks.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                    libc::_exit(NOT_PERMITTED);
                }
                libc::raise(libc::SIGSTOP);
                progress.word(0).store(1, Ordering::SeqCst);
                operation();
                progress.word(0).store(2, Ordering::SeqCst);
                libc::raise(libc::SIGSTOP);
                libc::_exit(1);
            }
        }
        let traced = Traced { child, progress };
        let status = traced.wait();
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NOT_PERMITTED {
            return None;
        }
        assert!(libc::WIFSTOPPED(status), "status {status:#x} instead of a stopped child");
        Some(traced)
    }

    fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(self.child, &mut status, 0) }, self.child);
        status
    }

    fn step(&self) {
        // SAFETY: our own stopped child.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.child, null_mut::<u8>(), 0) };
        let status = self.wait();
        assert!(libc::WIFSTOPPED(status), "status {status:#x} while stepping");
    }

    fn reached(&self) -> Reached {
        match self.progress.word(0).load(Ordering::SeqCst) {
            0 => Reached::Before,
            1 => Reached::Within,
            _ => Reached::After,
        }
    }

    fn kill(self) -> Reached {
        let reached = self.reached();
        // SAFETY: our own child.
        unsafe { libc::kill(self.child, libc::SIGKILL) };
        let status = self.wait();
        assert!(libc::WIFSIGNALED(status), "the child ended by itself: status {status:#x}");
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL, "the kill did not land");
        reached
    }
}

/// Runs the operation to its end; returns the numbers of steps at which to kill it. (How many
/// instructions the C library takes to fill bytes depends on where in a page they are, and so on
/// how deep the stack is: messages are made before the operation.)
fn points(traced: Traced<'_>, memory: &Guarded) -> Vec<u32> {
    let look = || (0..memory.words()).map(|i| memory.word(i).load(Ordering::SeqCst)).collect();
    let mut before: Vec<u32> = look();
    let mut points = vec![];
    for steps in 1..STEPS_MAX {
        traced.step();
        match traced.reached() {
            Reached::Before => continue,
            Reached::Within => {}
            Reached::After => {
                points.push(steps - 1);
                traced.kill();
                return points;
            }
        }
        let after = look();
        if points.is_empty() || after != before || !cfg!(debug_assertions) {
            points.push(steps);
        }
        before = after;
    }
    panic!("the operation does not end within {STEPS_MAX} instructions");
}

/// Kills at every step of an operation; `false` if the system does not let us trace. `scene` sets
/// `memory` up, has the operation run by the function that it is given, and checks what is left.
fn at_every_step(
    name: &str,
    memory: &Guarded,
    scene: impl Fn(&mut dyn FnMut(&mut dyn FnMut())),
) -> bool {
    let progress = progress();
    let mut kills = None;
    scene(&mut |operation| {
        kills = Traced::start(&progress, operation).map(|traced| points(traced, memory));
    });
    let Some(kills) = kills else { return false };
    for &steps in &kills {
        scene(&mut |operation| {
            let traced = Traced::start(&progress, operation).expect("was permitted before");
            (0..steps).for_each(|_| traced.step());
            assert_eq!(traced.kill(), Reached::Within, "{name}, {steps} steps");
        });
    }
    eprintln!(
        "{name}: killed at {} points of {} instructions",
        kills.len(),
        kills[kills.len() - 1]
    );
    true
}

fn queue_ends(memory: &Guarded, shape: &Shape) -> (queue::Writer<Guarded>, queue::Reader<Guarded>) {
    let writer = queue::Writer::attach(memory.clone(), shape).expect("a good region");
    (writer, queue::Reader::attach(memory.clone(), shape).expect("a good region"))
}

fn receive(reader: &mut queue::Reader<Guarded>) -> Option<u32> {
    let mut message: Message = [0; N];
    reader.try_receive(&mut message).expect("an honest writer").then(|| number(&message))
}

fn queue_writer(layout: Layout) -> bool {
    let shape = Shape { layout, ..Shape::queue(N as u32, 0, 4) };
    let memory = Guarded::of(&shape);
    at_every_step(&format!("queue writer, {layout:?}"), &memory, |kill| {
        create(&memory, &shape).expect("good");
        let (mut writer, mut reader) = queue_ends(&memory, &shape);
        writer.try_send(&pattern::<N>(1)).expect("room");
        writer.try_send(&pattern::<N>(2)).expect("room");
        assert_eq!(receive(&mut reader), Some(1));
        let message = pattern::<N>(3);
        kill(&mut || writer.try_send(&message).expect("room"));
        forget(writer);
        assert_eq!(receive(&mut reader), Some(2));
        let third = receive(&mut reader);
        assert!(third.is_none() || third == Some(3), "{third:?}");
        let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("goes on");
        assert!(!reader.is_peer_closed());
        for i in 4..20 {
            writer.try_send(&pattern::<N>(i)).expect("room");
            assert_eq!(receive(&mut reader), Some(i));
        }
    })
}

fn queue_reader(layout: Layout) -> bool {
    let shape = Shape { layout, ..Shape::queue(N as u32, 0, 4) };
    let memory = Guarded::of(&shape);
    at_every_step(&format!("queue reader, {layout:?}"), &memory, |kill| {
        create(&memory, &shape).expect("good");
        let (mut writer, mut reader) = queue_ends(&memory, &shape);
        (1..5).for_each(|i| writer.try_send(&pattern::<N>(i)).expect("room"));
        let mut message: Message = [0; N];
        kill(&mut || assert_eq!(reader.try_receive(&mut message), Ok(true)));
        forget(reader);
        let freed = writer.try_send(&pattern::<N>(5)).is_ok();
        let mut reader = queue::Reader::attach(memory.clone(), &shape).expect("goes on");
        // The message whose receipt was cut short comes again.
        for i in if freed { 2..6 } else { 1..5 } {
            assert_eq!(receive(&mut reader), Some(i));
        }
        assert_eq!(receive(&mut reader), None);
        for i in 6..20 {
            writer.try_send(&pattern::<N>(i)).expect("room");
            assert_eq!(receive(&mut reader), Some(i));
        }
    })
}

fn read(reader: &mut latest::Reader<Guarded>) -> (Fresh, u32) {
    let mut message: Message = pattern(0);
    let fresh = reader.read(&mut message).expect("an honest writer");
    (fresh, number(&message))
}

fn latest_ends(
    memory: &Guarded,
    shape: &Shape,
) -> (latest::Writer<Guarded>, latest::Reader<Guarded>) {
    let writer = latest::Writer::attach(memory.clone(), shape).expect("a good region");
    (writer, latest::Reader::attach(memory.clone(), shape).expect("a good region"))
}

/// `taken`: how many of two messages were read before.
fn latest_writer(taken: u32) -> bool {
    let shape = Shape::latest(N as u32, 0);
    let memory = Guarded::of(&shape);
    at_every_step(&format!("latest writer, {taken} read"), &memory, |kill| {
        create(&memory, &shape).expect("good");
        let (mut writer, mut reader) = latest_ends(&memory, &shape);
        for i in 1..3 {
            writer.send(&pattern::<N>(i));
            if i <= taken {
                assert_eq!(read(&mut reader), (Fresh::New, i));
            }
        }
        let message = pattern::<N>(3);
        kill(&mut || writer.send(&message));
        forget(writer);
        let left = read(&mut reader);
        let old = if taken == 2 { Fresh::Old } else { Fresh::New };
        assert!(left == (old, 2) || left == (Fresh::New, 3), "{left:?}");
        assert_eq!(read(&mut reader), (Fresh::Old, left.1));
        let mut writer = latest::Writer::attach(memory.clone(), &shape).expect("goes on");
        for i in 4..20 {
            writer.send(&pattern::<N>(i));
            assert_eq!(read(&mut reader), (Fresh::New, i));
        }
    })
}

fn latest_reader() -> bool {
    let shape = Shape::latest(N as u32, 0);
    let memory = Guarded::of(&shape);
    at_every_step("latest reader", &memory, |kill| {
        create(&memory, &shape).expect("good");
        let (mut writer, mut reader) = latest_ends(&memory, &shape);
        writer.send(&pattern::<N>(1));
        assert_eq!(read(&mut reader), (Fresh::New, 1));
        writer.send(&pattern::<N>(2));
        let mut message: Message = [0; N];
        kill(&mut || assert_eq!(reader.read(&mut message), Ok(Fresh::New)));
        forget(reader);
        let mut reader = latest::Reader::attach(memory.clone(), &shape).expect("goes on");
        assert_eq!(read(&mut reader), (Fresh::New, 2));
        for i in 4..20 {
            writer.send(&pattern::<N>(i));
            assert_eq!(read(&mut reader), (Fresh::New, i));
        }
    })
}

fn hear(reader: &mut broadcast::Reader<Guarded>) -> Option<(u32, u32)> {
    let mut message: Message = [0; N];
    let Arrived { lost } = reader.receive(&mut message).expect("an honest writer")?;
    Some((lost, number(&message)))
}

fn broadcast_writer() -> bool {
    let shape = Shape::broadcast(N as u32, 0, 2);
    let memory = Guarded::of(&shape);
    at_every_step("broadcast writer", &memory, |kill| {
        create(&memory, &shape).expect("good");
        let attach = || broadcast::Writer::attach(memory.clone(), &shape).expect("a good region");
        let reader = || broadcast::Reader::attach(memory.clone(), &shape).expect("a good region");
        let (mut writer, mut prompt, mut late) = (attach(), reader(), reader());
        for i in 1..3 {
            writer.send(&pattern::<N>(i));
            assert_eq!(hear(&mut prompt), Some((0, i)));
        }
        let message = pattern::<N>(3);
        kill(&mut || writer.send(&message));
        forget(writer);
        let third = hear(&mut prompt);
        assert!(third.is_none() || third == Some((0, 3)), "{third:?}");
        assert_eq!(hear(&mut prompt), None);
        let mut heard = 0;
        while let Some((lost, number)) = hear(&mut late) {
            assert_eq!(number, heard + lost + 1);
            heard = number;
        }
        assert!(heard >= 2, "the message before is gone, too");
        let mut writer = attach();
        for i in 4..20 {
            writer.send(&pattern::<N>(i));
            assert_eq!(hear(&mut prompt), Some((0, i)));
        }
    })
}

fn broadcast_reader() -> bool {
    let shape = Shape::broadcast(N as u32, 0, 2);
    let memory = Guarded::of(&shape);
    at_every_step("broadcast reader", &memory, |kill| {
        create(&memory, &shape).expect("good");
        let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("good");
        let reader = || broadcast::Reader::attach(memory.clone(), &shape);
        let mut killed = reader().expect("good");
        writer.send(&pattern::<N>(1));
        let mut message: Message = [0; N];
        kill(&mut || assert_eq!(killed.receive(&mut message), Ok(Some(Arrived { lost: 0 }))));
        let mut fresh = reader().expect("goes on");
        assert_eq!(hear(&mut fresh), Some((0, 1)));
        writer.send(&pattern::<N>(2));
        assert_eq!(hear(&mut fresh), Some((0, 2)));
    })
}

fn entries(folder: &str) -> usize {
    read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_kill_at_any_instruction_leaves_whole_messages_and_nothing_else() {
    let before = (entries("/proc/self/fd"), entries("/dev/shm"));
    let traced = queue_writer(Layout::Index)
        && queue_writer(Layout::Sequence)
        && queue_reader(Layout::Index)
        && queue_reader(Layout::Sequence)
        && (0..3).all(latest_writer)
        && latest_reader()
        && broadcast_writer()
        && broadcast_reader();
    // SAFETY: asks for any child; there must be none.
    let children = unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) };
    assert_eq!(children, -1, "a child is left");
    assert_eq!((entries("/proc/self/fd"), entries("/dev/shm")), before, "something is left open");
    if !traced {
        skip("this system does not permit ptrace, so no kill could be placed");
    }
}

//! What the proofs share: memory between guard pages, a pattern, the operating system.
#![allow(dead_code, unreachable_pub, reason = "a module of several proofs; each uses some of it")]
#![allow(clippy::print_stderr, reason = "a proof says what it did not run")]

use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};
use sinew_link::{Memory, Os, Shape, create};

const PAGE: usize = 4096;

/// A memfd, mapped shared between two pages that nobody may touch; it ends at the second one.
#[derive(Clone)]
pub struct Guarded(Arc<Map>);

struct Map {
    start: NonNull<u8>,
    mapped: usize,
    base: NonNull<u8>,
    len: usize,
}

impl Guarded {
    /// As many lines of 128 bytes as `shape` needs.
    pub fn of(shape: &Shape) -> Guarded {
        let len = shape.region_len().next_multiple_of(128);
        let inner = len.next_multiple_of(PAGE);
        let mapped = inner + 2 * PAGE;
        let file = memfd_create("sinew-link-proof", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, inner as u64).expect("room");
        // By libc, here and below: if memory is mapped and unmapped by bare system calls,
        // ThreadSanitizer does not know that it is new memory. SAFETY: the file is mapped into the
        // middle of a reservation of our own.
        let start = unsafe {
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(null_mut(), mapped, libc::PROT_NONE, private, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let (at, flags, file) = (start.add(PAGE), flags | libc::MAP_FIXED, file.as_raw_fd());
            assert_eq!(libc::mmap(at, inner, access, flags, file, 0), at);
            start
        };
        let start = NonNull::new(start.cast::<u8>()).expect("mapped");
        // SAFETY: inside the mapping.
        let base = unsafe { start.add(PAGE + inner - len) };
        Guarded(Arc::new(Map { start, mapped, base, len }))
    }

    /// A region that is made.
    pub fn made(shape: &Shape) -> Guarded {
        let memory = Guarded::of(shape);
        create(&memory, shape).expect("the shape is good");
        memory
    }

    /// A word, for access as by a peer that breaks the rules.
    pub fn word(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.0.len / 4);
        // SAFETY: inside the mapping, aligned, reached as an atomic by all.
        unsafe { AtomicU32::from_ptr(self.0.base.as_ptr().cast::<u32>().add(index)) }
    }

    /// Words in the region.
    pub fn words(&self) -> usize {
        self.0.len / 4
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping made above; the last user is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

// SAFETY: the bytes are reached through `Memory` and as atomics only.
unsafe impl Send for Map {}
// SAFETY: as for `Send`.
unsafe impl Sync for Map {}

// SAFETY: pages are aligned to 4096 and the length is a multiple of 128; the mapping stays until
// the last clone is gone.
unsafe impl Memory for Guarded {
    fn base(&self) -> NonNull<u8> {
        self.0.base
    }

    fn len(&self) -> usize {
        self.0.len
    }
}

/// A message from whose bytes its number can be told, if it is whole.
pub fn pattern<const N: usize>(number: u32) -> [u8; N] {
    std::array::from_fn(|i| number.to_le_bytes()[i % 4].wrapping_add(i as u8 / 4))
}

/// The number of a message; fails if it is not whole.
pub fn number<const N: usize>(message: &[u8; N]) -> u32 {
    let number = u32::from_le_bytes([message[0], message[1], message[2], message[3]]);
    assert_eq!(*message, pattern(number), "pieces of several messages");
    number
}

/// Linux.
pub struct Linux;

impl Os for Linux {
    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64) {
        let time = Timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as i64,
            tv_nsec: (timeout_ns % 1_000_000_000) as _,
        };
        // The waiting side looks again, whatever ended the sleep.
        let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&time));
    }

    fn futex_wake(&self, word: &AtomicU32) {
        futex::wake(word, futex::Flags::empty(), i32::MAX as u32).expect("the word is mapped");
    }

    fn now_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Says that a proof could not run; with `CI=true` that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

//! What the proofs share: memory between guard pages, a pattern, the operating system.
#![allow(dead_code, unreachable_pub, reason = "a module of several proofs; each uses some of it")]
#![allow(clippy::print_stderr, reason = "a proof says what it did not run")]

use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

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
        let name: &CStr = c"sinew-link-proof";
        // SAFETY: plain calls; the file is mapped into the middle of a reservation of our own, and
        // the descriptor is closed once the mapping holds the file.
        let start = unsafe {
            let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
            assert!(file >= 0 && libc::ftruncate(file, inner as libc::off_t) == 0);
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(null_mut(), mapped, libc::PROT_NONE, private, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let (access, fixed) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED);
            let at = libc::mmap(start.add(PAGE), inner, access, libc::MAP_SHARED | fixed, file, 0);
            assert_eq!(at, start.add(PAGE));
            libc::close(file);
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

    /// A word, as a peer that keeps no rule reaches it.
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
        let time = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the word and the time live through the call.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &time);
        }
    }

    fn futex_wake(&self, word: &AtomicU32) {
        // SAFETY: the word lives through the call.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
        }
    }

    fn now_ns(&self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` lives through the call.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Says that a proof could not run; with `CI=true` that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

/// Numbers without a pattern (G. Marsaglia, "Xorshift RNGs", 2003).
pub struct Random(pub u32);

impl Random {
    /// The next one.
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

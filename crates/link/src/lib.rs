//! Links: the bytes that two sides share, and how messages cross them.
//!
//! Two threads, two processes or two processors share a *region*: plain bytes, made once by
//! [`create`] in the layout of a [`Shape`]. It holds one link:
//!
//! | delivery | the reader gets | the writer |
//! |---|---|---|
//! | [`queue`] | every message, in order | is told when it is full |
//! | [`latest`] | the newest message | never waits; one reader |
//! | [`broadcast`] | every message it is fast enough for, and how many it lost | never waits |
//!
//! Large messages of a queue can be written and read in place: the next one, or several at a time,
//! which are still sent in order ([`queue::Writer::place_ahead`], [`queue::Reader::ahead`]).
//!
//! [`counter`] is a row of u64 values that anyone may read. [`semaphore`] is tokens that both sides
//! take and post. [`wait`] is how a side waits.
//!
//! The crate uses no std, no allocation, no dependency and no compare-and-swap. It uses only loads,
//! stores and fences of 32-bit words, and of machine words for payloads that may be overwritten
//! while they are read. What the peer wrote is hostile input: it can make a link report [`Corrupt`]
//! or deliver nonsense, but never make this side panic, hang or leave the region.
//!
//! ```
//! use core::ptr::NonNull;
//! use sinew_link::{RawMemory, Shape, create, queue};
//!
//! // Any bytes will do that both sides reach: here from the heap, else a memfd or a fixed address.
//! #[repr(align(128))]
//! struct Lines([u8; 4096]);
//! let bytes = Box::leak(Box::new(Lines([0; 4096])));
//! // SAFETY: leaked, so the bytes outlive every user; nothing else refers to them.
//! let memory = unsafe { RawMemory::new(NonNull::from(&mut bytes.0).cast(), 4096) };
//!
//! let shape = Shape::queue(5, 0, 8); // messages of 5 bytes, type hash 0, room for 8
//! create(&memory, &shape)?;
//! let mut writer = queue::Writer::attach(memory, &shape)?;
//! let mut reader = queue::Reader::attach(memory, &shape)?;
//!
//! writer.try_send(b"hello").expect("there is room");
//! let mut message = [0; 5];
//! assert_eq!(reader.try_receive(&mut message), Ok(true));
//! assert_eq!(&message, b"hello");
//! assert_eq!(reader.try_receive(&mut message), Ok(false));
//! # Ok::<(), sinew_link::RegionError>(())
//! ```
//!
//! # A region, byte by byte
//!
//! All words are u32 in the byte order of the machine. A line is 128 bytes, two cache lines,
//! because prefetchers also fetch the neighbouring cache line.
//!
//! ```text
//!    0  magic | version | delivery | layout | message size | type hash | capacity | stride | parks
//!  128  writer's:  tail                               latest:  newest | slot of pair 0 | of pair 1
//!  256  reader's:  head                               latest:  pair being read
//!  384  writer's:  epoch | message bell: signal | waiting
//!  512  reader's:  epoch | room bell:    signal | waiting
//!  640  slot 0, slot 1, ... each `stride` bytes:
//!         index layout      payload, padded to 8
//!         all others        payload ... sequence in the last word of the stride
//! ```
//!
//! An epoch is 0 before its side first attaches, odd while that side is attached, and even after it
//! has closed.
//!
//! # Proofs
//!
//! `cargo test -p sinew-link` runs the unit tests, kills either side at every step
//! (`tests/kill.rs`), lets the peer lie (`tests/hostile.rs`), runs every link on two threads
//! (`tests/stress.rs`) and looks for what bare metal lacks (`tests/bare_metal.rs`). Further checks:
//!
//! ```text
//! # the algorithms under loom, each with an ordering weakened that must be noticed (proofs.rs)
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
//!   cargo test -p sinew-link --release --lib proofs
//! # the same links under ThreadSanitizer; once more with `-- --ignored`, which must fail
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
//!   CARGO_TARGET_DIR=target/tsan TSAN_OPTIONS="suppressions=$PWD/crates/link/tests/tsan.supp" \
//!   cargo test -p sinew-link --target x86_64-unknown-linux-gnu --test stress
//! # a kill at every machine instruction
//! cargo test -p sinew-link --release --test kill
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

pub mod broadcast;
mod cells;
pub mod counter;
#[cfg(all(test, not(loom)))]
mod heap;
pub mod latest;
mod memory;
pub mod message;
pub mod observe;
#[cfg(all(test, loom))]
mod proofs;
pub mod queue;
mod region;
pub mod semaphore;
mod shape;
mod tuning;
pub mod wait;
mod words;

#[cfg(not(all(test, loom)))]
pub use memory::PieceMemory;
pub use memory::{Memory, RawMemory};
pub use region::create;
pub use semaphore::Semaphore;
pub use shape::{
    CAPACITY_MAX, Delivery, Layout, MESSAGE_SIZE_MAX, RegionError, SHORT_MAX, SMALL_MAX, Shape,
};
pub use tuning::Tuning;
pub use wait::{Os, Wait};
pub use words::SharedWords;

/// The peer wrote a position outside the link, which no correct peer does. Give the link up; a
/// fresh [`create`] repairs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl core::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the peer wrote a position outside the link; make the region anew")
    }
}

impl core::error::Error for Corrupt {}

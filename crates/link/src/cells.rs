//! The only way to the bytes of a region. With `--cfg loom` the unit tests get the same words
//! and payloads from loom, so that loom proves the code that ships.

#[cfg(all(test, loom))]
use core::cell::Cell;
use core::ops::Range;
#[cfg(not(all(test, loom)))]
use core::ptr::NonNull;

use crate::memory::Memory;
use crate::shape::{LINE, Layout, SHORT_MAX, SLOTS, Shape};
use crate::tuning::Tuning;

#[cfg(not(all(test, loom)))]
pub(crate) use core::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

/// A word of the machine, in which payloads are copied that others may write meanwhile.
#[cfg(not(all(test, loom)))]
use core::sync::atomic::AtomicUsize as AtomicWide;
#[cfg(not(all(test, loom)))]
type Wide = usize;
#[cfg(all(test, loom))]
use AtomicU32 as AtomicWide;
#[cfg(all(test, loom))]
type Wide = u32;
const WIDE: usize = size_of::<Wide>();

/// A place in a region. Only this module makes one, so that each is inside the region: the
/// control words by the assertion below, slots by the mask of their position.
#[derive(Clone, Copy)]
pub(crate) struct At(usize);

impl At {
    /// Word `word` of line `line`.
    pub(crate) const fn control(line: usize, word: usize) -> At {
        assert!(line * LINE < SLOTS && word * 4 < LINE);
        At(line * LINE + word * 4)
    }
}

/// How far ahead a writer fetches the lines that it will write, bytes. Without it each write waits
/// until the reader's core has given up the line: 64 B messages through a queue then take 50 to 60
/// ns each instead of 7 to 12 (`cargo bench --bench layouts`). Small messages gain all of this with
/// only 256 bytes ahead; messages of 256 B gain a little more with this figure.
const AHEAD: usize = 1024;
/// How much of a slot is fetched, bytes: in a larger one the core's own prefetcher goes on.
const FETCHED_MAX: usize = 1024;

/// How far ahead a reader fetches the lines that it will read, bytes, and the longest message that
/// it does so for.
const READ_AHEAD: usize = 128;
const READ_TOGETHER_MAX: usize = 32;

/// How much of each slot of a pair is fetched before it is known which one was written, bytes: what
/// a message of 256 B and its sequence take. (Reading a value that another CPU has written since,
/// AMD EPYC, CPUs near each other: 8 B take 25 ns instead of 39, 256 B take 35 instead of 46; a
/// seqlock takes 29 and 32.)
const COPY_FETCHED_MAX: usize = 320;

/// How much of a message is handed over, bytes, where a side [does](Tuning::hands_over). Measured
/// on two cores of an Intel Xeon: a round trip of 256 B that begins at a random time takes 230 to
/// 260 ns instead of 340; but a stream takes 145 ns per message instead of 13, so in a long queue
/// nothing is handed over.
const HANDED_OVER_MAX: usize = 8192;

/// An ordering that a proof can weaken, to show that loom would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The queue's reader sees the payload behind the index or sequence that it read.
    QueuePublish,
    /// The queue's writer overwrites only what was copied out.
    QueueFree,
    /// Latest: the reader and the writer agree on the pair.
    LatestFence,
    /// Latest: the payload is complete before its slot is named.
    LatestPublish,
    /// Latest: words of a later message are noticed.
    LatestOvertaken,
    /// Broadcast: words of a later message are noticed.
    BroadcastFence,
    /// Broadcast: the payload is complete before its sequence says so.
    BroadcastPublish,
    /// Semaphore: a side that takes a token sees what was done before the token was given.
    SemaphoreGive,
    /// Park: either the sleeper sees the message or the waker sees the sleeper.
    BellFence,
}

/// `ordering`, unless a proof weakens this site.
#[inline(always)]
pub(crate) fn ordered(site: Site, ordering: Ordering) -> Ordering {
    if is_weakened(site) { Ordering::Relaxed } else { ordering }
}

/// A fence, unless a proof weakens this site.
#[inline(always)]
pub(crate) fn fenced(site: Site, ordering: Ordering) {
    if !is_weakened(site) {
        fence(ordering);
    }
}

#[cfg(not(all(test, loom)))]
#[inline(always)]
fn is_weakened(_: Site) -> bool {
    false
}

#[cfg(all(test, loom))]
fn is_weakened(site: Site) -> bool {
    WEAKENED.get() == Some(site)
}

#[cfg(all(test, loom))]
std::thread_local! {
    /// The site that the running proof weakens. Loom runs all its threads on one of ours.
    pub(crate) static WEAKENED: Cell<Option<Site>> = const { Cell::new(None) };
}

/// Where the slots of a region are: a copy of what its shape says.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    mask: u32,
    stride: usize,
}

impl Slots {
    /// The payload of the slot for `position`.
    #[inline(always)]
    pub(crate) fn at(self, position: u32) -> At {
        At(SLOTS + (position & self.mask) as usize * self.stride)
    }

    /// The sequence of a slot; not in the index layout.
    #[inline(always)]
    pub(crate) fn sequence_of(self, slot: At) -> At {
        At(slot.0 + self.stride - 4)
    }

    /// How far ahead a slot is fetched. It is past the next slot, which the reader looks at all the
    /// time (taking its line makes both sides wait). In a small ring it is not so far that the
    /// reader has yet to read it.
    fn ahead(self) -> u32 {
        // In a short ring the peer has just read the line that a fetch would take from it, and a
        // trip of one line waits for that: 124 ns instead of 70 (64 B, AMD EPYC, near). A trip of 1
        // KiB is shorter with the fetch: 233 ns instead of 290.
        if self.mask < SHORT_MAX && self.stride <= 64 {
            return 0;
        }
        let slots = (AHEAD / self.stride).max(2) as u32;
        slots.min(self.mask.div_ceil(2))
    }

    /// Where in a slot its lines begin, as far as `len_max`.
    #[inline(always)]
    fn lines(self, len_max: usize) -> impl Iterator<Item = usize> {
        (0..self.stride.min(len_max)).step_by(64)
    }
}

/// A region that was checked: offsets come from our own copy of its shape, never from its bytes.
pub(crate) struct Region<M> {
    #[cfg(not(all(test, loom)))]
    base: NonNull<u8>,
    slots: Slots,
    pub(crate) message_size: usize,
    pub(crate) parks: bool,
    /// Whether each slot of a queue says itself that it is full.
    pub(crate) sequenced: bool,
    pub(crate) tuning: Tuning,
    /// Slots from the one written last to the one that is fetched; 0: none is.
    ahead: u32,
    // Last, because it is never looked at: it keeps the bytes alive.
    memory: M,
}

// SAFETY: `base` points into `memory`, which any thread may use; the rest is plain data.
unsafe impl<M: Send> Send for Region<M> {}

impl<M: Memory> Region<M> {
    /// Takes a region whose length and alignment the caller has checked against `shape`.
    pub(crate) fn new(memory: M, shape: &Shape) -> Region<M> {
        let mut region = Region {
            #[cfg(not(all(test, loom)))]
            base: memory.base(),
            slots: Slots { mask: shape.capacity - 1, stride: shape.stride() },
            message_size: shape.message_size as usize,
            parks: shape.parks,
            sequenced: shape.layout == Layout::Sequence,
            tuning: Tuning::usual(shape),
            ahead: 0,
            memory,
        };
        region.tune(region.tuning);
        region
    }

    /// Has this side poll and treat cache lines in this manner.
    pub(crate) fn tune(&mut self, tuning: Tuning) {
        self.tuning = tuning;
        self.ahead = if tuning.fetches_ahead { self.slots.ahead() } else { 0 };
    }

    /// The same region, laid out as its header says; checked as for `new`.
    pub(crate) fn laid_out(self, shape: &Shape) -> Region<M> {
        Region::new(self.memory, shape)
    }

    /// The bytes.
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Messages that the region holds.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.mask + 1
    }

    /// Where the slots are.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    /// Where the slots of a queue in the index layout are, for a message of `len` bytes. For an
    /// array `len` is a constant, and so is everything computed from it.
    ///
    /// # Panics
    /// If messages are not `len` bytes long.
    #[inline(always)]
    pub(crate) fn index_slots(&self, len: usize) -> Slots {
        assert!(len == self.message_size, "the slice is not as long as a message");
        // No other layout has shorter slots: these are inside any region.
        Slots { mask: self.slots.mask, stride: Layout::Index.stride(len) }
    }

    /// The payload of the slot for `position`.
    #[inline(always)]
    pub(crate) fn slot(&self, position: u32) -> At {
        self.slots.at(position)
    }

    /// The bytes of the slot for `position`, from the start of the region.
    pub(crate) fn extent(&self, position: u32) -> Range<usize> {
        let At(start) = self.slot(position);
        start..start + self.slots.stride
    }

    /// The sequence of the slot for `position`; not in the index layout.
    #[inline(always)]
    pub(crate) fn sequence(&self, position: u32) -> At {
        self.sequence_of(self.slot(position))
    }

    /// The sequence of a slot.
    #[inline(always)]
    pub(crate) fn sequence_of(&self, slot: At) -> At {
        self.slots.sequence_of(slot)
    }
}

#[cfg(not(all(test, loom)))]
impl<M: Memory> Region<M> {
    /// Has the core fetch a slot that will be written some messages after `position`, unless an
    /// earlier slot that begins in the same line did so already.
    #[inline(always)]
    pub(crate) fn warm_ahead(&self, slots: Slots, position: u32) {
        // It is 0 also in a ring of one, where the slot is the one that the reader is about to
        // read.
        if self.ahead == 0 {
            return;
        }
        let at = slots.at(position.wrapping_add(self.ahead));
        if at.0 % 64 < slots.stride {
            slots.lines(FETCHED_MAX).for_each(|line| hint_write(self.pointer(At(at.0 + line))));
        }
    }

    /// Has the core fetch messages that will be read some messages after `position`, if they are
    /// there. This helps where many share a line: reading them keeps the core so busy that it does
    /// not reach the next line in time (8 B, AMD EPYC: 2.7 ns a message without, 1.8 with).
    #[inline(always)]
    pub(crate) fn warm_to_read(&self, slots: Slots, position: u32, tail: u32) {
        // Once for each line.
        if slots.stride > READ_TOGETHER_MAX || slots.at(position).0 % 64 >= slots.stride {
            return;
        }
        let ahead = (READ_AHEAD / slots.stride) as u32;
        if tail.wrapping_sub(position) > ahead {
            hint_read(self.pointer(slots.at(position.wrapping_add(ahead))));
        }
    }

    /// Has the core fetch the first lines of a slot that may be read now.
    #[inline(always)]
    pub(crate) fn warm_to_copy(&self, position: u32) {
        let at = self.slot(position);
        let lines = self.slots.lines(COPY_FETCHED_MAX);
        lines.for_each(|line| hint_read(self.pointer(At(at.0 + line))));
    }

    /// Has the core move the lines of a written message to where the reader's core gets them
    /// sooner.
    #[inline(always)]
    pub(crate) fn hand_over(&self, slots: Slots, at: At) {
        if self.tuning.hands_over {
            slots
                .lines(HANDED_OVER_MAX)
                .for_each(|line| hint_give_up(self.pointer(At(at.0 + line))));
        }
    }

    /// A word.
    #[inline(always)]
    pub(crate) fn word(&self, at: At) -> &AtomicU32 {
        debug_assert!(at.0 + 4 <= self.memory.len());
        // SAFETY: `At` is inside the region and a multiple of 4 from a base that is a multiple of
        // 128; `Memory` promises that the bytes live as long as `self.memory`. Words are reached as
        // atomics only, so a peer's write at any time is no data race.
        unsafe { AtomicU32::from_ptr(self.pointer(at).cast()) }
    }

    /// Where a payload is.
    #[inline(always)]
    fn pointer(&self, at: At) -> *mut u8 {
        // SAFETY: `At` is inside the region.
        unsafe { self.base.as_ptr().add(at.0) }
    }

    /// Copies a message into a slot that the algorithm says is ours.
    #[inline(always)]
    pub(crate) fn put(&self, at: At, from: &[u8]) {
        assert!(from.len() == self.message_size, "the slice is not as long as a message");
        self.put_part(at, 0, from);
    }

    /// Copies a message out of a slot that the algorithm says is ours.
    #[inline(always)]
    pub(crate) fn get(&self, at: At, into: &mut [u8]) {
        assert!(into.len() == self.message_size, "the slice is not as long as a message");
        self.get_part(at, 0, into);
    }

    /// Copies a part of a message, as `put`.
    #[inline(always)]
    pub(crate) fn put_part(&self, at: At, offset: usize, from: &[u8]) {
        self.check_part(offset, from.len());
        // SAFETY: a slot has `message_size` bytes, and the part is inside them; `from` is no part
        // of the region, because no reference to its bytes exists. A peer that breaks the rules may
        // write there meanwhile; then these bytes are garbage, and they are used only as a message.
        unsafe { self.pointer(at).add(offset).copy_from_nonoverlapping(from.as_ptr(), from.len()) }
    }

    /// Copies a part of a message, as `get`.
    #[inline(always)]
    pub(crate) fn get_part(&self, at: At, offset: usize, into: &mut [u8]) {
        self.check_part(offset, into.len());
        let len = into.len();
        // SAFETY: as for `put_part`.
        unsafe { self.pointer(at).add(offset).copy_to_nonoverlapping(into.as_mut_ptr(), len) }
    }

    /// Word `n` of the payload at `at`, for payloads that are written while others read.
    #[inline(always)]
    pub(crate) fn payload_word(&self, at: At, n: usize) -> &AtomicU32 {
        self.word(At(at.0 + n * 4))
    }

    /// The same in machine words: both sides cut a message in the same way.
    #[inline(always)]
    fn payload_wide(&self, at: At, n: usize) -> &AtomicWide {
        debug_assert!((n + 1) * WIDE <= self.message_size);
        // SAFETY: a slot has `message_size` bytes and begins at a multiple of 8 from a base that is
        // a multiple of 128; the rest as for `word`.
        unsafe { AtomicWide::from_ptr(self.pointer(At(at.0 + n * WIDE)).cast()) }
    }
}

/// Asks the core for a line with the right to write it; a hint that cannot fail.
#[cfg(not(all(test, loom)))]
#[inline(always)]
fn hint_write(pointer: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: PREFETCHW changes no byte and faults at no address; a core without it takes it for a
    // NOP. `readonly` keeps it behind the stores that publish.
    unsafe {
        core::arch::asm!(
            "prefetchw [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: PRFM changes no byte and faults at no address.
    unsafe {
        core::arch::asm!(
            "prfm pstl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = pointer;
}

/// Asks the core for a line; a hint that cannot fail.
#[cfg(not(all(test, loom)))]
#[inline(always)]
fn hint_read(pointer: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: PREFETCHT0 changes no byte and faults at no address.
    unsafe {
        core::arch::asm!(
            "prefetcht0 [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: PRFM changes no byte and faults at no address.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = pointer;
}

/// Tells the core that another one will read a line; a hint that cannot fail.
#[cfg(not(all(test, loom)))]
#[inline(always)]
fn hint_give_up(pointer: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: CLDEMOTE changes no byte and faults at no address; a core without it takes it for a
    // NOP. `readonly` keeps it behind the stores to the line.
    unsafe {
        core::arch::asm!(
            "cldemote [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = pointer;
}

#[cfg(all(test, loom))]
impl<M: Memory> Region<M> {
    /// Loom has no caches.
    pub(crate) fn warm_ahead(&self, _slots: Slots, _position: u32) {}

    /// Loom has no caches.
    pub(crate) fn warm_to_read(&self, _slots: Slots, _position: u32, _tail: u32) {}

    /// Loom has no caches.
    pub(crate) fn warm_to_copy(&self, _position: u32) {}

    /// Loom has no caches.
    pub(crate) fn hand_over(&self, _slots: Slots, _at: At) {}

    pub(crate) fn word(&self, at: At) -> &AtomicU32 {
        &self.memory.cells().words[&at.0]
    }

    pub(crate) fn put(&self, at: At, from: &[u8]) {
        self.put_part(at, 0, from);
    }

    pub(crate) fn get(&self, at: At, into: &mut [u8]) {
        self.get_part(at, 0, into);
    }

    pub(crate) fn put_part(&self, at: At, offset: usize, from: &[u8]) {
        self.check_part(offset, from.len());
        self.memory.cells().payloads[&at.0].with_mut(|bytes| {
            // SAFETY: loom has checked that nobody else is at this payload.
            unsafe { (&mut *bytes)[offset..][..from.len()].copy_from_slice(from) }
        });
    }

    pub(crate) fn get_part(&self, at: At, offset: usize, into: &mut [u8]) {
        self.check_part(offset, into.len());
        self.memory.cells().payloads[&at.0].with(|bytes| {
            // SAFETY: loom has checked that nobody writes this payload.
            unsafe { into.copy_from_slice(&(&*bytes)[offset..][..into.len()]) }
        });
    }

    pub(crate) fn payload_word(&self, at: At, n: usize) -> &AtomicU32 {
        self.word(At(at.0 + n * 4))
    }

    fn payload_wide(&self, at: At, n: usize) -> &AtomicWide {
        self.payload_word(at, n)
    }

    /// Every word and every payload that a link of this shape uses.
    pub(crate) fn offsets(&self) -> (std::vec::Vec<usize>, std::vec::Vec<usize>) {
        let lines = (0..SLOTS / LINE).flat_map(|line| (0..12).map(move |n| line * LINE + n * 4));
        let slots = 0..self.capacity();
        let inside = slots
            .clone()
            .flat_map(|i| (0..self.message_size.div_ceil(4)).map(move |n| self.slot(i).0 + n * 4));
        let sequences = slots.clone().map(|i| self.sequence(i).0);
        (lines.chain(inside).chain(sequences).collect(), slots.map(|i| self.slot(i).0).collect())
    }
}

impl<M: Memory> Region<M> {
    #[inline(always)]
    fn check_part(&self, offset: usize, len: usize) {
        let inside = offset <= self.message_size && len <= self.message_size - offset;
        assert!(inside, "the part reaches past the end of the message");
    }

    /// Writes a message word by word: the caller lets readers notice that they were overtaken.
    #[inline]
    pub(crate) fn put_words(&self, at: At, from: &[u8]) {
        assert!(from.len() == self.message_size, "the slice is not as long as a message");
        let (wide, rest) = from.as_chunks::<WIDE>();
        // Relaxed, here and below: the sequence around the payload orders it.
        for (n, bytes) in wide.iter().enumerate() {
            self.payload_wide(at, n).store(Wide::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        for (n, bytes) in rest.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            let place = self.payload_word(at, wide.len() * (WIDE / 4) + n);
            place.store(u32::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Reads a message word by word; the caller finds out whether it was overtaken.
    #[inline]
    pub(crate) fn get_words(&self, at: At, into: &mut [u8]) {
        assert!(into.len() == self.message_size, "the slice is not as long as a message");
        let (wide, rest) = into.as_chunks_mut::<WIDE>();
        // Relaxed, here and below: the sequence around the payload orders it.
        for (n, bytes) in wide.iter_mut().enumerate() {
            *bytes = self.payload_wide(at, n).load(Ordering::Relaxed).to_ne_bytes();
        }
        for (n, bytes) in rest.chunks_mut(4).enumerate() {
            let place = self.payload_word(at, wide.len() * (WIDE / 4) + n);
            let word = place.load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_short_ring_of_single_lines_is_not_fetched_ahead() {
        let ahead = |size, capacity| {
            let shape = Shape::queue(size, 0, capacity);
            Slots { mask: shape.capacity - 1, stride: shape.stride() }.ahead()
        };
        assert_eq!([8, 48, 64].map(|size| ahead(size, 8)), [0; 3]);
        assert_eq!([256, 1024].map(|size| ahead(size, 8)), [4, 2]);
        assert_eq!([8, 64, 1024].map(|size| ahead(size, 1024)), [128, 16, 2]);
        assert_eq!(ahead(256, 1), 0);
    }
}

//! A peer that writes anything anywhere in a region, before and between the work of this side.
//! There must be no panic, no access outside the region (the sanitizer detects it), and no endless
//! wait.
#![no_main]

use std::alloc::{Layout as Bytes, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sinew_link::{
    Layout, Memory, Os, RawMemory, Shape, Wait, broadcast, counter, create, latest, queue,
};

/// The link that is shared, and what happens to it.
#[derive(Arbitrary, Debug)]
struct Input {
    link: Link,
    message_size: u8,
    capacity_log2: u8,
    parks: bool,
    /// Written over the region after it was made.
    noise: Vec<u8>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug, Clone, Copy, PartialEq)]
enum Link {
    IndexQueue,
    SequenceQueue,
    Latest,
    Broadcast,
    Counters,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// The peer writes a word.
    Lie {
        word: u16,
        value: u32,
    },
    /// The peer changes a word by a little: to positions that are almost right.
    Shift {
        word: u16,
        by: i8,
    },
    Write,
    Read,
    /// Reads a message before its turn, and looks up a place that is to be filled before its turn.
    Ahead {
        by: u8,
    },
    WaitRoom,
    WaitMessage,
    /// Both ends are dropped, and new ones attach.
    Attach,
}

/// A clock that advances with every look, so that every wait ends.
struct Clock(Cell<u64>);

impl Os for Clock {
    fn yield_now(&self) {}
    fn futex_wait(&self, _: &AtomicU32, _: u32, timeout_ns: u64) {
        self.0.set(self.0.get() + timeout_ns);
    }
    fn futex_wake(&self, _: &AtomicU32) {}
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + 1000);
        self.0.get()
    }
}

/// Exactly the bytes that the shape needs.
struct Region {
    memory: RawMemory,
    bytes: Bytes,
}

impl Region {
    fn of(shape: &Shape) -> Region {
        let bytes = Bytes::from_size_align(shape.region_len(), 128).expect("a small shape");
        // SAFETY: the size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(bytes) }).expect("memory");
        // SAFETY: the bytes are freed by `drop`, after the last end is gone.
        Region { memory: unsafe { RawMemory::new(base, bytes.size()) }, bytes }
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        let index = index % (self.bytes.size() / 4);
        // SAFETY: inside the bytes, aligned to 4, reached as an atomic by all.
        unsafe { AtomicU32::from_ptr(self.memory.base().as_ptr().cast::<u32>().add(index)) }
    }

    /// Acts as the peer, if the step is the peer's. Returns whether it was.
    fn lie(&self, step: &Step) -> bool {
        match *step {
            Step::Lie { word, value } => self.word(word.into()).store(value, Ordering::Relaxed),
            Step::Shift { word, by } => {
                self.word(word.into()).fetch_add(by as u32, Ordering::Relaxed);
            }
            _ => return false,
        }
        true
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `of` with this layout; every end was dropped before.
        unsafe { dealloc(self.memory.base().as_ptr(), self.bytes) }
    }
}

/// The two ends of a link, if they could attach.
enum Ends {
    Queue(queue::Writer<RawMemory>, queue::Reader<RawMemory>),
    Latest(latest::Writer<RawMemory>, latest::Reader<RawMemory>),
    Broadcast(broadcast::Writer<RawMemory>, broadcast::Reader<RawMemory>),
    Counters(counter::Writer<RawMemory>, counter::Reader<RawMemory>),
}

impl Ends {
    fn attach(link: Link, region: &Region, shape: &Shape) -> Option<Ends> {
        let memory = region.memory;
        Some(match link {
            Link::IndexQueue | Link::SequenceQueue => Ends::Queue(
                queue::Writer::attach(memory, shape).ok()?,
                queue::Reader::attach(memory, shape).ok()?,
            ),
            Link::Latest => Ends::Latest(
                latest::Writer::attach(memory, shape).ok()?,
                latest::Reader::attach(memory, shape).ok()?,
            ),
            Link::Broadcast => Ends::Broadcast(
                broadcast::Writer::attach(memory, shape).ok()?,
                broadcast::Reader::attach(memory, shape).ok()?,
            ),
            Link::Counters => Ends::Counters(
                counter::Writer::attach(memory, shape).ok()?,
                counter::Reader::attach(memory, shape).ok()?,
            ),
        })
    }

    /// Carries out a step. Any answer of the ends is right. `len` is the length of the region.
    fn carry_out(&mut self, step: &Step, message: &mut [u8], len: usize, clock: &Clock) {
        let soon = Some(clock.0.get() + 100_000);
        match (self, step) {
            (Ends::Queue(writer, _), Step::Write) => {
                let _ = writer.try_send(message);
                writer.wake(clock);
            }
            (Ends::Queue(_, reader), Step::Read) => {
                let _ = reader.try_receive(message);
                reader.wake(clock);
            }
            (Ends::Queue(writer, reader), Step::Ahead { by }) => {
                if let Ok(Some(found)) = reader.ahead((*by).into()) {
                    found.read_at(0, message);
                }
                if let Ok(place) = writer.place_ahead((*by).into()) {
                    assert!(place.end <= len && place.len() == message.len());
                }
            }
            (Ends::Queue(writer, _), Step::WaitRoom) => {
                let _ = writer.wait_room(Wait::SpinThenPark, soon, clock);
            }
            (Ends::Queue(_, reader), _) => {
                let _ = reader.wait(Wait::Park, soon, clock);
            }
            (Ends::Latest(writer, _), Step::Write) => {
                writer.send(message);
                writer.wake(clock);
            }
            (Ends::Latest(_, reader), Step::Read) => {
                let _ = reader.read(message);
            }
            (Ends::Latest(_, reader), _) => {
                let _ = reader.wait(Wait::Spin, soon, clock);
            }
            (Ends::Broadcast(writer, _), Step::Write) => {
                writer.send(message);
                writer.wake(clock);
            }
            (Ends::Broadcast(_, reader), Step::Read) => {
                let _ = reader.receive(message);
            }
            (Ends::Broadcast(_, reader), _) => {
                let _ = reader.wait(Wait::Yield, soon, clock);
            }
            (Ends::Counters(writer, _), Step::Write) => writer.add(0, u64::MAX / 3),
            (Ends::Counters(_, reader), _) => {
                let _ = reader.read(u32::from(message[0]));
            }
        }
    }
}

fn shape(input: &Input) -> Shape {
    let (size, capacity) = (u32::from(input.message_size).max(1), 1 << (input.capacity_log2 % 6));
    let shape = match input.link {
        Link::IndexQueue => Shape { layout: Layout::Index, ..Shape::queue(size, 0, capacity) },
        Link::SequenceQueue => {
            Shape { layout: Layout::Sequence, ..Shape::queue(size, 0, capacity) }
        }
        Link::Latest => Shape::latest(size, 0),
        Link::Broadcast => Shape::broadcast(size, 0, capacity),
        Link::Counters => return counter::shape(capacity, 0),
    };
    if input.parks { shape.parking() } else { shape }
}

fuzz_target!(|input: Input| {
    let shape = shape(&input);
    let region = Region::of(&shape);
    create(&region.memory, &shape).expect("the shape is good");
    let mut ends = Ends::attach(input.link, &region, &shape);
    for (i, word) in input.noise.chunks_exact(4).enumerate() {
        let value = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        region.word(i).store(value, Ordering::Relaxed);
    }
    let clock = Clock(Cell::new(0));
    let mut message = vec![0; shape.message_size as usize];
    for step in &input.steps {
        if region.lie(step) {
            continue;
        }
        match (step, &mut ends) {
            (Step::Attach, _) | (_, None) => ends = Ends::attach(input.link, &region, &shape),
            (_, Some(ends)) => ends.carry_out(step, &mut message, shape.region_len(), &clock),
        }
    }
    // Before the region that they use.
    drop(ends);
});

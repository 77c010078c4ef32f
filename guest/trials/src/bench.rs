//! Kinds for measurements. They serve, so that an answer is sent as soon as possible.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use sinew_guest::{
    Cycle, Fault, Field, FieldType, GuestNode, Io, Kind, KindRecord, Message, MessageType,
    ParameterRecord, Parameters, Patience, Serving, SharedBytes, fault, numbers, port, type_hash,
};

use crate::ring::{InStep, RingEnd, ring_len};

const IN: usize = 0;
const OUT: usize = 1;
const ANSWERED: usize = 0;

const STACK: u32 = 8 * 1024;
const ANY: (f64, f64) = (0.0, 4_294_967_295.0);
const POLLS: ParameterRecord =
    numbers("polls", "So often it looks before it sleeps.", "", "0", 1, ANY);
const PARK_MS: ParameterRecord =
    numbers("park_ms", "Asleep, it looks once in so many ms.", "ms", "50", 1, (1.0, 1e6));
const BYTES: ParameterRecord = numbers("bytes", "Of a message.", "", "8", 1, ANY);
const IN_STEP: ParameterRecord = numbers(
    "in_step",
    "0: nothing between, and caches are not kept in step.",
    "",
    "1",
    1,
    (0.0, 1.0),
);

sinew_guest::message! {
    /// A buffer in the carve-out, or the result of reading it.
    pub struct Descriptor {
        /// Offset of the buffer in the carve-out.
        pub offset: u32,
        /// Its length.
        pub bytes: u32,
        /// Not 0: its words shall be read.
        pub is_read: u32,
        /// In the answer: the sum of its words, modulo 2^32.
        pub sum: u32,
    }
}

fn patience(parameters: &Parameters<'_>) -> Patience {
    let [polls, park_ms] = [parameters.number("polls"), parameters.number("park_ms")];
    Patience { polls: polls as u32, park_ms: park_ms as u32 }
}

/// Counts an answer.
fn count(serving: &mut Serving<'_>) {
    let answered = serving.io().counter(ANSWERED);
    *answered = answered.wrapping_add(1);
}

/// The type of a message of `size` bytes.
const fn payload(name: &'static str, size: u32, fields: &'static [Field]) -> MessageType {
    MessageType { name, size, align: 4, fields, hash: type_hash(name, size, fields) }
}

/// Declares kinds that send back messages of these sizes.
macro_rules! answers {
    ($($kind:ident $size:literal,)*) => { $(
        pub(crate) const $kind: Kind = {
            const FIELDS: &[Field] = &[Field {
                name: "words",
                scalar: <[u32; $size / 4] as FieldType>::SCALAR,
                count: <[u32; $size / 4] as FieldType>::COUNT,
                offset: 0,
                labels: &[],
            }];
            const PAYLOAD: &MessageType = &payload(concat!("Payload", $size), $size, FIELDS);
            Kind {
                record: KindRecord::new(
                    concat!("answer_", $size),
                    "Sends every message back, as soon as it comes.",
                    STACK,
                    &[
                        port("in", "What is to come back.", 0, PAYLOAD),
                        port("out", "What came.", 1, PAYLOAD),
                    ],
                    &[POLLS, PARK_MS, IN_STEP, BYTES],
                    &["answered"],
                ),
                make: make_answer,
            }
        };
    )* };
}

answers! {
    ANSWER_8 8,
    ANSWER_16 16,
    ANSWER_32 32,
    ANSWER_64 64,
    ANSWER_128 128,
    ANSWER_256 256,
    ANSWER_512 512,
    ANSWER_1024 1024,
    ANSWER_8192 8192,
    ANSWER_16384 16384,
    ANSWER_32768 32768,
    ANSWER_65536 65536,
    ANSWER_131072 131072,
    ANSWER_262144 262144,
    ANSWER_524288 524288,
    ANSWER_1048576 1048576,
}

fn make_answer(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    let is_in_step = parameters.number("in_step") != 0.0;
    let bytes = parameters.number("bytes") as usize;
    Ok(Box::new(Answer { patience: patience(parameters), is_in_step, bytes }))
}

struct Answer {
    patience: Patience,
    is_in_step: bool,
    bytes: usize,
}

impl Answer {
    fn serve(&self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        if !self.is_in_step {
            return self.serve_queues(serving);
        }
        let patience = self.patience;
        while serving.receive(IN, patience)? && serving.forward(IN, OUT, patience)? {
            count(serving);
        }
        Ok(())
    }

    /// Serves queues as rings are served: directly.
    fn serve_queues(&self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        let mut message = vec![0; self.bytes];
        answer_bursts(serving, self.patience.polls, |serving, polls| {
            let Some((reader, writer)) = serving.queues(IN, OUT) else { return 0 };
            let receive = |message: &mut [u8]| reader.try_receive(message) == Ok(true);
            burst(polls, &mut message, receive, |message| writer.try_send(message).is_ok())
        })
    }
}

/// Most answers between two checks whether the guest stops.
const BURST: u32 = 1000;

/// Answers as long as messages come within `polls` looks. Returns the count of answers.
fn burst(
    polls: u32,
    message: &mut [u8],
    mut receive: impl FnMut(&mut [u8]) -> bool,
    mut send: impl FnMut(&[u8]) -> bool,
) -> u32 {
    let mut answered = 0;
    while answered < BURST
        && (0..polls).any(|_| receive(message))
        && (0..polls).any(|_| send(message))
    {
        answered += 1;
    }
    answered
}

/// Calls for bursts until the guest stops. After a burst without a message it makes only one look
/// in each millisecond, so that other nodes can run.
fn answer_bursts(
    serving: &mut Serving<'_>,
    polls: u32,
    mut burst: impl FnMut(&mut Serving<'_>, u32) -> u32,
) -> Result<(), Fault> {
    let mut looks = polls;
    while !serving.is_stopping() {
        let answered = burst(serving, looks.max(1));
        let counter = serving.io().counter(ANSWERED);
        *counter = counter.wrapping_add(answered);
        looks = polls;
        if answered == 0 {
            serving.pause()?;
            looks = 1;
        }
    }
    Ok(())
}

/// Declares a node that serves and has no cycles.
macro_rules! serves {
    ($node:ty) => {
        impl GuestNode for $node {
            fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
                Ok(())
            }

            fn serve(&mut self, serving: &mut Serving<'_>) -> Option<Result<(), Fault>> {
                Some(<$node>::serve(self, serving))
            }
        }
    };
}

serves!(Answer);
serves!(Reader);
serves!(Ring);

/// Reads buffers.
pub(crate) const READER: Kind = Kind {
    record: KindRecord::new(
        "reader",
        "Sends every descriptor back, with the sum of the words that it refers to if asked.",
        STACK,
        &[
            port("in", "Where a buffer lies.", 0, Descriptor::TYPE),
            port("out", "The same, with the sum.", 1, Descriptor::TYPE),
        ],
        &[POLLS, PARK_MS],
        &["answered"],
    ),
    make: make_reader,
};

fn make_reader(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Reader(patience(parameters))))
}

struct Reader(Patience);

impl Reader {
    fn serve(&self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        while serving.receive(IN, self.0)? {
            let mut descriptor = *serving.io().read::<Descriptor>(IN);
            if descriptor.is_read != 0 {
                descriptor.sum = sum(&descriptor)?;
            }
            *serving.io().write::<Descriptor>(OUT) = descriptor;
            if serving.send(OUT, self.0)? {
                count(serving);
            }
        }
        Ok(())
    }
}

fn sum(descriptor: &Descriptor) -> Result<u32, Fault> {
    let Descriptor { offset, bytes, .. } = *descriptor;
    let buffer = SharedBytes::at(offset as usize, bytes as usize)
        .ok_or_else(|| fault!("{bytes} bytes at {offset:#x} are not a buffer of the carve-out"))?;
    let words = buffer.words();
    buffer.before_read(0..words.len());
    // Relaxed: the message that announced them came after them.
    Ok(words.iter().fold(0, |sum: u32, word| sum.wrapping_add(word.load(Ordering::Relaxed))))
}

/// The other end of two raw rings.
pub(crate) const RING: Kind = Kind {
    record: KindRecord::new(
        "ring",
        "Sends back every message of a raw ring, through another one that lies behind it.",
        STACK,
        &[],
        &[POLLS, numbers("offset", "Where the ring lies.", "", "0", 1, ANY), BYTES, IN_STEP],
        &["answered"],
    ),
    make: make_ring,
};

fn make_ring(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    let [polls, offset, bytes] =
        ["polls", "offset", "bytes"].map(|name| parameters.number(name) as usize);
    let ring = |at| {
        SharedBytes::at(at, ring_len(bytes))
            .ok_or_else(|| fault!("a ring at {at:#x} is not in the carve-out"))
    };
    let rings = [ring(offset)?, ring(offset + ring_len(bytes))?];
    let is_in_step = parameters.number("in_step") != 0.0;
    Ok(Box::new(Ring { polls: polls as u32, bytes, rings, is_in_step }))
}

struct Ring {
    polls: u32,
    bytes: usize,
    rings: [SharedBytes; 2],
    is_in_step: bool,
}

impl InStep for SharedBytes {
    fn before_read(&self, words: Range<usize>) {
        SharedBytes::before_read(self, words);
    }

    fn after_write(&self, words: Range<usize>) {
        SharedBytes::after_write(self, words);
    }
}

impl Ring {
    fn serve(&self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        let [there, back] = self.rings;
        if self.is_in_step {
            let ends = (self.end(there, there), self.end(back, back));
            self.answer(ends.0, ends.1, serving)
        } else {
            self.answer(self.end(there, ()), self.end(back, ()), serving)
        }
    }

    fn end<S: InStep>(&self, ring: SharedBytes, in_step: S) -> RingEnd<'static, S> {
        RingEnd::resume(ring.words(), self.bytes, in_step, 0)
    }

    fn answer<S: InStep>(
        &self,
        mut there: RingEnd<'_, S>,
        mut back: RingEnd<'_, S>,
        serving: &mut Serving<'_>,
    ) -> Result<(), Fault> {
        let mut message = vec![0; self.bytes];
        answer_bursts(serving, self.polls, |_, polls| {
            burst(polls, &mut message, |it| there.receive(it), |it| back.send(it))
        })
    }
}

//! Queues between two threads of one process: every message is copied in and out, and both sides
//! poll the `try_` verbs in both ways of [`poll`](crate::poll). The two that can also sleep have
//! rows in which they wait by themselves.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::mpsc;

use ringbuf::traits::{Consumer as _, Producer as _, Split as _};
use sinew_lab::harness::{Found, Gone, Life, Side, on_threads};

use crate::measure::{Answer, Cell, Role as _};
use crate::poll::Waiting;

/// Reads all of a message. Returns its first word.
#[inline(always)]
pub(crate) fn read(message: &[u64]) -> u64 {
    black_box(message.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
    message[0]
}

/// The writing end of a queue.
pub(crate) trait Writer: Send {
    /// Sends a message in which each word is `word`, after waiting for room.
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone>;
}

/// The reading end of a queue.
pub(crate) trait Reader: Send {
    /// Waits for a message and reads all of it. Returns its first word.
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone>;
}

/// A kind of queue.
pub(crate) trait Ring {
    /// Its name in the table.
    const NAME: &'static str;

    /// A queue with room for `capacity` messages of `N` words.
    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone>;
}

/// A queue there and one back, as one side sees them. The verbs of all contenders are inlined into
/// the measured loop: a call for each message costs some more stores.
pub(crate) struct Ends<'a, W, R> {
    pub(crate) there: W,
    pub(crate) back: R,
    pub(crate) waiting: Waiting<'a>,
}

impl<W: Writer, R: Reader> Side for Ends<'_, W, R> {
    #[inline(always)]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.there.send(word, &mut self.waiting)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u64, Gone> {
        self.back.receive(&mut self.waiting)
    }
}

/// An end of a queue that is polled by its verb that never waits.
struct Polled<V, const N: usize>(V);

/// The ends of a queue, polled by its verbs that never wait.
fn polled<const N: usize>(
    push: impl FnMut([u64; N]) -> bool + Send,
    pop: impl FnMut() -> Option<[u64; N]> + Send,
) -> Result<(impl Writer, impl Reader), Gone> {
    Ok((Polled::<_, N>(push), Polled::<_, N>(pop)))
}

impl<V: FnMut([u64; N]) -> bool + Send, const N: usize> Writer for Polled<V, N> {
    #[inline(always)]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        let mut looks = 0;
        while !(self.0)([word; N]) {
            waiting.pause(&mut looks)?;
        }
        Ok(())
    }
}

impl<V: FnMut() -> Option<[u64; N]> + Send, const N: usize> Reader for Polled<V, N> {
    #[inline(always)]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        let mut looks = 0;
        loop {
            if let Some(message) = (self.0)() {
                return Ok(read(&message));
            }
            waiting.pause(&mut looks)?;
        }
    }
}

/// An end of a queue that uses its own waiting verb: it looks for a while, then sleeps.
struct Blocking<V, const N: usize>(V);

/// The ends of a queue that use its own waiting verbs.
fn blocking<const N: usize, F, C>(
    push: impl FnMut([u64; N]) -> Result<(), F> + Send,
    pop: impl FnMut() -> Result<[u64; N], C> + Send,
) -> Result<(impl Writer, impl Reader), Gone> {
    Ok((Blocking::<_, N>(push), Blocking::<_, N>(pop)))
}

fn closed<E>(_: E) -> Gone {
    Gone("the other side closed the queue".into())
}

impl<V: FnMut([u64; N]) -> Result<(), F> + Send, F, const N: usize> Writer for Blocking<V, N> {
    #[inline(always)]
    fn send(&mut self, word: u64, _: &mut Waiting<'_>) -> Result<(), Gone> {
        (self.0)([word; N]).map_err(closed)
    }
}

impl<V: FnMut() -> Result<[u64; N], F> + Send, F, const N: usize> Reader for Blocking<V, N> {
    #[inline(always)]
    fn receive(&mut self, _: &mut Waiting<'_>) -> Result<u64, Gone> {
        (self.0)().map(|message| read(&message)).map_err(closed)
    }
}

/// Measures a kind of queue.
pub(crate) fn measure<Q: Ring>(cell: &Cell) -> Result<Found, Gone> {
    match cell.form.bytes {
        8 => between_threads::<Q, 1>(cell),
        48 => between_threads::<Q, 6>(cell),
        64 => between_threads::<Q, 8>(cell),
        256 => between_threads::<Q, 32>(cell),
        1024 => between_threads::<Q, 128>(cell),
        bytes => Err(Gone(format!("{bytes} B: queues between threads are measured to 1024 B"))),
    }
}

fn between_threads<Q: Ring, const N: usize>(cell: &Cell) -> Result<Found, Gone> {
    let (near_there, far_back) = Q::open::<N>(cell.form.capacity)?;
    let (far_there, near_back) = Q::open::<N>(cell.form.capacity)?;
    let form = &cell.form;
    let near = |life: &Life| {
        let waiting = Waiting::new(form, life);
        cell.play(&mut Ends { there: near_there, back: near_back, waiting })
    };
    let far = |life: &Life| {
        let waiting = Waiting::new(form, life);
        Answer.play(&mut Ends { there: far_there, back: far_back, waiting })
    };
    on_threads(cell.cpus, near, far)
}

pub(crate) struct Rtrb;

impl Ring for Rtrb {
    const NAME: &'static str = "rtrb";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (mut writer, mut reader) = rtrb::RingBuffer::new(capacity);
        polled::<N>(move |message| writer.push(message).is_ok(), move || reader.pop().ok())
    }
}

pub(crate) struct Gil;

impl Ring for Gil {
    const NAME: &'static str = "gil";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        let (mut writer, mut reader) = gil::spsc::channel(capacity);
        polled::<N>(move |message| writer.try_send(message).is_ok(), move || reader.try_recv())
    }
}

pub(crate) struct Nexus;

impl Ring for Nexus {
    const NAME: &'static str = "nexus-queue";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (writer, reader) = nexus_queue::spsc::ring_buffer(capacity);
        polled::<N>(move |message| writer.push(message).is_ok(), move || reader.pop())
    }
}

pub(crate) struct Ringbuf;

impl Ring for Ringbuf {
    const NAME: &'static str = "ringbuf";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (mut writer, mut reader) = ringbuf::HeapRb::new(capacity).split();
        polled::<N>(move |message| writer.try_push(message).is_ok(), move || reader.try_pop())
    }
}

pub(crate) struct Crossbeam;

impl Ring for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (writer, reader) = crossbeam_channel::bounded(capacity);
        polled::<N>(move |message| writer.try_send(message).is_ok(), move || reader.try_recv().ok())
    }
}

pub(crate) struct Std;

impl Ring for Std {
    const NAME: &'static str = "std sync_channel";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (writer, reader) = mpsc::sync_channel(capacity);
        polled::<N>(move |message| writer.try_send(message).is_ok(), move || reader.try_recv().ok())
    }
}

pub(crate) struct CrossbeamBlocking;

impl Ring for CrossbeamBlocking {
    const NAME: &'static str = "crossbeam-channel (blocking)";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (writer, reader) = crossbeam_channel::bounded(capacity);
        blocking::<N, _, _>(move |message| writer.send(message), move || reader.recv())
    }
}

pub(crate) struct StdBlocking;

impl Ring for StdBlocking {
    const NAME: &'static str = "std sync_channel (blocking)";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let (writer, reader) = mpsc::sync_channel(capacity);
        blocking::<N, _, _>(move |message| writer.send(message), move || reader.recv())
    }
}

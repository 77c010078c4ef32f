//! Queues between two threads of one process: every message is copied in and out, and both sides
//! poll the `try_` verbs in both manners of [`poll`](crate::poll). The two that can also sleep have
//! rows in which they wait by themselves.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::mpsc;

use ringbuf::traits::{Consumer as _, Producer as _, Split as _};
use sinew_lab::harness::{Found, Gone, Life, Side, on_threads};

use crate::measure::{Answer, Cell, Role as _};
use crate::poll::Waiting;

/// Reads all of a message; its first word.
#[inline(always)]
pub(crate) fn read(message: &[u64]) -> u64 {
    black_box(message.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
    message[0]
}

/// The end of a queue that writes messages of `N` words.
pub(crate) trait Writer<const N: usize>: Send {
    /// Sends `N` times `word`, waiting for room.
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone>;
}

/// The end that reads them.
pub(crate) trait Reader<const N: usize>: Send {
    /// Waits for a message and reads all of it; its first word.
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone>;
}

/// A kind of queue.
pub(crate) trait Ring {
    /// Its name in the table.
    const NAME: &'static str;

    /// A queue with room for `capacity` messages.
    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone>;
}

/// A queue there and one back, as one side sees them.
pub(crate) struct Ends<'a, W, R, const N: usize> {
    pub(crate) there: W,
    pub(crate) back: R,
    pub(crate) waiting: Waiting<'a>,
}

impl<W: Writer<N>, R: Reader<N>, const N: usize> Side for Ends<'_, W, R, N> {
    #[inline]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.there.send(word, &mut self.waiting)
    }

    #[inline]
    fn receive(&mut self) -> Result<u64, Gone> {
        self.back.receive(&mut self.waiting)
    }
}

/// Measures a kind of queue.
///
/// # Errors
/// There is no code for messages of that size, or one side failed.
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

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        Ok(rtrb::RingBuffer::<[u64; N]>::new(capacity))
    }
}

impl<const N: usize> Writer<N> for rtrb::Producer<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.push([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for rtrb::Consumer<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.pop().ok().map(|message| read(&message)))
    }
}

pub(crate) struct Gil;

impl Ring for Gil {
    const NAME: &'static str = "gil";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        Ok(gil::spsc::channel::<[u64; N]>(capacity))
    }
}

impl<const N: usize> Writer<N> for gil::spsc::Sender<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.try_send([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for gil::spsc::Receiver<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.try_recv().map(|message| read(&message)))
    }
}

pub(crate) struct Nexus;

impl Ring for Nexus {
    const NAME: &'static str = "nexus-queue";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        Ok(nexus_queue::spsc::ring_buffer::<[u64; N]>(capacity))
    }
}

impl<const N: usize> Writer<N> for nexus_queue::spsc::Producer<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.push([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for nexus_queue::spsc::Consumer<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.pop().map(|message| read(&message)))
    }
}

pub(crate) struct Ringbuf;

impl Ring for Ringbuf {
    const NAME: &'static str = "ringbuf";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        Ok(ringbuf::HeapRb::<[u64; N]>::new(capacity).split())
    }
}

impl<const N: usize> Writer<N> for ringbuf::HeapProd<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.try_push([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for ringbuf::HeapCons<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.try_pop().map(|message| read(&message)))
    }
}

pub(crate) struct Crossbeam;

impl Ring for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        Ok(crossbeam_channel::bounded::<[u64; N]>(capacity))
    }
}

impl<const N: usize> Writer<N> for crossbeam_channel::Sender<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.try_send([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for crossbeam_channel::Receiver<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.try_recv().ok().map(|message| read(&message)))
    }
}

pub(crate) struct Std;

impl Ring for Std {
    const NAME: &'static str = "std sync_channel";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        Ok(mpsc::sync_channel::<[u64; N]>(capacity))
    }
}

impl<const N: usize> Writer<N> for mpsc::SyncSender<[u64; N]> {
    #[inline]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        waiting.until(|| self.try_send([word; N]).ok())
    }
}

impl<const N: usize> Reader<N> for mpsc::Receiver<[u64; N]> {
    #[inline]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        waiting.until(|| self.try_recv().ok().map(|message| read(&message)))
    }
}

/// An end whose own verbs wait, as they do: they look for a while, then sleep.
pub(crate) struct Blocking<E>(E);

fn closed<E>(_: E) -> Gone {
    Gone("the other side closed the queue".into())
}

pub(crate) struct CrossbeamBlocking;

impl Ring for CrossbeamBlocking {
    const NAME: &'static str = "crossbeam-channel (blocking)";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        let (writer, reader) = crossbeam_channel::bounded::<[u64; N]>(capacity);
        Ok((Blocking(writer), Blocking(reader)))
    }
}

impl<const N: usize> Writer<N> for Blocking<crossbeam_channel::Sender<[u64; N]>> {
    #[inline]
    fn send(&mut self, word: u64, _: &mut Waiting<'_>) -> Result<(), Gone> {
        self.0.send([word; N]).map_err(closed)
    }
}

impl<const N: usize> Reader<N> for Blocking<crossbeam_channel::Receiver<[u64; N]>> {
    #[inline]
    fn receive(&mut self, _: &mut Waiting<'_>) -> Result<u64, Gone> {
        self.0.recv().map(|message| read(&message)).map_err(closed)
    }
}

pub(crate) struct StdBlocking;

impl Ring for StdBlocking {
    const NAME: &'static str = "std sync_channel (blocking)";

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        let (writer, reader) = mpsc::sync_channel::<[u64; N]>(capacity);
        Ok((Blocking(writer), Blocking(reader)))
    }
}

impl<const N: usize> Writer<N> for Blocking<mpsc::SyncSender<[u64; N]>> {
    #[inline]
    fn send(&mut self, word: u64, _: &mut Waiting<'_>) -> Result<(), Gone> {
        self.0.send([word; N]).map_err(closed)
    }
}

impl<const N: usize> Reader<N> for Blocking<mpsc::Receiver<[u64; N]>> {
    #[inline]
    fn receive(&mut self, _: &mut Waiting<'_>) -> Result<u64, Gone> {
        self.0.recv().map(|message| read(&message)).map_err(closed)
    }
}

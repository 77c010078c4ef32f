//! `transport: in_process` and `shared_memory`: both sides map the same bytes. `sinew_link` defines
//! what they hold; with `sync: mutex` it is guarded by a [`mutex`](super::mutex).

use std::io;
use std::marker::PhantomData;

use sinew_link::observe::Seen;
use sinew_link::{Corrupt, Layout, RegionError, Tuning, broadcast, latest, queue};
use sinew_plan::plan::{Delivery, LinkTuning, SlotLayout, Sync, Wait};

use super::doorbell::Parking;
use super::{
    Ahead, Carrier, Claim, LinkShape, MessagePlace, Peek, Received, Receiver, Sender, Sent, mutex,
};
use crate::clock::pause_ns;
use crate::fault::{Cause, Fault};
use crate::sys::Region;

/// Opens a link between threads.
pub(super) fn open_in_process(shape: &LinkShape) -> io::Result<(Carrier, Carrier)> {
    open(shape, Region::anonymous)
}

/// Opens a link between processes.
pub(super) fn open_shared(shape: &LinkShape) -> io::Result<(Carrier, Carrier)> {
    open(shape, |len| Region::shared("sinew-link", len))
}

/// Opens a link in memory that is there already, such as a guest's.
///
/// # Errors
/// The memory is too short for the shape.
pub fn open_in(shape: &LinkShape, region: Region) -> io::Result<(Carrier, Carrier)> {
    open(shape, |_| Ok(region))
}

fn open(
    shape: &LinkShape,
    region: impl FnOnce(usize) -> io::Result<Region>,
) -> io::Result<(Carrier, Carrier)> {
    let link = layout(shape);
    let len = match shape.sync {
        Sync::LockFree => link.region_len(),
        Sync::Mutex => mutex::region_len(&link),
    };
    let region = region(len)?;
    sinew_link::create(&region, &link).map_err(|error| io::Error::other(error.to_string()))?;
    if shape.sync == Sync::Mutex {
        mutex::create(&region, &link)?;
    }
    Ok((Carrier::Region(region.clone()), Carrier::Region(region)))
}

/// The same shape as `sinew_link` describes it.
fn layout(shape: &LinkShape) -> sinew_link::Shape {
    let LinkShape { message_size, type_hash, capacity, .. } = *shape;
    let layout = match shape.delivery {
        Delivery::Queue => {
            let usual = sinew_link::Shape::queue(message_size, type_hash, capacity);
            let layout = measured(shape).map_or(usual.layout, |tuning| match tuning.layout {
                SlotLayout::Index => Layout::Index,
                SlotLayout::Sequence => Layout::Sequence,
            });
            sinew_link::Shape { layout, ..usual }
        }
        Delivery::Latest => sinew_link::Shape::latest(message_size, type_hash),
        Delivery::Broadcast => sinew_link::Shape::broadcast(message_size, type_hash, capacity),
    };
    match shape.wait {
        Wait::Park | Wait::SpinThenPark => layout.parking(),
        Wait::Spin | Wait::Yield => layout,
    }
}

/// How the ends of links of this shape poll and treat cache lines on this machine. The first call
/// measures what that needs, which takes some microseconds.
pub fn tuning(link: &sinew_link::Shape) -> Tuning {
    Tuning::of(link, pause_ns())
}

/// What was measured of a link that it can shape.
fn measured(shape: &LinkShape) -> Option<LinkTuning> {
    shape.tuning.filter(|_| shape.sync == Sync::LockFree)
}

/// As [`tuning`], or as measured.
fn tuned(shape: &LinkShape, link: &sinew_link::Shape) -> Tuning {
    let usual = tuning(link);
    measured(shape).map_or(usual, |tuning| Tuning {
        eager_polls: tuning.eager_polls,
        pauses: tuning.gap_ns.div_ceil(pause_ns()),
        fetches_ahead: tuning.fetches_ahead,
        hands_over: tuning.hands_over,
        ..usual
    })
}

fn strategy(wait: Wait) -> sinew_link::Wait {
    match wait {
        Wait::Spin => sinew_link::Wait::Spin,
        Wait::Yield => sinew_link::Wait::Yield,
        Wait::Park => sinew_link::Wait::Park,
        Wait::SpinThenPark => sinew_link::Wait::SpinThenPark,
    }
}

/// How long the messages of an end are. If the size is known here, the copies are a few
/// instructions, without a call and a loop: with an unknown length a stream of 64 B messages took
/// 44 ns a message.
trait Length: Send + 'static {
    /// The message, as one of this length.
    fn of(message: &[u8]) -> &[u8];
    /// The same, to be written.
    fn of_mut(message: &mut [u8]) -> &mut [u8];
}

/// A length that is known when this is compiled.
struct Exactly<const N: usize>;

impl<const N: usize> Length for Exactly<N> {
    #[inline(always)]
    fn of(message: &[u8]) -> &[u8] {
        <&[u8; N]>::try_from(message).expect(MADE_FOR)
    }

    #[inline(always)]
    fn of_mut(message: &mut [u8]) -> &mut [u8] {
        <&mut [u8; N]>::try_from(message).expect(MADE_FOR)
    }
}

const MADE_FOR: &str = "the end was made for messages of this size";

/// Any other length.
struct Any;

impl Length for Any {
    fn of(message: &[u8]) -> &[u8] {
        message
    }

    fn of_mut(message: &mut [u8]) -> &mut [u8] {
        message
    }
}

/// Calls a function for the length of a link's messages. Those of the arm have 16 to 192 bytes.
macro_rules! for_length {
    ($size:expr, $make:ident $arguments:tt) => {
        for_length!(@ $size, $make $arguments,
            8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 192 256)
    };
    (@ $size:expr, $make:ident $arguments:tt, $($known:literal)*) => {
        match $size {
            $($known => $make::<Exactly<$known>> $arguments,)*
            _ => $make::<Any> $arguments,
        }
    };
}

/// Makes the writing end.
pub(super) fn sender(carrier: Carrier, shape: &LinkShape) -> Result<Box<dyn Sender>, Fault> {
    for_length!(shape.message_size, sender_for(carrier, shape))
}

fn sender_for<L: Length>(carrier: Carrier, shape: &LinkShape) -> Result<Box<dyn Sender>, Fault> {
    let ((region, parking), layout) = (region(carrier)?, layout(shape));
    let (memory, wait, tuning) = (region.clone(), strategy(shape.wait), tuned(shape, &layout));
    let end: Box<dyn Sender> = match shape.delivery {
        Delivery::Queue => {
            let end = queue::Writer::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            let region = region.clone();
            let length = PhantomData::<L>;
            Box::new(QueueSender { end, region, wait, parking, closed: false, length })
        }
        Delivery::Latest => {
            let end = latest::Writer::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            Box::new(LatestSender { end, parking, closed: false, length: PhantomData::<L> })
        }
        Delivery::Broadcast => {
            let end = broadcast::Writer::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            Box::new(BroadcastSender { end, parking, closed: false })
        }
    };
    Ok(match shape.sync {
        Sync::LockFree => end,
        Sync::Mutex => Box::new(mutex::Behind::new(region, &layout, end)?),
    })
}

/// Makes a reading end.
pub(super) fn receiver(carrier: Carrier, shape: &LinkShape) -> Result<Box<dyn Receiver>, Fault> {
    for_length!(shape.message_size, receiver_for(carrier, shape))
}

fn receiver_for<L: Length>(
    carrier: Carrier,
    shape: &LinkShape,
) -> Result<Box<dyn Receiver>, Fault> {
    let ((region, parking), layout) = (region(carrier)?, layout(shape));
    let (memory, wait, tuning) = (region.clone(), strategy(shape.wait), tuned(shape, &layout));
    let end: Box<dyn Receiver> = match shape.delivery {
        Delivery::Queue => {
            let end = queue::Reader::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            Box::new(QueueReceiver { end, wait, parking, length: PhantomData::<L> })
        }
        Delivery::Latest => {
            let end = latest::Reader::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            Box::new(LatestReceiver { end, wait, parking, length: PhantomData::<L> })
        }
        Delivery::Broadcast => {
            let end = broadcast::Reader::attach(memory, &layout).map_err(refused)?.tuned(tuning);
            let message = vec![0; shape.message_size as usize];
            Box::new(BroadcastReceiver { end, wait, parking, message })
        }
    };
    Ok(match shape.sync {
        Sync::LockFree => end,
        Sync::Mutex => Box::new(mutex::Behind::new(region, &layout, end)?),
    })
}

/// What an onlooker sees of the region of a link; `None` if its bytes are not of this shape, or
/// a mutex stands before them.
pub fn look(region: &Region, shape: &LinkShape) -> Option<Seen> {
    match shape.sync {
        Sync::Mutex => None,
        Sync::LockFree => sinew_link::observe::look(region.clone(), &layout(shape)).ok(),
    }
}

fn region(carrier: Carrier) -> Result<(Region, Parking), Fault> {
    match carrier {
        Carrier::Region(region) => Ok((region, Parking::Futex)),
        Carrier::Guest(region, doorbell) => Ok((region, Parking::Doorbell(doorbell))),
        Carrier::Stream(_) => Err(Fault::new(
            Cause::System,
            format_args!("got a stream, expected a region; open and use one transport"),
        )),
    }
}

fn refused(error: RegionError) -> Fault {
    Fault::new(Cause::BadPeer, format_args!("{error}"))
}

// Cold, so that its code stays out of the path of a message.
#[cold]
#[inline(never)]
fn corrupt(error: Corrupt) -> Fault {
    Fault::new(Cause::BadPeer, format_args!("{error}"))
}

/// Takes a message, and how many were lost before it. A writer closes after its last message, so if
/// there is none and the writer is seen to have closed, this looks once more.
#[inline]
fn receive<E>(
    end: &mut E,
    mut take: impl FnMut(&mut E) -> Result<Option<u32>, Corrupt>,
    is_closed: impl Fn(&E) -> bool,
) -> Result<Received, Fault> {
    // A loop, so that `take` is called in one place only.
    let mut is_last = false;
    loop {
        if let Some(lost) = take(end).map_err(corrupt)? {
            return Ok(Received::New { lost });
        }
        if is_last {
            return Ok(Received::Closed);
        }
        is_last = is_closed(end);
        if !is_last {
            return Ok(Received::None);
        }
    }
}

struct QueueSender<L> {
    end: queue::Writer<Region>,
    region: Region,
    wait: sinew_link::Wait,
    parking: Parking,
    closed: bool,
    length: PhantomData<L>,
}

impl<L: Length> Sender for QueueSender<L> {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        if self.closed || self.end.is_peer_closed() {
            return Ok(Sent::Closed);
        }
        match self.end.try_send(L::of(message)) {
            Ok(()) => {
                self.end.wake(&self.parking);
                Ok(Sent::Done)
            }
            Err(queue::SendError::Full) => Ok(Sent::Full),
            Err(queue::SendError::Corrupt) => Err(corrupt(Corrupt)),
        }
    }

    fn claim(&mut self) -> Result<Option<Claim<'_>>, Fault> {
        if self.closed || self.end.is_peer_closed() {
            return Ok(None);
        }
        match self.end.claim() {
            Ok(slot) => Ok(Some(Claim { slot, parking: &self.parking })),
            Err(queue::SendError::Full) => Ok(None),
            Err(queue::SendError::Corrupt) => Err(corrupt(Corrupt)),
        }
    }

    fn place(&mut self, ahead: u32) -> Result<Option<MessagePlace>, Fault> {
        if self.closed || self.end.is_peer_closed() {
            return Ok(None);
        }
        match self.end.place_ahead(ahead) {
            Ok(at) => Ok(Some(MessagePlace { region: self.region.clone(), at })),
            Err(queue::SendError::Full) => Ok(None),
            Err(queue::SendError::Corrupt) => Err(corrupt(Corrupt)),
        }
    }

    fn places(&self) -> Result<u32, Fault> {
        Ok(self.end.capacity())
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        self.end.wait_room(self.wait, Some(until_ns), &self.parking) || self.end.is_peer_closed()
    }

    fn close(&mut self) {
        self.closed = true;
        self.end.close();
        self.end.wake(&self.parking);
    }
}

struct QueueReceiver<L> {
    end: queue::Reader<Region>,
    wait: sinew_link::Wait,
    parking: Parking,
    length: PhantomData<L>,
}

impl<L: Length> Receiver for QueueReceiver<L> {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let parking = &self.parking;
        let take = |end: &mut queue::Reader<Region>| {
            let found = end.try_receive(L::of_mut(into))?;
            if found {
                end.wake(parking);
            }
            Ok(found.then_some(0))
        };
        receive(&mut self.end, take, queue::Reader::is_peer_closed)
    }

    fn peek(&mut self) -> Result<Option<Peek<'_>>, Fault> {
        let slot = self.end.peek().map_err(corrupt)?;
        Ok(slot.map(|slot| Peek { slot, parking: &self.parking }))
    }

    fn ahead(&mut self, ahead: u32) -> Result<Option<Ahead<'_>>, Fault> {
        Ok(self.end.ahead(ahead).map_err(corrupt)?.map(Ahead))
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        self.end.wait(self.wait, Some(until_ns), &self.parking) || self.end.is_peer_closed()
    }
}

impl<L> Drop for QueueReceiver<L> {
    fn drop(&mut self) {
        self.end.close();
        self.end.wake(&self.parking);
    }
}

struct LatestSender<L> {
    end: latest::Writer<Region>,
    parking: Parking,
    closed: bool,
    length: PhantomData<L>,
}

impl<L: Length> Sender for LatestSender<L> {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        if self.closed || self.end.is_peer_closed() {
            return Ok(Sent::Closed);
        }
        self.end.send(L::of(message));
        self.end.wake(&self.parking);
        Ok(Sent::Done)
    }

    fn wait_room(&mut self, _until_ns: u64) -> bool {
        true
    }

    fn close(&mut self) {
        self.closed = true;
        self.end.close();
        self.end.wake(&self.parking);
    }
}

struct LatestReceiver<L> {
    end: latest::Reader<Region>,
    wait: sinew_link::Wait,
    parking: Parking,
    length: PhantomData<L>,
}

impl<L: Length> Receiver for LatestReceiver<L> {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let take = |end: &mut latest::Reader<Region>| {
            // An old message is not copied again.
            let into = L::of_mut(into);
            let found = end.has_new() && end.read(into)? == latest::Fresh::New;
            Ok(found.then_some(0))
        };
        receive(&mut self.end, take, latest::Reader::is_peer_closed)
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        self.end.wait(self.wait, Some(until_ns), &self.parking) || self.end.is_peer_closed()
    }
}

struct BroadcastSender {
    end: broadcast::Writer<Region>,
    parking: Parking,
    closed: bool,
}

impl Sender for BroadcastSender {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        if self.closed {
            return Ok(Sent::Closed);
        }
        self.end.send(message);
        self.end.wake(&self.parking);
        Ok(Sent::Done)
    }

    fn wait_room(&mut self, _until_ns: u64) -> bool {
        true
    }

    fn close(&mut self) {
        self.closed = true;
        self.end.close();
        self.end.wake(&self.parking);
    }
}

struct BroadcastReceiver {
    end: broadcast::Reader<Region>,
    wait: sinew_link::Wait,
    parking: Parking,
    /// A message that is overwritten while it is copied ends up here, not with the caller.
    message: Vec<u8>,
}

impl Receiver for BroadcastReceiver {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let take = |end: &mut broadcast::Reader<Region>| {
            let Some(found) = end.receive(&mut self.message)? else { return Ok(None) };
            into.copy_from_slice(&self.message);
            Ok(Some(found.lost))
        };
        receive(&mut self.end, take, broadcast::Reader::is_peer_closed)
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        self.end.wait(self.wait, Some(until_ns), &self.parking) || self.end.is_peer_closed()
    }
}

/// A writer that is dropped wakes the readers that wait for it.
macro_rules! close_on_drop {
    ($($end:ident $(<$length:ident>)?),*) => { $(
        impl$(<$length>)? Drop for $end$(<$length>)? {
            fn drop(&mut self) {
                self.end.close();
                self.end.wake(&self.parking);
            }
        }
    )* };
}

close_on_drop!(QueueSender<L>, LatestSender<L>, BroadcastSender);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_sent_just_before_the_close_is_received() {
        // The writer sends and closes between the first look and the question whether it has
        // closed.
        let mut looks = [None, Some(0), None].into_iter();
        let mut look = || receive(&mut looks, |looks| Ok(looks.next().flatten()), |_| true);
        assert_eq!(look().expect("no fault"), Received::New { lost: 0 });
        assert_eq!(look().expect("no fault"), Received::Closed);
    }
}

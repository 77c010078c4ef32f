//! All transports through the same tests: within a process, cut and lying streams, across processes
//! that are killed.
//!
//! The tests run one after another: they count descriptors and children, and with more spinning
//! threads than CPUs they would wait for each other's time slices.

mod child;
mod deliveries;
mod full;
mod hostile;
mod in_place;
mod killed;
mod waits;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sinew_core::Fault;
use sinew_core::clock::now_ns;
use sinew_core::sys::{Region, SHARED_MUTEX_LEN, SharedMutex};
use sinew_core::transport::{
    Carrier, LinkShape, Received, Receiver, Sender, Sent, TRANSPORTS, TransportRow,
};
use sinew_spec::plan::{Delivery, LinkTuning, SlotLayout, Sync, Transport, Wait};

/// Sizes of messages: below a word, the usual ones, a page, more than a pipe holds.
const SIZES: [u32; 7] = [1, 8, 48, 64, 256, 4096, 65536];

/// Messages that a link holds, where a test does not say otherwise.
const CAPACITY: u32 = 8;

/// How long a test waits for what must come: far longer than any machine takes.
const LIMIT_NS: u64 = 30_000_000_000;

/// How long a test waits for what must not come.
const SHORT_NS: u64 = 1_000_000;

/// A link that is to be tested.
#[derive(Clone, Copy)]
struct Case {
    row: &'static TransportRow,
    shape: LinkShape,
}

/// One case for each transport and each way to synchronise that it supports; a link that a machine
/// profile can shape has one for each shape. Only a queue has a layout to choose.
fn cases(delivery: Delivery, wait: Wait, message_size: u32) -> impl Iterator<Item = Case> {
    let shape = move |sync, tuning| {
        let (type_hash, capacity) = (0xfeed_0001, CAPACITY);
        LinkShape { message_size, type_hash, capacity, sync, delivery, wait, tuning }
    };
    let rows = TRANSPORTS.iter().flat_map(|row| row.syncs.iter().map(move |&sync| (row, sync)));
    rows.flat_map(move |(row, sync)| {
        let is_shaped = is_memory(row) && sync == Sync::LockFree;
        let is_of_use = move |tuning: &Option<LinkTuning>| match tuning {
            None => true,
            Some(tuning) => {
                let has_layout = delivery == Delivery::Queue;
                is_shaped && (has_layout || tuning.layout == SlotLayout::ALL[0].0)
            }
        };
        tunings().filter(is_of_use).map(move |tuning| Case { row, shape: shape(sync, tuning) })
    })
}

/// The default, then every layout with and without hand-over and fetching ahead; the way to poll
/// changes with them.
fn tunings() -> impl Iterator<Item = Option<LinkTuning>> {
    let shaped = (0..8).map(|at| {
        let layout = SlotLayout::ALL[at & 1].0;
        let (eager_polls, gap_ns) = [(0, 0), (4, 50), (0, 500)][at % 3];
        let (fetches_ahead, hands_over) = (at & 2 != 0, at & 4 != 0);
        Some(LinkTuning { layout, eager_polls, gap_ns, fetches_ahead, hands_over })
    });
    [None].into_iter().chain(shaped)
}

fn is_memory(row: &TransportRow) -> bool {
    matches!(row.transport, Transport::InProcess | Transport::SharedMemory | Transport::CarveOut)
}

/// The cases for every delivery and wait.
fn all_cases(message_size: u32) -> impl Iterator<Item = Case> {
    let options = Delivery::ALL
        .iter()
        .flat_map(|delivery| Wait::ALL.iter().map(move |wait| (delivery, wait)));
    options.flat_map(move |(delivery, wait)| cases(delivery.0, wait.0, message_size))
}

impl Case {
    fn open(&self) -> (Box<dyn Sender>, Box<dyn Receiver>) {
        let (writer, reader) = self.carriers();
        (self.sender(writer), self.receiver(reader))
    }

    fn carriers(&self) -> (Carrier, Carrier) {
        (self.row.open)(&self.shape).unwrap_or_else(|error| panic!("{self}: open: {error}"))
    }

    fn sender(&self, carrier: Carrier) -> Box<dyn Sender> {
        (self.row.sender)(carrier, &self.shape).unwrap_or_else(|fault| panic!("{self}: {fault}"))
    }

    fn receiver(&self, carrier: Carrier) -> Box<dyn Receiver> {
        (self.row.receiver)(carrier, &self.shape).unwrap_or_else(|fault| panic!("{self}: {fault}"))
    }

    fn is_region(&self) -> bool {
        is_memory(self.row)
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.shape.message_size as usize]
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkShape { message_size, sync, delivery, wait, tuning, .. } = self.shape;
        let transport = self.row.transport.word();
        let (sync, delivery, wait) = (sync.word(), delivery.word(), wait.word());
        write!(f, "{transport} {sync} {delivery} {wait} {message_size} B")?;
        tuning.map_or(Ok(()), |tuning| write!(f, " ({tuning})"))
    }
}

/// The region of a carrier, which both sides map.
fn region(carrier: &Carrier) -> &Region {
    carrier.region().expect("a stream has no region")
}

/// The mutex in a region: behind everything else.
fn mutex_of(region: Region) -> SharedMutex {
    let at = region.size() - SHARED_MUTEX_LEN;
    SharedMutex::attach(region, at)
}

/// Deadline for what must come.
fn limit() -> u64 {
    now_ns() + LIMIT_NS
}

/// Deadline until which nothing must come.
fn short() -> u64 {
    now_ns() + SHORT_NS
}

/// Lets one test run at a time.
fn serial() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    SERIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes message `number`: the number, as far as it fits, and a byte that only this one has.
fn fill(message: &mut [u8], number: u32) {
    message.fill(pattern(number));
    if let Some(start) = message.first_chunk_mut() {
        *start = number.to_le_bytes();
    }
}

/// The number of a message; what was asked for, if the message is too short to hold a number.
fn number(message: &[u8], asked: u32) -> Result<u32, String> {
    let number = message.first_chunk().map_or(asked, |start| u32::from_le_bytes(*start));
    let rest = message.get(4..).unwrap_or(message);
    match rest.iter().position(|&byte| byte != pattern(number)) {
        None => Ok(number),
        Some(at) => Err(format!("byte {at} of message {number} is {:#x}", rest[at])),
    }
}

fn pattern(number: u32) -> u8 {
    (number.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// Sends message `number`; waits for room if there is none.
fn send(case: &Case, sender: &mut dyn Sender, number: u32) {
    let mut message = case.buffer();
    fill(&mut message, number);
    loop {
        match sender.send(&message).unwrap_or_else(|fault| panic!("{case}: {fault}")) {
            Sent::Done => return,
            Sent::Full => assert!(sender.wait_room(limit()), "{case}: no room for {number}"),
            Sent::Closed => panic!("{case}: closed at message {number}"),
        }
    }
}

/// The next message or the end; waits for it.
fn receive(case: &Case, receiver: &mut dyn Receiver, into: &mut [u8]) -> Received {
    loop {
        match receiver.receive(into).unwrap_or_else(|fault| panic!("{case}: {fault}")) {
            Received::None => assert!(receiver.wait(limit()), "{case}: nothing comes"),
            found => return found,
        }
    }
}

/// Receives message `number`, before which nothing was lost.
fn expect(case: &Case, receiver: &mut dyn Receiver, expected: u32) {
    let mut message = case.buffer();
    assert_eq!(receive(case, receiver, &mut message), Received::New { lost: 0 }, "{case}");
    assert_eq!(number(&message, expected), Ok(expected), "{case}");
}

/// The text of a fault.
fn text<T>(result: Result<T, Fault>) -> String {
    result.err().map(|fault| format!("{fault:?}")).unwrap_or_default()
}

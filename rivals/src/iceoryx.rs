//! iceoryx2: publish and subscribe over shared memory. Its `ipc` service is used, one for each
//! direction with one publisher and one subscriber, history 0, no safe overflow (a full buffer
//! makes the publisher wait, so nothing is lost), polled. Between threads each side has its own
//! node, as its ports stay on the thread that made them.
//!
//! In place, `write_from_fn` fills the loan, and the reader sums the message in place. The loan is
//! made of words, or of pieces of 16 KiB that are copied from a nearby buffer: whichever is faster
//! for iceoryx2. Between processes, medians of twelve rounds with words and with pieces: 64 KiB
//! there and back 26.7 and 25.4 us, per message 6.8 and 6.3; 1 MiB there and back 240 and 217 us,
//! but per message 74 and 78. So only streams of 1 MiB are made of words.

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;
use std::time::Duration;

use iceoryx2::port::BackpressureAction;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{
    LogLevel, Node, NodeBuilder, PortFactory as _, ZeroCopySend, ipc, set_log_level,
};
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use sinew_lab::harness::process::Process;
use sinew_lab::harness::{
    Access, Found, Gone, Life, SILENT_NS_MAX, Side, What, on_thread, on_threads,
};

use crate::measure::{Answer, Cell, Form, Role};
use crate::poll::Waiting;
use crate::rings::read;

/// The part that the far process plays.
pub(crate) const PART: &str = "iceoryx2";

type Service<E> = PortFactory<ipc::Service, [E], ()>;

/// The element type of a message, for iceoryx2.
trait Element: Copy + Debug + ZeroCopySend + 'static {
    /// Words of an element.
    const WORDS: usize;
    /// An element in which every word is `word`.
    fn of(word: u64) -> Self;
    /// All words of a message.
    fn words(message: &[Self]) -> &[u64];
}

impl Element for u64 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn of(word: u64) -> u64 {
        word
    }

    #[inline(always)]
    fn words(message: &[u64]) -> &[u64] {
        message
    }
}

/// 16 KiB, as much as ours writes at a time.
type Piece = [u64; 2048];
/// In a stream, larger messages are made of words.
const PIECED_BYTES_MAX: usize = 65_536;

impl Element for Piece {
    const WORDS: usize = 2048;

    #[inline(always)]
    fn of(word: u64) -> Piece {
        [word; 2048]
    }

    #[inline(always)]
    fn words(message: &[Piece]) -> &[u64] {
        message.as_flattened()
    }
}

fn failed(error: impl Debug) -> Gone {
    Gone(format!("iceoryx2: {error:?}"))
}

/// Both directions, as one side sees them.
struct Ports<'a, E: Element> {
    there: Publisher<ipc::Service, [E], ()>,
    back: Subscriber<ipc::Service, [E], ()>,
    waiting: Waiting<'a>,
    /// Elements of a message.
    elements: usize,
}

/// Messages are written to a buffer and copied in; they are copied out to the buffer and read
/// there.
struct Copied<'a> {
    ports: Ports<'a, u64>,
    buffer: Vec<u64>,
}

impl Side for Copied<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.buffer.fill(word);
        let loan = self.ports.there.loan_slice_uninit(self.ports.elements).map_err(failed)?;
        loan.write_from_slice(&self.buffer).send().map_err(failed)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Ports { back, waiting, .. } = &mut self.ports;
        let message = waiting.until(|| back.receive().transpose())?.map_err(failed)?;
        self.buffer.copy_from_slice(&message);
        drop(message);
        Ok(read(&self.buffer))
    }
}

/// Messages are written and read in place, in the memory of iceoryx2.
struct InPlace<'a, E: Element>(Ports<'a, E>);

impl<E: Element> Side for InPlace<'_, E> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let loan = self.0.there.loan_slice_uninit(self.0.elements).map_err(failed)?;
        let element = E::of(word);
        loan.write_from_fn(|_| element).send().map_err(failed)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Ports { back, waiting, .. } = &mut self.0;
        let message = waiting.until(|| back.receive().transpose())?.map_err(failed)?;
        Ok(read(E::words(&message)))
    }
}

fn service<E: Element>(
    node: &Node<ipc::Service>,
    name: &str,
    form: &Form,
) -> Result<Service<E>, Gone> {
    node.service_builder(&name.try_into().map_err(failed)?)
        .publish_subscribe::<[E]>()
        .max_nodes(2)
        .max_publishers(1)
        .max_subscribers(1)
        .history_size(0)
        .enable_safe_overflow(false)
        .subscriber_max_buffer_size(form.capacity)
        .subscriber_max_borrowed_samples(1)
        .open_or_create()
        .map_err(failed)
}

/// Waits until a service has `count` subscribers, or the other side is gone.
fn await_subscribers<E: Element>(
    service: &Service<E>,
    count: usize,
    life: &Life,
) -> Result<(), Gone> {
    let mut patience = life.patience();
    while service.dynamic_config().number_of_subscribers() != count {
        patience.look()?;
        yield_now();
    }
    Ok(())
}

/// Plays a role on two services. The side that comes first creates them.
fn play<R: Role>(form: &Form, names: [&str; 2], life: &Life, role: R) -> Result<R::Found, Gone> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>().map_err(failed)?;
    match form.access {
        Access::Copied => {
            let ports = ports(&node, form, names, life)?;
            role.play(&mut Copied { buffer: vec![0; form.words()], ports })
        }
        Access::InPlace if is_pieced(form) => {
            role.play(&mut InPlace::<Piece>(ports(&node, form, names, life)?))
        }
        Access::InPlace => role.play(&mut InPlace::<u64>(ports(&node, form, names, life)?)),
    }
}

/// Whether messages are made of pieces.
fn is_pieced(form: &Form) -> bool {
    let is_large_stream = form.what == What::PerMessage && form.bytes > PIECED_BYTES_MAX;
    form.words().is_multiple_of(Piece::WORDS) && !is_large_stream
}

/// Connects to both services and waits for the other side.
fn ports<'a, E: Element>(
    node: &Node<ipc::Service>,
    form: &Form,
    [there, back]: [&str; 2],
    life: &'a Life,
) -> Result<Ports<'a, E>, Gone> {
    let (there, back) = (service::<E>(node, there, form)?, service::<E>(node, back, form)?);
    let elements = form.words() / E::WORDS;
    let subscriber = back.subscriber_builder().buffer_size(form.capacity).create();
    let publisher = there
        .publisher_builder()
        .initial_max_slice_len(elements)
        .max_loaned_samples(1)
        .set_backpressure_handler(|full| {
            // Otherwise a publisher waits for ever for a subscriber that was killed.
            if full.elapsed_time < Duration::from_nanos(SILENT_NS_MAX) {
                BackpressureAction::Retry
            } else {
                BackpressureAction::DiscardDataAndFail
            }
        })
        .create();
    await_subscribers(&there, 1, life)?;
    Ok(Ports {
        there: publisher.map_err(failed)?,
        back: subscriber.map_err(failed)?,
        waiting: Waiting::new(form, life),
        elements,
    })
}

/// Names of two services that were not used before.
fn names() -> [String; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the count is used.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    ["there", "back"].map(|way| format!("sinew-rivals/{}/{count}/{way}", std::process::id()))
}

/// Measures between two threads.
pub(crate) fn between_threads(cell: &Cell) -> Result<Found, Gone> {
    let [there, back] = &names();
    let near = |life: &Life| play(&cell.form, [there, back], life, cell);
    let far = |life: &Life| play(&cell.form, [back, there], life, Answer);
    on_threads(cell.cpus, near, far)
}

/// Measures between two processes.
pub(crate) fn between_processes(cell: &Cell) -> Result<Found, Gone> {
    let [there, back] = &names();
    on_thread(cell.cpus.near, || {
        let text = format!("{there} {back} {}", cell.form);
        let far = Process::start(PART, &text, &[], cell.cpus.far)?;
        let found = play(&cell.form, [there, back], far.life(), cell);
        far.join(found)
    })
}

/// The far process: the near side's service there is its service back.
pub(crate) fn far(text: &str, _: Vec<OwnedFd>) -> Result<(), Gone> {
    let mut words = text.splitn(3, ' ');
    let (Some(back), Some(there), Some(form)) = (words.next(), words.next(), words.next()) else {
        return Err(Gone(format!("'{text}': expected two services and a form")));
    };
    play(&form.parse()?, [there, back], &Life::Parent, Answer)
}

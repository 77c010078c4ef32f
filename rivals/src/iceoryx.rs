//! iceoryx2: publish and subscribe over shared memory, its `ipc` service, one for each way with one
//! publisher and one subscriber, history 0, no safe overflow (a full buffer makes the publisher
//! wait: nothing is lost), polled. Between threads each side has its own node, as its ports stay on
//! the thread that made them.
//!
//! In place, `write_from_fn` fills the loan word by word, and the reader sums where the message
//! lies: of what was tried the fastest for iceoryx2. Pieces of 4 KiB copied from a buffer took
//! 74 us per message of 1 MiB instead of 65 us, and reading through such a buffer another 17 us.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;
use std::time::Duration;

use iceoryx2::port::BackpressureAction;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{LogLevel, Node, NodeBuilder, PortFactory as _, ipc, set_log_level};
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use sinew_lab::harness::process::Process;
use sinew_lab::harness::{Access, Found, Gone, Life, SILENT_NS_MAX, Side, on_thread, on_threads};

use crate::measure::{Answer, Cell, Form, Role};
use crate::rings::read;

/// The part that the far process plays.
pub(crate) const PART: &str = "iceoryx2";

type Service = PortFactory<ipc::Service, [u64], ()>;

fn failed(error: impl std::fmt::Debug) -> Gone {
    Gone(format!("iceoryx2: {error:?}"))
}

/// Both ways, as one side sees them.
struct Ports<'a> {
    there: Publisher<ipc::Service, [u64], ()>,
    back: Subscriber<ipc::Service, [u64], ()>,
    life: &'a Life,
    words: usize,
}

/// Messages are written to a buffer and copied in; copied out to it and read there.
struct Copied<'a> {
    ports: Ports<'a>,
    buffer: Vec<u64>,
}

impl Side for Copied<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.buffer.fill(word);
        let loan = self.ports.there.loan_slice_uninit(self.ports.words).map_err(failed)?;
        loan.write_from_slice(&self.buffer).send().map_err(failed)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Ports { back, life, .. } = &self.ports;
        let message = life.until(|| back.receive().transpose())?.map_err(failed)?;
        self.buffer.copy_from_slice(&message);
        drop(message);
        Ok(read(&self.buffer))
    }
}

/// Messages are written and read where iceoryx2 keeps them.
struct InPlace<'a>(Ports<'a>);

impl Side for InPlace<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let loan = self.0.there.loan_slice_uninit(self.0.words).map_err(failed)?;
        loan.write_from_fn(|_| word).send().map_err(failed)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Ports { back, life, .. } = &self.0;
        let message = life.until(|| back.receive().transpose())?.map_err(failed)?;
        Ok(read(&message))
    }
}

fn service(node: &Node<ipc::Service>, name: &str, form: &Form) -> Result<Service, Gone> {
    node.service_builder(&name.try_into().map_err(failed)?)
        .publish_subscribe::<[u64]>()
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

/// Waits until a service has so many subscribers, or the other side is gone.
fn await_subscribers(service: &Service, count: usize, life: &Life) -> Result<(), Gone> {
    let mut patience = life.patience();
    while service.dynamic_config().number_of_subscribers() != count {
        patience.look()?;
        yield_now();
    }
    Ok(())
}

/// Plays a role on two services, which the first of both sides creates.
fn play<R: Role>(
    form: &Form,
    [there, back]: [&str; 2],
    life: &Life,
    role: R,
) -> Result<R::Found, Gone> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>().map_err(failed)?;
    let (there, back) = (service(&node, there, form)?, service(&node, back, form)?);
    let subscriber = back.subscriber_builder().buffer_size(form.capacity).create();
    let publisher = there
        .publisher_builder()
        .initial_max_slice_len(form.words())
        .max_loaned_samples(1)
        .set_backpressure_handler(|full| {
            // Without it a publisher waits for ever for a subscriber that was killed.
            if full.elapsed_time < Duration::from_nanos(SILENT_NS_MAX) {
                BackpressureAction::Retry
            } else {
                BackpressureAction::DiscardDataAndFail
            }
        })
        .create();
    await_subscribers(&there, 1, life)?;
    let ports = Ports {
        there: publisher.map_err(failed)?,
        back: subscriber.map_err(failed)?,
        life,
        words: form.words(),
    };
    match form.access {
        Access::Copied => role.play(&mut Copied { buffer: vec![0; ports.words], ports }),
        Access::InPlace => role.play(&mut InPlace(ports)),
    }
}

/// Names of two services that nobody had before.
fn names() -> [String; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the number counts.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    ["there", "back"].map(|way| format!("sinew-rivals/{}/{count}/{way}", std::process::id()))
}

/// Measures between two threads.
///
/// # Errors
/// iceoryx2 or the kernel refuses, or one side failed.
pub(crate) fn between_threads(cell: &Cell) -> Result<Found, Gone> {
    let [there, back] = &names();
    let near = |life: &Life| play(&cell.form, [there, back], life, cell);
    let far = |life: &Life| play(&cell.form, [back, there], life, Answer);
    on_threads(cell.cpus, near, far)
}

/// Measures between two processes.
///
/// # Errors
/// As for [`between_threads`].
pub(crate) fn between_processes(cell: &Cell) -> Result<Found, Gone> {
    let [there, back] = &names();
    on_thread(cell.cpus.near, || {
        let text = format!("{there} {back} {}", cell.form);
        let far = Process::start(PART, &text, &[], cell.cpus.far)?;
        let found = play(&cell.form, [there, back], far.life(), cell);
        far.join(found)
    })
}

/// The far process: what is there for the near side is back for this one.
///
/// # Errors
/// The text is not what the parent says, or the parent is gone.
pub(crate) fn far(text: &str, _: Vec<OwnedFd>) -> Result<(), Gone> {
    let mut words = text.splitn(3, ' ');
    let (Some(back), Some(there), Some(form)) = (words.next(), words.next(), words.next()) else {
        return Err(Gone(format!("'{text}': expected two services and a form")));
    };
    play(&form.parse()?, [there, back], &Life::Parent, Answer)
}

//! Ours: the queue of `sinew-link`, between threads like the other rings, and between processes
//! over shared memory, with messages of any size, copied, or written and read in place. It waits
//! with its own verbs, as the runtime does.

use std::os::fd::OwnedFd;

use sinew_core::sys::Region;
use sinew_core::transport::{Kernel, tuning};
use sinew_lab::harness::in_place::InPlace;
use sinew_lab::harness::process::Process;
use sinew_lab::harness::{Access, Found, Gone, Life, Side, on_thread};
use sinew_link::{Shape, Wait, create, queue};
use zerocopy::IntoBytes;

use crate::measure::{Answer, Cell, Form, Role};
use crate::poll::Waiting;
use crate::rings::{Ends, Reader, Ring, Writer, read};
use crate::table::OURS;

/// The part that the far process plays.
pub(crate) const PART: &str = "sinew";

// Cold, so that its code is not placed between the measured verbs.
#[cold]
#[inline(never)]
fn failed(error: impl ToString) -> Gone {
    Gone(error.to_string())
}

/// The queue between threads.
pub(crate) struct Sinew;

impl Ring for Sinew {
    const NAME: &'static str = OURS;

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer, impl Reader), Gone> {
        let shape = shape(8 * N, capacity);
        let region = Region::anonymous(shape.region_len()).map_err(failed)?;
        create(&region, &shape).map_err(failed)?;
        let writer = queue::Writer::attach(region.clone(), &shape).map_err(failed)?;
        let reader = queue::Reader::attach(region, &shape).map_err(failed)?;
        let (writer, reader) = (writer.tuned(tuning(&shape)), reader.tuned(tuning(&shape)));
        Ok((Small::<_, N>(writer), Small::<_, N>(reader)))
    }
}

fn shape(bytes: usize, capacity: usize) -> Shape {
    Shape::queue(bytes as u32, 0, capacity as u32)
}

/// An end of a queue with messages of `N` words.
struct Small<E, const N: usize>(E);

impl<const N: usize> Writer for Small<queue::Writer<Region>, N> {
    #[inline(always)]
    fn send(&mut self, word: u64, waiting: &mut Waiting<'_>) -> Result<(), Gone> {
        // The message is made where it is sent. If it were kept on the stack meanwhile, it would be
        // written twice.
        while !sent(self.0.try_send(<[u64; N]>::as_bytes(&[word; N])))? {
            waiting.own.wait(|until_ns| self.0.wait_room(Wait::Spin, Some(until_ns), &Kernel))?;
        }
        Ok(())
    }
}

impl<const N: usize> Reader for Small<queue::Reader<Region>, N> {
    #[inline(always)]
    fn receive(&mut self, waiting: &mut Waiting<'_>) -> Result<u64, Gone> {
        let mut message = [0; N];
        while !self.0.try_receive(message.as_mut_bytes()).map_err(failed)? {
            waiting.own.wait(|until_ns| self.0.wait(Wait::Spin, Some(until_ns), &Kernel))?;
        }
        Ok(read(&message))
    }
}

/// Whether a message was sent. If not, there is no room.
#[inline(always)]
fn sent(result: Result<(), queue::SendError>) -> Result<bool, Gone> {
    match result {
        Ok(()) => Ok(true),
        Err(queue::SendError::Full) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Both queues of one side, for large messages: written to the buffer and copied in; copied out to
/// the buffer and read there.
struct Large<'a> {
    there: queue::Writer<Region>,
    back: queue::Reader<Region>,
    waiting: Waiting<'a>,
    buffer: Vec<u64>,
}

impl Side for Large<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let Large { there, waiting, buffer, .. } = self;
        buffer.fill(word);
        while !sent(there.try_send(buffer.as_bytes()))? {
            waiting.own.wait(|until_ns| there.wait_room(Wait::Spin, Some(until_ns), &Kernel))?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Large { back, waiting, buffer, .. } = self;
        while !back.try_receive(buffer.as_mut_bytes()).map_err(failed)? {
            waiting.own.wait(|until_ns| back.wait(Wait::Spin, Some(until_ns), &Kernel))?;
        }
        Ok(read(buffer))
    }
}

/// Plays a role on the two queues.
fn play<R: Role>(
    form: &Form,
    [there, back]: [Region; 2],
    life: &Life,
    role: R,
) -> Result<R::Found, Gone> {
    let shape = shape(form.bytes, form.capacity);
    if form.access == Access::InPlace {
        return role.play(&mut InPlace::attach(&shape, there, back, life.clone())?);
    }
    let there = queue::Writer::attach(there, &shape).map_err(failed)?.tuned(tuning(&shape));
    let back = queue::Reader::attach(back, &shape).map_err(failed)?.tuned(tuning(&shape));
    let waiting = Waiting::new(form, life);
    match form.bytes {
        8 => small::<1, R>(there, back, waiting, role),
        48 => small::<6, R>(there, back, waiting, role),
        64 => small::<8, R>(there, back, waiting, role),
        256 => small::<32, R>(there, back, waiting, role),
        1024 => small::<128, R>(there, back, waiting, role),
        _ => role.play(&mut Large { there, back, waiting, buffer: vec![0; form.words()] }),
    }
}

fn small<const N: usize, R: Role>(
    there: queue::Writer<Region>,
    back: queue::Reader<Region>,
    waiting: Waiting<'_>,
    role: R,
) -> Result<R::Found, Gone> {
    role.play(&mut Ends { there: Small::<_, N>(there), back: Small::<_, N>(back), waiting })
}

/// Measures between two processes.
pub(crate) fn between_processes(cell: &Cell) -> Result<Found, Gone> {
    let shape = shape(cell.form.bytes, cell.form.capacity);
    let region = || {
        let region = Region::shared("sinew-rivals", shape.region_len()).map_err(failed)?;
        create(&region, &shape).map_err(failed)?;
        Ok::<_, Gone>(region)
    };
    let (there, back) = (region()?, region()?);
    let descriptors = [&there, &back].map(|region| region.file().expect("a shared one has one"));
    on_thread(cell.cpus.near, || {
        let far = Process::start(PART, &cell.form.to_string(), &descriptors, cell.cpus.far)?;
        let regions = [there.clone(), back.clone()];
        let found = play(&cell.form, regions, far.life(), cell);
        far.join(found)
    })
}

/// The far process: the near side's queue there is its queue back.
pub(crate) fn far(text: &str, descriptors: Vec<OwnedFd>) -> Result<(), Gone> {
    let form = text.parse()?;
    let regions = descriptors.into_iter().map(Region::map).collect::<Result<Vec<_>, _>>();
    let [back, there] = <[Region; 2]>::try_from(regions.map_err(failed)?)
        .map_err(|found| Gone(format!("{} descriptors, expected 2", found.len())))?;
    play(&form, [there, back], &Life::Parent, Answer)
}

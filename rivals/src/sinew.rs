//! Ours: the queue of `sinew-link`, between threads like the other rings, and between processes
//! over shared memory, with messages of any size, copied or written and read in place.

use std::os::fd::OwnedFd;

use sinew_lab::harness::process::Process;
use sinew_lab::harness::{Gone, Life, Side, on_thread};
use sinew_link::{Shape, create, queue};
use sinew_runtime::sys::Region;
use zerocopy::IntoBytes;

use crate::measure::{Access, Answer, Cell, Form, Found, Role};
use crate::rings::{Ends, Reader, Ring, Writer, poll, read};
use crate::table::OURS;

/// The part that the far process plays.
pub(crate) const PART: &str = "sinew";

/// Words of a piece that a large message is written and read in: 2 KiB.
const PIECE: usize = 256;

fn failed(error: impl ToString) -> Gone {
    Gone(error.to_string())
}

/// The queue between threads.
pub(crate) struct Sinew;

impl Ring for Sinew {
    const NAME: &'static str = OURS;

    fn open<const N: usize>(capacity: usize) -> Result<(impl Writer<N>, impl Reader<N>), Gone> {
        let shape = shape(8 * N, capacity);
        let region = Region::anonymous(shape.region_len()).map_err(failed)?;
        create(&region, &shape).map_err(failed)?;
        let writer = queue::Writer::attach(region.clone(), &shape).map_err(failed)?;
        Ok((writer, queue::Reader::attach(region, &shape).map_err(failed)?))
    }
}

fn shape(bytes: usize, capacity: usize) -> Shape {
    Shape::queue(bytes as u32, 0, capacity as u32)
}

impl<const N: usize> Writer<N> for queue::Writer<Region> {
    #[inline]
    fn send(&mut self, word: u64, life: &Life) -> Result<(), Gone> {
        poll(life, || self.try_send([word; N].as_bytes()).ok())
    }
}

impl<const N: usize> Reader<N> for queue::Reader<Region> {
    #[inline]
    fn receive(&mut self, life: &Life) -> Result<u64, Gone> {
        poll(life, || {
            let mut message = [0; N];
            match self.try_receive(message.as_mut_bytes()) {
                Ok(true) => Some(Ok(read(&message))),
                Ok(false) => None,
                Err(corrupt) => Some(Err(failed(corrupt))),
            }
        })?
    }
}

/// Both queues of one side, for messages of any size, with a buffer of its own.
struct Large<'a> {
    there: queue::Writer<Region>,
    back: queue::Reader<Region>,
    life: &'a Life,
    buffer: Vec<u64>,
}

/// Messages are written to the buffer and copied in; copied out to it and read there.
struct Copied<'a>(Large<'a>);

impl Side for Copied<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let Large { there, life, buffer, .. } = &mut self.0;
        buffer.fill(word);
        poll(life, || there.try_send(buffer.as_bytes()).ok())
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Large { back, life, buffer, .. } = &mut self.0;
        poll(life, || match back.try_receive(buffer.as_mut_bytes()) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(corrupt) => Some(Err(failed(corrupt))),
        })??;
        Ok(read(buffer))
    }
}

/// Messages are written where the queue keeps them, piece by piece, and read there. The buffer is
/// one piece.
struct InPlace<'a>(Large<'a>);

impl Side for InPlace<'_> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let Large { there, life, buffer, .. } = &mut self.0;
        buffer.fill(word);
        let mut patience = life.patience();
        loop {
            if let Ok(mut claim) = there.claim() {
                let piece = buffer.as_bytes();
                (0..claim.len()).step_by(piece.len()).for_each(|at| claim.write_at(at, piece));
                claim.commit();
                return Ok(());
            }
            patience.poll()?;
        }
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Large { back, life, buffer, .. } = &mut self.0;
        let mut patience = life.patience();
        loop {
            if let Some(peek) = back.peek().map_err(failed)? {
                let mut word = 0;
                for at in (0..peek.len()).step_by(size_of_val(&buffer[..])) {
                    peek.read_at(at, buffer.as_mut_bytes());
                    word = read(buffer);
                }
                peek.release();
                return Ok(word);
            }
            patience.poll()?;
        }
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
    let there = queue::Writer::attach(there, &shape).map_err(failed)?;
    let back = queue::Reader::attach(back, &shape).map_err(failed)?;
    match (form.access, form.bytes) {
        (Access::Copied, 8) => role.play(&mut Ends::<_, _, 1> { there, back, life }),
        (Access::Copied, 48) => role.play(&mut Ends::<_, _, 6> { there, back, life }),
        (Access::Copied, 64) => role.play(&mut Ends::<_, _, 8> { there, back, life }),
        (Access::Copied, 256) => role.play(&mut Ends::<_, _, 32> { there, back, life }),
        (Access::Copied, 1024) => role.play(&mut Ends::<_, _, 128> { there, back, life }),
        (Access::Copied, _) => {
            let buffer = vec![0; form.words()];
            role.play(&mut Copied(Large { there, back, life, buffer }))
        }
        (Access::InPlace, _) => {
            let buffer = vec![0; form.words().min(PIECE)];
            role.play(&mut InPlace(Large { there, back, life, buffer }))
        }
    }
}

/// Measures between two processes.
///
/// # Errors
/// The kernel refuses, or one side failed.
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

/// The far process: what is there for the near side is back for this one.
///
/// # Errors
/// What was handed over is not what the parent hands over, or the parent is gone.
pub(crate) fn far(text: &str, descriptors: Vec<OwnedFd>) -> Result<(), Gone> {
    let form = text.parse()?;
    let regions = descriptors.into_iter().map(Region::map).collect::<Result<Vec<_>, _>>();
    let [back, there] = <[Region; 2]>::try_from(regions.map_err(failed)?)
        .map_err(|found| Gone(format!("{} descriptors, expected 2", found.len())))?;
    play(&form, [there, back], &Life::Parent, Answer)
}

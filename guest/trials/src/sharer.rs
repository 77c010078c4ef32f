//! Kind `sharer`: gets a region from Linux while it runs, and counts its cycles there.

use alloc::boxed::Box;

use sinew_guest::{
    Cycle, Fault, GuestNode, Io, Kind, KindRecord, MadeBy, Parameters, SharedRefusal, SharedWish,
    fault, shared,
};

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "sharer",
        "Gets the region 'cycles' from Linux's allocator and counts its cycles in the first word.",
        8 * 1024,
        &[],
        &[],
        &["held"],
    ),
    make,
};

const HELD: usize = 0;

const REGION: &str = "cycles";

fn make(_: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Node { is_held: false }))
}

struct Node {
    is_held: bool,
}

impl GuestNode for Node {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if !self.is_held {
            // Without waiting: a region that Linux makes until the next cycle is found then.
            match shared::get(REGION, &SharedWish::region(64, 0), MadeBy::Linux, 0) {
                Ok(_) => drop(shared::attach(REGION).map_err(|why| fault!("{why}"))?),
                Err(SharedRefusal::Late) => return Ok(()),
                Err(why) => return Err(fault!("{why}")),
            }
            self.is_held = true;
            *io.counter(HELD) = 1;
        }
        let number = (cycle.number as u32).to_le_bytes();
        shared::write(REGION, 0, &number).map_err(|why| fault!("{why}"))
    }
}

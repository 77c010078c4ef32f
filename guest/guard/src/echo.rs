//! Kind `echo`: sends every frame on unchanged, to show that a guest runs and to measure the delay.

use alloc::boxed::Box;

use sinew_guest::{
    Cycle, Fault, Fresh, GuestNode, Io, Kind, KindRecord, Message, Parameters, port,
};

use crate::guard::Frame;

const IN: usize = 0;
const OUT: usize = 1;

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "echo",
        "Sends every frame on as it came.",
        8 * 1024,
        &[port("in", "A frame.", 0, Frame::TYPE), port("out", "The same frame.", 1, Frame::TYPE)],
        &[],
        &[],
    ),
    make,
};

fn make(_: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Echo))
}

struct Echo;

impl GuestNode for Echo {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) == Fresh::New {
            *io.write::<Frame>(OUT) = *io.read::<Frame>(IN);
        }
        Ok(())
    }
}

//! Kind `probe`: accesses an address in every cycle and counts how often it may.

use alloc::boxed::Box;

use sinew_guest::{
    Cycle, Fault, GuestNode, Io, Kind, KindRecord, Parameters, numbers, probe_read, probe_write,
    probes_refused,
};

const READ: usize = 0;
const WRITTEN: usize = 1;
const REFUSED: usize = 2;
const LAST_REFUSED: usize = 3;

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "probe",
        "Reads a byte at an address in every cycle, and writes it back; survives if it may not.",
        8 * 1024,
        &[],
        &[numbers("address", "Where, as the guest sees it.", "", "0", 1, (0.0, 4_294_967_295.0))],
        &["read", "written", "refused", "last_refused"],
    ),
    make,
};

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Node { address: parameters.number("address") as usize }))
}

struct Node {
    address: usize,
}

impl GuestNode for Node {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let byte = probe_read(self.address);
        *io.counter(READ) += u32::from(byte.is_some());
        // SAFETY: writes the byte that is already there; tests give addresses that only they use.
        let is_written = unsafe { probe_write(self.address, byte.unwrap_or(0)) };
        *io.counter(WRITTEN) += u32::from(is_written);
        let (refused, last) = probes_refused();
        *io.counter(REFUSED) = refused;
        *io.counter(LAST_REFUSED) = last;
        Ok(())
    }
}

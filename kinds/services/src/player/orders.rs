//! Orders of viewers, as a node reads them at an input.

use sinew_core::Fault;
use sinew_media::Order;
use sinew_pictures::messages::PlayOrder;
use sinew_runtime::ServiceIo;

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    /// Increases with every jump.
    pub(crate) serial: u32,
    /// Position in ns, or speed in thousandths.
    pub(crate) value: u64,
}

/// The next order at input `port`. Unknown orders are skipped.
pub(crate) fn next(io: &mut ServiceIo, port: usize) -> Result<Option<Wanted>, Fault> {
    while let Some(PlayOrder { value, serial, what }) = io.receive(port)? {
        if let Some(order) = Order::of(what) {
            return Ok(Some(Wanted { order, serial, value }));
        }
    }
    Ok(None)
}

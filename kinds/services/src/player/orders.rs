//! Orders of who watches, as a node finds them at an input.

use sinew_core::Fault;
use sinew_media::Order;
use sinew_runtime::ServiceIo;

use crate::messages::PlayOrder;

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    /// Rises with every jump.
    pub(crate) serial: u32,
    /// Place, ns, or speed, thousandths.
    pub(crate) value: u64,
}

/// The next order at input `port`. One that there is not is passed over.
pub(crate) fn next(io: &mut ServiceIo, port: usize) -> Result<Option<Wanted>, Fault> {
    while let Some(PlayOrder { value, serial, what }) = io.receive(port)? {
        if let Some(order) = Order::of(what) {
            return Ok(Some(Wanted { order, serial, value }));
        }
    }
    Ok(None)
}

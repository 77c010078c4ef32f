//! What the hosts of one graph say to each other: a message with its header, and by that how old it
//! is. Bytes and arithmetic only; what carries them stands elsewhere.
//!
//! Two hosts share no clock, and need none. Who receives commands says its own time again and
//! again: a *stamp*. Who sends copies the last stamp that it has heard into each message, and
//! who receives sees by its own clock how long ago it said that. A command is younger than the
//! stamp in it, so one whose stamp is young is young. After an outage, what lay in buffers has old
//! stamps, in whatever order and however quickly it comes.

mod clock;
mod header;
mod judge;
mod key;
mod stamps;

pub use clock::{ClockEstimate, DRIFT_PPM};
pub use header::{ECHOES_MAX, Echo, HEADER_LEN, Malformed, MessageHeader};
pub use judge::{Freshness, Judge};
pub use key::{call_key, host_number, message_key, stamp_key};
pub use stamps::{Stamps, Turn};

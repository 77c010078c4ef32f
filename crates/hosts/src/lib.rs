//! What the hosts of one graph send to each other: a message with its header, from which its age
//! follows. This crate has only bytes and arithmetic; the transport is elsewhere.
//!
//! Two hosts share no clock, and need none. The receiver of commands sends its own time again and
//! again: a *stamp*. The sender copies the last stamp that it has heard into each message. When the
//! message arrives, the receiver sees by its own clock how long ago it sent that stamp. A command
//! is younger than the stamp in it, so a command with a young stamp is young. After an outage,
//! messages from buffers have old stamps, in whatever order and however quickly they arrive.

mod clock;
mod header;
mod in_order;
mod judge;
mod key;
mod sent;
mod stamps;

pub use clock::{ClockEstimate, DRIFT_PPM};
pub use header::{ECHO_LEN, ECHOES_MAX, Echo, HEADER_LEN, Malformed, MessageHeader};
pub use in_order::{InOrder, Misordered};
pub use judge::{Freshness, Judge};
pub use key::{call_key, message_key, number, stamp_key};
pub use sent::SentStamps;
pub use stamps::{Stamps, Turn};

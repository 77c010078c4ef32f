//! Packets that cross to a node of another service domain, and their replies.
//!
//! The supervisor joins the two domains by a *door*: a pair of sockets that outlives both, and has
//! no name by which a third process could find it. Each worker of the calling domain makes a
//! connection, and hands one end of it through the door. Some worker of the other domain takes it
//! and says hello. When a process ends, its connections end with it. Packets that wait for a reply
//! over them fail at once, and so does every packet until the next process has said hello. Nobody
//! waits for a domain that is not there.
//!
//! Data from the other process is checked like any outside data.

pub(crate) mod called;
pub(crate) mod caller;
mod connection;
mod frame;
mod leaving;
pub(crate) mod relay;
#[cfg(test)]
mod tests;

pub use leaving::{Leaving, RELAYED_MAX};
pub use relay::{Arriving, Relay, RelayDoors};

/// Packets of a worker that may wait for replies from one domain; one more is refused (503).
const CALLS_MAX: usize = 1024;
/// Most bytes of one connection that may wait until the other side takes them. Past it packets are
/// refused (503).
const HELD_MAX: usize = 64 << 20;
/// Longest packet or reply as it crosses, in bytes.
const FRAME_LEN_MAX: usize = 16 << 20;

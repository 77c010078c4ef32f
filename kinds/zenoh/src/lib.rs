//! Carries messages between the hosts of one graph, over zenoh.
//!
//! Each host has a [`Mirror`]. It puts what its host sends under keys of this host, with the last
//! stamps of the others in front. It judges what others send by its own stamps, and hands out what
//! is fresh. It knows neither spec nor plan: a [`Setting`] says what there is.
//!
//! Only threads of its own wait for the network, and every queue is bounded. What is not obeyed is
//! counted. A host whose links between hosts are of another version is seen, but nothing is taken
//! from it.

mod arrivals;
mod call;
mod calls;
mod certificate;
mod configuration;
mod exchange;
mod frame;
mod front;
mod inbox;
mod line;
mod mirror;
mod news;
pub mod node;
mod not_taken;
mod reach;
mod relayed;
mod renewal;
mod room;
mod say;
mod seal;
mod seen;
mod send_again;
mod setting;
mod shared;
mod waiting;
mod watch;

pub use arrivals::Arrivals;
pub use call::{AnswerTaker, CallFailure};
pub use calls::{CallCounts, IncomingCall};
pub use exchange::Exchange;
pub use frame::StampFrame;
pub use inbox::IncomingCounts;
pub use mirror::{Mirror, MirrorCounts};
pub use not_taken::{NotTaken, NotTakenCounts};
pub use seen::{HostSeen, HostState, PeerClock};
pub use send_again::{misplace, send_again, send_garbage};
pub use setting::{CallPort, IncomingPort, OutgoingPort, Peer, Setting, TlsFiles};

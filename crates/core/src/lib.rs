//! The realtime core: what runs between a release and the next sleep, and nothing else. Whoever
//! audits the realtime part of Sinew reads this crate and `sinew-link`.
//!
//! A node implements [`Node`] and describes itself in a [`Kind`](sinew_plan::catalogue::Kind); a
//! table of [`NodeEntry`] rows is all that the core knows of nodes. [`cycle`] puts the nodes of a
//! thread together and runs them, [`transport`] carries what crosses threads and processes,
//! [`trace`] is what each cycle leaves behind, [`log`] what nodes say, and [`mod@fault`] why a
//! cycle failed. It starts no process, reads no text and serves nobody: that is the supervisor's
//! work.

// So that `message!` finds the same path here as in every other crate.
extern crate self as sinew_core;

pub mod bell;
pub mod board;
pub mod clock;
pub mod cycle;
pub mod ends;
pub mod fault;
pub mod halt;
pub mod log;
mod mappings;
pub mod message;
pub mod node;
pub mod pace;
pub mod panics;
pub mod privileges;
pub mod refusal;
pub mod replay;
mod slots;
pub mod sys;
pub mod trace;
pub mod transport;

pub use fault::{Cause, Fault};
pub use log::Level;
pub use message::{Flag, Message, Real};
pub use node::{Cycle, Fresh, Io, Node, NodeEntry, NodeFixture, Parameters};
pub use refusal::{Made, Refusal};
pub use sinew_link::message::{Bool, Label, Labels};
#[doc(no_inline)]
pub use sinew_link::message_type;
pub use sinew_plan::catalogue;
/// For the code that [`message!`] writes.
#[doc(hidden)]
pub use zerocopy;

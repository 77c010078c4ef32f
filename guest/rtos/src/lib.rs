//! A guest: nodes of a graph under FreeRTOS, on a core beside Linux.
//!
//! A program contains a table of kinds and nothing else:
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! sinew_guest::kinds![echo::KIND];
//! ```
//!
//! The carve-out (`sinew-carve-out`) says which nodes the guest is to run, and with which links.
//! The guest starts (`start.rs`, `guest.rs`), makes each node of that table, which FreeRTOS then
//! releases (`run.rs`), and waits for the order to run (`agent.rs`). `shared.rs` holds memory
//! shared by name; `serve.rs` and `jobs.rs` answer the requests of Linux meanwhile. Every failure
//! ends in a fault record (`fault.rs`). All code for one chip only is in `board/`.
#![no_std]

extern crate alloc;
// Macros name this crate by the name that its users use.
extern crate self as sinew_guest;

mod agent;
mod bells;
mod board;
mod c;
mod console;
mod cpu;
mod fault;
mod gic;
mod guest;
mod heap;
mod io;
mod jobs;
mod kernel;
mod link;
mod memory;
mod message;
mod node;
mod once;
mod run;
mod serve;
mod serving;
pub mod shared;
mod shared_bytes;
mod shared_c;
mod start;
mod trial;

pub use console::Console;
pub use cpu::now_ns;
pub use fault::{probe_read, probe_write, probes_refused};
pub use io::{Fresh, Io};
pub use jobs::{Job, JobAnswer, JobCall, RunJob};
pub use link::Peek;
pub use message::Message;
pub use node::{Cycle, Fault, GuestNode, Kind, Make, Maker, Parameters};
pub use serving::{Patience, QueueIn, QueueOut, Serving};
pub use shared_bytes::SharedBytes;

#[doc(no_inline)]
pub use sinew_carve_out::image::{KindRecord, ParameterRecord, PortRecord, numbers, port};
#[doc(no_inline)]
pub use sinew_carve_out::{
    MadeBy, SharedClass, SharedEntry, SharedHolds, SharedRefusal, SharedWish,
};
#[doc(no_inline)]
pub use sinew_link::message::{Field, FieldType, MessageType, type_hash};
#[doc(no_inline)]
pub use sinew_link::message_type;
#[doc(no_inline)]
pub use zerocopy;

//! The flow nodes that come with Sinew: one file and one row of [`FLOWS`] each.

mod bridge;
mod check;
mod http;
mod path;
mod script;
#[cfg(test)]
mod testing;

use sinew_runtime::NodeEntry;

/// All of them.
pub const FLOWS: &[NodeEntry] = &[
    // Paths: who gets a packet, and what becomes of the reply.
    path::nop::NODE,
];

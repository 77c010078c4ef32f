//! Nodes that decide which node gets a packet, and what becomes of the reply.

pub(crate) mod attempt;
pub(crate) mod batch;
pub(crate) mod for_each;
pub(crate) mod fork;
pub(crate) mod limit;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod nop;
pub(crate) mod pipe;
pub(crate) mod ports;
pub(crate) mod print;
pub(crate) mod retry;
pub(crate) mod serial;
pub(crate) mod sleep;
pub(crate) mod split;
pub(crate) mod throw;
pub(crate) mod timer;

/// Longest time that a spec may give a flow or a pause in it: a week. Work that takes longer must
/// survive a restart, and flows do not.
pub(crate) const LIMIT_NS_MAX: u64 = 7 * 24 * 3600 * 1_000_000_000;

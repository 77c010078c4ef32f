//! Nodes that decide who gets a packet, and what becomes of the reply.

pub(crate) mod nop;

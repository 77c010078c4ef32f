//! What domains print.

pub(super) mod memory;
pub(super) mod pipe;

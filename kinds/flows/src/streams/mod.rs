//! Streams: their elements one by one, and messages from one to many.

pub(crate) mod pour;
pub(crate) mod publish;
pub(crate) mod stream;
pub(crate) mod subscribe;
pub(crate) mod topic;

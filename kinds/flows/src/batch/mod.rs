//! Work that has an end: a flow that is the run, files that are read and written.

pub(crate) mod append;
pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod once;
mod watch;

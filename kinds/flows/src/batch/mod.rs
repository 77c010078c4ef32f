//! Work that has an end: a single flow that makes up the run, and files that are read and written.

pub(crate) mod append;
pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod once;
mod watch;

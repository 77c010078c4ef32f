//! The core, as the supervisor sees it.

pub(super) mod domain;

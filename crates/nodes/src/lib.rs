//! The node kinds that come with Sinew.

//! Sinew.

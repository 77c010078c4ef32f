//! What holds for flows of whatever kinds: panics, deadlines, cancels and children stay with their
//! flow, and nothing is left of it.

mod costs;
mod ends;
mod kinds;
mod many;

//! What holds for flows of any kinds: the effects of panics, deadlines, cancels and children stay
//! within their flow, and nothing of a flow is left behind.

mod costs;
mod ends;
mod kinds;
mod many;

//! Sinew.
fn main() {}

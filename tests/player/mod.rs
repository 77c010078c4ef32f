//! See `tests/player.rs`.

mod bad;
mod faults;
mod plays;
mod stage;

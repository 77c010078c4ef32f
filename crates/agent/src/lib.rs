//! The Linux side of a guest: nodes that run under another operating system on the same chip.
//!
//! [`image`] reads which kinds an image has. [`boards`] is the table of boards that guests run on.
//! [`ivshmem`] gives an emulator memory and bells. [`Keeper`] starts a guest for one life and
//! watches it. [`GuestSession`] talks to it: memory by name, semaphores, queues, jobs. The crate
//! `carve-out` defines what both sides find in their memory.

pub mod boards;
mod desk;
pub mod image;
pub mod ivshmem;
pub mod keeper;
mod session;

pub use boards::{BOARDS, BoardRow};
pub use desk::{Desk, DeskTally};
pub use image::ImageFile;
pub use ivshmem::GuestBells;
pub use keeper::{GuestProgress, GuestSetup, Keeper};
pub use session::{GuestNodeState, GuestSession, GuestView, RegionWords, SessionError};

//! The supervisor of Sinew: what starts the domains of a plan as processes, watches them, restarts
//! services, stops all in order, and takes everything with it when it goes.
//!
//! [`run`] is the parent, [`domain`] the process that it starts for each domain, [`service`] what a
//! node of a service domain is and sees, [`kinds`] the tables of a program. The realtime core is
//! `sinew-core`, flows are `sinew-flow`'s.

pub mod confine;
pub mod domain;
mod edition;
pub mod inject;
pub mod kinds;
mod launch;
pub mod observer;
pub mod profile;
pub mod replace;
pub mod run;
pub mod service;
pub mod watch;

pub use edition::Edition;
pub use kinds::Kinds;
pub use service::{Service, ServiceEntry, ServiceIo};
pub use watch::Watch;

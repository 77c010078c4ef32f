//! Mirrors that talk to each other, over lines that fail and beside strangers.

mod calls;
mod outage;
mod places;
mod proxy;
mod python;
mod reach;
mod router;
mod stage;
mod strangers;
mod tls;
mod two;

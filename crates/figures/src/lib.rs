//! Figures: of a time that was measured many times ([`Distribution`]), how certain a median over
//! rounds is ([`Interval`]), where the level of a series changes ([`change_points`]), on which
//! machine it was measured ([`Machine`]), and how it is written ([`units`], [`short`], [`wrap`]).

pub mod change_points;
pub mod cpus;
pub mod distribution;
pub mod interval;
pub mod machine;
pub mod process;
pub mod short;
pub mod units;
pub mod wrap;

pub use distribution::Distribution;
pub use interval::Interval;
pub use machine::Machine;

//! Services: nodes that stand beside a core, look at what it does, and may fail.

pub mod axis_log;

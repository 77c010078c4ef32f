//! A scope: the numbers of the core's cycles at full rate, as captures, and figures from them. Its
//! input is the records of the cycles. It does not know where they come from, nor how a capture is
//! drawn. Everything that it keeps is bounded ([`settings`]).
//!
//! ```
//! # fn records() -> Vec<(sinew_core::trace::ThreadId, sinew_core::trace::Record)> { vec![] }
//! # fn show(plan: &sinew_spec::plan::Plan) -> Result<(), String> {
//! use sinew_control::traces::RunLayout;
//! use sinew_core::pace::Pace;
//! use sinew_scope::{Scope, ScopeSettings, figures, find};
//!
//! let layout = RunLayout::of(plan, Pace::AsPlanned);
//! let traces = find(&layout, "motor.speed_rad_per_s")?;
//! let mut scope = Scope::new(&layout, traces, ScopeSettings::default())?;
//! for (thread, record) in records() {
//!     scope.take(thread, &record);
//! }
//! let capture = scope.capture();
//! for captured in &capture.traces {
//!     let figures = figures(captured);
//! }
//! # Ok(())
//! # }
//! ```

mod columns;
mod export;
mod figures;
mod frequency;
mod scope;
mod series;
pub mod settings;
mod step;
mod trace;
mod trigger;

pub use self::columns::{Column, columns};
pub use self::export::{write_csv, write_mcap};
pub use self::figures::{Cursors, TraceFigures, cursors, figures, xy};
pub use self::frequency::{
    FrequencyPoint, FrequencyResponse, FrequencySettings, Spectrum, frequency_response, spectrum,
};
pub use self::scope::{Doing, Scope};
pub use self::series::{Capture, Captured, Missing, NotShown, Times};
pub use self::settings::{ScopeSettings, Slope, Sweep, Trigger};
pub use self::step::{StepResponse, WITHIN, step_of, step_response};
pub use self::trace::{Trace, all, find, find_one};

#[cfg(test)]
mod tests;

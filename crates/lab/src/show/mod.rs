//! How a report is shown: text, a page, plots. What is shown follows from the rows, their axes and
//! measures; nothing here knows a scenario.

mod grid;
mod text;
mod units;

pub use text::to_text;

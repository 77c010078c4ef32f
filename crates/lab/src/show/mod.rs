//! How a report is shown: text, a page, plots. What is shown follows from the rows, their axes and
//! measures; no code here knows a scenario.

mod grid;
pub(crate) mod page;
pub(crate) mod plots;
pub(crate) mod scale;
pub(crate) mod svg;
pub(crate) mod text;

pub use page::to_page;
pub use plots::plots;
pub use svg::Plot;
pub use text::{tables, to_text};

#[cfg(test)]
mod tests;

//! Sinew's command line as a library, so that a crate with nodes of its own is a whole `sinew`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     sinew::main(sinew_nodes::NODES) // and more rows: `[sinew_nodes::NODES, MY_NODES].concat()`
//! }
//! ```

mod check;
mod cli;
mod doctor;
mod graph;
mod lab;
mod load;
mod run;
mod theme;

pub use cli::main;

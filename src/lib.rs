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
mod drill;
mod duration;
mod graph;
mod halt;
mod lab;
mod list;
mod load;
mod log;
mod overwrite;
mod reach;
mod replay;
mod reset;
mod restart;
mod run;
mod screen;
mod signals;
mod stop;
mod test;
mod theme;
mod top;

pub use cli::main;

//! Sinew's command line as a library, so that a crate with nodes of its own is a whole `sinew`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     sinew::main(sinew_robot::NODES) // and more rows: `[sinew_robot::NODES, MY_NODES].concat()`
//! }
//! ```

mod answer;
mod check;
mod cli;
mod doctor;
mod drill;
mod duration;
mod graph;
mod lab;
mod list;
mod load;
mod log;
mod overwrite;
mod progress;
mod reach;
mod replay;
mod run;
mod signals;
mod steer;
mod test;
mod top;

pub use cli::main;

/// So that a debug build tells which nodes allocate in their cycles, a user's own ones too. A
/// program that needs another allocator leaves the feature `count-allocations` out.
#[cfg(all(debug_assertions, feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: sinew_runtime::sys::Counting = sinew_runtime::sys::Counting;

#[cfg(all(test, debug_assertions, feature = "count-allocations"))]
mod tests {
    use sinew_runtime::sys::allocations;

    #[test]
    fn a_debug_build_counts_allocations() {
        let before = allocations();
        drop(std::hint::black_box(Box::new(7)));
        assert_eq!(allocations(), before + 1);
    }
}

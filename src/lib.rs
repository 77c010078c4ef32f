//! Sinew's command line as a library, so that a crate with nodes of its own is a whole `sinew`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     let kinds = sinew::kinds(); // and more rows: `kinds.nodes.push(MY_NODE)`
//!     sinew::main(&kinds)
//! }
//! ```

mod advise;
mod answer;
mod check;
mod cli;
mod doctor;
mod drill;
mod duration;
mod graph;
mod guest;
mod import;
mod kinds;
mod lab;
mod list;
mod load;
mod log;
mod machine;
mod new;
mod number;
mod overwrite;
mod part;
mod progress;
mod reach;
mod replay;
mod run;
mod scope;
mod shell;
mod signals;
mod steer;
mod tap;
mod test;
mod top;
mod tune;

pub use cli::main;
use sinew_runtime::Kinds;

/// The kinds that come with Sinew.
pub fn kinds() -> Kinds {
    let services = sinew_services::SERVICES.to_vec();
    #[cfg(feature = "hosts")]
    let services = [services, vec![sinew_zenoh::node::NODE]].concat();
    #[cfg(feature = "ros2")]
    let services = [services, sinew_ros2::SERVICES.to_vec()].concat();
    Kinds {
        nodes: [sinew_robot::NODES, sinew_control_kinds::NODES].concat(),
        services,
        flows: sinew_flows::FLOWS.to_vec(),
        lens: Some(sinew_flows::LENS),
    }
}

/// Lets a debug build report which nodes allocate in their cycles, also a user's own nodes. A
/// program that needs another allocator leaves the feature `count-allocations` out.
#[cfg(all(debug_assertions, feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: sinew_core::sys::Counting = sinew_core::sys::Counting;

#[cfg(all(test, debug_assertions, feature = "count-allocations"))]
mod tests {
    use sinew_core::sys::allocations;

    #[test]
    fn a_debug_build_counts_allocations() {
        let before = allocations();
        drop(std::hint::black_box(Box::new(7)));
        assert_eq!(allocations(), before + 1);
    }
}

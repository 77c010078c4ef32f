//! Graphs on several hosts. Each host is a run of its own, here all on one machine.
//!
//! Only in a program with this feature: `cargo test --features hosts --test hosts`.

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;

#[cfg(not(feature = "hosts"))]
#[test]
fn a_program_without_zenoh_says_how_to_build_one() {
    let graph = program::ours("graphs/cell/cell.yaml").display().to_string();
    program::refused(&["check", &graph], "this program is built without hosts");
    program::refused(&["check", &graph], "--features hosts");
}

#[cfg(feature = "hosts")]
#[path = "hosts/mod.rs"]
mod hosts;

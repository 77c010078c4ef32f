//! Plays a film: it is demultiplexed, decoded in a process of its own or under another operating
//! system, and shown in step with its sound. Whatever fails, the sound goes on and the picture
//! comes back. The films are made by FFmpeg's own program. These tests do not check how long
//! anything takes.
//!
//! Only in a program with this feature: `cargo test --features media --test player`.

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;

#[cfg(not(feature = "media"))]
#[test]
fn a_program_without_ffmpeg_says_how_to_build_one() {
    let graph = program::ours("graphs/dual_os/player.yaml").display().to_string();
    program::refused(&["check", &graph], "cargo build --release --features media");
}

#[cfg(feature = "media")]
#[path = "player/mod.rs"]
mod player;

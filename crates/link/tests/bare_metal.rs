//! What keeps the crate buildable for a 32-bit target without compare-and-swap, std and heap.

#![expect(clippy::print_stdout, reason = "a proof says what it did not run")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What such a target lacks, as a source would write it.
const FORBIDDEN: [&str; 12] = [
    "AtomicU64",
    "AtomicI64",
    "AtomicPtr",
    "compare_exchange",
    "fetch_",
    ".swap(",
    "std::",
    "alloc::",
    "extern crate alloc",
    "Box<",
    "Vec<",
    "String",
];
/// Sources that are built for tests only; `lib.rs` names each behind `cfg(test)`.
const TESTS: [&str; 3] = ["tests.rs", "heap.rs", "proofs.rs"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("the sources").map(|entry| entry.expect("one").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The first line that asks for something that bare metal lacks. Items behind
/// `cfg(all(test, loom))` do not count.
fn offence(text: &str) -> Option<(usize, &'static str)> {
    let mut proof = false;
    for (i, line) in text.lines().enumerate() {
        proof |= line == "#[cfg(all(test, loom))]";
        let code = line.split("//").next().unwrap_or_default();
        if let Some(word) = FORBIDDEN.iter().find(|word| code.contains(**word) && !proof) {
            return Some((i + 1, word));
        }
        // The end of an item that is not inside another.
        proof &= line != "}" && (line.starts_with(' ') || !line.ends_with(';'));
    }
    None
}

#[test]
fn the_sources_ask_for_nothing_that_bare_metal_lacks() {
    let mut looked_at = 0;
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        if TESTS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&path).expect("UTF-8");
        if let Some((line, word)) = offence(&text) {
            panic!("{}:{line}: '{word}' does not exist on bare metal", path.display());
        }
    }
    assert!(looked_at >= 8, "the sources are not where this test looks");
}

#[test]
fn an_offence_is_found_behind_what_does_not_count() {
    let proof = "#[cfg(all(test, loom))]\nuse std::vec::Vec;\n";
    assert_eq!(offence(proof), None);
    assert_eq!(offence(&format!("{proof}x.fetch_add(1);")), Some((3, "fetch_")));
    assert_eq!(offence("// no std::sync here\nuse core::cell::Cell;\n"), None);
}

#[test]
fn the_crate_builds_for_a_core_without_compare_and_swap() {
    let target = "thumbv6m-none-eabi";
    let rustc =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let installed = rustc.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout);
        Path::new(folder.trim()).is_dir()
    });
    if !installed {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "cannot be skipped in CI: run rustup target add {target}"
        );
        println!("skipped: the target {target} is not installed");
        return;
    }
    let folder = env!("CARGO_MANIFEST_DIR");
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--target", target, "--target-dir"])
        .arg(Path::new(folder).join("../../target/bare"))
        .current_dir(folder)
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the crate does not build for {target}");
}

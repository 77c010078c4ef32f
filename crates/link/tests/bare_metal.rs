//! What keeps the crate buildable for a 32-bit target without compare-and-swap, std and heap.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What such a target lacks, as it would stand in a source.
const FORBIDDEN: [&str; 14] = [
    "AtomicU64",
    "AtomicI64",
    "AtomicUsize",
    "AtomicIsize",
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

#[test]
fn the_sources_ask_for_nothing_that_bare_metal_lacks() {
    let mut looked_at = 0;
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        if TESTS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&path).expect("UTF-8");
        // What stands behind `cfg(all(test, loom))` begins where the proofs' variant begins.
        let mut proof = false;
        for (i, line) in text.lines().enumerate() {
            proof |= line.starts_with("#[cfg(all(test, loom))]");
            let code = line.split("//").next().unwrap_or_default();
            let found = FORBIDDEN.iter().find(|word| code.contains(**word));
            assert!(
                proof || found.is_none(),
                "{}:{}: {found:?} does not exist on bare metal",
                path.display(),
                i + 1
            );
            proof &= line != "}";
        }
    }
    assert!(looked_at >= 8, "the sources are not where this test looks");
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

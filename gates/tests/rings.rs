//! The gate rings for mistakes, and does not ring without them. Counting needs an optimised build:
//! `cargo test --release -p sinew-gates --test rings`

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A mistake found in the source, and one that allocates, as patches in this repository.
const MISTAKES: [&str; 2] = ["lock_across_open", "allocation_per_message"];
/// The verbs that they slow down.
const VERBS: [&str; 2] = ["flow/open", "queue_send/64"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the house")
}

fn patch(mistake: &str) -> String {
    format!("gates/tests/mistakes/{mistake}.patch")
}

fn gate(program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
    let mut gate = Command::new(program);
    gate.args(VERBS.iter().flat_map(|verb| ["--only", verb])).args(arguments);
    gate.output().expect("the gate")
}

/// The output of a gate that ended with `status`: what it found, and what it showed.
#[track_caller]
fn ended(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (found, shown) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(status), "{found}\n{shown}");
    (found, shown)
}

#[track_caller]
fn both_ring(output: &Output) {
    let (found, _) = ended(output, 1);
    for verb in VERBS {
        assert!(found.contains(&format!("'{verb}' takes ")), "{found}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that cannot run says so")]
#[cfg_attr(debug_assertions, ignore = "counts an optimised build: cargo test --release")]
fn the_same_program_is_silent_three_times_and_with_mistakes_it_rings() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: no valgrind");
        println!("skipped: no valgrind");
        return;
    }
    let gate = |arguments: &[&str]| gate(env!("CARGO_BIN_EXE_sinew-gates"), arguments);
    let (_, shown) = ended(&gate(&["--repeats", "3"]), 0);
    assert_eq!(shown.matches(" of 3: silent\n").count(), 3, "{shown}");
    both_ring(&gate(&["--mistaken"]));
}

#[test]
#[ignore = "builds a copy of the house with the mistakes in it: six minutes on two CPUs"]
fn the_mistakes_in_the_source_ring() {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistaken");
    let files = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output();
    let files = String::from_utf8(files.expect("git").stdout).expect("names are text");
    // Files that an earlier run has built there stay.
    for file in files.split_terminator('\0') {
        let (from, to) = (root().join(file), copy.join(file));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(from, to).expect("a copy");
    }
    for mistake in MISTAKES {
        let mut apply = Command::new("git");
        apply.current_dir(&copy).args(["apply", "--unsafe-paths", "--directory"]);
        let applied = apply.arg(&copy).arg(root().join(patch(mistake))).status();
        assert!(applied.expect("git").success(), "'{mistake}' does not fit");
    }
    let target = copy.join("target");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--locked", "-p", "sinew-gates"]).current_dir(&copy);
    let built = build.env("CARGO_TARGET_DIR", &target).status();
    assert!(built.expect("cargo").success(), "the copy does not build");
    both_ring(&gate(target.join("release/sinew-gates"), &[]));
}

#[test]
fn the_mistakes_fit_the_source() {
    for mistake in MISTAKES {
        let mut apply = Command::new("git");
        apply.current_dir(root()).args(["apply", "--check", &patch(mistake)]);
        let output = apply.output().expect("git");
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "make '{mistake}' anew for what the source is now: {why}");
    }
}

#[test]
fn without_valgrind_it_says_what_to_install() {
    let mut gate = Command::new(env!("CARGO_BIN_EXE_sinew-gates"));
    let output = gate.env("PATH", env!("CARGO_TARGET_TMPDIR")).output().expect("the gate");
    let (found, _) = ended(&output, 1);
    assert!(found.contains("'valgrind' is missing: nothing can be shown"), "{found}");
    assert!(found.contains("apt-get install valgrind"), "{found}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sinew-gates")).args(arguments).output();
        ended(&output.expect("the gate"), 2).0
    };
    assert!(refused(&["--bless", " "]).contains("--bless needs a reason"));
    assert!(refused(&["--only", "nothing"]).contains("no verb begins so; there are queue_send/8"));
    assert!(refused(&["--repeats", "0"]).contains("0 is not in 1.."));
}

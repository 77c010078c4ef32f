//! Tells the program which commit it is built from: the lab's reports say so, and a history of
//! them is ordered by it. Without git, or outside its repository, the program knows none.

use std::process::Command;

/// What the program is made of.
const SOURCES: [&str; 6] = ["build.rs", "src", "crates", "kinds", "Cargo.toml", "Cargo.lock"];

fn main() {
    SOURCES.iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    let is_ours = git(&["ls-files", "build.rs"]).is_some_and(|files| !files.is_empty());
    let head = git(&["log", "-1", "--format=%H %ct"]).filter(|_| is_ours);
    let Some((commit, committed_s)) = head.as_deref().and_then(|head| head.split_once(' ')) else {
        return;
    };
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rustc-env=SINEW_COMMIT={commit}");
    println!("cargo::rustc-env=SINEW_COMMITTED_S={committed_s}");
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    if git(&[&status[..], &SOURCES[..]].concat()).is_some_and(|changes| !changes.is_empty()) {
        println!("cargo::rustc-env=SINEW_CHANGED=yes");
    }
}

/// What git answers; none if it cannot.
fn git(arguments: &[&str]) -> Option<String> {
    // It shall not touch the index of a tree in which somebody works.
    let output = Command::new("git").env("GIT_OPTIONAL_LOCKS", "0").args(arguments).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}

//! The dependencies of a crate, as `cargo tree` lists them: a person who audits the realtime part
//! must read `sinew-core`, `sinew-link` and what is allowed here, and nothing else.

use std::collections::BTreeSet;
use std::process::Command;

/// A package, and why it is allowed.
type Allowed = (&'static str, &'static str);

/// All packages of others that a crate may depend on, by name.
const CLOSURES: [(&str, &[Allowed]); 3] = [
    ("sinew-link", &[]),
    ("sinew-plan", &[("sinew-link", "what a message is, for both sides of a link")]),
    (
        "sinew-core",
        &[
            ("sinew-link", "the memory that messages pass through"),
            ("sinew-plan", "what is to run, as plain data"),
            ("zerocopy", "messages as bytes without unsafe code of ours"),
            ("rustix", "system calls as safe functions"),
            ("bitflags", "the flags of rustix"),
            ("linux-raw-sys", "the kernel's types and numbers, for rustix"),
            ("libc", "system calls that rustix does not wrap"),
            ("zerocopy-derive", "runs in the compiler only"),
            ("proc-macro2", "runs in the compiler only"),
            ("quote", "runs in the compiler only"),
            ("syn", "runs in the compiler only"),
            ("unicode-ident", "runs in the compiler only"),
        ],
    ),
];

/// Packages that must not be below a crate: the supervisor, the flow engine and their dependencies.
const FORBIDDEN: [(&str, &[&str]); 1] = [(
    "sinew-robot",
    &["sinew-runtime", "sinew-flow", "sinew-control", "tokio", "hyper", "tracing", "pprof"],
)];

/// The lab measures the product and is not part of it: only the command line may offer it.
const LAB: &str = "sinew-lab";
const OFFERS_LAB: &str = "sinew";

/// The packages in the listing except `of` itself.
fn packages<'a>(listing: &'a str, of: &str) -> BTreeSet<&'a str> {
    let names = listing.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != of).collect()
}

/// Packages in the listing that are not allowed, and allowed packages that are not in the listing.
fn beside(listing: &str, of: &str, allowed: &[Allowed]) -> Vec<String> {
    let found = packages(listing, of);
    let allowed: BTreeSet<_> = allowed.iter().map(|(name, _)| *name).collect();
    let more = found.difference(&allowed).map(|name| format!("'{of}' compiles '{name}'"));
    let less = allowed.difference(&found).map(|name| format!("'{of}' does not need '{name}'"));
    more.chain(less).collect()
}

fn forbidden(listing: &str, of: &str, names: &[&str]) -> Vec<String> {
    let found = packages(listing, of);
    let wrong = names.iter().filter(|name| found.contains(*name));
    wrong.map(|name| format!("'{of}' compiles '{name}'")).collect()
}

/// Returns one package per line. Uses only packages that are locked and fetched.
fn tree(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are text")
}

#[test]
fn below_the_core_stands_only_what_is_allowed() {
    for (of, allowed) in CLOSURES {
        let wrong = beside(&tree(&["-p", of, "-e", "normal,build"]), of, allowed);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn realtime_kinds_compile_neither_supervisor_nor_flow_engine() {
    for (of, names) in FORBIDDEN {
        let wrong = forbidden(&tree(&["-p", of, "-e", "normal,build"]), of, names);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn only_the_command_line_depends_on_the_lab() {
    let listing = tree(&["--workspace", "--invert", LAB, "--depth", "1"]);
    assert_eq!(packages(&listing, LAB), BTreeSet::from([OFFERS_LAB]));
}

#[test]
fn a_forbidden_package_is_found() {
    let listing = "sinew-core v0.1.0 (/sinew/crates/core)\n\
                   sinew-link v0.1.0 (/sinew/crates/link)\n\
                   tokio v1.54.0\n\
                   sinew-link v0.1.0 (/sinew/crates/link) (*)\n";
    let allowed = [("sinew-link", "links")];
    assert_eq!(beside(listing, "sinew-core", &allowed), ["'sinew-core' compiles 'tokio'"]);
    assert_eq!(forbidden(listing, "sinew-core", &["hyper", "tokio"]).len(), 1);
    let without = listing.replace("tokio v1.54.0\n", "");
    assert!(beside(&without, "sinew-core", &allowed).is_empty());
    assert!(forbidden(&without, "sinew-core", &["hyper", "tokio"]).is_empty());
    let unneeded = [("libc", "system calls"), ("sinew-link", "links")];
    assert_eq!(beside(&without, "sinew-core", &unneeded), ["'sinew-core' does not need 'libc'"]);
}

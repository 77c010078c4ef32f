//! A user's own crate: `sinew new` makes it, and it is built, tested, run and drilled as its user
//! would do. It is made from `examples/my_machine`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A new folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("what is left of a test before");
    }
    fs::create_dir_all(&folder).expect("a place for it");
    folder
}

/// `sinew new` in a folder.
fn new(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinew"));
    command.arg("new").args(arguments).current_dir(folder).output().expect("sinew runs")
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}

/// Runs Cargo in the new crate. Its settings name our target folder, so what was built for these
/// tests is not built again. No network is used.
fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(folder);
    command.env("CARGO_NET_OFFLINE", "true").env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.output().expect("cargo runs")
}

#[test]
fn a_new_crate_builds_passes_its_tests_and_is_drilled() {
    let place = folder("new_crate");
    let made = new(&place, &["line-4", "--json"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let answer: Value = serde_json::from_slice(&made.stdout).expect("one JSON object");
    let crate_folder = place.join(answer["folder"].as_str().expect("a folder"));
    let files = answer["files"].as_array().expect("a list");
    assert!(files.contains(&".cargo/config.toml".into()), "{files:?}");
    for file in files {
        let file = crate_folder.join(file.as_str().expect("a name"));
        let text = fs::read_to_string(&file).expect("a file");
        assert!(!text.contains("my_machine"), "{}", file.display());
    }

    // The crate's own tests: the nodes, the graph, a run of a second.
    let tested = cargo(&crate_folder, &["test", "--quiet"]);
    assert!(tested.status.success(), "{}", text(&tested));
    assert!(!text(&tested).contains("warning: unused"), "{}", text(&tested));
    let only = ["--only", "node=pid,node=wanted,fault=panic", "--set", "listener.port=0"];
    let drill = [&["run", "--quiet", "--", "drill", "graph.yaml", "--json"], &only[..]].concat();
    let drilled = cargo(&crate_folder, &drill);
    let report: Value = serde_json::from_slice(&drilled.stdout).expect("one JSON object");
    // Whether the limit is kept depends on how busy the machine is, so it is not checked here.
    assert!(report["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{report}");
    one_mistake_is_one_error(&crate_folder);
}

/// Mistakes of a beginner: a file, a piece of it, its replacement, and the error.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    (
        "oven",
        "OVEN.input(\"power\")",
        "OVEN.input(\"pover\")",
        "has no input 'pover'; it has 'power'",
    ),
    ("oven", "OVEN.output(\"state\")", "OVEN.output(\"power\")", "has no output 'power'; it has"),
    (
        "oven",
        "OVEN.parameter(\"limit_deg_c\")",
        "OVEN.parameter(\"limit\")",
        "no parameter 'limit'",
    ),
    ("verdict", "VERDICT.output(\"out\")", "VERDICT.signal(\"out\")", "has no signal 'out'"),
    ("oven", "pub power_w: f64", "pub power_w: String", "cannot be 'String'; it is f64"),
    ("oven", "Heat = 1", "Heat", "each value of enum 'Mode' needs its number"),
    ("oven", "enum Mode: u8", "enum Mode: f64", "an enum in a message is a byte"),
    ("oven", "mode: Label<Mode>", "mode: Mode", "cannot be 'Mode'; it is f64"),
];

fn one_mistake_is_one_error(crate_folder: &Path) {
    for (file, good, wrong, expected) in MISTAKES {
        let path = crate_folder.join(format!("src/{file}.rs"));
        let before = fs::read_to_string(&path).expect("a file of the template");
        assert!(before.contains(good), "{file} no longer says '{good}'");
        fs::write(&path, before.replace(good, wrong)).expect("a place for it");
        let said = text(&cargo(crate_folder, &["check", "--message-format", "short"]));
        fs::write(&path, before).expect("a place for it");
        // Errors about uses of a missing type follow from the first error.
        let errors = said.lines().filter(|line| line.contains(": error"));
        let errors: Vec<_> = errors.filter(|line| !line.contains("E0432")).collect();
        assert!(errors.iter().any(|line| line.contains(expected)), "'{expected}' not in: {said}");
        if expected.starts_with("has no") {
            assert_eq!(errors.len(), 1, "{said}");
        }
    }
}

#[test]
fn what_is_there_is_not_overwritten() {
    let place = folder("new_over");
    fs::create_dir(place.join("full")).expect("a folder");
    fs::write(place.join("full/Cargo.toml"), "mine").expect("a file");
    fs::create_dir(place.join("empty")).expect("a folder");
    fs::write(place.join("file"), "mine").expect("a file");
    std::os::unix::fs::symlink("nowhere", place.join("link")).expect("a link");
    for name in ["full", "empty", "file", "link"] {
        let said = new(&place, &[name]);
        assert_eq!(said.status.code(), Some(2), "{}", text(&said));
        assert!(text(&said).contains("exists already and is not changed"), "{}", text(&said));
    }
    assert_eq!(fs::read_to_string(place.join("full/Cargo.toml")).expect("a file"), "mine");
    assert_eq!(fs::read_to_string(place.join("file")).expect("a file"), "mine");
    assert_eq!(fs::read_dir(place.join("empty")).expect("a folder").count(), 0);
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let place = folder("new_refused");
    let rows: &[(&[&str], &str)] = &[
        (&["a/b"], "without a path"),
        (&["fn"], "not a word of Rust"),
        (&["ok", "--path", "/nowhere"], "'/nowhere' is not a checkout of Sinew"),
        (&["ok", "--path", ".", "--git", "u"], "cannot be used with"),
    ];
    for (arguments, expected) in rows {
        let said = new(&place, arguments);
        assert_eq!(said.status.code(), Some(2), "{}", text(&said));
        assert!(text(&said).contains(expected), "{}", text(&said));
    }
    // No file may be longer than a block. The lock file is longer, and the files made before it are
    // removed.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" new half"]);
    let said = limited.arg(env!("CARGO_BIN_EXE_sinew")).current_dir(&place).output().expect("sh");
    assert_eq!(said.status.code(), Some(2), "{}", text(&said));
    let expected = "cannot write 'half/Cargo.lock'";
    assert!(text(&said).contains(expected), "{}", text(&said));
    assert!(text(&said).contains("the folder 'half' was removed again"), "{}", text(&said));
    assert_eq!(fs::read_dir(&place).expect("a folder").count(), 0);

    fs::set_permissions(&place, fs::Permissions::from_mode(0o500)).expect("it is ours");
    // Root may write everywhere.
    if fs::write(place.join("probe"), "").is_err() {
        let said = new(&place, &["ok"]);
        assert!(text(&said).contains("cannot make the folder 'ok'"), "{}", text(&said));
    }
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn the_guide_shows_the_code_that_is_built() {
    let read = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(path).expect("a file of ours")
    };
    let (guide, built) = (read("docs/node.md"), read("examples/my_machine/src/oven.rs"));
    let shown = guide.split_once("    /// Every cycle.").expect("an update").1;
    let shown = shown.split_once("        Ok(())\n    }\n").expect("its end").0;
    assert!(built.contains(shown), "docs/node.md shows other code than examples/my_machine holds");
}

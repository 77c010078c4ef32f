//! The Debian package: made from this build, unpacked by dpkg into an empty root, tried, and
//! purged. Also the same on a machine of its own, with systemd; and the static program in a root
//! without any library.
//!
//! Needs dpkg, gzip and root; without them it says so.

mod machine;
#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;
mod systemd;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use program::{SINEW, folder, ours, skip};

fn said(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// The package, or what is missing to make it.
static PACKAGE: LazyLock<Result<PathBuf, &str>> = LazyLock::new(|| {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("dpkg-deb") || !has("gzip") || !rustix::process::geteuid().is_root() {
        return Err("a package needs dpkg, gzip and root");
    }
    let made = Command::new(ours("packages/deb")).arg(SINEW).arg(folder("package")).output();
    let made = made.expect("sh is there");
    assert!(made.status.success(), "{}", said(&made));
    Ok(PathBuf::from(String::from_utf8_lossy(&made.stdout).trim()))
});

/// Runs dpkg on a root of its own. The package's scripts run here and are told which root it is.
fn dpkg(root: &Path, arguments: &[&str]) -> Output {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()));
    dpkg.args(["--force-script-chrootless", "--force-depends"]).args(arguments);
    dpkg.output().expect("dpkg is there")
}

/// The files under a root, except those that dpkg itself and the table of users make.
fn files(root: &Path) -> BTreeSet<String> {
    let find = Command::new("find").arg(root).args(["!", "-type", "d", "-printf", "%P\n"]).output();
    let all = said(&find.expect("find is there"));
    let of_others = |file: &&str| file.starts_with("var/") || is_of_users(file);
    all.lines().filter(|file| !of_others(file)).map(str::to_owned).collect()
}

/// Files that systemd-sysusers and userdel write.
fn is_of_users(file: &str) -> bool {
    const NAMES: [&str; 7] =
        ["passwd", "group", "shadow", "gshadow", "subuid", "subgid", ".pwd.lock"];
    let name = file.strip_prefix("etc/").map(|name| name.trim_end_matches('-'));
    name.is_some_and(|name| NAMES.contains(&name))
}

#[test]
fn a_debian_package_is_installed_runs_a_graph_and_leaves_nothing() {
    let package = match &*PACKAGE {
        Ok(package) => package.display().to_string(),
        Err(lack) => return skip(lack),
    };
    let place = folder("debian");
    let root = place.join("root");
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).expect("a folder");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).expect("a folder");
    fs::write(root.join("var/lib/dpkg/status"), "").expect("an empty table");
    let installed = dpkg(&root, &["--install", &package]);
    assert!(installed.status.success(), "{}", said(&installed));

    let there = files(&root);
    for file in [
        "usr/bin/sinew",
        "usr/share/man/man1/sinew-run.1.gz",
        "usr/share/bash-completion/completions/sinew",
        "usr/lib/systemd/system/sinew@.service",
        "etc/security/limits.d/sinew.conf",
        "usr/share/doc/sinew/copyright",
    ] {
        assert!(there.contains(file), "{file} is not among {there:#?}");
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/sinew@.service"));
    let unit = unit.expect("it is there");
    assert!(unit.contains("ExecStart=/usr/bin/sinew run --json /etc/sinew/%i/%i.yaml"), "{unit}");

    let graph = root.join("etc/sinew/axis/axis.yaml");
    let mut run = Command::new(root.join("usr/bin/sinew"));
    run.args(["run", "--json", "--duration", "500ms"]).arg(&graph);
    let run = run.env("XDG_RUNTIME_DIR", &place).output().expect("the packaged program");
    assert!(run.status.success(), "{}", said(&run));

    let purged = dpkg(&root, &["--purge", "sinew"]);
    assert!(purged.status.success(), "{}", said(&purged));
    assert_eq!(files(&root), BTreeSet::new());
    assert!(!root.join("etc/sinew").exists(), "a folder is left");
}

#[test]
fn a_static_program_runs_in_a_root_without_any_library() {
    if !rustix::process::geteuid().is_root() {
        return skip("chroot needs root");
    }
    let root = folder("static");
    let build = Path::new(SINEW).parent().expect("it lies in a folder");
    let linked = Command::new(ours("packages/static")).arg(build).arg(&root).output();
    let linked = linked.expect("sh is there");
    assert!(linked.status.success(), "{}", said(&linked));
    // Other tests run at the same time, so a cycle may be late here.
    let graph = fs::read_to_string(ours("graphs/axis/axis.yaml")).expect("the graph");
    let graph = graph.replace("policy: stop, consecutive_max: 50", "policy: count");
    fs::write(root.join("axis.yaml"), graph).expect("our folder");
    for folder in ["proc", "dev", "tmp"] {
        fs::create_dir(root.join(folder)).expect("a folder");
    }
    // The mounts are in a separate namespace, so they end with the shell.
    let run = r#"mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" &&
        exec chroot "$0" /sinew-static run --json --duration 500ms /axis.yaml"#;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", run]).arg(&root);
    let ran = unshare.output().expect("unshare is there");
    assert!(ran.status.success(), "{}", said(&ran));
    // A program that needs the C library of this machine cannot run there.
    fs::copy(SINEW, root.join("sinew-static")).expect("a copy");
    assert!(!unshare.output().expect("unshare is there").status.success());
}

#[test]
fn every_command_has_a_man_page_and_completions() {
    let place = folder("man");
    let made = Command::new(SINEW).arg("man").arg(&place).output().expect("sinew");
    assert!(made.status.success(), "{}", said(&made));
    let help = Command::new(SINEW).arg("--help").output().expect("sinew");
    let help = String::from_utf8(help.stdout).expect("text");
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> = rows.map_while(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let made = Command::new(SINEW).args(["completions", shell]).output().expect("sinew");
        let text = String::from_utf8(made.stdout).expect("text");
        for command in &commands {
            assert!(text.contains(command), "{shell} does not complete '{command}'");
        }
    }
    for command in commands.iter().filter(|command| **command != "help") {
        let page = fs::read_to_string(place.join(format!("sinew-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("sinew-{command}.1: {error}"));
        assert!(page.contains(".SH NAME"), "{page}");
    }
    let bad = Command::new(SINEW).args(["man", "/proc/nowhere"]).output().expect("sinew");
    assert_eq!(bad.status.code(), Some(2));
    assert!(said(&bad).contains("cannot write /proc/nowhere"), "{}", said(&bad));
}

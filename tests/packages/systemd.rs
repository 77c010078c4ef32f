//! The package on a machine with systemd: a packaged graph runs as a service, and a purge leaves
//! nothing, even while it runs.

use std::process::Command;

use serde_json::Value;

use super::machine::Machine;
use super::{PACKAGE, is_of_users};
use crate::program::{folder, skip};

const SERVICE: &str = "sinew@axis.service";
/// In tenths. The range that systemd-analyze calls OK ends at 5.
const EXPOSURE_MAX: &str = "--threshold=35";

/// A machine with the package on it, or what is missing.
fn machine(name: &str) -> Result<Machine, String> {
    let package = PACKAGE.as_ref().map_err(|lack| (*lack).to_string())?;
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("systemd-nspawn") || !has("nsenter") {
        return Err(
            "a machine of its own needs systemd-nspawn (package 'systemd-container')".into()
        );
    }
    let is_there = Command::new("dpkg").args(["--status", "sinew"]).output();
    if is_there.is_ok_and(|there| there.status.success()) {
        return Err("the package is installed on this machine; remove it".into());
    }
    Machine::boot(&folder(name), package)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn under_systemd_a_packaged_graph_runs_as_a_service_and_a_purge_leaves_nothing() {
    let machine = match machine("systemd") {
        Ok(machine) => machine,
        Err(lack) => return skip(&lack),
    };
    let before = machine.changed();
    machine.does(&["dpkg", "--install", "/sinew.deb"]);
    // Other tests run at the same time, so a cycle may be late here.
    let graph = "/etc/sinew/axis/axis.yaml";
    machine.does(&["sed", "-i", "s/policy: stop, consecutive_max: 50/policy: count/", graph]);
    assert_eq!(machine.does(&["systemd-analyze", "verify", SERVICE]), "");

    machine.does(&["systemctl", "enable", "--now", SERVICE]);
    let status = machine.does(&["systemctl", "status", "--no-pager", SERVICE]);
    for part in ["Active: active (running)", "axis: running, 3 of 3 domains run, 0 restarts"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    machine.does(&["systemd-analyze", "security", "--no-pager", EXPOSURE_MAX, SERVICE]);
    let as_sinew = |arguments: &[&str]| {
        json(&machine.does(&[&["runuser", "-u", "sinew", "--", "sinew"], arguments].concat()))
    };
    let list = as_sinew(&["list", "--json"]);
    assert_eq!(list["runs"][0]["file"], graph, "{list}");
    let of_root = machine.does(&["sinew", "list"]);
    assert!(of_root.contains("/run/sinew/axis belongs to user "), "{of_root}");
    let top = as_sinew(&["top", "--once", "--json"]);
    let domains = top["domains"].as_array().expect("domains");
    assert!(domains.iter().all(|domain| domain["state"] == "running"), "{top}");

    machine.does(&["systemctl", "stop", SERVICE]);
    let ended =
        machine.does(&["systemctl", "show", "-P", "Result", "-P", "ExecMainStatus", SERVICE]);
    assert_eq!(ended, "success\n0");
    let journal = machine.does(&["journalctl", "--no-pager", "-o", "cat", "-u", SERVICE]);
    let report = json(journal.lines().find(|line| line.starts_with('{')).expect("a report"));
    assert_eq!((&report["outcome"], &report["exit_status"]), (&"stopped".into(), &0.into()));
    assert!(report["stop"]["safe_output_us"].is_number(), "{}", report["stop"]);

    machine.does(&["systemctl", "start", SERVICE]);
    machine.does(&["dpkg", "--purge", "sinew"]);
    assert_eq!(machine.says(&["systemctl", "is-active", SERVICE]), "inactive");
    let of_others = |file: &&String| file.starts_with("var/") || is_of_users(file);
    let left: Vec<_> =
        machine.changed().difference(&before).filter(|f| !of_others(f)).cloned().collect();
    assert_eq!(left, Vec::<String>::new());
    for gone in ["/etc/sinew", "/run/sinew", "/usr/share/doc/sinew"] {
        assert!(!machine.run(&["test", "-e", gone]).status.success(), "{gone} is left");
    }
    assert_eq!(machine.says(&["getent", "passwd", "sinew"]), "");
    assert_eq!(machine.says(&["getent", "group", "sinew"]), "");
}

//! What is allowed to a user: the files about limits, user namespaces, cgroups, filters.

use super::{Fake, Finding, Grade, aim, commands, machines};

const NOTHING: &str = "Uid:\t1000\nCapEff:\t0000000000000000\nSeccomp:\t0\n";

/// Marta, who has no right yet.
fn marta(name: &str) -> Fake {
    let fake = machines::robot(name);
    fake.put("/proc/self/status", NOTHING);
    fake.put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nmarta:x:1000:1000::/home/marta:/bin/sh\n");
    fake.put(
        "/etc/group",
        "root:x:0:\nsinew:x:990:\naudio:x:29:pulse,marta\nbroken\nmarta:x:1000:\n",
    );
    fake
}

fn row(fake: &Fake, name: &str) -> Finding {
    fake.row(name, &aim(&[1]))
}

#[test]
fn a_user_joins_the_group_of_the_package_and_then_logs_in_again() {
    let fake = marta("package");
    let file = "/etc/security/limits.d/sinew.conf";
    fake.put(
        file,
        "# of the package\n@sinew - rtprio 95\n@sinew - memlock unlimited\n@gone - rtprio 99\n",
    );
    let before = row(&fake, "rtprio");
    assert_eq!(commands(&before), ("adduser marta sinew", "deluser marta sinew"));
    fake.put("/etc/group", "sinew:x:990:anna,marta\n");
    for name in ["rtprio", "memlock"] {
        let after = row(&fake, name);
        assert!(after.remedy.is_none(), "{after:?}");
        let note = after.note.expect("what is left to do");
        assert!(note.contains(file) && note.contains("log in again"), "{note}");
    }
}

#[test]
fn a_limit_that_is_too_low_of_others_or_hard_only_gives_nothing() {
    let fake = marta("others");
    for line in [
        "@audio - rtprio 70",
        "anna - rtprio 95",
        "@audio hard rtprio 95",
        "@audio - memlock unlimited",
        "#@audio - rtprio 95",
        "@audio - rtprio",
        "@audio - rtprio 95 95",
    ] {
        fake.put("/etc/security/limits.conf", line);
        assert!(commands(&row(&fake, "rtprio")).0.contains("groupadd"), "{line}");
    }
    for line in
        ["@audio - rtprio 95", "@marta soft rtprio 80", "marta - rtprio 80", "* - rtprio 99"]
    {
        fake.put("/etc/security/limits.conf", line);
        assert!(row(&fake, "rtprio").remedy.is_none(), "{line}");
    }
}

#[test]
fn a_user_whom_only_a_server_knows_is_named_by_number() {
    let fake = marta("server");
    fake.put("/etc/passwd", "");
    assert!(commands(&row(&fake, "rtprio")).0.ends_with("adduser $(id -nu 1000) sinew"));
}

#[test]
fn a_capability_of_a_user_namespace_is_none() {
    let fake = machines::robot("namespace");
    assert_eq!(row(&fake, "rtprio").grade, Grade::Good);
    fake.put("/proc/self/uid_map", "         0          0 4294967295\n");
    assert_eq!(row(&fake, "rtprio").grade, Grade::Good);
    fake.put(
        "/proc/self/uid_map",
        "         0       1000          1\n         1     100000      65536\n",
    );
    fake.put("/run/.containerenv", "");
    std::fs::remove_file(fake.0.join("proc/2/comm")).expect("a file of ours");
    for name in ["rtprio", "memlock"] {
        let found = row(&fake, name);
        assert_ne!(found.grade, Grade::Good, "{found:?}");
        assert!(!commands(&found).0.contains("cap-add"), "{found:?}");
        assert!(found.note.as_ref().is_some_and(|note| note.contains("rootless")), "{found:?}");
    }
}

#[test]
fn a_cgroup_that_cannot_be_divided_says_what_each_place_can_do() {
    let fake = machines::robot("delegation");
    let is = |grade: Grade, read: &str, note: &str| {
        let found = row(&fake, "cgroup delegation");
        assert_eq!((found.grade, found.read.as_str()), (grade, read), "{found:?}");
        assert!(found.note.clone().unwrap_or_default().contains(note), "{found:?}");
    };
    is(Grade::Good, "it may be divided, with memory, cpu, pids", "");
    let file = "/sys/fs/cgroup/robot.slice/arm.service/cgroup.controllers";
    fake.put(file, "hugetlb cpu\n");
    is(Grade::Better, "it may be divided, but is not given memory, pids", "Delegate=yes");
    fake.put("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 ro,nosuid 0 0\n");
    is(Grade::Better, "mounted read-only", "systemd-run --user --scope -p Delegate=yes");
    std::fs::remove_file(fake.0.join("proc/2/comm")).expect("a file of ours");
    for (path, note) in [
        ("/.dockerenv", "docker run --privileged --cgroupns=private"),
        ("/run/.containerenv", "podman run --security-opt unmask=/sys/fs/cgroup"),
        ("/run/secrets/kubernetes.io", "resources.limits"),
    ] {
        fake.put(path, "");
        is(Grade::Better, "mounted read-only", note);
    }
    fake.put("/proc/self/mounts", "proc /proc proc rw 0 0\n");
    is(Grade::Better, "cgroup version 2 is not mounted", "cgroup_no_v1=all");
}

#[test]
fn a_filter_of_system_calls_is_seen_but_not_what_it_refuses() {
    let fake = machines::robot("filter");
    let with = |mode: &str| {
        fake.put("/proc/self/status", NOTHING.replace("Seccomp:\t0", mode));
        row(&fake, "seccomp")
    };
    let filtered = with("Seccomp:\t2");
    assert_eq!(filtered.grade, Grade::Unknown);
    assert!(filtered.note.is_some_and(|note| note.contains("sched_setscheduler")));
    assert_eq!(with("Seccomp:\t0").read, "no filter");
    for odd in ["Seccomp:\tx", "Secc"] {
        assert!(with(odd).read.contains("expected Seccomp: and 0 or 2"), "{odd}");
    }
}

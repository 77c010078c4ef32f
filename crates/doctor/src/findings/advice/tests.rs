//! Each place, each right: the commands are those of the place, and only those.

use super::*;

fn marta() -> Asker {
    Asker { user: "marta".into(), granted: None, group: None, is_rootless: false }
}

fn on(system: System) -> Place {
    Place { system, inside: Inside::Machine }
}

fn within(maker: Maker) -> Place {
    Place { system: System::Debian, inside: Inside::Container(maker) }
}

/// Mend, undo and note.
fn said(right: Right, place: Place, asker: &Asker) -> (String, String, String) {
    let Steps { remedy, note } = steps(right, place, asker);
    let Remedy { mend, undo } = remedy.unwrap_or(Remedy { mend: "".into(), undo: "".into() });
    (mend, undo, note)
}

#[test]
fn each_system_has_its_own_commands_for_a_login() {
    let file = "/etc/security/limits.d/sinew-rtprio.conf";
    for (system, join, leave) in [
        (System::Debian, "adduser marta sinew", "deluser marta sinew"),
        (System::Fedora, "usermod -aG sinew marta", "gpasswd -d marta sinew"),
        (System::Other, "usermod -aG sinew marta", "gpasswd -d marta sinew"),
    ] {
        let (mend, undo, note) = said(Right::Priority, on(system), &marta());
        let line = "echo '@sinew - rtprio 95'";
        assert_eq!(mend, format!("{line} > {file} && groupadd -rf sinew && {join}"));
        assert_eq!(undo, format!("rm {file}; {leave}"));
        assert!(note.contains("log out of every session"), "{note}");
        let (mend, ..) = said(Right::Memory, on(system), &marta());
        let line = "echo '@sinew - memlock unlimited' > /etc/security/limits.d/sinew-memlock.conf";
        assert!(mend.starts_with(line), "{mend}");
    }
}

#[test]
fn who_may_join_a_group_that_has_the_right_only_joins() {
    let asker = Asker { group: Some("realtime".into()), ..marta() };
    let (mend, undo, _) = said(Right::Priority, on(System::Fedora), &asker);
    assert_eq!((&*mend, &*undo), ("usermod -aG realtime marta", "gpasswd -d marta realtime"));
}

#[test]
fn who_has_the_right_in_a_file_must_log_in_again_or_belongs_to_systemd() {
    let file = "/etc/security/limits.d/sinew.conf";
    let asker = Asker { granted: Some(file.into()), ..marta() };
    for (right, limit) in
        [(Right::Priority, "LimitRTPRIO=95"), (Right::Memory, "LimitMEMLOCK=infinity")]
    {
        let (mend, _, note) = said(right, on(System::Fedora), &asker);
        assert_eq!(mend, "", "no command of root is left to be given");
        for part in [file, "log in again", limit, "user@.service.d"] {
            assert!(note.contains(part), "{part}: {note}");
        }
    }
}

#[test]
fn a_container_gets_its_rights_where_it_is_started_and_never_from_a_login() {
    for (maker, priority, memory) in [
        (
            Maker::Docker,
            "docker run --cap-add=SYS_NICE --ulimit rtprio=95 ...",
            "docker run --cap-add=IPC_LOCK --ulimit memlock=-1 ...",
        ),
        (
            Maker::Podman,
            "podman run --cap-add=SYS_NICE --ulimit rtprio=95 ...",
            "podman run --cap-add=IPC_LOCK --ulimit memlock=-1 ...",
        ),
        (
            Maker::Kubernetes,
            "securityContext: {runAsUser: 0, capabilities: {add: [SYS_NICE]}}",
            "securityContext: {runAsUser: 0, capabilities: {add: [IPC_LOCK]}}",
        ),
        (
            Maker::Nspawn,
            "systemd-nspawn --rlimit=RTPRIO=95 ...",
            "systemd-nspawn --capability=CAP_IPC_LOCK --rlimit=MEMLOCK=infinity ...",
        ),
        (Maker::Lxc, "lxc.prlimit.rtprio = 95", "lxc.prlimit.memlock = unlimited"),
        (Maker::Other, "", ""),
    ] {
        // The files of the container's image change nothing.
        let asker = Asker { granted: Some("/etc/security/limits.conf".into()), ..marta() };
        for (right, expected) in [(Right::Priority, priority), (Right::Memory, memory)] {
            let (mend, undo, note) = said(right, within(maker), &asker);
            assert!(mend.starts_with(expected), "{maker:?}: {mend}");
            assert_eq!(mend.is_empty(), undo.is_empty(), "{maker:?}");
            assert!(!mend.contains("limits.d") && !mend.contains("adduser"), "{mend}");
            assert!(note.contains("/etc/security/limits.d does nothing in here"), "{note}");
        }
    }
    let (.., note) = said(Right::Memory, within(Maker::Other), &marta());
    assert!(note.contains("the capability IPC_LOCK or a limit of memlock"), "{note}");
}

#[test]
fn a_rootless_container_is_not_told_to_take_a_capability() {
    let asker = Asker { is_rootless: true, ..marta() };
    for maker in [Maker::Docker, Maker::Podman] {
        let (mend, _, note) = said(Right::Priority, within(maker), &asker);
        assert!(mend.contains("run --ulimit rtprio=95 ..."), "{mend}");
        assert!(note.contains("that of the user outside"), "{note}");
    }
}

#[test]
fn where_it_cannot_be_told_both_are_said() {
    let place = Place { system: System::Debian, inside: Inside::Unsure };
    let (mend, _, note) = said(Right::Priority, place, &marta());
    assert!(mend.contains("adduser marta sinew"), "{mend}");
    assert!(note.contains("if this is a container, that does nothing"), "{note}");
    assert!(note.contains("the capability SYS_NICE or a limit of rtprio"), "{note}");
}

#[test]
fn a_limit_that_is_too_low_is_none() {
    let met = |right: Right| {
        ["79", "80", "unlimited", "-1", "infinity", "64", "x", ""]
            .map(|value| right.is_met_by(value))
    };
    assert_eq!(met(Right::Priority), [false, true, true, true, true, false, false, false]);
    assert_eq!(met(Right::Memory), [false, false, true, true, true, false, false, false]);
}

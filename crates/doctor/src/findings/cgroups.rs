//! Our cgroup: what it takes from us, and whether the supervisor may divide it.

use super::{Aim, Finding, Grade};
use crate::place::{Inside, Maker, Place};
use crate::root::{Root, Unread};

/// What to do if the kernel has the controllers in version 1, or if the cgroups above keep them.
const VERSION_2: &str = "boot with 'cgroup_no_v1=all' (with systemd: \
                         'systemd.unified_cgroup_hierarchy=1'), and have the cgroups above hand \
                         the controllers down ('Delegate=yes')";

/// The folders of our own cgroup and of those above it that may limit CPU time, ours first, and
/// whether they are of version 2.
fn cgroups(root: &Root) -> Result<(bool, Vec<String>), Unread> {
    const OWN: &str = "/proc/self/cgroup";
    const MOUNTS: &str = "/proc/self/mounts";
    let (own, mounts) = (root.text(OWN)?, root.text(MOUNTS)?);
    let mounted = |kind: &str, option: &str| {
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let fits = |fields: &Vec<&str>| {
            let has_option = || fields[3].split(',').any(|field| field == option);
            fields.len() > 3 && fields[2] == kind && (option.is_empty() || has_option())
        };
        mounts.find(fits).map(|fields| fields[1].to_string())
    };
    let ours = |controller: &str| {
        let fields = own.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
        let mut ours = fields.filter(|fields| fields.len() == 3);
        let named = |fields: &Vec<&str>| fields[1].split(',').any(|name| name == controller);
        ours.find(named).map(|fields| fields[2].to_string())
    };
    let found = match (mounted("cgroup", "cpu").zip(ours("cpu")), mounted("cgroup2", "")) {
        (Some((mount, path)), _) => Some((false, mount, path)),
        (None, Some(mount)) => ours("").map(|path| (true, mount, path)),
        (None, None) => None,
    };
    let Some((second, mount, path)) = found else {
        return Err(Unread::odd(OWN, &own, "a cgroup that is mounted"));
    };
    let folder = format!("{mount}{}", path.trim_end_matches('/'));
    let above =
        folder[mount.len()..].rmatch_indices('/').map(|(at, _)| &folder[..mount.len() + at]);
    let folders = std::iter::once(folder.as_str()).chain(above).map(String::from).collect();
    Ok((second, folders))
}

pub(crate) fn cpu_limit(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let (second, folders) = cgroups(root)?;
    let file = if second { "cpu.max" } else { "cpu.cfs_quota_us" };
    let mut found = vec![];
    for path in folders.iter().map(|folder| format!("{folder}/{file}")) {
        match root.text(&path) {
            Ok(text) if text == "-1" || text.starts_with("max") => {}
            Ok(text) => found.push((path, text)),
            // The root cgroup has no such file, and neither has a cgroup without the controller.
            Err(Unread::Missing(_)) => {}
            Err(why) => return Err(why),
        }
    }
    let own = folders.first().map_or("", String::as_str);
    let Some((path, text)) = found.first() else {
        return Ok(Finding::new(Grade::Good, "no limit", &[&format!("{own}/{file}")]));
    };
    let Some(quota) = text.split(' ').next().and_then(|word| word.parse::<u64>().ok()) else {
        return Err(Unread::odd(path, text, "a number of microseconds, or max"));
    };
    let read = format!("{quota} us in each of its periods ({text})");
    let none = if second { "max" } else { "-1" };
    let finding = Finding::new(Grade::Better, read, &[path]);
    if Place::read(root).is_container() {
        let note = "the limit was given where the container was started: --cpus (Docker, Podman), \
                    resources.limits.cpu (Kubernetes); start it anew without";
        return Ok(finding.noted(note));
    }
    Ok(finding.mended(format!("echo {none} > {path}"), format!("echo '{text}' > {path}")))
}

pub(crate) fn rt_share(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let (_, folders) = cgroups(root)?;
    let own = folders.first().map_or("", String::as_str);
    let path = format!("{own}/cpu.rt_runtime_us");
    let us: i64 = match root.number(&path) {
        Err(Unread::Missing(_)) => {
            return Ok(Finding::new(Grade::Good, "not shared among cgroups here", &[&path]));
        }
        share => share?,
    };
    if us != 0 {
        return Ok(Finding::new(Grade::Good, format!("{us} us of each period"), &[&path]));
    }
    let set = |to| format!("echo {to} > {path}");
    Ok(Finding::new(Grade::Bad, "none", &[&path]).mended(set(400_000), set(0)))
}

/// Whether the supervisor may divide its cgroup. It limits services by doing so.
pub(crate) fn delegation(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const NEEDED: [&str; 3] = ["memory", "cpu", "pids"];
    const MOUNTS: &str = "/proc/self/mounts";
    let (mounts, own) = (root.text(MOUNTS)?, root.text("/proc/self/cgroup")?);
    let better = |read: &str, path: &str| Finding::new(Grade::Better, read, &[path]);
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut second = fields.filter(|fields| fields.len() > 3 && fields[2] == "cgroup2");
    let Some(mount) = second.next() else {
        let none = better("cgroup version 2 is not mounted", MOUNTS);
        return Ok(none.noted(VERSION_2));
    };
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return Err(Unread::odd("/proc/self/cgroup", &own, "a line 0::/..."));
    };
    let folder = format!("{}/{path}", mount[1]).trim_end_matches('/').to_string();
    let file = format!("{folder}/cgroup.controllers");
    if mount[3].split(',').any(|option| option == "ro") {
        return Ok(with_delegation(root, better("mounted read-only", MOUNTS)));
    }
    let there = root.text(&file)?;
    if !root.may_write(&folder) {
        let read = "this user may not divide it: it is not delegated";
        return Ok(with_delegation(root, better(read, &folder)));
    }
    let has = |name: &&str| there.split_whitespace().any(|word| word == *name);
    let (has, lacks): (Vec<&str>, Vec<&str>) = NEEDED.into_iter().partition(has);
    if lacks.is_empty() {
        let read = format!("it may be divided, with {}", has.join(", "));
        return Ok(Finding::new(Grade::Good, read, &[&file]));
    }
    let read = format!("it may be divided, but is not given {}", lacks.join(", "));
    Ok(better(&read, &file).noted(VERSION_2))
}

fn with_delegation(root: &Root, finding: Finding) -> Finding {
    let note = match Place::read(root).inside {
        Inside::Container(Maker::Podman) => {
            "start the container as 'podman run --security-opt unmask=/sys/fs/cgroup ...'; or \
             limit it as a whole: --memory, --cpus, --pids-limit"
        }
        Inside::Container(Maker::Docker) => {
            "only 'docker run --privileged --cgroupns=private ...' lets a container divide it; or \
             limit it as a whole: --memory, --cpus, --pids-limit"
        }
        Inside::Container(Maker::Kubernetes) => {
            "limit the pod as a whole: resources.limits; Kubernetes lets no container divide its \
             cgroup unless it is privileged"
        }
        Inside::Container(_) => {
            "limit the container as a whole, or have it started with a cgroup that it may write to"
        }
        Inside::Machine | Inside::Unsure => {
            "start the graph as 'systemd-run --user --scope -p Delegate=yes sinew run ...' (as \
             root without --user), or as the service sinew@.service"
        }
    };
    finding.noted(note)
}

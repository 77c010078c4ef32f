//! What is allowed to us: realtime priority, locked memory, CPU time.

use super::{Aim, Finding, Grade, PRIORITY};
use crate::root::{Root, Unread};

const LIMITS: &str = "/proc/self/limits";
const STATUS: &str = "/proc/self/status";
/// Numbers of capabilities, from capabilities(7).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// Whether this process has a capability.
fn has_capability(root: &Root, number: u32) -> Result<bool, Unread> {
    let status = root.text(STATUS)?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let set = u64::from_str_radix(line.trim(), 16)
        .map_err(|_| Unread::odd(STATUS, line, "CapEff: and sixteen hexadecimal digits"))?;
    Ok(set & (1 << number) != 0)
}

/// A limit as it holds now; `None` without one.
fn limit(root: &Root, name: &str) -> Result<Option<u64>, Unread> {
    let limits = root.text(LIMITS)?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    match line.split_whitespace().next() {
        Some("unlimited") => Ok(None),
        Some(word) if word.parse::<u64>().is_ok() => Ok(word.parse().ok()),
        _ => Err(Unread::odd(LIMITS, line, "a number or 'unlimited'")),
    }
}

/// Lets the user have more from the next login on. The file is one of ours.
fn login_limit(root: &Root, finding: Finding, item: &str, value: &str) -> Finding {
    let file = format!("/etc/security/limits.d/sinew-{item}.conf");
    let user = user(root).unwrap_or_else(|| "*".into());
    finding.mended(
        format!("echo '{user} - {item} {value}' > {file}    # from the next login on"),
        format!("rm {file}"),
    )
}

/// Whoever runs this, by name.
fn user(root: &Root) -> Option<String> {
    let (status, users) = (root.text(STATUS).ok()?, root.text("/etc/passwd").ok()?);
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?;
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    users.find(|fields| fields.get(2) == Some(&uid)).map(|fields| fields[0].into())
}

pub(crate) fn rtprio(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    if has_capability(root, CAP_SYS_NICE)? {
        let read = "allowed up to 99 by CAP_SYS_NICE";
        return Ok(Finding::new(Grade::Good, read, &[STATUS]));
    }
    let limit = limit(root, "Max realtime priority")?.unwrap_or(99);
    if limit >= u64::from(PRIORITY) {
        let read = format!("allowed up to {limit}");
        return Ok(Finding::new(Grade::Good, read, &[LIMITS]));
    }
    let (grade, read) = match limit {
        0 => (Grade::Bad, "SCHED_FIFO is not allowed to this user".into()),
        _ => (Grade::Better, format!("allowed up to {limit}, and the default is {PRIORITY}")),
    };
    let finding = Finding::new(grade, read, &[LIMITS, STATUS]);
    Ok(login_limit(root, finding, "rtprio", &PRIORITY.to_string()))
}

pub(crate) fn memlock(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    if has_capability(root, CAP_IPC_LOCK)? {
        return Ok(Finding::new(Grade::Good, "no limit: CAP_IPC_LOCK", &[STATUS]));
    }
    match limit(root, "Max locked memory")? {
        None => Ok(Finding::new(Grade::Good, "no limit", &[LIMITS])),
        Some(bytes) => {
            let read = format!("{} KiB, so nothing is locked", bytes / 1024);
            let finding = Finding::new(Grade::Better, read, &[LIMITS, STATUS]);
            Ok(login_limit(root, finding, "memlock", "unlimited"))
        }
    }
}

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
            // The root has none, and neither has a cgroup without the controller.
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

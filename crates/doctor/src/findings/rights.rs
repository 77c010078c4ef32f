//! What is allowed to us: realtime priority, locked memory, system calls.

use super::advice::{self, Asker, Right, Steps};
use super::{Aim, Finding, Grade, PRIORITY};
use crate::place::Place;
use crate::root::{Root, Unread};

const LIMITS: &str = "/proc/self/limits";
const STATUS: &str = "/proc/self/status";
/// How the user numbers here map to those of the machine.
const USERS: &str = "/proc/self/uid_map";
/// Numbers of capabilities, from capabilities(7).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// Whether this process has a capability that counts on this machine.
fn has_capability(root: &Root, number: u32) -> Result<bool, Unread> {
    let line = status(root, "CapEff:")?;
    let set = u64::from_str_radix(&line, 16)
        .map_err(|_| Unread::odd(STATUS, &line, "CapEff: and sixteen hexadecimal digits"))?;
    Ok(set & (1 << number) != 0 && !is_rootless(root))
}

/// Whether this process is in a user namespace, whose capabilities give nothing outside.
fn is_rootless(root: &Root) -> bool {
    /// All users are mapped to themselves.
    const FIRST: [&str; 3] = ["0", "0", "4294967295"];
    // A kernel without user namespaces has no such file.
    root.text(USERS).is_ok_and(|text| !text.split_whitespace().eq(FIRST))
}

/// The text after a word in the status of this process.
fn status(root: &Root, word: &str) -> Result<String, Unread> {
    let status = root.text(STATUS)?;
    let line = status.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_default();
    Ok(line.trim().into())
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

/// Adds how to obtain the right here.
fn with_steps(root: &Root, finding: Finding, right: Right) -> Finding {
    let Steps { remedy, note } = advice::steps(right, Place::read(root), &asker(root, right));
    Finding { remedy, ..finding.noted(note) }
}

/// The user who runs this, and what the files that logins read say about the right.
fn asker(root: &Root, right: Right) -> Asker {
    let uid = status(root, "Uid:").unwrap_or_default();
    let uid = uid.split_whitespace().next().unwrap_or_default();
    let users = root.text("/etc/passwd").unwrap_or_default();
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let named = fields.find(|fields| fields.len() > 3 && fields[2] == uid);
    let (name, first) = named.map_or(("", ""), |fields| (fields[0], fields[3]));
    let groups = root.text("/etc/group").unwrap_or_default();
    let is_in = |group: &str| {
        let mut fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
        fields.any(|fields| {
            let members = || fields[3].split(',').any(|member| member == name);
            fields.len() > 3 && fields[0] == group && (fields[2] == first || members())
        })
    };
    let (mut granted, mut group) = (None, None);
    for (file, whose) in grants(root, right) {
        match whose.strip_prefix('@') {
            Some(of) if is_in(of) => granted = Some(file),
            // A group that does not exist is not one that the user could join.
            Some(of) if groups.lines().any(|line| line.starts_with(&format!("{of}:"))) => {
                group = Some(of.into());
            }
            None if whose == "*" || whose == name => granted = Some(file),
            _ => {}
        }
    }
    let user = match (name, uid) {
        ("", "") => "USER".into(),
        // A user whose name is only on a server.
        ("", uid) => format!("$(id -nu {uid})"),
        (name, _) => name.into(),
    };
    Asker { user, granted, group, is_rootless: is_rootless(root) }
}

/// Which files give the right, and to whom.
fn grants(root: &Root, right: Right) -> Vec<(String, String)> {
    let names = root.names(advice::LIMITS).into_iter().filter(|name| name.ends_with(".conf"));
    let files = names.map(|name| format!("{}/{name}", advice::LIMITS));
    let mut grants = vec![];
    for file in std::iter::once("/etc/security/limits.conf".to_string()).chain(files) {
        for line in root.text(&file).unwrap_or_default().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [whose, "-" | "soft", item, value] = words[..]
                && item == right.item()
                && right.is_met_by(value)
            {
                grants.push((file.clone(), whose.into()));
            }
        }
    }
    grants
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
        0 => (Grade::Bad, "SCHED_FIFO is not allowed to this user".to_string()),
        _ => (Grade::Better, format!("allowed up to {limit}, and the default is {PRIORITY}")),
    };
    let finding = Finding::new(grade, read, &[LIMITS, STATUS]);
    Ok(with_steps(root, finding, Right::Priority))
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
            Ok(with_steps(root, finding, Right::Memory))
        }
    }
}

/// A filter of system calls, which may refuse what the limits allow.
pub(crate) fn seccomp(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let mode = status(root, "Seccomp:")?;
    match mode.as_str() {
        "0" => Ok(Finding::new(Grade::Good, "no filter", &[STATUS])),
        "2" => Ok(Finding::new(
            Grade::Unknown,
            "there is a filter, and no program can read what it refuses",
            &[STATUS],
        )
        .noted(
            "nothing to do, unless SCHED_FIFO or locked memory is missing below though 'rtprio' \
             and 'memlock' are good: then let the filter pass sched_setscheduler, mlock2 and \
             mlockall (those that Docker and Podman bring do)",
        )),
        _ => Err(Unread::odd(STATUS, &mode, "Seccomp: and 0 or 2")),
    }
}

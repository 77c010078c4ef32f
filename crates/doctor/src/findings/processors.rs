//! The CPUs that the graph would use: who else may use them, how fast they are, how deep they
//! sleep.

use super::options::{Built, COMMAND_LINE, boot_with, booted};
use super::{Aim, Finding, Grade, write_each};
use crate::cpus;
use crate::root::{Root, Unread};

const FOLDER: &str = "/sys/devices/system/cpu";

/// A file that holds a list of CPUs.
fn list(root: &Root, path: &str) -> Result<Vec<u32>, Unread> {
    let text = root.text(path)?;
    // A kernel that was booted without the parameter writes "(null)" for some of them.
    let list = if text == "(null)" { "" } else { &text };
    cpus::parse(list).ok_or_else(|| Unread::odd(path, &text, "a list of CPUs such as 0-3,8"))
}

/// The CPUs that are switched on.
pub(crate) fn online(root: &Root) -> Result<Vec<u32>, Unread> {
    list(root, &format!("{FOLDER}/online"))
}

/// The CPUs that the scheduler leaves alone.
pub(crate) fn isolated_cpus(root: &Root) -> Result<Vec<u32>, Unread> {
    list(root, &format!("{FOLDER}/isolated"))
}

/// Which CPUs could be kept for the graph, and which would be left for all others. Kept are the
/// CPUs of the graph, or only the last one if the graph would use them all. `None` with one CPU.
pub(crate) fn kept_and_left(root: &Root, aim: &Aim) -> Option<(Vec<u32>, Vec<u32>)> {
    let online = online(root).ok()?;
    let left = |kept: &[u32]| -> Vec<u32> {
        online.iter().copied().filter(|cpu| !kept.contains(cpu)).collect()
    };
    let kept = match left(&aim.cpus).is_empty() {
        true => vec![*online.last()?],
        false => aim.cpus.clone(),
    };
    let left = left(&kept);
    (!left.is_empty()).then_some((kept, left))
}

/// A finding about a list of CPUs, which is good if the list holds all CPUs of the graph.
fn listed(aim: &Aim, on: &[u32], from: &[&str]) -> (bool, Finding) {
    let all = aim.cpus.iter().all(|cpu| on.contains(cpu));
    let grade = if all { Grade::Good } else { Grade::Better };
    let read = if on.is_empty() { "none".into() } else { cpus::named(on) };
    (all, Finding::new(grade, read, from))
}

/// The finding. If CPUs are not yet kept free, it also names the boot parameter that does so.
fn kept_by(root: &Root, aim: &Aim, found: (bool, Finding), name: &str) -> Finding {
    let (all, finding) = found;
    match kept_and_left(root, aim) {
        Some((kept, _)) if !all => {
            let (mend, undo) = boot_with(root, &format!("{name}={}", cpus::write(&kept)));
            finding.mended(mend, undo)
        }
        _ => finding,
    }
}

pub(crate) fn isolated(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    let isolated = isolated_cpus(root)?;
    let found = listed(aim, &isolated, &[&format!("{FOLDER}/isolated")]);
    Ok(kept_by(root, aim, found, "isolcpus"))
}

pub(crate) fn nohz_full(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    let path = format!("{FOLDER}/nohz_full");
    let on = match list(root, &path) {
        Err(Unread::Missing(_)) => {
            let read = "this kernel has none (CONFIG_NO_HZ_FULL)";
            // If all of /sys is missing, the missing file proves nothing.
            online(root)?;
            return Ok(Finding::new(Grade::Better, read, &[&path]));
        }
        list => list?,
    };
    Ok(kept_by(root, aim, listed(aim, &on, &[&path]), "nohz_full"))
}

pub(crate) fn rcu_nocbs(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    root.text(COMMAND_LINE)?;
    // A CPU in nohz_full is also handled as one in rcu_nocbs.
    let asked = booted(root, "rcu_nocbs").or_else(|| booted(root, "nohz_full"));
    let on = match asked.as_deref() {
        Some("all") => aim.cpus.clone(),
        Some(text) => cpus::parse(text)
            .ok_or_else(|| Unread::odd(COMMAND_LINE, text, "a list of CPUs after rcu_nocbs"))?,
        None => vec![],
    };
    let built = Built::read(root);
    if let Ok(built) = &built
        && !built.has("CONFIG_RCU_NOCB_CPU")
    {
        let read = "this kernel has none (CONFIG_RCU_NOCB_CPU)";
        return Ok(Finding::new(Grade::Better, read, &[&built.path]));
    }
    Ok(kept_by(root, aim, listed(aim, &on, &[COMMAND_LINE]), "rcu_nocbs"))
}

pub(crate) fn governor(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    const BEST: &str = "performance";
    let path = |cpu: &str| format!("{FOLDER}/cpu{cpu}/cpufreq/scaling_governor");
    let mut others: Vec<(u32, String)> = vec![];
    for cpu in &aim.cpus {
        match root.text(&path(&cpu.to_string())) {
            Ok(governor) if governor == BEST => {}
            Ok(text) if text.is_empty() || text.contains(|c: char| !c.is_ascii_lowercase()) => {
                return Err(Unread::odd(&path(&cpu.to_string()), &text, "a governor's name"));
            }
            Ok(governor) => others.push((*cpu, governor)),
            Err(Unread::Missing(path)) => {
                let read = "no governor here: the firmware or the hypervisor sets the frequency";
                return Ok(Finding::new(Grade::Unknown, read, &[&path]));
            }
            Err(why) => return Err(why),
        }
    }
    let from = path("*");
    let Some((_, first)) = others.first() else {
        return Ok(Finding::new(Grade::Good, BEST, &[&from]));
    };
    let path = path("$i");
    let mend = write_each(others.iter().map(|(cpu, _)| (*cpu, BEST.into())), &path);
    let undo = write_each(others.iter().cloned(), &path);
    let on = cpus::named(&others.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>());
    Ok(Finding::new(Grade::Better, format!("{first} on {on}"), &[&from]).mended(mend, undo))
}

/// A state in which a CPU may sleep.
struct State {
    folder: String,
    name: String,
    latency_us: u64,
}

/// The states of a CPU that are not disabled.
fn states(root: &Root, cpu: u32) -> Result<Vec<State>, Unread> {
    let folder = format!("{FOLDER}/cpu{cpu}/cpuidle");
    let names = root.names(&folder);
    if names.is_empty() {
        return Err(Unread::Missing(folder));
    }
    let mut states = vec![];
    for name in names.iter().filter(|name| name.starts_with("state")) {
        let folder = format!("{folder}/{name}");
        if root.number::<u8>(&format!("{folder}/disable"))? == 0 {
            let name = root.text(&format!("{folder}/name"))?;
            let latency_us = root.number(&format!("{folder}/latency"))?;
            states.push(State { folder, name, latency_us });
        }
    }
    Ok(states)
}

pub(crate) fn idle_states(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    if booted(root, "idle").as_deref() == Some("poll") {
        return Ok(Finding::new(Grade::Good, "idle=poll: it never sleeps", &[COMMAND_LINE]));
    }
    let mut all = vec![];
    for cpu in &aim.cpus {
        match states(root, *cpu) {
            Ok(states) => all.extend(states),
            Err(Unread::Missing(path)) => {
                let read = "none listed: the kernel halts, and what that costs is not known";
                return Ok(Finding::new(Grade::Unknown, read, &[&path]));
            }
            Err(why) => return Err(why),
        }
    }
    let from = format!("{FOLDER}/cpu*/cpuidle/state*/latency");
    let Some(deepest) = all.iter().max_by_key(|state| state.latency_us) else {
        return Ok(Finding::new(Grade::Good, "all disabled", &[&from]));
    };
    let read = format!("the deepest is '{}', {} us", deepest.name, deepest.latency_us);
    // A wake-up that costs up to a hundredth of a period is not noticed; one over a tenth is bad.
    let slow_ns = |share| aim.period_ns / share;
    let grade = match deepest.latency_us.saturating_mul(1000) {
        ns if ns <= slow_ns(100) => return Ok(Finding::new(Grade::Good, read, &[&from])),
        ns if ns <= slow_ns(10) => Grade::Better,
        _ => Grade::Bad,
    };
    let slow = all.iter().filter(|state| state.latency_us * 1000 > slow_ns(100));
    let folders: Vec<_> = slow.map(|state| state.folder.as_str()).collect();
    let folders = folders.join(" ");
    let set = |to| format!("for s in {folders}; do echo {to} > $s/disable; done");
    Ok(Finding::new(grade, read, &[&from]).mended(set(1), set(0)))
}

pub(crate) fn dma_latency(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const PATH: &str = "/dev/cpu_dma_latency";
    /// The kernel's answer while nobody has asked for less.
    const NOBODY_US: i32 = 2_000_000_000;
    // Reading asks for nothing: an opened file stands for "no limit" until a limit is written.
    let bytes = match root.bytes(PATH) {
        Err(why @ Unread::Refused(..)) => {
            let show =
                format!(r#"sudo od -An -td4 {PATH}    # us; {NOBODY_US}: no limit is asked for"#);
            return Ok(Finding { show: Some(show), ..Finding::unknown(&why) });
        }
        bytes => bytes?,
    };
    let Ok(bytes) = <[u8; 4]>::try_from(bytes.as_slice()) else {
        let text = String::from_utf8_lossy(&bytes);
        return Err(Unread::odd(PATH, &text, "four bytes"));
    };
    let read = match i32::from_ne_bytes(bytes) {
        0 => return Ok(Finding::new(Grade::Good, "held at 0", &[PATH])),
        NOBODY_US => "no process holds it".into(),
        us => format!("held at {us} us"),
    };
    let mend = format!(r"exec 9> {PATH}; printf '\0\0\0\0' >&9    # as long as this shell lives");
    Ok(Finding::new(Grade::Better, read, &[PATH]).mended(mend, "exec 9>&-    # in the same shell"))
}

pub(crate) fn smt(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let (active, control) = (format!("{FOLDER}/smt/active"), format!("{FOLDER}/smt/control"));
    let on: u8 = root.number(&active)?;
    let word = root.text(&control)?;
    if on == 0 {
        return Ok(Finding::new(Grade::Good, format!("not active ({word})"), &[&active, &control]));
    }
    let set = |to| format!("echo {to} > {control}");
    Ok(Finding::new(Grade::Better, "active", &[&active, &control]).mended(set("off"), set("on")))
}

//! Which interrupts may take the graph's CPUs, and what moves them.

use super::others::processes;
use super::processors::kept_and_left;
use super::{Aim, Finding, Grade, write_each};
use crate::cpus;
use crate::root::{Root, Unread};

const FOLDER: &str = "/proc/irq";

pub(crate) fn affinity(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    let numbers = root.numbers(FOLDER);
    if numbers.is_empty() {
        return Err(Unread::Missing(FOLDER.into()));
    }
    let path = |number: &str| format!("{FOLDER}/{number}/smp_affinity_list");
    let mut allowed: Vec<(u32, Vec<u32>)> = vec![];
    for number in &numbers {
        let path = path(&number.to_string());
        // An interrupt may be gone since the folder was listed.
        let Ok(text) = root.text(&path) else { continue };
        let list = cpus::parse(&text)
            .filter(|list| !list.is_empty())
            .ok_or_else(|| Unread::odd(&path, &text, "a list of CPUs such as 0-3,8"))?;
        allowed.push((*number, list));
    }
    let on = |cpus: &[u32]| -> Vec<&(u32, Vec<u32>)> {
        let touches = |list: &[u32]| list.iter().any(|cpu| cpus.contains(cpu));
        allowed.iter().filter(|(_, list)| touches(list)).collect()
    };
    let here = on(&aim.cpus).len();
    let read = format!("{here} of {} may come to {}", allowed.len(), cpus::named(&aim.cpus));
    let from = path("*");
    if here == 0 {
        return Ok(Finding::new(Grade::Good, read, &[&from]));
    }
    let finding = Finding::new(Grade::Better, read, &[&from]);
    let Some((kept, left)) = kept_and_left(root, aim) else { return Ok(finding) };
    let moved = on(&kept);
    if moved.is_empty() {
        return Ok(finding);
    }
    // A driver that keeps its interrupts where they are refuses the write with an error.
    let path = path("$i");
    let to = cpus::write(&left);
    let mend = write_each(moved.iter().map(|(number, _)| (*number, to.clone())), &path);
    let undo = write_each(moved.iter().map(|(number, was)| (*number, cpus::write(was))), &path);
    Ok(finding.mended(mend, undo))
}

pub(crate) fn balancer(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const NAME: &str = "irqbalance";
    let runs = |pid: &u32| root.text(&format!("/proc/{pid}/comm")).is_ok_and(|name| name == NAME);
    match processes(root)?.iter().any(runs) {
        false => Ok(Finding::new(Grade::Good, "does not run", &["/proc/*/comm"])),
        true => Ok(Finding::new(Grade::Better, "runs", &["/proc/*/comm"])
            .mended("systemctl stop irqbalance", "systemctl start irqbalance")),
    }
}

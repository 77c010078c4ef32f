//! What else runs there: the host below us, other programs, and what the kernel does for them.

use super::kernel::chosen;
use super::{Aim, Finding, Grade, PRIORITY};
use crate::root::{Root, Unread};

/// The processes that we can see, without ourselves.
pub(crate) fn processes(root: &Root) -> Result<Vec<u32>, Unread> {
    // Where processes of others are hidden, the first process is hidden too.
    const FIRST: &str = "/proc/1/stat";
    let first = root.text(FIRST)?;
    if !first.starts_with("1 (") {
        return Err(Unread::odd(FIRST, &first, "the number 1 and a name"));
    }
    let own = root.text("/proc/self/stat").unwrap_or_default();
    let own: Option<u32> = own.split(' ').next().and_then(|pid| pid.parse().ok());
    Ok(root.numbers("/proc").into_iter().filter(|pid| Some(*pid) != own).collect())
}

pub(crate) fn virtual_machine(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const CPU: &str = "/proc/cpuinfo";
    const KINDS: [&str; 2] = ["/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"];
    let cpu = root.text(CPU)?;
    if !cpu.lines().any(|line| line.starts_with("processor")) {
        return Err(Unread::odd(CPU, &cpu, "a line of each processor"));
    }
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let kind = KINDS.into_iter().find_map(|path| Some((path, root.text(path).ok()?)));
    let (read, path) = match kind {
        Some((path, kind)) => (format!("yes: {kind}"), path),
        None if flags.split_whitespace().any(|flag| flag == "hypervisor") => ("yes".into(), CPU),
        None => return Ok(Finding::new(Grade::Good, "no sign of one", &[CPU])),
    };
    Ok(Finding::new(Grade::Better, read, &[path]))
}

pub(crate) fn steal(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    /// Shares of the time since boot: below the first, the host hardly ever steals time; above the
    /// second, it does so all the time.
    const LIMITS: (f64, f64) = (0.0001, 0.01);
    let Stolen { stolen, all } = Stolen::read(root)?;
    let share = stolen as f64 / all.max(1) as f64;
    let grade = match share {
        share if share < LIMITS.0 => Grade::Good,
        share if share < LIMITS.1 => Grade::Better,
        _ => Grade::Bad,
    };
    let read = format!("{:.3} % of the time since boot", share * 100.0);
    Ok(Finding::new(grade, read, &[Stolen::PATH]))
}

/// Time of all CPUs since boot, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stolen {
    /// Time in which the host ran somebody else.
    pub(crate) stolen: u64,
    /// All of the time.
    pub(crate) all: u64,
}

impl Stolen {
    const PATH: &str = "/proc/stat";

    /// Reads it.
    pub(crate) fn read(root: &Root) -> Result<Stolen, Unread> {
        let text = root.text(Stolen::PATH)?;
        let line = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; the two columns after them are already
        // counted in the first ones.
        let times: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        match (line.starts_with("cpu "), times.as_slice()) {
            (true, [.., stolen]) if times.len() == 8 => {
                let all = times.iter().fold(0, |all: u64, time| all.saturating_add(*time));
                Ok(Stolen { stolen: *stolen, all })
            }
            _ => Err(Unread::odd(Stolen::PATH, line, "'cpu' and eight times")),
        }
    }
}

pub(crate) fn swap(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const PATH: &str = "/proc/swaps";
    let text = root.text(PATH)?;
    if !text.starts_with("Filename") {
        return Err(Unread::odd(PATH, &text, "a line of headings first"));
    }
    // Name, type, size, used, priority.
    let rows = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|fields| !fields.is_empty()).collect();
    let Some(first) = rows.first() else {
        return Ok(Finding::new(Grade::Good, "none", &[PATH]));
    };
    if rows.iter().any(|fields| fields.len() != 5) {
        return Err(Unread::odd(PATH, &first.join(" "), "lines of five words"));
    }
    let names: Vec<_> = rows.iter().map(|fields| fields[0]).collect();
    let on = |fields: &Vec<&str>| match fields[4].starts_with('-') {
        // The kernel itself chose this negative priority, and will do so again.
        true => format!("swapon {}", fields[0]),
        false => format!("swapon -p {} {}", fields[4], fields[0]),
    };
    let undo: Vec<_> = rows.iter().map(on).collect();
    let read = format!("on {}", names.join(", "));
    let finding = Finding::new(Grade::Better, read, &[PATH]);
    Ok(finding.mended(format!("swapoff {}", names.join(" ")), undo.join("; ")))
}

pub(crate) fn huge_pages(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = match root.text(PATH) {
        Err(Unread::Missing(_)) if root.has("/sys/kernel/mm") => {
            return Ok(Finding::new(Grade::Good, "this kernel has none", &[PATH]));
        }
        text => text?,
    };
    let set = |mode: &str| format!("echo {mode} > {PATH}");
    match chosen(&text, '[', ']') {
        Some(mode @ ("madvise" | "never")) => Ok(Finding::new(Grade::Good, mode, &[PATH])),
        Some(mode @ "always") => {
            Ok(Finding::new(Grade::Better, mode, &[PATH]).mended(set("madvise"), set(mode)))
        }
        _ => Err(Unread::odd(PATH, &text, "always, madvise and never, one in brackets")),
    }
}

/// A thread of another program in a realtime class.
struct Realtime {
    id: u32,
    name: String,
    priority: u32,
    /// Whether it is SCHED_FIFO; otherwise it is SCHED_RR.
    is_fifo: bool,
}

/// Reads a thread's stat, as described in proc(5); `None` if it is no realtime thread, or if it is
/// a thread of the kernel.
fn realtime(id: u32, stat: &str) -> Option<Realtime> {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    const FIFO: u32 = 1;
    const RR: u32 = 2;
    // The name is in parentheses and may contain more of them.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_string();
    // The third field in the manual is the first one here.
    let fields: Vec<_> = after.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (flags, priority, policy) = (field(9)?, field(40)? as u32, field(41)? as u32);
    let is_realtime = flags & KERNEL_THREAD == 0 && [FIFO, RR].contains(&policy);
    is_realtime.then_some(Realtime { id, name, priority, is_fifo: policy == FIFO })
}

pub(crate) fn fifo_threads(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const FROM: &str = "/proc/*/task/*/stat";
    /// At most this many are named.
    const NAMED_MAX: usize = 4;
    let mut found = vec![];
    for process in processes(root)? {
        let threads = format!("/proc/{process}/task");
        for id in root.numbers(&threads) {
            // The thread may have ended meanwhile.
            let stat = root.text(&format!("{threads}/{id}/stat")).unwrap_or_default();
            found.extend(realtime(id, &stat));
        }
    }
    if found.is_empty() {
        return Ok(Finding::new(Grade::Good, "none but the kernel's", &[FROM]));
    }
    let above: Vec<_> =
        found.iter().filter(|thread| thread.priority >= u32::from(PRIORITY)).collect();
    let named = found.iter().take(NAMED_MAX);
    let named: Vec<_> = named
        .map(|thread| format!("{} ({}) at {}", thread.name, thread.id, thread.priority))
        .collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let read = format!("{}{more}", named.join(", "));
    if above.is_empty() {
        return Ok(Finding::new(Grade::Good, format!("{read}: all below {PRIORITY}"), &[FROM]));
    }
    let class = |thread: &Realtime| if thread.is_fifo { "-f" } else { "-r" };
    let set = |thread: &Realtime, to| format!("chrt {} -p {to} {}", class(thread), thread.id);
    let all = |commands: Vec<String>| commands.join("; ");
    let mend = all(above.iter().map(|thread| set(thread, u32::from(PRIORITY) - 1)).collect());
    let undo = all(above.iter().map(|thread| set(thread, thread.priority)).collect());
    Ok(Finding::new(Grade::Better, read, &[FROM]).mended(mend, undo))
}

pub(crate) fn load(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const PATH: &str = "/proc/loadavg";
    /// From this load on the machine counts as busy: programs that want a CPU, on average over a
    /// minute.
    const BUSY: f64 = 0.5;
    let text = root.text(PATH)?;
    let load = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    let Some(load) = load.filter(|load| load.is_finite() && *load >= 0.0) else {
        return Err(Unread::odd(PATH, &text, "a number first"));
    };
    let read = format!("{load:.2} programs want a CPU, on average over a minute");
    Ok(match load < BUSY {
        true => Finding::new(Grade::Good, read, &[PATH]),
        false => Finding::new(Grade::Better, read, &[PATH]).shown("top -b -n 1 | head -20"),
    })
}

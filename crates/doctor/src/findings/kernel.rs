//! How the kernel was built and set: preemption, timers, and what it does to realtime threads.

use super::options::{Built, COMMAND_LINE, boot_with, booted};
use super::{Aim, Finding, Grade, write_each};
use crate::place::Place;
use crate::root::{Root, Unread};

const DEBUG: &str = "/sys/kernel/debug";
const VERSION: &str = "/proc/sys/kernel/version";

/// The word that is marked as chosen, as in `always [madvise] never`.
pub(crate) fn chosen(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(word, _)| word)
}

pub(crate) fn preemption(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const REALTIME: &str = "/sys/kernel/realtime";
    let version = root.text(VERSION)?;
    let says = |model: &str| version.split_whitespace().any(|word| word == model);
    if root.text(REALTIME).is_ok_and(|text| text == "1") {
        return Ok(Finding::new(Grade::Good, "PREEMPT_RT", &[REALTIME]));
    }
    if says("PREEMPT_RT") {
        return Ok(Finding::new(Grade::Good, "PREEMPT_RT", &[VERSION]));
    }
    if says("PREEMPT_DYNAMIC") {
        return Ok(dynamic(root));
    }
    let (grade, model) = match says("PREEMPT") {
        true => (Grade::Better, "full (PREEMPT), not PREEMPT_RT"),
        false => (Grade::Bad, "none or voluntary: the version names no preemption"),
    };
    let (mend, undo) = realtime_kernel(root);
    Ok(Finding::new(grade, model, &[VERSION]).mended(mend, undo))
}

/// For a kernel whose preemption model can be changed while it runs.
fn dynamic(root: &Root) -> Finding {
    const MODE: &str = "/sys/kernel/debug/sched/preempt";
    let (model, from) = match root.text(MODE) {
        Ok(text) => (chosen(&text, '(', ')').map(String::from), vec![MODE.to_string()]),
        Err(_) => booted_model(root),
    };
    let from: Vec<_> = from.iter().map(String::as_str).collect();
    let Some(model) = model else {
        return Finding::new(Grade::Unknown, "PREEMPT_DYNAMIC, but not which model", &from)
            .shown(debug_command(root, &format!("cat {MODE}")));
    };
    let read = format!("{model} (PREEMPT_DYNAMIC), not PREEMPT_RT");
    if ["full", "lazy"].contains(&model.as_str()) {
        let (mend, undo) = realtime_kernel(root);
        return Finding::new(Grade::Better, read, &from).mended(mend, undo);
    }
    let choose = |model: &str| debug_command(root, &format!("echo {model} > {MODE}"));
    Finding::new(Grade::Bad, read, &from).mended(choose("full"), choose(&model))
}

/// The preemption model that a dynamic kernel started with, and the files that say so. Only a write
/// to the file that we could not read can have changed it since.
fn booted_model(root: &Root) -> (Option<String>, Vec<String>) {
    if let Some(model) = booted(root, "preempt") {
        return (Some(model), vec![COMMAND_LINE.into()]);
    }
    const MODELS: [(&str, &str); 4] = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    match Built::read(root) {
        Ok(built) => {
            let model = MODELS.iter().find(|(option, _)| built.has(option));
            (model.map(|(_, model)| (*model).into()), vec![built.path, COMMAND_LINE.into()])
        }
        Err(why) => (None, vec![VERSION.into(), why.path().into()]),
    }
}

/// A command that needs the kernel's file system for debugging. It mounts that first if necessary.
fn debug_command(root: &Root, command: &str) -> String {
    let mounts = root.text("/proc/mounts").unwrap_or_default();
    let is_there = mounts.lines().any(|line| line.split(' ').nth(1) == Some(DEBUG));
    match is_there {
        true => command.into(),
        false => format!("mount -t debugfs none {DEBUG} && {command}; umount {DEBUG}"),
    }
}

/// How to get a kernel with PREEMPT_RT on the systems that have a package of it.
fn realtime_kernel(root: &Root) -> (String, String) {
    const RHEL: [&str; 2] = ["dnf install kernel-rt", "dnf remove kernel-rt"];
    const DEBIAN: [&str; 2] = [
        "apt-get install linux-image-rt-$(dpkg --print-architecture)",
        "apt-get remove linux-image-rt-$(dpkg --print-architecture)",
    ];
    const SYSTEMS: [(&str, [&str; 2]); 5] = [
        ("debian", DEBIAN),
        ("ubuntu", ["pro enable realtime-kernel", "pro disable realtime-kernel"]),
        ("arch", ["pacman -S linux-rt", "pacman -R linux-rt"]),
        ("rhel", RHEL),
        ("almalinux", RHEL),
    ];
    let system = root.text("/etc/os-release").unwrap_or_default();
    let id = system.lines().find_map(|line| line.strip_prefix("ID=")).unwrap_or_default();
    // A container's system is not that of the machine whose kernel it runs on.
    let is_machine = !Place::read(root).is_container();
    let found = SYSTEMS.iter().find(|(name, _)| is_machine && *name == id.trim_matches('"'));
    let commands = found.map(|(_, commands)| commands).unwrap_or(&[
        "boot a kernel that was built with CONFIG_PREEMPT_RT, which Linux has since 6.12",
        "boot the kernel of now",
    ]);
    let from_next_boot = |command: &str| match found {
        Some(_) => format!("{command}    # from the next boot on"),
        None => command.into(),
    };
    (from_next_boot(commands[0]), from_next_boot(commands[1]))
}

pub(crate) fn timers(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let built = match Built::read(root) {
        Ok(built) => built,
        Err(why) => {
            let read = format!("high resolution and HZ: {why}");
            return Ok(Finding::new(Grade::Unknown, read, &[why.path()])
                .shown("sudo head -30 /proc/timer_list    # hres_active, resolution"));
        }
    };
    let hz = built.value("CONFIG_HZ").unwrap_or("unknown").to_string();
    let from = [built.path.as_str(), COMMAND_LINE];
    let finding = match (built.has("CONFIG_HIGH_RES_TIMERS"), booted(root, "highres").as_deref()) {
        (true, Some("off")) => {
            let read = format!("high resolution is off (highres=off), HZ {hz}");
            let (undo, mend) = boot_with(root, "highres=off");
            Finding::new(Grade::Bad, read, &from).mended(mend, undo)
        }
        (true, _) => Finding::new(Grade::Good, format!("high resolution, HZ {hz}"), &from),
        (false, _) => {
            let read = format!("no high resolution (CONFIG_HIGH_RES_TIMERS), HZ {hz}");
            Finding::new(Grade::Bad, read, &from)
                .mended("boot a kernel that has it", "boot the kernel of now")
        }
    };
    Ok(finding)
}

pub(crate) fn timer_migration(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    const PATH: &str = "/proc/sys/kernel/timer_migration";
    let on: u8 = root.number(PATH)?;
    // With a single processor there is no other one to move a timer to.
    let alone = root.text("/sys/devices/system/cpu/online").is_ok_and(|online| online == "0");
    if on == 0 || (alone && aim.cpus == [0]) {
        return Ok(Finding::new(Grade::Good, if on == 0 { "off" } else { "one CPU" }, &[PATH]));
    }
    let set = |to| format!("sysctl -w kernel.timer_migration={to}");
    Ok(Finding::new(Grade::Better, "on", &[PATH]).mended(set(0), set(on)))
}

pub(crate) fn clock_source(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    /// Counters in the CPU itself.
    const GOOD: [&str; 4] = ["tsc", "arch_sys_counter", "timebase", "riscv_clocksource"];
    /// Chips beside the CPU, or no counter at all.
    const BAD: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];
    let current = format!("{FOLDER}/current_clocksource");
    let now = root.text(&current)?;
    if now.is_empty() || now.contains(char::is_whitespace) {
        return Err(Unread::odd(&current, &now, "the name of a clock"));
    }
    let grade = match now.as_str() {
        name if GOOD.contains(&name) => Grade::Good,
        name if BAD.contains(&name) => Grade::Bad,
        _ => Grade::Better,
    };
    let finding = Finding::new(grade, now.clone(), &[&current]);
    let there = root.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = there.split_whitespace().find(|name| GOOD.contains(name));
    let set = |name: &str| format!("echo {name} > {current}");
    Ok(match better {
        Some(better) if grade != Grade::Good => finding.mended(set(better), set(&now)),
        None if grade != Grade::Good => finding.shown("sudo dmesg | grep -i -e tsc -e clocksource"),
        _ => finding,
    })
}

/// The first kernel with a fair server.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The first two numbers of the kernel's version, and all of it.
fn release(root: &Root) -> Result<((u32, u32), String), Unread> {
    let release = root.text(RELEASE)?;
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok(((major, minor), release)),
        _ => Err(Unread::odd(RELEASE, &release, "a version such as 6.12.0")),
    }
}

pub(crate) fn throttling(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
    let (runtime, period): (i64, i64) = (root.number(RUNTIME)?, root.number(PERIOD)?);
    if runtime < 0 || runtime >= period {
        return Ok(Finding::new(Grade::Good, "off", &[RUNTIME]));
    }
    let read = format!("realtime threads get {runtime} us of every {period} us");
    // Since the kernel has a fair server, the limit holds only for cgroups with shares of their
    // own.
    let replaced = release(root).is_ok_and(|(version, _)| version >= FAIR_SERVER_SINCE);
    if let (true, Ok(built)) = (replaced, Built::read(root))
        && !built.has("CONFIG_RT_GROUP_SCHED")
    {
        let read = "on, but the fair server has taken its place in this kernel";
        return Ok(Finding::new(Grade::Good, read, &[RUNTIME, RELEASE, &built.path]));
    }
    let grade = if runtime * 2 < period { Grade::Bad } else { Grade::Better };
    let set = |to| format!("sysctl -w kernel.sched_rt_runtime_us={to}");
    Ok(Finding::new(grade, read, &[RUNTIME, PERIOD]).mended(set(-1), set(runtime)))
}

pub(crate) fn fair_server(root: &Root, aim: &Aim) -> Result<Finding, Unread> {
    const FOLDER: &str = "/sys/kernel/debug/sched/fair_server";
    let (version, release) = release(root)?;
    if version < FAIR_SERVER_SINCE {
        return Ok(Finding::new(Grade::Good, format!("Linux {release} has none"), &[RELEASE]));
    }
    let path = |cpu: u32, name| format!("{FOLDER}/cpu{cpu}/{name}");
    let mut on: Vec<(u32, u64, u64)> = vec![];
    for &cpu in &aim.cpus {
        match (root.number(&path(cpu, "runtime")), root.number(&path(cpu, "period"))) {
            (Ok(0), _) => {}
            (Ok(runtime), Ok(period)) => on.push((cpu, runtime, period)),
            (Err(why), _) | (_, Err(why)) => {
                let show = debug_command(root, &format!("grep . {FOLDER}/*/*"));
                return Ok(Finding { show: Some(show), ..Finding::unknown(&why) });
            }
        }
    }
    let Some(&(_, runtime, period)) = on.first() else {
        return Ok(Finding::new(Grade::Good, "off", &[FOLDER]));
    };
    let read = format!("it may take {} us of every {} us", runtime / 1000, period / 1000);
    let path = format!("{FOLDER}/cpu$i/runtime");
    let mend = write_each(on.iter().map(|(cpu, ..)| (*cpu, "0".into())), &path);
    let undo = write_each(on.iter().map(|(cpu, ns, _)| (*cpu, ns.to_string())), &path);
    Ok(Finding::new(Grade::Better, read, &[FOLDER]).mended(mend, undo))
}

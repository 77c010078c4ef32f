//! Four machines as their files show them: a robot's controller, a laptop, a virtual machine, a
//! container without /sys; and what is found on each.

use std::fs;
use std::path::{Path, PathBuf};

use super::Grade::{self, Bad, Better};
use super::{Fake, aim, commands};

/// Files that any machine has.
const ANY: &[(&str, &str)] = &[
    ("/etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\n"),
    ("/proc/2/comm", "kthreadd\n"),
    ("/proc/sys/kernel/osrelease", "6.18.2-rt3\n"),
    ("/proc/sys/kernel/timer_migration", "0\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("/proc/1/stat", "1 (systemd) S 0 1 1 0 -1 4194560 9 0 0 0 0 0 0 0 20 0 1 0 1 0 0 0\n"),
    ("/proc/1/comm", "systemd\n"),
    ("/proc/self/stat", "77 (sinew) R 1\n"),
    ("/proc/77/comm", "irqbalance\n"),
    ("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
    ("/proc/loadavg", "0.02 0.10 0.20 1/99 1234\n"),
    ("/proc/stat", "cpu  100 0 100 9800 0 0 0 0 0 0\ncpu0 1 2 3\n"),
    ("/proc/self/cgroup", "0::/robot.slice/arm.service\n"),
    ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\nproc /proc proc rw 0 0\n"),
    (
        "/proc/self/limits",
        "Max locked memory         8388608     unlimited    bytes\n\
                           Max realtime priority     0           0\n",
    ),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/sys/fs/cgroup/robot.slice/arm.service/cgroup.controllers", "cpuset cpu io memory pids\n"),
];

fn any(name: &str, more: &[(&str, &str)]) -> Fake {
    let fake = Fake::with(name, ANY);
    more.iter().for_each(|(path, text)| fake.put(path, text));
    fake
}

/// A controller as it should be: PREEMPT_RT, CPU 1 for the graph alone.
pub(crate) fn robot(name: &str) -> Fake {
    let fake = any(
        name,
        &[
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Mon Jan 5 10:00:00 UTC 2026\n"),
            ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz isolcpus=1 nohz_full=1 rcu_nocbs=1 quiet\n"),
            ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc constant_tsc\n"),
            ("/proc/self/status", "Uid:\t1000\nCapEff:\t0000000000804000\nSeccomp:\t0\n"),
            ("/proc/irq/9/smp_affinity_list", "0\n"),
            ("/proc/irq/16/smp_affinity_list", "0\n"),
            ("/sys/kernel/realtime", "1\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/isolated", "1\n"),
            ("/sys/devices/system/cpu/nohz_full", "1\n"),
            ("/sys/devices/system/cpu/smt/active", "0\n"),
            ("/sys/devices/system/cpu/smt/control", "off\n"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state0/disable", "0\n"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state0/name", "POLL\n"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu1/runtime", "0\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000\n"),
        ],
    );
    fake.put("/dev/cpu_dma_latency", 0_i32.to_ne_bytes());
    fake.built("CONFIG_HZ=1000\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_RCU_NOCB_CPU=y\n");
    fake
}

/// Every file below a folder.
pub(crate) fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of ours");
    let below = |path: PathBuf| if path.is_dir() { paths(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.expect("an entry").path())).collect()
}

#[test]
fn on_a_machine_that_is_as_it_should_be_nothing_is_to_be_done() {
    for found in robot("robot").found(&aim(&[1])) {
        assert_eq!(found.finding.grade, Grade::Good, "{found:?}");
        assert!(found.finding.remedy.is_none(), "{found:?}");
    }
}

/// A laptop with its default settings, and four CPUs.
fn laptop(name: &str) -> Fake {
    let laptop = any(
        name,
        &[
            ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n"),
            ("/etc/passwd", "root:x:0:0::/root:/bin/sh\nmarta:x:1000:1000::/home/marta:/bin/sh\n"),
            ("/proc/mounts", "debugfs /sys/kernel/debug debugfs rw 0 0\n"),
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.18.2-1\n"),
            ("/proc/sys/kernel/timer_migration", "1\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet\n"),
            ("/proc/self/status", "Uid:\t1000\nCapEff:\t0000000000000000\nSeccomp:\t0\n"),
            (
                "/proc/swaps",
                "Filename Type Size Used Priority\n/dev/sda2 partition 9 0 -2\n\
                         /dev/zram0 partition 9 0 100\n",
            ),
            ("/proc/77/comm", "sinew\n"),
            ("/proc/78/comm", "irqbalance\n"),
            ("/proc/irq/9/smp_affinity_list", "0-3\n"),
            ("/proc/irq/16/smp_affinity_list", "2-3\n"),
            ("/proc/irq/17/smp_affinity_list", "0\n"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("/sys/kernel/debug/sched/preempt", "none (voluntary) full lazy\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu2/period", "1000000000\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "0\n"),
            ("/sys/kernel/debug/sched/fair_server/cpu3/period", "1000000000\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
            ("/sys/devices/system/cpu/smt/active", "1\n"),
            ("/sys/devices/system/cpu/smt/control", "on\n"),
            ("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
            ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil\n"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state1/disable", "0\n"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state1/name", "C10\n"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state1/latency", "890\n"),
            ("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "1\n"),
            ("/sys/fs/cgroup/robot.slice/cpu.max", "50000 100000\n"),
        ],
    );
    laptop.put("/dev/cpu_dma_latency", 2_000_000_000_i32.to_ne_bytes());
    laptop
}

/// What a row finds if CPUs 2 and 3 are for the graph, and parts of its two commands.
#[track_caller]
fn mended(fake: &Fake, name: &str, found: (Grade, &str), mend: &str, undo: &str) {
    let finding = fake.row(name, &aim(&[2, 3]));
    assert_eq!((finding.grade, finding.read.as_str()), found, "{name}");
    let (mends, undoes) = commands(&finding);
    assert!(mends.contains(mend) && undoes.contains(undo), "{name}: {finding:?}");
}

#[test]
fn the_kernel_of_a_laptop_has_a_remedy_for_each_fault_and_the_undo_is_what_it_was() {
    let laptop = laptop("laptop-kernel");
    let mended = |name, found, mend, undo| mended(&laptop, name, found, mend, undo);
    let mode = "/sys/kernel/debug/sched/preempt";
    let model = "voluntary (PREEMPT_DYNAMIC), not PREEMPT_RT";
    let (mend, undo) = (format!("echo full > {mode}"), format!("echo voluntary > {mode}"));
    mended("preemption", (Bad, model), &mend, &undo);
    mended("timer migration", (Better, "on"), "kernel.timer_migration=0", "timer_migration=1");
    mended("clock source", (Bad, "hpet"), "echo tsc > /sys/dev", "echo hpet > /sys/dev");
    let throttling = "realtime threads get 950000 us of every 1000000 us";
    mended("RT throttling", (Better, throttling), "runtime_us=-1", "runtime_us=950000");
    let fair = "it may take 50000 us of every 1000000 us";
    mended("fair server", (Better, fair), "echo 0 > /sys", "echo 50000000 > /sys");
    let swapon = "swapon /dev/sda2; swapon -p 100 /dev/zram0";
    let on = "on /dev/sda2, /dev/zram0";
    mended("swap", (Better, on), "swapoff /dev/sda2 /dev/zram0", swapon);
    mended("huge pages", (Better, "always"), "echo madvise > ", "echo always > ");
    // No file says which options its kernel was built with.
    let timers = laptop.row("timers", &aim(&[2, 3]));
    assert!(timers.grade == Grade::Unknown && timers.show.is_some(), "{timers:?}");
}

#[test]
fn the_processors_of_a_laptop_have_one_too() {
    let laptop = laptop("laptop-processors");
    let mended = |name, found, mend, undo| mended(&laptop, name, found, mend, undo);
    let add = r#"sed -i 's/^GRUB_CMDLINE_LINUX="/&isolcpus=2-3 /' /etc/default/grub"#;
    mended("isolated CPUs", (Better, "none"), add, "sed -i 's/isolcpus=2-3 //' /etc/default/");
    mended("nohz_full", (Better, "none"), "nohz_full=2-3", "s/nohz_full=2-3 //");
    mended("rcu_nocbs", (Better, "none"), "rcu_nocbs=2-3", "s/rcu_nocbs=2-3 //");
    let cpu = "/sys/devices/system/cpu";
    let governors = format!(
        "echo powersave > {cpu}/cpu2/cpufreq/scaling_governor; \
         echo schedutil > {cpu}/cpu3/cpufreq/scaling_governor"
    );
    mended(
        "governor",
        (Better, "powersave on CPUs 2-3"),
        "for i in 2 3; do echo performance > /",
        &governors,
    );
    let mend = format!("for s in {cpu}/cpu2/cpuidle/state1; do echo 1 > $s/disable");
    let undo = mend.replace("1 >", "0 >");
    mended("idle states", (Bad, "the deepest is 'C10', 890 us"), &mend, &undo);
    mended("cpu_dma_latency", (Better, "no process holds it"), "exec 9> /dev/cpu_dma", "exec 9>&-");
    mended("SMT", (Better, "active"), "echo off > ", "echo on > ");
    mended(
        "IRQ affinity",
        (Better, "2 of 3 may come to CPUs 2-3"),
        "for i in 9 16; do echo 0-1 > /proc/irq/$i/smp_affinity_list; done",
        "echo 0-3 > /proc/irq/9/smp_affinity_list; echo 2-3 > /proc/irq/16/smp_affinity_list",
    );
    mended("irqbalance", (Better, "runs"), "systemctl stop", "systemctl start irqbalance");
}

#[test]
fn the_user_of_a_laptop_is_told_how_to_get_what_is_not_allowed_yet() {
    let laptop = laptop("laptop-user");
    let mended = |name, found, mend, undo| mended(&laptop, name, found, mend, undo);
    let rtprio = "/etc/security/limits.d/sinew-rtprio.conf";
    let (mend, undo) = (format!("echo '@sinew - rtprio 95' > {rtprio}"), format!("rm {rtprio}"));
    mended("rtprio", (Bad, "SCHED_FIFO is not allowed to this user"), &mend, &undo);
    let locked = "8192 KiB, so nothing is locked";
    mended("memlock", (Better, locked), "adduser marta sinew", "deluser marta sinew");
    let quota = "/sys/fs/cgroup/robot.slice/cpu.max";
    let (mend, undo) = (format!("echo max > {quota}"), format!("echo '50000 100000' > {quota}"));
    let limit = "50000 us in each of its periods (50000 100000)";
    mended("cgroup CPU limit", (Better, limit), &mend, &undo);
}

#[test]
fn a_virtual_machine_says_what_only_its_host_could_mend() {
    let guest = any(
        "guest",
        &[
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC @0\n"),
            ("/proc/sys/kernel/osrelease", "6.18.44-fc\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/cmdline", "console=ttyS0 panic=1 -- --preempt=full\n"),
            ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor tsc\n"),
            ("/proc/stat", "cpu  100 0 100 9700 0 0 0 100 0 0\n"),
            ("/sys/devices/system/cpu/online", "0\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
        ],
    );
    guest.built("CONFIG_PREEMPT_NONE=y\n# CONFIG_HIGH_RES_TIMERS is not set\nCONFIG_HZ=100\n");
    let row = |name| guest.row(name, &aim(&[0]));
    let preemption = row("preemption");
    assert_eq!(preemption.read, "none (PREEMPT_DYNAMIC), not PREEMPT_RT");
    assert!(commands(&preemption).0.starts_with("mount -t debugfs none /sys/kernel/debug && echo"));
    let timers = row("timers");
    assert_eq!(timers.read, "no high resolution (CONFIG_HIGH_RES_TIMERS), HZ 100");
    let throttling = row("RT throttling");
    assert_eq!(throttling.grade, Grade::Good, "not its limit any more: {throttling:?}");
    let fair = row("fair server");
    assert_eq!(fair.grade, Grade::Unknown);
    assert!(fair.show.is_some_and(|show| show.contains("grep . /sys/kernel/debug/sched/fair_s")));
    for (name, grade, read) in [
        ("virtual machine", Better, "yes"),
        ("steal", Bad, "1.000 % of the time since boot"),
        // With one CPU there is none to keep free.
        ("isolated CPUs", Better, "none"),
        ("nohz_full", Better, "this kernel has none (CONFIG_NO_HZ_FULL)"),
    ] {
        let finding = row(name);
        assert_eq!((finding.grade, finding.read.as_str()), (grade, read), "{name}");
        assert!(finding.remedy.is_none(), "{name}: {finding:?}");
    }
    assert!(row("governor").read.starts_with("no governor here"));
}

#[test]
fn a_container_without_sys_knows_its_limits_and_says_what_it_does_not_know() {
    let inside = Fake::with("inside", ANY);
    fs::remove_dir_all(inside.0.join("sys")).expect("a folder of ours");
    fs::remove_file(inside.0.join("proc/2/comm")).expect("a file of ours");
    inside.put("/proc/1/cgroup", "4:cpu,cpuacct:/docker/c0ffee\n0::/docker/c0ffee\n");
    inside.put("/proc/self/cgroup", "4:cpu,cpuacct:/docker/c0ffee\n0::/docker/c0ffee\n");
    inside.put("/proc/self/mounts", "cgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n");
    inside.put("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n");
    inside.put("/cg/cpu/docker/c0ffee/cpu.rt_runtime_us", "0\n");
    inside.put("/cg/cpu/docker/cpu.cfs_quota_us", "150000\n");
    inside.put("/cg/cpu/docker/c0ffee/cpu.cfs_quota_us", "-1\n");
    let row = |name| inside.row(name, &aim(&[0, 1]));
    let share = row("cgroup RT share");
    assert_eq!((share.grade, share.read.as_str()), (Bad, "none"));
    let quota = "/cg/cpu/docker/cpu.cfs_quota_us";
    let limit = row("cgroup CPU limit");
    assert!(limit.from.contains(&quota.into()) && limit.remedy.is_none(), "{limit:?}");
    assert!(limit.note.is_some_and(|note| note.contains("--cpus (Docker, Podman)")));
    let rights = row("rtprio");
    assert!(commands(&rights).0.contains("--cap-add=SYS_NICE --ulimit rtprio=95"), "{rights:?}");
    assert_eq!(row("container").read, "Docker");
    for name in ["isolated CPUs", "nohz_full", "SMT", "clock source", "huge pages", "IRQ affinity"]
    {
        assert_eq!(row(name).grade, Grade::Unknown, "{name}");
    }
}

//! The machine that figures were taken on: what other people must know to compare theirs.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A cache of the first CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size.
    pub size_kib: u64,
}

/// The kernel's description of the machine. A field that it does not give is empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model.
    pub cpu: String,
    /// The CPU's family, model and stepping: models with the same name may differ in them. Reports
    /// of earlier versions do not have it.
    #[serde(default)]
    pub revision: Option<String>,
    /// Revision of the CPU's microcode. Reports of earlier versions do not have it.
    #[serde(default)]
    pub microcode: Option<String>,
    /// The online CPUs as the kernel lists them: `0-3,8`.
    pub cpus_online: String,
    /// The CPUs that this process may use.
    pub cpus_allowed: Vec<u32>,
    /// The kernel's release.
    pub kernel: String,
    /// `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`, or `none`.
    pub preemption: String,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Caches of the first CPU.
    pub caches: Vec<Cache>,
    /// Load average over 1, 5 and 15 minutes, when this was read.
    #[serde(rename = "load_average")]
    pub load: Vec<f64>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Whether the CPU reports a hypervisor.
    pub virtualised: bool,
}

impl Machine {
    /// Reads the machine's data. Takes well under a millisecond.
    pub fn read() -> Machine {
        let cpu = text("/proc/cpuinfo").unwrap_or_default();
        let version = text("/proc/version").unwrap_or_default();
        let load = text("/proc/loadavg").unwrap_or_default();
        Machine {
            cpu: field(&cpu, "model name").unwrap_or(std::env::consts::ARCH).into(),
            revision: revision(&cpu),
            microcode: field(&cpu, "microcode").map(str::to_owned),
            cpus_online: text("/sys/devices/system/cpu/online").unwrap_or_default(),
            cpus_allowed: cpus_allowed(),
            kernel: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            preemption: preemption(&version, text("/sys/kernel/realtime").as_deref()),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            caches: (0..).map_while(cache).collect(),
            load: load.split(' ').take(3).filter_map(|load| load.parse().ok()).collect(),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            virtualised: field(&cpu, "flags").is_some_and(has_hypervisor),
        }
    }

    /// The machine as JSON.
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// The machine in one line.
    pub fn to_line(&self) -> String {
        let mut parts = vec![self.cpu.clone()];
        parts.push(match self.cpus_allowed.as_slice() {
            [cpu] => format!("CPU {cpu} (online {})", self.cpus_online),
            cpus => format!("{} CPUs (online {})", cpus.len(), self.cpus_online),
        });
        parts.push(format!("Linux {} {}", self.kernel, self.preemption));
        parts.extend(self.governor.iter().map(|governor| format!("governor {governor}")));
        parts.extend(self.clock_source.iter().map(|clock| format!("clock {clock}")));
        parts.extend(self.load.first().map(|load| format!("load {load:.2}")));
        parts.extend(self.virtualised.then(|| "virtual machine".into()));
        parts.join(", ")
    }

    /// The differences of `other`, as far as figures depend on them, one phrase each with both
    /// values. The current load and the CPUs of a process are not compared.
    pub fn differences(&self, other: &Machine) -> Vec<String> {
        self.differing(other).map(|(_, text)| text).collect()
    }

    /// The differences which show that `other` is another machine, or this one with another kernel.
    /// Settings are not compared.
    pub fn is_another(&self, other: &Machine) -> Vec<String> {
        const FIXED: [&str; 7] =
            ["cpu", "revision", "microcode", "online CPUs", "kernel", "caches", "virtual machine"];
        self.differing(other)
            .filter_map(|(name, text)| FIXED.contains(&name).then_some(text))
            .collect()
    }

    /// The values that differ: the name of each, and the phrase about it.
    fn differing(&self, other: &Machine) -> impl Iterator<Item = (&'static str, String)> {
        let shown =
            |fact: String| if fact.is_empty() { "not known".into() } else { format!("'{fact}'") };
        let both = self.facts().into_iter().zip(other.facts());
        both.filter(|((_, here), (_, there))| here != there).map(
            move |((name, here), (_, there))| {
                let (here, there) = (shown(here), shown(there));
                (name, format!("{name} is {there} there and {here} here"))
            },
        )
    }

    fn facts(&self) -> [(&'static str, String); 10] {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_default();
        let cache = |cache: &Cache| format!("L{} {} {} KiB", cache.level, cache.ty, cache.size_kib);
        let caches: Vec<_> = self.caches.iter().map(cache).collect();
        [
            ("cpu", self.cpu.clone()),
            ("revision", known(&self.revision)),
            ("microcode", known(&self.microcode)),
            ("online CPUs", self.cpus_online.clone()),
            ("kernel", self.kernel.clone()),
            ("preemption", self.preemption.clone()),
            ("governor", known(&self.governor)),
            ("caches", caches.join(", ")),
            ("clock source", known(&self.clock_source)),
            ("virtual machine", if self.virtualised { "yes" } else { "no" }.into()),
        ]
    }
}

/// Empty if the kernel does not say.
fn cpus_allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// A file's text without its last newline; `None` if it cannot be read.
fn text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().into())
}

/// The first `name : value` of /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// `None` if the processor's identification has another form.
fn revision(cpuinfo: &str) -> Option<String> {
    let of = |name| field(cpuinfo, name);
    let (family, model, stepping) = (of("cpu family")?, of("model")?, of("stepping")?);
    Some(format!("family {family}, model {model}, stepping {stepping}"))
}

fn has_hypervisor(flags: &str) -> bool {
    flags.split(' ').any(|flag| flag == "hypervisor")
}

fn preemption(version: &str, realtime: Option<&str>) -> String {
    let models = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"];
    let model = match realtime {
        Some("1") => models[0],
        _ => {
            let named = |model: &&str| version.split([' ', ')']).any(|word| word == *model);
            models.into_iter().find(named).unwrap_or("none")
        }
    };
    model.into()
}

fn cache(index: u32) -> Option<Cache> {
    let of = |name| text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
    let size_kib = of("size")?.trim_end_matches('K').parse().ok()?;
    Some(Cache { level: of("level")?.parse().ok()?, ty: of("type")?, size_kib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_its_preemption() {
        let version = |model| format!("Linux version 6.18.4 (gcc) #1 SMP {model} Mon Jan 1 2026");
        assert_eq!(preemption(&version("PREEMPT_DYNAMIC"), None), "PREEMPT_DYNAMIC");
        assert_eq!(preemption(&version("PREEMPT_RT"), None), "PREEMPT_RT");
        assert_eq!(preemption(&version("PREEMPT"), Some("1")), "PREEMPT_RT");
        assert_eq!(preemption(&version(""), Some("0")), "none");
    }

    #[test]
    fn a_cpu_is_known_by_its_model_and_flags() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Foo 9000 @ 2: GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(cpuinfo, "model name"), Some("Foo 9000 @ 2: GHz"));
        assert!(field(cpuinfo, "flags").is_some_and(has_hypervisor));
        assert_eq!(field("", "flags"), None);
        assert_eq!(revision(cpuinfo), None);
        let cpuinfo = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Foo\nstepping\t: 1\n";
        assert_eq!(revision(cpuinfo).as_deref(), Some("family 25, model 17, stepping 1"));
    }

    #[test]
    fn another_machine_differs_in_what_no_setting_changes() {
        let here = Machine { cpu: "Foo".into(), governor: Some("a".into()), ..Machine::default() };
        let there = Machine { governor: Some("b".into()), ..here.clone() };
        assert_eq!(here.differences(&there), ["governor is 'b' there and 'a' here"]);
        assert_eq!(here.is_another(&there), [""; 0]);
        let (level, ty, size_kib) = (3, "Unified".into(), 32768);
        let caches = vec![Cache { level, ty, size_kib }];
        let other = Machine { caches, ..there.clone() };
        assert_eq!(
            here.is_another(&other),
            ["caches is 'L3 Unified 32768 KiB' there and not known here"]
        );
        let there = Machine { microcode: Some("0x2b".into()), ..there };
        assert_eq!(here.is_another(&there), ["microcode is '0x2b' there and not known here"]);
    }

    #[test]
    fn a_report_of_before_all_was_read_is_read() {
        let mut json = Machine::default().to_json();
        let fields = json.as_object_mut().expect("an object");
        ["microcode", "revision"].iter().for_each(|&name| drop(fields.remove(name)));
        let machine: Machine = serde_json::from_value(json).expect("it is one");
        assert_eq!(machine, Machine::default());
    }

    #[test]
    fn the_line_holds_what_was_read() {
        let machine = Machine {
            cpu: "Foo 9000".into(),
            cpus_online: "0-1".into(),
            cpus_allowed: vec![0, 1],
            kernel: "6.18".into(),
            preemption: "PREEMPT_RT".into(),
            load: vec![0.5, 1.0, 2.0],
            ..Machine::default()
        };
        assert_eq!(
            machine.to_line(),
            "Foo 9000, 2 CPUs (online 0-1), Linux 6.18 PREEMPT_RT, load 0.50"
        );
        assert_eq!(machine.to_json()["load_average"][2], 2.0);
        assert!(machine.to_json()["governor"].is_null());
    }
}

//! Services run on the CPUs that their spec names, with all that they start; refusals of the kernel
//! are shown.

use std::collections::BTreeSet;
use std::fs;

use sinew_control::status::{DomainState, EventKind, LimitStatus};
use sinew_core::privileges;

use crate::stage::{QUICK, Service, Stage, marked};
use crate::{Test, request_on};

pub(crate) const TESTS: &[Test] = tests![
    a_service_and_what_it_starts_run_on_its_cpus,
    a_service_without_cpus_of_its_own_keeps_away_from_the_core,
    cpus_that_the_kernel_refuses_are_shown,
    flows_have_a_worker_for_each_cpu_of_their_domain,
];

/// A CPU that no machine here has; the kernel's sets hold it.
const NOWHERE: u32 = 1023;

/// The CPUs on which each thread of a process may run, as the kernel writes them: `0-2,5`.
pub(crate) fn allowed(pid: u32) -> BTreeSet<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let statuses = threads.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
    let lists = statuses.filter_map(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Some(numbers(line?.trim()))
    });
    lists.collect()
}

fn numbers(list: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let range = |range: &str| match range.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(range)..=number(range),
    };
    list.split(',').flat_map(range).collect()
}

/// Our own CPUs, at least two of them.
fn several() -> Option<Vec<u32>> {
    let cpus = privileges::cpus().expect("affinity");
    if cpus.len() >= 2 {
        return Some(cpus);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: one CPU");
    println!("skipped: with one CPU there is nothing to choose");
    None
}

/// What is shown of a domain's CPUs.
fn row(stage: &Stage, domain: &str) -> Option<LimitStatus> {
    stage.status(domain).limits.into_iter().find(|row| row.what == "cpus")
}

fn a_service_and_what_it_starts_run_on_its_cpus() {
    let Some(cpus) = several() else { return };
    // Also the CPU of the core, which a service gets only if it asks for it.
    for &cpu in &cpus {
        let domain = format!("{QUICK}, cpus: [{cpu}]");
        let forks = Service { domain: &domain, node: "mood: fork, after: 1", ..Service::ALONE };
        let mut stage = Stage::beside(&[forks]);
        let mark = stage.marker();
        // The core, the service, a shell and two that it started.
        stage.until("all are there", |_| marked(&mark).len() == 5);
        let core = stage.process("core");
        for pid in marked(&mark).into_iter().filter(|pid| *pid != core) {
            assert_eq!(allowed(pid), BTreeSet::from([vec![cpu]]), "CPU {cpu}, process {pid}");
        }
        let row = row(&stage, "servant").expect("it asks for a CPU");
        assert_eq!((row.asked, row.enforced, row.remedy), (cpu.to_string(), true, None));
        assert_eq!(row.got, format!("{cpu} (affinity of its threads)"));
        stage.stop_unharmed();
    }
}

fn a_service_without_cpus_of_its_own_keeps_away_from_the_core() {
    let Some(cpus) = several() else { return };
    let mut stage = Stage::beside(&[Service::ALONE]);
    stage.until_event("servant", EventKind::Ready, 1);
    let (_, left) = cpus.split_last().expect("several");
    assert_eq!(allowed(stage.process("servant")), BTreeSet::from([left.to_vec()]));
    assert_eq!(row(&stage, "servant"), None, "nothing was asked for");
    stage.stop_unharmed();
}

fn cpus_that_the_kernel_refuses_are_shown() {
    let own = privileges::cpus().expect("affinity");
    let text = format!(
        "name: test\ndomains: {{servant: {{{QUICK}, cpus: [{NOWHERE}]}}}}\nnodes: [{{kind: \
         servant, domain: servant}}]\n"
    );
    let believed: Vec<u32> = own.iter().copied().chain([NOWHERE]).collect();
    let mut stage = Stage::asked(request_on(&text, &believed));
    stage.until("it serves", |stage| stage.is("servant", DomainState::Running));
    stage.until_event("servant", EventKind::Output, 1);
    let said = stage.texts("servant", EventKind::Output)[0];
    let words = "cannot run on the CPUs [1023] that its spec names: ";
    assert!(said.starts_with(words), "{said}");
    let row = row(&stage, "servant").expect("it asks for a CPU");
    assert_eq!((&*row.asked, row.enforced), ("1023", false));
    assert!(row.got.ends_with(" (affinity of its threads)"), "{row:?}");
    let remedy = row.remedy.expect("it is not enforced");
    assert!(remedy.starts_with("see 'sinew log' for what the kernel refused"), "{remedy}");
    stage.run.stop();
    stage.end();
}

fn flows_have_a_worker_for_each_cpu_of_their_domain() {
    let Some(cpus) = several() else { return };
    let worker_names = |keys: &str| {
        let text = format!(
            "name: test\ndomains: {{web: {{{QUICK}, {keys}}}}}\nnodes:\n  - {{kind: beat, ports: \
             {{out: [{{name: step, port: in}}]}}}}\n  - {{kind: step}}\n"
        );
        let mut stage = Stage::start(&text);
        stage.until("it serves", |stage| stage.is("web", DomainState::Running));
        let process = stage.process("web");
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it lives").flatten();
        let names = tasks.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
        let names = names.filter(|name| name.starts_with("flows/")).count();
        stage.run.stop();
        stage.end();
        names
    };
    let last = cpus.last().expect("several");
    assert_eq!(worker_names(&format!("cpus: [{last}]")), 1);
    assert_eq!(worker_names(&format!("cpus: [{last}], flows: {{workers: 2}}")), 2);
    assert_eq!(worker_names("start_deadline: 10s"), cpus.len(), "there is no core");
}

//! Domains whose parent is killed: they end by themselves, whatever they were about to do.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use sinew_core::privileges;

use crate::{HANGS_AFTER, run_with, two_domains};

/// Set for a second start of this program, which is to be killed: the spec that it runs.
pub(crate) const PARENT: &str = "SINEW_TEST_PARENT";

/// Runs a graph, and says so once its first fifty cycles are over.
pub(crate) fn run_to_be_orphaned(text: &str) {
    let mut said = false;
    run_with(text, &privileges::cpus().expect("affinity"), |_, cycles| {
        if cycles >= 50 && !said {
            said = true;
            println!("running");
        }
    });
}

pub(crate) fn no_domain_outlives_its_parent() {
    let rows =
        [("", true), ("fail_at: 50, failure: hang,", true), ("failure: hang_in_make,", false)];
    for (source, runs) in rows {
        let text = two_domains(source, "delivery: latest");
        let mut parent = Command::new(env::current_exe().expect("this program"))
            .env(PARENT, text)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the parent starts");
        await_that("two domains", || domains(&parent).len() == 2);
        let domains = domains(&parent);
        if runs {
            let mut said = [0];
            parent.stdout.take().expect("a pipe").read_exact(&mut said).expect("it runs");
        }
        assert!(domains.iter().all(|&domain| lives(domain)), "{source}: a domain ended too early");
        parent.kill().expect("the kill lands");
        parent.wait().expect("it was ours");
        await_that("the domains' end", || !domains.iter().any(|&domain| lives(domain)));
    }
}

/// The children of a process that have become domains.
fn domains(parent: &Child) -> Vec<u32> {
    let path = format!("/proc/{0}/task/{0}/children", parent.id());
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let is_domain = |child: &u32| {
        let line = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.contains(sinew_runtime::run::DOMAIN_COMMAND)
    };
    children.filter(is_domain).collect()
}

/// Whether a process is there and no zombie.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANGS_AFTER, "waited in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}

//! Bounds of real processes, as far as this machine and this user allow them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::set_capabilities;
use sinew_control::status::LimitStatus;
use sinew_spec::plan::{
    Flows, Overrun, PoolSize, Realtime, Restart, RestartPolicy, Role, ServiceDomain,
};

use super::cgroup::Refusal;
use super::*;

/// How long anything may take; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A CPU that no machine here has.
const NOWHERE: u32 = 1023;

fn service(limits: ServiceLimits, user: Option<&str>) -> Domain {
    let restart = Restart {
        policy: RestartPolicy::Never,
        backoff_ns: 1,
        backoff_max_ns: 1,
        restarts_max: 1,
        window_ns: 1,
    };
    let role = Role::Service(ServiceDomain {
        flows: Flows { workers: None, blocking: PoolSize::fixed(1) },
        nodes: vec![],
        restart,
        start_deadline_ns: 1,
        heartbeat_ns: 1,
        stop_deadline_ns: 1,
        limits,
        cpus: None,
        guest: None,
    });
    let user_span = Default::default();
    Domain { name: "log".into(), user: user.map(String::from), user_span, host: None, role }
}

/// A script that ends with its shell, long after the test.
const SLEEPS: &str = "sleep 600; true";

fn prepared(test: &str, limits: ServiceLimits) -> Confinement {
    Confinement::prepare(&service(limits, None), &run(test)).expect("no user")
}

/// The name of a run, one for each test.
fn run(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// A shell that carries out `script` within the bounds, in a process group of its own.
struct Shell(Child);

impl Shell {
    fn start(confinement: &Confinement, script: &str) -> Shell {
        Shell::start_as(confinement, script, "none")
    }

    fn start_as(confinement: &Confinement, script: &str, marker: &str) -> Shell {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env(MARKER, marker).env("NOTIFY_SOCKET", "/none");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        confinement.apply(&mut command);
        let shell = Shell(command.spawn().expect("the shell starts"));
        confinement.entered(shell.0.id()).expect("it is in its cgroup, if there is one");
        shell
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child of ours").is_some()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended, and all of its group with it.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until_ns = sinew_core::clock::now_ns() + PATIENCE.as_nanos() as u64;
    while !is_so() {
        assert!(sinew_core::clock::now_ns() < until_ns, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The processes, this one excepted, whose command line ends with `word`.
fn with_word(word: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let lines = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
    lines.filter(|line| line.trim_end_matches('\0').ends_with(word)).count()
}

#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn row<'a>(rows: &'a [LimitStatus], what: &str) -> &'a LimitStatus {
    rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no '{what}' in {rows:?}"))
}

#[test]
fn a_user_that_does_not_exist_is_an_error_before_anything_starts() {
    let domain = service(ServiceLimits::default(), Some("nobody_of_that_name"));
    let error = Confinement::prepare(&domain, &run("no-user")).expect_err("there is no such user");
    let text = error.to_string();
    assert!(text.contains("domain 'log': user 'nobody_of_that_name' does not exist"), "{text}");
    assert!(text.contains("create it with") && text.contains("remove 'user'"), "{text}");
}

#[test]
fn who_may_not_change_the_user_is_told_so() {
    let other = if is_root() { "nobody" } else { "root" };
    // Capabilities belong to a thread: this one does without.
    let refused = thread::spawn(move || {
        let mut held = capabilities(None).expect("our own");
        held.effective -= CapabilitySet::SETUID;
        set_capabilities(None, held).expect("less is always allowed");
        Confinement::prepare(&service(ServiceLimits::default(), Some(other)), &run("no-right"))
    });
    let text = refused.join().expect("no panic").expect_err("not without it").to_string();
    let expected = format!("only root may start it as user '{other}'");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn a_domain_runs_as_its_user_with_nothing_left_of_ours() {
    if !is_root() {
        return skip("only root may become another user");
    }
    let domain = service(ServiceLimits::default(), Some("nobody"));
    let confinement = Confinement::prepare(&domain, &run("user")).expect("nobody is somebody");
    let shell = Shell::start(&confinement, SLEEPS);
    let rows = confinement.read_back(shell.id());
    let user = row(&rows, "user");
    assert!(user.enforced && user.remedy.is_none(), "{user:?}");
    assert!(user.asked.starts_with("nobody (uid 65534, gid "), "{user:?}");
    let status = fs::read_to_string(format!("/proc/{}/status", shell.id())).expect("it runs");
    for set in ["CapPrm:", "CapEff:", "CapAmb:"] {
        let line = status.lines().find(|line| line.starts_with(set)).expect("a set");
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
    let environment = fs::read(format!("/proc/{}/environ", shell.id())).expect("we are root");
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("USER=nobody") && environment.contains("HOME=/nonexistent"));
    assert!(!environment.contains("NOTIFY_SOCKET"), "{environment}");
}

#[test]
fn a_realtime_domain_of_another_user_may_stay_realtime() {
    if !is_root() {
        return skip("only root may become another user");
    }
    let realtime = Realtime {
        period_ns: 1_000_000,
        deadline_ns: 1_000_000,
        priority: 42,
        overrun: Overrun::Count,
        threads: vec![],
    };
    let user = Some("nobody".into());
    let (role, user_span) = (Role::Realtime(realtime), Default::default());
    let domain = Domain { name: "control".into(), user, user_span, host: None, role };
    let confinement = Confinement::prepare(&domain, &run("realtime")).expect("nobody is somebody");
    let shell = Shell::start(&confinement, SLEEPS);
    let limits = fs::read_to_string(format!("/proc/{}/limits", shell.id())).expect("it runs");
    let words = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect("a limit");
        line.split_whitespace().take(2).map(String::from).collect::<Vec<_>>()
    };
    // Some roots may not raise a limit: then the domain's privileges tell what it has.
    if is_capable(CapabilitySet::SYS_RESOURCE) {
        assert_eq!(words("Max realtime priority"), ["42", "42"]);
        assert_eq!(words("Max locked memory"), ["unlimited", "unlimited"]);
    }
    assert!(row(&confinement.read_back(shell.id()), "user").enforced);
    assert!(!confinement.kill().expect("nothing to do"), "it has no cgroup of its own");
}

#[test]
fn descriptors_are_limited_and_read_back() {
    let limits = ServiceLimits { descriptors: Some(32), ..ServiceLimits::default() };
    let confinement = prepared("files", limits);
    let shell = Shell::start(&confinement, SLEEPS);
    let rows = confinement.read_back(shell.id());
    let row = row(&rows, "descriptors");
    assert_eq!((row.got.as_str(), row.enforced), ("32 (RLIMIT_NOFILE)", true));
    // A process that has not started, or is gone, has nothing.
    let rows = confinement.read_back(u32::MAX);
    assert!(rows[0].got.starts_with("unknown: ") && !rows[0].enforced, "{rows:?}");
}

#[test]
fn every_limit_is_enforced_or_says_why_not_and_what_to_do() {
    let limits = ServiceLimits {
        memory_bytes: Some(64 << 20),
        cpu_percent: Some(50),
        descriptors: Some(64),
        processes: Some(20),
    };
    let confinement = prepared("rows", limits);
    let shell = Shell::start(&confinement, SLEEPS);
    let rows = confinement.read_back(shell.id());
    let whats: Vec<_> = rows.iter().map(|row| &*row.what).collect();
    assert_eq!(whats, ["memory", "cpu", "processes", "descriptors"]);
    for row in rows {
        assert_eq!(row.enforced, row.remedy.is_none(), "{row:?}");
        assert!(row.enforced || row.got.contains(": "), "no reason: {row:?}");
    }
}

#[test]
fn cpus_are_enforced_only_if_the_threads_together_have_all_of_them() {
    // Nobody has moved the shell: it has what we have.
    let own = sinew_core::privileges::cpus().expect("affinity");
    let asks = |cpus: Vec<u32>| {
        let mut domain = service(ServiceLimits::default(), None);
        if let Role::Service(service) = &mut domain.role {
            service.cpus = Some(cpus);
        }
        let confinement = Confinement::prepare(&domain, &run("cpus")).expect("no user");
        let shell = Shell::start(&confinement, SLEEPS);
        row(&confinement.read_back(shell.id()), "cpus").clone()
    };
    let all = asks(own.clone());
    assert_eq!((all.got.starts_with(&all.asked), all.remedy), (true, None));
    let too_few =
        asks(own.iter().copied().chain([NOWHERE]).collect()).remedy.expect("one is missing");
    assert!(too_few.contains("cpuset"), "{too_few}");
    let too_many = asks(vec![NOWHERE]).remedy.expect("it has others");
    assert!(too_many.contains("threads"), "{too_many}");
}

#[test]
fn without_a_cgroup_a_process_is_still_kept_from_filling_the_memory() {
    let refusal = Refusal { why: "a test".into(), remedy: "none".into() };
    let confinement = Confinement {
        limits: ServiceLimits { memory_bytes: Some(32 << 20), ..ServiceLimits::default() },
        user: None,
        cgroup: None,
        refusals: refuse_all(&refusal),
        priority: None,
        serves: true,
        cpus: None,
    };
    let mut small = Shell::start(&confinement, "dd if=/dev/zero of=/dev/null bs=1M count=1");
    let mut large = Shell::start(&confinement, "dd if=/dev/zero of=/dev/null bs=64M count=1");
    assert!(small.0.wait().expect("a child of ours").success());
    assert!(!large.0.wait().expect("a child of ours").success());
    let shell = Shell::start(&confinement, SLEEPS);
    let rows = confinement.read_back(shell.id());
    assert!(!rows[0].enforced, "{rows:?}");
    let expected = "32 MiB for each process (RLIMIT_DATA, not shared memory): a test";
    assert_eq!((rows[0].got.as_str(), rows[0].remedy.as_deref()), (expected, Some("none")));
}

#[test]
fn strays_are_found_by_their_mark_and_nobody_else() {
    let confinement = prepared("strays", ServiceLimits::default());
    let marker = run("mark");
    // One in the background, one that left the session and whose parent is gone.
    let time = format!("1{}.1", std::process::id());
    let script = format!("sleep {time} & (setsid sleep {time} &) ; sleep {time}; true");
    let _shell = Shell::start_as(&confinement, &script, &marker);
    let mut other = Shell::start_as(&confinement, SLEEPS, &format!("{marker}0"));
    wait_until("all three sleep", || with_word(&time) == 3);
    assert!(kill_strays(&marker) >= 4, "the shell and three that sleep");
    assert_eq!(with_word(&time), 0);
    assert_eq!(kill_strays(&marker), 0);
    assert!(!other.has_ended(), "it has another mark");
}

#[test]
fn who_has_strays_sought_is_woken_once_they_are_gone() {
    let confinement = prepared("sought", ServiceLimits::default());
    let marker = run("sought");
    let _shell = Shell::start_as(&confinement, SLEEPS, &marker);
    let strays = Strays::seek(&marker);
    let until_ns = sinew_core::clock::now_ns() + PATIENCE.as_nanos() as u64;
    await_end(strays.over().expect("a thread and a pipe"), until_ns);
    assert!(strays.are_gone(), "waited in vain until the search was over");
    assert!(strays.count() >= 1, "the shell");
    assert_eq!(kill_strays(&marker), 0);
}

#[test]
fn who_kills_strays_does_not_kill_itself() {
    let own = fs::read("/proc/self/environ").expect("our own");
    let Some(entry) = own.split(|&byte| byte == 0).find(|entry| !entry.is_empty()) else {
        return skip("the environment is empty");
    };
    let own = std::process::id() as i32;
    assert!(strays::find(entry).iter().all(|(pid, _)| *pid != own));
}

#[test]
fn a_cgroup_knows_also_those_who_hide_and_goes_with_them() {
    let confinement = prepared("hide", ServiceLimits::default());
    let Some(cgroup) = &confinement.cgroup else {
        return skip("we may make no cgroup here");
    };
    let folder = cgroup.folder().to_path_buf();
    let time = format!("1{}.2", std::process::id());
    let script = format!("(setsid env -i sleep {time} &) ; sleep 600; true");
    let mut shell = Shell::start(&confinement, &script);
    assert!(cgroup.holds(shell.id()));
    wait_until("the hidden one sleeps", || with_word(&time) == 1);
    if !confinement.kill().expect("the kernel kills") {
        return skip("a kernel before 5.14 cannot kill a cgroup");
    }
    wait_until("the shell has ended", || shell.has_ended());
    wait_until("the hidden one has ended", || with_word(&time) == 0);
    // The cgroup serves for the next start as well.
    let again = Shell::start(&confinement, SLEEPS);
    assert!(cgroup.holds(again.id()));
    drop(confinement);
    assert!(!folder.exists(), "it goes with the last of its processes");
    let own = fs::read_to_string("/proc/self/cgroup").expect("our own");
    assert!(!own.contains("supervisor"), "we are back where we were: {own}");
}

/// Limits that only cgroups of version 2 enforce.
fn limited(test: &str, limits: ServiceLimits) -> Confinement {
    let confinement = prepared(test, limits);
    assert!(confinement.refusals.is_empty(), "{:?}", confinement.refusals);
    confinement
}

#[test]
#[ignore = "needs a cgroup with controllers: systemd-run --scope -p Delegate=yes cargo test ..."]
fn a_service_that_fills_its_memory_is_killed_and_that_is_counted() {
    let confinement = limited(
        "memory",
        ServiceLimits { memory_bytes: Some(16 << 20), ..ServiceLimits::default() },
    );
    assert_eq!(confinement.memory_kills(), 0);
    let mut shell = Shell::start(&confinement, "dd if=/dev/zero of=/dev/null bs=64M count=1; true");
    let rows = confinement.read_back(shell.id());
    assert_eq!((rows[0].got.as_str(), rows[0].enforced), ("16 MiB (cgroup memory.max)", true));
    // The shell, which is innocent, goes with it: a domain fails as a whole.
    assert!(!shell.0.wait().expect("a child of ours").success());
    assert!(confinement.memory_kills() > 0);
}

#[test]
#[ignore = "needs a cgroup with controllers: systemd-run --scope -p Delegate=yes cargo test ..."]
fn a_service_that_starts_too_many_processes_is_refused_them() {
    let limits =
        ServiceLimits { processes: Some(8), cpu_percent: Some(50), ..ServiceLimits::default() };
    let confinement = limited("processes", limits);
    let script = "i=0; while [ $i -lt 20 ]; do sleep 600 & i=$((i+1)); done; wait";
    let shell = Shell::start(&confinement, script);
    let cgroup = confinement.cgroup.as_ref().expect("there is one");
    wait_until("a start was refused", || cgroup.count("pids.events", "max ") > 0);
    let rows = confinement.read_back(shell.id());
    assert_eq!(row(&rows, "processes").got, "8 (cgroup pids.max)");
    assert_eq!(row(&rows, "cpu").got, "50 % (cgroup cpu.max)");
    assert!(rows.iter().all(|row| row.enforced), "{rows:?}");
}

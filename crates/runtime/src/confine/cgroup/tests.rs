//! The tree of cgroups: how ours is found, and when it is divided. Where the kernel's answers are
//! not needed, a folder takes its place.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const HYBRID: &str = "\
30 24 0:26 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

/// A folder that looks like a cgroup with these controllers and processes.
struct Fake(PathBuf);

impl Fake {
    fn new(controllers: &str, processes: &[u32]) -> Fake {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // A number that no other test gets; nothing is ordered by it.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("sinew-cgroup-{}-{number}", std::process::id());
        let fake = Fake(std::env::temp_dir().join(name));
        fs::create_dir(&fake.0).expect("a new folder");
        fake.put("cgroup.type", "domain");
        fake.put("cgroup.controllers", controllers);
        fake.put("cgroup.subtree_control", "");
        let processes: String = processes.iter().map(|pid| format!("{pid}\n")).collect();
        fake.put("cgroup.procs", &processes);
        fake
    }

    fn put(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).expect("a file of the folder");
    }

    fn text(&self, file: &str) -> String {
        line_of(&self.0.join(file)).expect("a file of the folder")
    }

    /// The leaf into which we step aside; a real one comes with its files.
    fn with_leaf(self) -> Fake {
        fs::create_dir(self.leaf()).expect("a new folder");
        fs::write(self.leaf().join("cgroup.procs"), "").expect("a new file");
        self
    }

    fn leaf(&self) -> PathBuf {
        self.0.join(format!("{}supervisor", prefix()))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn our_cgroup_is_found_below_the_mount() {
    let find = |mounts: &str, own: &str| folder_of(mounts, &format!("4:memory:/x\n0::{own}\n"));
    let unified = Path::new("/sys/fs/cgroup/unified");
    let root = find(HYBRID, "/").expect("it is mounted");
    assert_eq!(root.display().to_string(), "/sys/fs/cgroup/unified");
    assert_eq!(find(HYBRID, "/a.slice/b.scope"), Ok(unified.join("a.slice/b.scope")));
    let part = HYBRID.replace("0:28 /", "0:28 /docker/7");
    assert_eq!(find(&part, "/docker/7/x"), Ok(unified.join("x")));
    let outside = find(&part, "/elsewhere").expect_err("it cannot be reached");
    assert!(outside.why.contains("is not below the mount"), "{outside:?}");
    assert!(find(HYBRID, "/../x").is_err());
    let old = HYBRID.replace("cgroup2 cgroup2", "cgroup cgroup");
    assert!(find(&old, "/").expect_err("not mounted").why.contains("not mounted"));
}

#[test]
fn a_cgroup_that_is_ours_alone_is_divided_and_we_step_aside() {
    let own = std::process::id();
    let fake = Fake::new("cpu memory pids", &[own]).with_leaf();
    assert_eq!(enable(&fake.0, Controller::Memory), Ok(()));
    assert_eq!(fake.text("cgroup.subtree_control"), "+memory");
    assert_eq!(line_of(&fake.leaf().join("cgroup.procs")).expect("it is there"), own.to_string());
    assert_eq!(base_of(&fake.leaf()), fake.0, "from there the same cgroup is divided");
    assert_eq!(base_of(&fake.0), fake.0);
}

#[test]
fn nobody_else_is_moved_or_limited() {
    let fake = Fake::new("cpu memory pids", &[std::process::id(), 1, 2]).with_leaf();
    let refusal = enable(&fake.0, Controller::Cpu).expect_err("it is shared");
    assert!(refusal.why.contains("also has processes of other programs (2)"), "{refusal:?}");
    assert!(refusal.remedy.contains("Delegate=yes"), "{refusal:?}");
    assert_eq!(fake.text("cgroup.subtree_control"), "");
    assert_eq!(line_of(&fake.leaf().join("cgroup.procs")).expect("it is there"), "");
}

#[test]
fn the_root_may_hold_processes_beside_cgroups() {
    let fake = Fake::new("cpu memory pids", &[std::process::id(), 1, 2]);
    fs::remove_file(fake.0.join("cgroup.type")).expect("it was there");
    assert_eq!(enable(&fake.0, Controller::Processes), Ok(()));
    assert_eq!(fake.text("cgroup.subtree_control"), "+pids");
}

#[test]
fn a_controller_that_is_not_there_is_named() {
    let fake = Fake::new("hugetlb", &[std::process::id()]);
    let refusal = enable(&fake.0, Controller::Processes).expect_err("it is not there");
    assert!(refusal.why.contains("has no controller 'pids'"), "{refusal:?}");
    assert!(!fake.leaf().exists(), "we stay where we are");
}

#[test]
fn a_limit_goes_to_its_file() {
    let fake = Fake::new("", &[]);
    let cgroup = Cgroup { folder: fake.0.clone() };
    for file in ["memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max"] {
        fake.put(file, "");
    }
    let limits = ServiceLimits {
        memory_bytes: Some(64 << 20),
        cpu_percent: Some(150),
        processes: Some(20),
        descriptors: None,
    };
    for controller in Controller::ALL {
        let value = controller.value(&limits).expect("it is limited");
        assert_eq!(cgroup.limit(controller, &value), Ok(()));
    }
    assert_eq!(fake.text("memory.max"), "67108864");
    assert_eq!(
        (fake.text("memory.swap.max"), fake.text("memory.oom.group")),
        ("0".into(), "1".into())
    );
    assert_eq!(
        (fake.text("cpu.max"), fake.text("pids.max")),
        ("150000 100000".into(), "20".into())
    );
    assert_eq!(Controller::Memory.value(&ServiceLimits::default()), None);
}

#[test]
fn events_are_read_from_their_files() {
    let fake = Fake::new("", &[]);
    let cgroup = Cgroup { folder: fake.0.clone() };
    let kills = || cgroup.count("memory.events", "oom_kill ");
    assert_eq!(kills(), 0);
    fake.put("memory.events", "low 0\nhigh 0\nmax 71\noom 2\noom_kill 3\noom_group_kill 1\n");
    assert_eq!(kills(), 3);
}

#[test]
fn what_a_killed_supervisor_left_is_swept_away() {
    let fake = Fake::new("", &[]);
    let make = |name: &str| {
        fs::create_dir_all(fake.0.join(name)).expect("a new folder");
        fake.0.join(name)
    };
    // No process has a number above the kernel's greatest.
    let dead = [make("sinew.4194305.arm.log/below"), make("sinew.4194305.supervisor")];
    let others = [make(&format!("{}arm.log", prefix())), make("user.slice"), make("sinew.x.y")];
    sweep(&fake.0);
    assert!(dead.iter().all(|folder| !folder.exists()));
    assert!(!fake.0.join("sinew.4194305.arm.log").exists());
    assert!(others.iter().all(|folder| folder.exists()));
}

#[test]
fn we_go_back_when_the_last_domain_is_gone() {
    let fake = Fake::new("memory", &[]).with_leaf();
    fake.put("cgroup.subtree_control", "memory");
    let domain = fake.0.join(format!("{}arm.log", prefix()));
    fs::create_dir(&domain).expect("a new folder");
    step_back(&fake.0);
    assert_eq!(fake.text("cgroup.subtree_control"), "memory", "a domain is left");
    fs::remove_dir(&domain).expect("it is empty");
    step_back(&fake.0);
    assert_eq!(fake.text("cgroup.subtree_control"), "-memory");
    assert_eq!(fake.text("cgroup.procs"), std::process::id().to_string());
}

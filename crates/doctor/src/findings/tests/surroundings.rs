//! On which system, in whose container: what the files of each look like, and what follows.

use super::{Fake, Grade, aim, commands, machines};

/// What a row finds on the robot's controller with other files.
fn found(name: &str, row: &str, files: &[(&str, &str)], gone: &[&str]) -> super::Finding {
    let fake = machines::robot(name);
    files.iter().for_each(|(path, text)| fake.put(path, text));
    gone.iter().for_each(|path| {
        std::fs::remove_file(fake.0.join(path)).expect("a file of ours");
    });
    fake.row(row, &aim(&[1]))
}

#[test]
fn a_system_is_known_by_its_name_or_by_those_that_it_is_like() {
    for (text, as_for) in [
        ("PRETTY_NAME='Fedora Linux 42'\nID=fedora\n", "Fedora Linux 42; commands as for Fedora"),
        ("NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "as for Fedora"),
        ("ID=raspbian\nID_LIKE=debian\n", "raspbian; commands as for Debian"),
        ("NAME=Mint\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "Mint; commands as for Debian"),
        ("NAME=NixOS\nID=nixos\n", "NixOS; its own commands are not known here"),
    ] {
        let found = found("systems", "system", &[("/etc/os-release", text)], &[]);
        assert_eq!(found.grade, Grade::Good, "{found:?}");
        assert!(found.read.contains(as_for), "{found:?}");
    }
    let odd = found("systems", "system", &[("/etc/os-release", "NAME=x\nID=\n")], &[]);
    assert_eq!(odd.grade, Grade::Unknown, "{odd:?}");
    assert!(odd.read.contains("expected a line ID="), "{odd:?}");
}

#[test]
fn a_container_is_known_by_the_marks_of_its_maker() {
    let podman = "PATH=/bin\0container=podman\0HOME=/\0";
    let pod = "KUBERNETES_SERVICE_HOST=10.96.0.1\0PATH=/bin\0";
    for (path, text, maker) in [
        ("/run/.containerenv", "", "Podman"),
        ("/.dockerenv", "", "Docker"),
        ("/run/secrets/kubernetes.io/serviceaccount/token", "x", "Kubernetes"),
        ("/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"),
        ("/run/systemd/container", "sandbox\n", "a maker that is not known here"),
        ("/run/host/container-manager", "lxc\n", "LXC"),
        ("/proc/1/environ", podman, "Podman"),
        ("/proc/1/environ", pod, "Kubernetes"),
        ("/proc/1/cgroup", "0::/system.slice/docker-c0ffee.scope\n", "Docker"),
        ("/proc/1/cgroup", "0::/kubepods.slice/pod1\n", "Kubernetes"),
        ("/proc/1/cgroup", "1:cpu:/libpod-7\n", "Podman"),
    ] {
        // In a container the second process is another one, or there is none.
        for gone in [&["proc/2/comm"][..], &[]] {
            let files = [(path, text), ("/proc/2/comm", "sh\n")];
            let files = if gone.is_empty() { &files[..] } else { &files[..1] };
            let found = found("makers", "container", files, gone);
            assert_eq!((found.grade, found.read.as_str()), (Grade::Good, maker), "{path}");
            assert_eq!(found.from, [path.replace("/serviceaccount/token", "")]);
        }
    }
    // A pod bears the mark of CRI-O too.
    let both = [("/run/.containerenv", ""), ("/proc/1/environ", pod)];
    assert_eq!(found("makers", "container", &both, &["proc/2/comm"]).read, "Kubernetes");
}

#[test]
fn what_cannot_be_told_is_said() {
    let is = |files: &[(&str, &str)], gone: &[&str], words: &str| {
        let found = found("unsure", "container", files, gone);
        assert_eq!(found.grade, Grade::Unknown, "{found:?}");
        assert!(found.read.contains(words), "{found:?}");
    };
    is(&[], &["proc/2/comm"], "perhaps a container");
    is(&[("/proc/2/comm", "sh\n")], &[], "process 2 is not the kernel's");
    is(&[("/.dockerenv", "")], &[], "/.dockerenv is there, but process 2 is the kernel's");
    is(&[], &["proc/2/comm", "proc/1/stat"], "no such file");
}

#[test]
fn in_a_container_no_file_of_its_image_is_taken_for_one_of_the_machine() {
    let fake = Fake::new("image");
    let robot = machines::robot("image-of-robot");
    for path in machines::paths(&robot.0) {
        let below = path.strip_prefix(&robot.0).expect("one of its files");
        fake.put(&below.display().to_string(), std::fs::read(&path).expect("a file of ours"));
    }
    fake.put("/proc/sys/kernel/version", "#1 SMP PREEMPT Debian");
    fake.put("/sys/kernel/realtime", "0");
    fake.put("/sys/devices/system/cpu/nohz_full", "");
    fake.put("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n");
    let row = |name| fake.row(name, &aim(&[1]));
    assert!(commands(&row("nohz_full")).0.contains("/etc/default/grub"));
    assert!(commands(&row("preemption")).0.starts_with("apt-get install linux-image-rt"));
    fake.put("/run/.containerenv", "");
    std::fs::remove_file(fake.0.join("proc/2/comm")).expect("a file of ours");
    assert!(commands(&row("nohz_full")).0.starts_with("add 'nohz_full=1' on the kernel's command"));
    assert!(commands(&row("preemption")).0.starts_with("boot a kernel that was built with"));
}

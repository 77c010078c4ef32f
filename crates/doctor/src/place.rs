//! Where this runs: on which system and in whose container, as far as files tell. What should be
//! done depends on both.

use crate::root::{Root, Unread};

pub(crate) const OS_RELEASE: &str = "/etc/os-release";
/// Outside a container the second process is a thread of the kernel.
pub(crate) const SECOND: &str = "/proc/2/comm";
const KERNELS: &str = "kthreadd";

/// Systems with the same commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Debian, Ubuntu and systems derived from them: apt-get, adduser.
    Debian,
    /// Fedora, RHEL and systems derived from them: dnf, usermod.
    Fedora,
    /// Any other system: only commands that all systems have.
    Other,
}

/// The program that starts containers, and so decides what is allowed in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Docker,
    Podman,
    Kubernetes,
    Nspawn,
    Lxc,
    /// A maker that files name, but that is not known here.
    Other,
}

/// Whether this is a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// No: the processes are those of the machine.
    Machine,
    /// Yes.
    Container(Maker),
    /// The files prove neither.
    Unsure,
}

/// The system and the container together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) system: System,
    pub(crate) inside: Inside,
}

impl Place {
    /// Reads as much of it as the files tell.
    pub(crate) fn read(root: &Root) -> Place {
        Place {
            system: system(root).map_or(System::Other, |(system, _)| system),
            inside: inside(root).map_or(Inside::Unsure, |(inside, _)| inside),
        }
    }

    pub(crate) fn is_container(self) -> bool {
        matches!(self.inside, Inside::Container(_))
    }
}

impl Maker {
    /// The name of each maker, and the words by which files name it.
    const NAMES: [(Maker, &str, &[&str]); 5] = [
        (Maker::Kubernetes, "Kubernetes", &["kubepods"]),
        (Maker::Podman, "Podman", &["podman", "libpod"]),
        (Maker::Docker, "Docker", &["docker"]),
        (Maker::Nspawn, "systemd-nspawn", &["systemd-nspawn"]),
        (Maker::Lxc, "LXC", &["lxc"]),
    ];

    pub(crate) fn name(self) -> &'static str {
        let row = Maker::NAMES.iter().find(|(maker, ..)| *maker == self);
        row.map_or("a maker that is not known here", |(_, name, _)| name)
    }

    fn named_in(text: &str) -> Option<Maker> {
        let is_named = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Maker::NAMES.iter().find(|(.., words)| is_named(words)).map(|(maker, ..)| *maker)
    }
}

/// The system and its name in words.
///
/// # Errors
/// If the file does not name the system.
pub(crate) fn system(root: &Root) -> Result<(System, String), Unread> {
    let text = root.text(OS_RELEASE)?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches(['"', '\'']))
    };
    let id = value("ID").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Unread::odd(OS_RELEASE, &text, "a line ID=..."))?;
    let like = value("ID_LIKE").unwrap_or_default();
    let family = std::iter::once(id).chain(like.split_whitespace()).find_map(|word| match word {
        "debian" | "ubuntu" => Some(System::Debian),
        "fedora" | "rhel" | "centos" => Some(System::Fedora),
        _ => None,
    });
    let name = value("PRETTY_NAME").or(value("NAME")).unwrap_or(id);
    Ok((family.unwrap_or(System::Other), name.into()))
}

/// Whether this is a container, and the file that says so.
///
/// # Errors
/// If nothing can be seen.
pub(crate) fn inside(root: &Root) -> Result<(Inside, &'static str), Unread> {
    let second = root.text(SECOND);
    let is_machines = second.as_deref().is_ok_and(|name| name == KERNELS);
    match (told(root), is_machines) {
        (Some((maker, path)), false) => Ok((Inside::Container(maker), path)),
        // A machine that was made from a container's image, or a container that sees the machine's
        // processes.
        (Some((_, path)), true) => Ok((Inside::Unsure, path)),
        (None, true) => Ok((Inside::Machine, SECOND)),
        // A process that sees the first process, and a second one that is not the kernel's, is in
        // some container. If the first process is hidden too, that does not follow.
        (None, false) if second.is_ok() || root.has("/proc/1/stat") => Ok((Inside::Unsure, SECOND)),
        (None, false) => Err(Unread::Missing(SECOND.into())),
    }
}

/// The environment of the first process. Only the user of that process may read it.
const GIVEN: &str = "/proc/1/environ";
const CGROUP: &str = "/proc/1/cgroup";

/// The maker that files name, and the first file that names it.
fn told(root: &Root) -> Option<(Maker, &'static str)> {
    /// What a maker puts into each container.
    const MARKS: [(&str, Maker); 2] =
        [("/run/.containerenv", Maker::Podman), ("/.dockerenv", Maker::Docker)];
    /// Where systemd in a container writes which program made the container.
    const NAMES: [&str; 2] = ["/run/systemd/container", "/run/host/container-manager"];
    let text = |path: &'static str| Some((path, root.text(path).ok()?));
    let mark = || MARKS.into_iter().find(|(path, _)| root.has(path)).map(|(path, is)| (is, path));
    let name = || NAMES.into_iter().find_map(text).map(|(path, text)| (known(&text), path));
    let given = || {
        let (path, text) = text(GIVEN)?;
        let by = text.split('\0').find_map(|variable| variable.strip_prefix("container="))?;
        Some((known(by), path))
    };
    let cgroup = || text(CGROUP).and_then(|(path, text)| Some((Maker::named_in(&text)?, path)));
    pod(root).or_else(mark).or_else(name).or_else(given).or_else(cgroup)
}

fn known(by: &str) -> Maker {
    Maker::named_in(by).unwrap_or(Maker::Other)
}

/// A pod also has the marks of the program that runs its containers, so a pod is looked for first.
fn pod(root: &Root) -> Option<(Maker, &'static str)> {
    const SECRETS: [&str; 2] = ["/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io"];
    let has = |path, words| root.text(path).is_ok_and(|text| text.contains(words));
    let given = || has(GIVEN, "KUBERNETES_SERVICE_HOST=").then_some(GIVEN);
    let cgroup = || has(CGROUP, "kubepods").then_some(CGROUP);
    let path = SECRETS.into_iter().find(|path| root.has(path)).or_else(given).or_else(cgroup);
    path.map(|path| (Maker::Kubernetes, path))
}

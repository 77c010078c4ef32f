//! How a right is obtained. That differs from system to system and from container to container.
//! Facts go in, commands come out.

use super::{PRIORITY, Remedy};
use crate::place::{Inside, Maker, Place, System};

/// A right that a realtime thread needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// SCHED_FIFO.
    Priority,
    /// Locked memory.
    Memory,
}

/// Who asks, and what the files about that user's limits say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The user's name as a shell takes it, or a shell expression that gives it.
    pub(crate) user: String,
    /// A file that gives the right to this user, from the next login on.
    pub(crate) granted: Option<String>,
    /// A group that has the right while the user is not in it.
    pub(crate) group: Option<String>,
    /// Whether this is in a user namespace: capabilities are then its own, and give nothing
    /// outside.
    pub(crate) is_rootless: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Steps {
    /// `None` where no command of root does it.
    pub(crate) remedy: Option<Remedy>,
    pub(crate) note: String,
}

/// Where the limits of logins are set.
pub(crate) const LIMITS: &str = "/etc/security/limits.d";
/// The group of the package, which the commands here create too.
const GROUP: &str = "sinew";
const NOBODY_LOGS_IN: &str = "the rights are given where the container is started; \
                              /etc/security/limits.d does nothing in here, for nobody logs in";

impl Right {
    /// Its name in the files of login limits.
    pub(crate) fn item(self) -> &'static str {
        match self {
            Right::Priority => "rtprio",
            Right::Memory => "memlock",
        }
    }

    /// What is asked for.
    fn value(self) -> &'static str {
        match self {
            Right::Priority => "95",
            Right::Memory => "unlimited",
        }
    }

    /// Whether a value in the files of login limits is enough.
    pub(crate) fn is_met_by(self, value: &str) -> bool {
        let is_unlimited = ["unlimited", "infinity", "-1"].contains(&value);
        let is_enough = |value: u64| self == Right::Priority && value >= u64::from(PRIORITY);
        is_unlimited || value.parse().is_ok_and(is_enough)
    }

    fn capability(self) -> &'static str {
        match self {
            Right::Priority => "SYS_NICE",
            Right::Memory => "IPC_LOCK",
        }
    }
}

/// How a user gets a right in a place.
pub(crate) fn steps(right: Right, place: Place, asker: &Asker) -> Steps {
    match place.inside {
        Inside::Container(maker) => from_outside(right, maker, asker.is_rootless),
        Inside::Machine => by_login(right, place.system, asker),
        Inside::Unsure => {
            let Steps { remedy, note } = by_login(right, place.system, asker);
            let (capability, item) = (right.capability(), right.item());
            let note = format!(
                "{note}; if this is a container, that does nothing: then start it with the \
                 capability {capability} or a limit of {item}"
            );
            Steps { remedy, note }
        }
    }
}

/// Through pam_limits, which all logins of the systems that we know go through.
fn by_login(right: Right, system: System, asker: &Asker) -> Steps {
    let Asker { user, granted, group, .. } = asker;
    if let Some(file) = granted {
        return Steps { remedy: None, note: not_yet(right, file) };
    }
    let (item, value) = (right.item(), right.value());
    let (name, file) = (group.as_deref().unwrap_or(GROUP), format!("{LIMITS}/sinew-{item}.conf"));
    let (join, leave) = match system {
        System::Debian => (format!("adduser {user} {name}"), format!("deluser {user} {name}")),
        System::Fedora | System::Other => {
            (format!("usermod -aG {name} {user}"), format!("gpasswd -d {user} {name}"))
        }
    };
    let (mend, undo) = match group {
        Some(_) => (join, leave),
        None => (
            format!("echo '@{name} - {item} {value}' > {file} && groupadd -rf {name} && {join}"),
            format!("rm {file}; {leave}"),
        ),
    };
    let note = "holds from the next login on: log out of every session first, a desktop's too";
    Steps { remedy: Some(Remedy { mend, undo }), note: note.into() }
}

/// What to say if the files grant the right, but this process does not have it.
fn not_yet(right: Right, file: &str) -> String {
    let (limit, value) = match right {
        Right::Priority => ("LimitRTPRIO", "95"),
        Right::Memory => ("LimitMEMLOCK", "infinity"),
    };
    format!(
        "{file} gives it to this user, but not to this process, which is of an older login or of \
         none: log out of every session, a desktop's too, and log in again. What systemd starts \
         needs {limit}={value} in its unit: for programs of a desktop, '[Service]' and \
         '{limit}={value}' in /etc/systemd/system/user@.service.d/sinew.conf, then 'systemctl \
         daemon-reload' and a new login"
    )
}

/// By the options of the program that starts the container.
fn from_outside(right: Right, maker: Maker, is_rootless: bool) -> Steps {
    let is_priority = right == Right::Priority;
    let option = match (maker, is_priority) {
        (Maker::Docker | Maker::Podman, true) => "--ulimit rtprio=95",
        (Maker::Docker | Maker::Podman, false) => "--ulimit memlock=-1",
        (Maker::Nspawn, true) => "--rlimit=RTPRIO=95",
        (Maker::Nspawn, false) => "--capability=CAP_IPC_LOCK --rlimit=MEMLOCK=infinity",
        (Maker::Lxc, true) => "lxc.prlimit.rtprio = 95",
        (Maker::Lxc, false) => "lxc.prlimit.memlock = unlimited",
        (Maker::Kubernetes | Maker::Other, _) => "",
    };
    let capability = right.capability();
    let option = match maker {
        Maker::Docker | Maker::Podman if !is_rootless => {
            format!("--cap-add={capability} {option}")
        }
        _ => option.into(),
    };
    let start = |program: &str| Remedy {
        mend: format!("{program} {option} ...    # start the container anew with this"),
        undo: format!("{program} ...    # start it anew without"),
    };
    let remedy = match maker {
        Maker::Docker => Some(start("docker run")),
        Maker::Podman => Some(start("podman run")),
        Maker::Nspawn => Some(start("systemd-nspawn")),
        Maker::Kubernetes => Some(Remedy {
            mend: format!(
                "securityContext: {{runAsUser: 0, capabilities: {{add: [{capability}]}}}}    # of \
                 the container, in the pod's YAML"
            ),
            undo: "securityContext: {}    # as it was".into(),
        }),
        Maker::Lxc => Some(Remedy {
            mend: format!("{option}    # a line of the container's file, then start it anew"),
            undo: "# take that line out again".into(),
        }),
        Maker::Other => None,
    };
    let mut note = NOBODY_LOGS_IN.to_string();
    note += match maker {
        Maker::Kubernetes => {
            "; Kubernetes sets no limits of processes, and gives a capability to root only"
        }
        Maker::Nspawn => "; units in it get no more than these options allow",
        _ => "",
    };
    if maker == Maker::Other {
        note += &format!("; it needs the capability {capability} or a limit of {}", right.item());
    }
    if is_rootless {
        note += "; this one is rootless, so capabilities give nothing, and no limit exceeds that \
                 of the user outside: run 'sinew doctor' there first";
    }
    Steps { remedy, note }
}

#[cfg(test)]
mod tests;

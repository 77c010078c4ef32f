//! On which system this runs, and in whose container. The commands depend on both.

use super::{Aim, Finding, Grade};
use crate::place::{self, Inside, OS_RELEASE, SECOND, System};
use crate::root::{Root, Unread};

pub(crate) fn system(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let (system, name) = place::system(root)?;
    let as_for = match system {
        System::Debian => "commands as for Debian",
        System::Fedora => "commands as for Fedora",
        System::Other => "its own commands are not known here; those below are what most have",
    };
    Ok(Finding::new(Grade::Good, format!("{name}; {as_for}"), &[OS_RELEASE]))
}

pub(crate) fn container(root: &Root, _: &Aim) -> Result<Finding, Unread> {
    let (inside, path) = place::inside(root)?;
    Ok(match inside {
        Inside::Machine => Finding::new(Grade::Good, "none", &[path]),
        Inside::Container(maker) => Finding::new(Grade::Good, maker.name(), &[path]),
        Inside::Unsure if path == SECOND => {
            let read = "no file names one, but process 2 is not the kernel's: perhaps a container";
            Finding::new(Grade::Unknown, read, &[path])
        }
        Inside::Unsure => {
            let read = format!(
                "{path} is there, but process 2 is the kernel's: a machine made of an image, or a \
                 container that sees the machine's processes"
            );
            Finding::new(Grade::Unknown, read, &[path, SECOND])
        }
    })
}

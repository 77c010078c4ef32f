//! Another user for a domain: looked up with its groups. Before anything is started this checks
//! that we may become it, and that it may run this program.

use std::ffi::CString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::{self, getgrouplist};
use rustix::fs::getxattr;
use rustix::process::geteuid;
use rustix::thread::CapabilitySet;

use super::is_capable;

/// A user with all its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Ascending, the first group among them.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: PathBuf,
}

impl User {
    /// The user of domain `domain`, if we may start the domain as that user.
    pub(crate) fn find(name: &str, domain: &str) -> io::Result<User> {
        let user = User::look_up(name, domain)?;
        if !user.is_us() {
            user.check(domain)?;
        }
        Ok(user)
    }

    /// The user of domain `domain`, whether or not we may become it.
    pub(crate) fn look_up(name: &str, domain: &str) -> io::Result<User> {
        let found = unistd::User::from_name(name)
            .map_err(|errno| refuse(domain, format!("cannot look up user '{name}': {errno}")))?;
        let Some(found) = found else {
            return Err(refuse(
                domain,
                format!(
                    "user '{name}' does not exist; create it with 'useradd --system {name}', or \
                     remove 'user'"
                ),
            ));
        };
        let c_name = CString::new(name).expect("a name that was found holds no zero byte");
        let groups = getgrouplist(&c_name, found.gid)
            .map_err(|errno| refuse(domain, format!("cannot read groups of '{name}': {errno}")))?;
        let mut groups: Vec<_> = groups.iter().map(|group| group.as_raw()).collect();
        groups.sort_unstable();
        groups.dedup();
        let (uid, gid) = (found.uid.as_raw(), found.gid.as_raw());
        Ok(User { name: found.name, uid, gid, groups, home: found.dir })
    }

    /// Whether we are this user: then nothing is to be changed.
    pub(crate) fn is_us(&self) -> bool {
        geteuid().as_raw() == self.uid
    }

    fn check(&self, domain: &str) -> io::Result<()> {
        let name = &self.name;
        if !is_capable(CapabilitySet::SETUID | CapabilitySet::SETGID) {
            let text = format!(
                "only root may start it as user '{name}'; start the graph as root (or with \
                 CAP_SETUID and CAP_SETGID), or remove 'user'"
            );
            return Err(refuse(domain, text));
        }
        let program = std::env::current_exe()?;
        // The domain starts through /proc/self/exe: the folders on the way do not matter.
        let file = std::fs::metadata("/proc/self/exe")?;
        // Only the kernel can judge an access list.
        let has_list = getxattr("/proc/self/exe", "system.posix_acl_access", &mut [0; 0]).is_ok();
        if !has_list && !self.may_execute(&file) {
            let (path, mode) = (program.display(), file.mode() & 0o7777);
            let text = format!(
                "user '{name}' may not execute {path} (mode {mode:04o}); allow it with 'chmod \
                 o+rx {path}', or remove 'user'"
            );
            return Err(refuse(domain, text));
        }
        Ok(())
    }

    fn may_execute(&self, file: &Metadata) -> bool {
        let shift = match () {
            () if file.uid() == self.uid => 6,
            () if self.groups.contains(&file.gid()) => 3,
            () => 0,
        };
        self.uid == 0 || file.mode() >> shift & 1 == 1
    }
}

fn refuse(domain: &str, text: String) -> io::Error {
    io::Error::other(format!("domain '{domain}': {text}"))
}

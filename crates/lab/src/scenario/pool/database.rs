//! The databases: a PostgreSQL server of the lab's own, in a temporary folder, which ends with the
//! lab however the lab ends; and a file of SQLite.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use sinew_core::sys::end_with_parent;

use super::client;
use super::place::{Place, USER};
use crate::graph::folder;
use crate::harness::process::Killed;

/// Where Debian has PostgreSQL, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The user that runs PostgreSQL if the lab is root, because PostgreSQL refuses to be root: the
/// first of these that exists.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// A server that does not answer within this time never will.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take to end; after that it is killed.
const END_MAX: Duration = Duration::from_secs(5);
/// Time between two looks at whether it has started, or ended.
const LOOK: Duration = Duration::from_millis(20);
/// Its settings: no data must survive the lab, no connection comes from another machine, nothing
/// runs beside the queries, and its memory has no name outside its folder. A query that never
/// returns keeps its connection even after the process that sent it was killed, so the server
/// allows many connections.
const SETTINGS: [&str; 8] = [
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
    "max_connections=200",
    "shared_buffers=16MB",
    "dynamic_shared_memory_type=mmap",
];

/// A database that queries are sent to; it ends when this is dropped.
pub(in crate::scenario) struct DatabaseServer {
    pub(super) place: Place,
    /// The process of PostgreSQL.
    process: Option<Killed>,
}

impl DatabaseServer {
    /// Makes a file of SQLite.
    pub(in crate::scenario) fn sqlite() -> Result<DatabaseServer, String> {
        Ok(DatabaseServer { place: client::make_sqlite(&folder())?, process: None })
    }

    /// Starts a PostgreSQL server with its table. The kernel ties it to the calling thread.
    pub(in crate::scenario) fn postgres() -> Result<DatabaseServer, String> {
        client::BUILT?;
        let programs = programs().ok_or("PostgreSQL is not installed (Debian: postgresql)")?;
        let (folder, user) = (folder().join("postgres"), user()?);
        fs::create_dir(&folder).map_err(|error| format!("PostgreSQL's folder: {error}"))?;
        if let Some((user, group)) = user {
            chown(&folder, Some(user), Some(group))
                .map_err(|error| format!("PostgreSQL's folder: {error}"))?;
        }
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            // A process group of its own: signals from the terminal are for the lab.
            command.current_dir(&folder).process_group(0).stdin(Stdio::null());
            end_with_parent(&mut command);
            command
        };
        let data = folder.join("data");
        let mut init = command("initdb");
        init.args(["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]);
        let init = init.args(["--username", USER, "-D"]).arg(&data).output();
        let init = init.map_err(|error| format!("initdb cannot be started: {error}"))?;
        if !init.status.success() {
            let said = String::from_utf8_lossy(&init.stderr);
            let last = said.trim_end().lines().last().unwrap_or_default();
            return Err(format!("initdb: {}: {last}", init.status));
        }
        let mut server = command("postgres");
        server.arg("-D").arg(&data).arg("-k").arg(&folder).stdout(Stdio::null());
        server.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        let log = fs::File::create(folder.join("log"));
        let log = log.map_err(|error| format!("PostgreSQL's log: {error}"))?;
        let process = server.stderr(log).spawn();
        let process = process.map_err(|error| format!("PostgreSQL cannot be started: {error}"))?;
        let mut server = DatabaseServer {
            place: Place::Postgres(folder.clone()),
            process: Some(Killed(process)),
        };
        server.fill(&folder)?;
        Ok(server)
    }

    /// Its URL, as a graph and other programs read it.
    pub(in crate::scenario) fn url(&self) -> String {
        self.place.url()
    }

    /// The process whose children serve queries.
    pub(super) fn process(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.0.id())
    }

    /// Waits until it answers, and makes the table.
    fn fill(&mut self, folder: &Path) -> Result<(), String> {
        let begun = Instant::now();
        while let Err(why) = client::reach_postgres(folder) {
            if self.has_ended() || begun.elapsed() > ANSWERS_WITHIN {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                let last = log.trim_end().lines().last().unwrap_or_default();
                return Err(format!("PostgreSQL does not answer: {why}; {last}"));
            }
            thread::sleep(LOOK);
        }
        client::make_postgres(folder)
    }

    fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|it| !matches!(it.0.try_wait(), Ok(None)))
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            // SIGINT orders PostgreSQL to end at once, without waiting for clients. An error means
            // that it has ended.
            let _ = kill_process(Pid::from_child(&process.0), Signal::INT);
        }
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < END_MAX {
            thread::sleep(LOOK);
        }
        self.process = None;
        // What cannot be removed is in the folder for temporary files.
        let _ = match &self.place {
            Place::Postgres(folder) => fs::remove_dir_all(folder),
            Place::Sqlite(folder) => fs::remove_file(folder.join(super::place::FILE)),
        };
    }
}

/// The folder with the programs of the newest PostgreSQL; `None` if there is none.
pub(super) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())))
        .map(|(version, path)| (version, path.join("bin")))
        .filter(|(_, path)| has_both(path))
        .max();
    let paths = env::var_os("PATH").unwrap_or_default();
    newest.map(|(_, path)| path).or_else(|| env::split_paths(&paths).find(|path| has_both(path)))
}

fn has_both(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file())
}

/// The user and group that PostgreSQL must get; `None` unless we are root.
fn user() -> Result<Option<(u32, u32)>, String> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| format!("users: {error}"))?;
    let found = USERS.iter().find_map(|name| ids(&users, name));
    found.map(Some).ok_or_else(|| {
        format!("PostgreSQL refuses root, and there is no user {}", USERS.join(" or "))
    })
}

fn ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|line| line.first() == Some(&name))?;
    Some((line.get(2)?.parse().ok()?, line.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres2:x:7:8::/:/x\npostgres:x:101:104::/:x";
        assert_eq!(ids(users, "postgres"), Some((101, 104)));
        assert_eq!(ids(users, "nobody"), None);
    }
}

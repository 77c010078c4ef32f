//! Databases for tests: a PostgreSQL server that ends with the test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use sinew_core::sys::end_with_parent;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::testing::{LIMIT, run};

/// Where Debian has PostgreSQL, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Settings for a short life: nothing must survive the test.
const SETTINGS: [&str; 5] = [
    "listen_addresses=127.0.0.1",
    "fsync=off",
    "shared_buffers=16MB",
    "dynamic_shared_memory_type=mmap",
    "ssl=on",
];
/// The password of the server's user.
pub(super) const PASSWORD: &str = "hush-hush";

/// A server.
pub(super) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    /// The user and group that run it; PostgreSQL refuses to run as root.
    user: Option<(u32, u32)>,
    port: u16,
    process: Option<Child>,
}

impl Postgres {
    /// Starts a server; `None` if PostgreSQL is not installed, which the test then says.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    pub(super) fn start() -> Option<Postgres> {
        let Some(programs) = programs() else {
            let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!ci, "PostgreSQL is not installed (Debian: postgresql)");
            eprintln!("skipped: PostgreSQL is not installed (Debian: postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let mut server = Postgres { folder, programs, user: user(), port, process: None };
        server.make();
        server.begin();
        Some(server)
    }

    /// The URL of its one database.
    pub(super) fn url(&self) -> String {
        format!("postgres://ada:{PASSWORD}@localhost:{}/postgres", self.port)
    }

    /// The same, over its socket in a folder.
    pub(super) fn socket_url(&self) -> String {
        let (port, host) = (self.port, self.folder.path().display());
        format!("postgres://ada:{PASSWORD}@/postgres?host={host}&port={port}")
    }

    /// The certificate of the authority for its TLS.
    pub(super) fn ca(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        end_with_parent(&mut command);
        command
    }

    fn make(&self) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let folder = self.folder.path();
        let own = |path: &Path| {
            if let Some((user, group)) = self.user {
                chown(path, Some(user), Some(group)).expect("root may");
            }
        };
        own(folder);
        for (name, text) in [
            ("server.crt", cert.pem()),
            ("server.key", signing_key.serialize_pem()),
            ("password", PASSWORD.to_owned()),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
            own(&path);
        }
        let mut init = self.command("initdb");
        init.args(["--auth=scram-sha-256", "--no-sync", "--no-locale", "--encoding=UTF8"]);
        init.args(["--username=ada", "--pwfile=password", "-D", "data"]);
        let made = init.output().expect("initdb starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Starts its process, and waits until it answers. The server refuses to start while a child of
    /// the earlier process still runs; then it is started again.
    pub(super) fn begin(&mut self) {
        let begun = Instant::now();
        let url = format!("{}?sslmode=disable&connect_timeout=5", self.url());
        self.process = Some(self.spawn());
        while let Err(error) = run(tokio_postgres::connect(&url, NoTls)) {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < LIMIT, "PostgreSQL does not answer: {error}; {log}");
            std::thread::sleep(std::time::Duration::from_millis(20));
            let process = self.process.as_mut().expect("it was started");
            if process.try_wait().expect("it is ours").is_some() {
                self.process = Some(self.spawn());
            }
        }
    }

    fn spawn(&self) -> Child {
        let folder = self.folder.path();
        let log = fs::File::create(folder.join("log")).expect("a file");
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-p", &self.port.to_string(), "-k"]).arg(folder);
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        for (setting, name) in [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")] {
            command.arg("-c").arg(format!("{setting}={}", folder.join(name).display()));
        }
        command.stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts")
    }

    /// Ends its process at once.
    pub(super) fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Its child processes end when they see that it has ended.
            process.kill().expect("it is ours");
            process.wait().expect("it ends");
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

/// The folder with the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).ok()?.flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(number)?.join("bin");
    newest.join("initdb").is_file().then_some(newest)
}

/// The user and group that are to run it, if this test is root.
fn user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("users");
    let lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut known = lines.filter(|line| ["postgres", "nobody"].contains(&line[0]));
    let line = known.next_back().expect("a user postgres or nobody");
    Some((line[2].parse().expect("a number"), line[3].parse().expect("a number")))
}

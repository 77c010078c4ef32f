//! `sinew run` under systemd, which is replaced by our own socket: what it is told, when, and by
//! which process.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Running, SINEW, calm, send, wait_until};

/// What systemd would receive. The folder of the tests may be too deep for a socket's name.
struct Listener {
    socket: UnixDatagram,
    path: PathBuf,
    /// All lines so far.
    heard: Vec<String>,
}

impl Listener {
    fn new(name: &str) -> Listener {
        let path = std::env::temp_dir().join(format!("sinew-{name}-{}", std::process::id()));
        // It may be left over from a run that was killed.
        let _ = fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("a socket of ours");
        Listener { socket, path, heard: vec![] }
    }

    /// `sinew run` of the calm graph. It reports to this socket. With `watchdog` it must report ten
    /// times a second that it is alive. It is started through a shell, because systemd names the
    /// process that it means.
    fn start(&self, watchdog: Option<&str>) -> Running {
        let mut command = Command::new("/bin/sh");
        let script = match watchdog {
            Some(pid) => format!("export WATCHDOG_PID={pid} WATCHDOG_USEC=200000; exec \"$@\""),
            None => "exec \"$@\"".into(),
        };
        command.args(["-c", &script, "sh", SINEW, "run", "--json", &calm()]);
        command.env("NOTIFY_SOCKET", &self.path);
        Running::start(command)
    }

    /// Receives everything that has arrived.
    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(len) => {
                    let text = std::str::from_utf8(&buffer[..len]).expect("UTF-8");
                    self.heard.extend(text.lines().map(String::from));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn count(&mut self, line: &str) -> usize {
        self.listen();
        self.heard.iter().filter(|heard| *heard == line).count()
    }

    fn wait_for(&mut self, line: &str) {
        wait_until(&format!("{line} is heard"), || self.count(line) > 0);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If it is gone, no action is needed.
        let _ = fs::remove_file(&self.path);
    }
}

#[test]
fn systemd_is_told_of_the_first_cycle_and_of_the_stop() {
    let mut listener = Listener::new("ready");
    let running = listener.start(None);
    listener.wait_for("READY=1");
    assert_eq!(listener.count("STOPPING=1"), 0);
    for domain in running.domains(2) {
        let environment = fs::read(format!("/proc/{domain}/environ")).expect("it runs");
        let environment = String::from_utf8_lossy(&environment);
        assert!(!environment.contains("NOTIFY_SOCKET"), "a domain could speak in our name");
    }
    running.signal(Signal::TERM);
    listener.wait_for("STOPPING=1");
    let report = running.answer().ended_with(0).json();
    assert!(report["start_to_first_cycle_ms"].is_number(), "it was ready after a cycle");
    assert_eq!((listener.count("READY=1"), listener.count("STOPPING=1")), (1, 1));
    assert_eq!(listener.count("WATCHDOG=1"), 0, "nobody asked for it");
    let status = "STATUS=calm: running, 2 of 2 domains run, 0 restarts";
    assert!(listener.count(status) > 0, "{:?}", listener.heard);
}

#[test]
fn a_supervisor_that_does_not_watch_is_not_taken_for_alive() {
    let mut listener = Listener::new("watchdog");
    let running = listener.start(Some("$$"));
    listener.wait_for("READY=1");
    wait_until("it said three times that it lives", || listener.count("WATCHDOG=1") >= 3);
    running.signal(Signal::STOP);
    wait_until("it stands", || {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", running.pid())).expect("it is there");
        stat.contains(") T ")
    });
    let before = listener.count("WATCHDOG=1");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(listener.count("WATCHDOG=1"), before, "it stands, and yet it spoke");
    send(running.pid(), Signal::CONT);
    wait_until("it speaks again", || listener.count("WATCHDOG=1") > before);
    running.signal(Signal::TERM);
    running.answer().ended_with(0);
}

#[test]
fn a_watchdog_that_means_another_process_is_not_fed() {
    let mut listener = Listener::new("stranger");
    let running = listener.start(Some("1"));
    listener.wait_for("READY=1");
    running.signal(Signal::TERM);
    running.answer().ended_with(0);
    assert_eq!(listener.count("WATCHDOG=1"), 0, "{:?}", listener.heard);
}

#[test]
fn a_run_goes_on_when_nobody_listens_and_says_so_once() {
    let mut command = Command::new(SINEW);
    command.args(["run", "--json", "--duration", "100ms", &calm()]);
    command.env("NOTIFY_SOCKET", "/nowhere/notify");
    let answer = Running::start(command).answer().ended_with(0);
    assert_eq!(answer.err.matches("cannot tell systemd").count(), 1, "{}", answer.err);
}

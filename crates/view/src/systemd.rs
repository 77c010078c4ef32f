//! What a run tells systemd, or any other program that set `NOTIFY_SOCKET`: that it is ready, its
//! state, that it is alive, that it stops. The protocol is a line of text to a socket; see
//! sd_notify(3).
//!
//! The protocol is implemented here instead of by a crate: the maintained crates block until the
//! receiver takes the message, and a program that watches a machine must not block.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use sinew_control::status::{DomainRole, DomainState, Phase, Status};
use sinew_core::clock::now_ns;
use sinew_figures::units::counted;

/// How often the status is read once the graph runs.
const STATUS_NS: u64 = 1_000_000_000;
/// How often the first cycle is looked for.
const SPACING_UNTIL_READY: Duration = Duration::from_millis(20);

/// The receiver, and what it knows.
#[derive(Debug)]
pub struct Systemd {
    address: SocketAddr,
    /// How often it wants to hear that we are alive: half of its limit.
    watchdog_ns: Option<u64>,
    told: Told,
    /// Whether it was reported that messages do not reach it.
    is_deaf: bool,
}

/// What it was last told, and when.
#[derive(Clone, Debug, Default)]
struct Told {
    is_ready: bool,
    is_stopping: bool,
    status: String,
    status_ns: u64,
    alive_ns: u64,
}

impl Systemd {
    /// The receiver from the environment. `None` if the environment names none.
    ///
    /// # Errors
    /// The environment names something that is no address.
    pub fn open() -> Result<Option<Systemd>, String> {
        Systemd::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Systemd>, String> {
        let Some(name) = variable("NOTIFY_SOCKET") else { return Ok(None) };
        let address = address(&name).map_err(|error| {
            format!("NOTIFY_SOCKET={}: {error}; systemd is not notified", name.display())
        })?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_for_us =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit_us = number("WATCHDOG_USEC").filter(|&limit_us| is_for_us && limit_us > 0);
        let watchdog_ns = limit_us.map(|limit_us| limit_us.saturating_mul(1000) / 2);
        Ok(Some(Systemd { address, watchdog_ns, told: Told::default(), is_deaf: false }))
    }

    /// How long the loop may sleep between two calls of [`Systemd::tell`]: half of the rest of the
    /// limit, or less while systemd waits for the first cycle.
    pub fn spacing(&self) -> Duration {
        let for_watchdog = self.watchdog_ns.map_or(Duration::MAX, |every_ns| {
            Duration::from_nanos(every_ns / 2).max(Duration::from_millis(1))
        });
        if self.told.is_ready { for_watchdog } else { for_watchdog.min(SPACING_UNTIL_READY) }
    }

    /// Sends what is new. `ends`: the whole run stops. To be called only by the loop that watches
    /// the run, once in each pass: if the loop hangs, systemd does not take it for alive. Never
    /// blocks. Returns an error text, once.
    pub fn tell(&mut self, ends: bool, status: impl FnOnce() -> Status) -> Option<String> {
        let (text, told) = self.news(now_ns(), ends, status);
        if text.is_empty() {
            // It was checked that there is no news, too: the next check costs as much.
            self.told = told;
            return None;
        }
        match self.send(&text) {
            Ok(()) => self.told = told,
            // Its queue is full: what it was not told is still new in the next pass.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if !self.is_deaf => {
                self.is_deaf = true;
                return Some(format!("cannot tell systemd through NOTIFY_SOCKET: {error}"));
            }
            Err(_) => {}
        }
        None
    }

    /// The lines to send, and the state after they were sent. `ends`: the whole run stops. If the
    /// core stops to be held, systemd need not wait for our end.
    fn news(&self, now_ns: u64, ends: bool, status: impl FnOnce() -> Status) -> (String, Told) {
        let (mut text, mut told) = (String::new(), self.told.clone());
        if !told.is_ready || now_ns - told.status_ns >= STATUS_NS {
            let status = status();
            if !told.is_ready && has_started(&status) {
                told.is_ready = true;
                text += "READY=1\n";
            }
            let words = words(&status);
            if words != told.status {
                text += &format!("STATUS={words}\n");
                told.status = words;
            }
            told.status_ns = now_ns;
        }
        if ends && !told.is_stopping {
            told.is_stopping = true;
            text += "STOPPING=1\n";
        }
        let is_due = |every_ns| told.alive_ns == 0 || now_ns - told.alive_ns >= every_ns;
        if self.watchdog_ns.is_some_and(is_due) {
            told.alive_ns = now_ns;
            text += "WATCHDOG=1\n";
        }
        (text, told)
    }

    fn send(&self, text: &str) -> io::Result<()> {
        // A new socket each time: systemd may have created its own socket again.
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.send_to_addr(text.as_bytes(), &self.address).map(drop)
    }
}

/// A path, or a name without a file, which begins with `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::other("expected an absolute path, or a name after '@'")),
    }
}

/// Whether the start is over: every domain of the core has completed a cycle; or the core has
/// stopped before that and is held, while its services run and can say why.
fn has_started(status: &Status) -> bool {
    let mut core = status.domains.iter().filter(|domain| domain.role == DomainRole::Realtime);
    let has_cycled = core.all(|domain| domain.threads.iter().any(|thread| thread.cycles > 0));
    status.phase == Phase::Held || status.phase == Phase::Running && has_cycled
}

/// A line for people who ask systemd for the run's state.
fn words(status: &Status) -> String {
    let Status { graph, phase, domains, .. } = status;
    let running = domains.iter().filter(|domain| domain.state == DomainState::Running).count();
    let restarts = domains.iter().map(|domain| u64::from(domain.restarts)).sum::<u64>();
    let restarts = counted(restarts, "restart");
    let given_up = domains.iter().filter(|domain| domain.state == DomainState::GivenUp);
    let given_up: String = given_up.map(|domain| format!(", '{}' given up", domain.name)).collect();
    let count = domains.len();
    format!("{graph}: {phase}, {running} of {count} domains run, {restarts}{given_up}")
}

#[cfg(test)]
mod tests {
    use sinew_control::status::{DomainStatus, ThreadStatus};
    use sinew_report::fixture::status as fixture;

    use super::*;

    fn systemd(watchdog_us: &str, pid: &str) -> Systemd {
        let variable = |name: &str| match name {
            "NOTIFY_SOCKET" => Some("@test".into()),
            "WATCHDOG_USEC" => Some(watchdog_us.into()),
            _ => Some(pid.into()),
        };
        Systemd::from(variable).expect("an address").expect("somebody")
    }

    fn status(phase: Phase, cycles: u64) -> Status {
        let threads = vec![ThreadStatus { cycles, ..fixture::thread(1) }];
        let control = DomainStatus { threads, ..fixture::domain("control", DomainRole::Realtime) };
        let log = DomainStatus {
            state: DomainState::GivenUp,
            restarts: 3,
            ..fixture::domain("log", DomainRole::Service)
        };
        Status { phase, ..fixture::status(vec![control, log]) }
    }

    #[test]
    fn the_loop_looks_often_enough_for_the_watchdog_and_for_the_first_cycle() {
        let own = std::process::id().to_string();
        let mut systemd = systemd("2000000", &own);
        assert_eq!(systemd.spacing(), SPACING_UNTIL_READY);
        systemd.told.is_ready = true;
        assert_eq!(systemd.spacing(), Duration::from_millis(500));
        systemd.watchdog_ns = None;
        assert_eq!(systemd.spacing(), Duration::MAX);
    }

    #[test]
    fn it_is_ready_after_the_first_cycle_and_once() {
        let mut systemd = systemd("", "");
        for (phase, cycles) in [(Phase::Starting, 0), (Phase::Running, 0)] {
            let (text, told) = systemd.news(1, false, || status(phase, cycles));
            assert!(!text.contains("READY"), "{text}");
            systemd.told = told;
        }
        assert!(has_started(&status(Phase::Held, 0)), "what holds is there to say why");
        let (text, told) = systemd.news(2, false, || status(Phase::Running, 1));
        assert_eq!(text, "READY=1\n", "the status is as it was");
        systemd.told = told;
        let later = 2 + STATUS_NS;
        assert_eq!(systemd.news(3, false, || unreachable!()).0, "");
        assert_eq!(systemd.news(later, false, || status(Phase::Running, 9)).0, "");
    }

    #[test]
    fn its_status_is_a_line() {
        let expected = "arm: running, 1 of 2 domains run, 3 restarts, 'log' given up";
        assert_eq!(words(&status(Phase::Running, 1)), expected);
    }

    #[test]
    fn it_is_told_half_as_late_as_it_bears_that_we_live() {
        let mut systemd = systemd("2000", "");
        systemd.told.is_ready = true;
        let running = |systemd: &Systemd, now_ns| systemd.news(now_ns, false, || unreachable!());
        let (text, told) = running(&systemd, 5);
        assert_eq!((text.as_str(), told.alive_ns), ("WATCHDOG=1\n", 5));
        systemd.told = told;
        assert_eq!(running(&systemd, 1_000_004).0, "");
        assert_eq!(running(&systemd, 1_000_005).0, "WATCHDOG=1\n");
    }

    #[test]
    fn only_the_process_that_is_meant_answers_for_its_life() {
        let own = std::process::id().to_string();
        assert_eq!(systemd("2000", &own).watchdog_ns, Some(1_000_000));
        assert_eq!(systemd("2000", "1").watchdog_ns, None);
        assert_eq!(systemd("0", &own).watchdog_ns, None);
        assert_eq!(systemd("many", &own).watchdog_ns, None);
    }

    #[test]
    fn a_core_that_is_held_is_a_status_and_no_stop() {
        let mut systemd = systemd("", "");
        systemd.told.is_ready = true;
        for phase in [Phase::Stopping, Phase::Held] {
            let (text, _) = systemd.news(2 * STATUS_NS, false, || status(phase, 1));
            assert!(text.starts_with(&format!("STATUS=arm: {phase}, ")), "{text}");
            assert!(!text.contains("STOPPING"), "{text}");
        }
    }

    #[test]
    fn it_stops_once() {
        let mut systemd = systemd("", "");
        systemd.told.is_ready = true;
        let (text, told) = systemd.news(5, true, || unreachable!());
        assert_eq!(text, "STOPPING=1\n");
        systemd.told = told;
        assert_eq!(systemd.news(6, true, || unreachable!()).0, "");
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        let text = Systemd::from(|_| Some("vsock:2:1".into())).expect_err("no such socket");
        assert!(text.contains("NOTIFY_SOCKET=vsock:2:1: expected an absolute path"), "{text}");
        assert!(Systemd::from(|_| None).expect("nothing is wrong").is_none());
    }
}

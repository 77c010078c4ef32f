//! The other hosts of a graph while one host is drilled. Each of them is this program again, on
//! this machine, behind a line that can be cut. So faults of the network and of other hosts can be
//! injected, and seen as the user of the drilled host sees them: in what its run says about the
//! others.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::status::{HostState, HostStatus};
use sinew_control::{Answer, Request};
use sinew_core::privileges;
use sinew_core::sys::end_with_parent;
use sinew_spec::plan::{Host, Plan};

use super::fault::DrilledFault;
use super::line::{Condition, Line};
use super::outside::{Outside, SeenOutside, ask_run};
use super::seen::SeenHost;
use crate::harness::Gone;
use crate::harness::process::{Killed, Process};

/// How long a line is cut: for a short while, or for longer than anybody waits for a host.
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(2);
/// How long a line that is never mended is watched.
const FOR_EVER: Duration = Duration::from_secs(4);
/// How long a slow line is slow.
const SLOW: Duration = Duration::from_secs(3);
/// Late messages have arrived within this time.
const SETTLES: Duration = Duration::from_millis(500);
/// A host that is not heard within this time is not there; it may have to start first.
const HEARD_WITHIN: Duration = Duration::from_secs(20);
/// Messages that are sent again have been counted within this time.
const COUNTED_WITHIN: Duration = Duration::from_secs(5);
/// Hosts, and connections over a line, have ended within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The far side that hears messages of a host, as anybody on the network could, and sends them
/// again later. Its text holds: the graph, the host, the address to listen at, the address to send
/// to, and how many messages.
pub const SEND_AGAIN: &str = "send_again";
/// How many messages are sent again.
const SENT_AGAIN: u64 = 50;
/// How many times this is tried.
const TRIES: usize = 3;
/// The messages have been sent within this time.
const SENT_WITHIN_S: i64 = 20;

/// The other hosts, and the lines to them.
#[derive(Clone, Debug)]
pub struct Network {
    graph: String,
    file: PathBuf,
    set: Vec<String>,
    /// The host that is drilled: its name, and where it listens.
    own: (String, Option<SocketAddr>),
    others: Vec<Other>,
}

#[derive(Clone, Debug)]
struct Other {
    name: String,
    /// Its address, if it listens.
    listens: Option<SocketAddr>,
    /// Lines from the drilled host to it, and back.
    lines: [Option<Line>; 2],
}

impl Network {
    /// For the graph in `file`, of which the part of host `own` is drilled.
    ///
    /// # Errors
    /// If the hosts have certificates or call a router, or if no port is free.
    pub fn new(plan: &Plan, own: &str, file: &Path, set: &[String]) -> Result<Network, String> {
        let hosts = &plan.hosts.all;
        if hosts.iter().any(|host| host.tls.is_some()) {
            return Err("a drill runs all hosts on this machine, at addresses that their \
                        certificates do not name; drill a copy of the graph without 'tls'"
                .into());
        }
        if hosts.iter().any(|host| host.router.is_some()) {
            return Err(
                "a drill would connect to the router of the real hosts, so it takes no host with a \
                 'router'; drill a copy of the graph with 'address' in place of 'router'"
                    .into(),
            );
        }
        let cannot = |error: io::Error| format!("no line to another host: {error}");
        let listens = ports(hosts).map_err(cannot)?;
        let own_listens = hosts.iter().zip(&listens).find(|(host, _)| host.name == own);
        let own_listens = own_listens.and_then(|(_, listens)| *listens);
        let line = |to: Option<SocketAddr>| to.map(Line::to).transpose();
        let mut others = vec![];
        for (host, listens) in hosts.iter().zip(listens).filter(|(host, _)| host.name != own) {
            let lines = [line(listens).map_err(cannot)?, line(own_listens).map_err(cannot)?];
            others.push(Other { name: host.name.clone(), listens, lines });
        }
        let own = (own.to_owned(), own_listens);
        let (graph, file, set) = (plan.name.clone(), file.to_owned(), set.to_vec());
        Ok(Network { graph, file, set, own, others })
    }

    /// The settings of the host that is drilled, in the form of `--set`.
    pub fn settings(&self) -> Vec<String> {
        let others = self.others.iter().filter_map(|other| {
            let line = other.lines[0].as_ref()?;
            Some(reached(&other.name, line.address))
        });
        own(&self.own.0, self.own.1).into_iter().chain(others).collect()
    }

    /// The settings of another host: it reaches the drilled host by a line, and the rest directly.
    fn settings_of(&self, at: usize) -> Vec<String> {
        let it = &self.others[at];
        let back = it.lines[1].as_ref().map(|line| reached(&self.own.0, line.address));
        let rest = self.others.iter().filter(|other| other.name != it.name);
        let rest = rest.filter_map(|other| Some(reached(&other.name, other.listens?)));
        own(&it.name, it.listens).into_iter().chain(back).chain(rest).collect()
    }

    /// Starts all other hosts.
    ///
    /// # Errors
    /// If one of them cannot be started.
    pub(super) fn start(&self) -> Result<Others<'_>, String> {
        let started = (0..self.others.len()).map(|at| self.start_one(at).map(Some));
        let started = started.collect::<io::Result<Vec<_>>>();
        let started = started.map_err(|error| format!("cannot start another host: {error}"))?;
        Ok(Others { network: self, running: Arc::new(Mutex::new(started)) })
    }

    fn start_one(&self, at: usize) -> io::Result<Killed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--json", "--host", &self.others[at].name]);
        for setting in self.set.iter().chain(&self.settings_of(at)) {
            command.args(["--set", setting]);
        }
        command.arg(&self.file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        end_with_parent(&mut command);
        command.spawn().map(Killed)
    }
}

/// A port for each host that has an address. All are bound at once; otherwise two might be the
/// same.
fn ports(hosts: &[Host]) -> io::Result<Vec<Option<SocketAddr>>> {
    let bind = |host: &Host| host.address.as_ref().map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<_> = hosts.iter().map(bind).collect();
    let address = |it: Option<io::Result<TcpListener>>| it.map(|it| it?.local_addr()).transpose();
    listeners.into_iter().map(address).collect()
}

fn reached(host: &str, address: SocketAddr) -> String {
    format!("hosts.{host}.address={address}")
}

fn own(host: &str, listens: Option<SocketAddr>) -> Vec<String> {
    let listens = listens.into_iter();
    listens.flat_map(|it| [reached(host, it), format!("hosts.{host}.listen={it}")]).collect()
}

/// The other hosts, running. When this is dropped they end, and nothing is connected over the lines
/// any more.
pub(super) struct Others<'a> {
    network: &'a Network,
    running: Running,
}

/// The processes in the order of the network's other hosts; `None` for a host that was killed.
type Running = Arc<Mutex<Vec<Option<Killed>>>>;

impl Others<'_> {
    /// Lets a fault happen to one of them, by a separate thread; `None` if there is no such host.
    pub(super) fn strike(&self, host: &str, fault: DrilledFault) -> Option<Outside> {
        let at = self.network.others.iter().position(|other| other.name == host)?;
        let (network, running) = (self.network.clone(), Arc::clone(&self.running));
        Some(Outside::begin(0, move |_| Strike { network, running, at }.carry_out(fault)))
    }
}

impl Drop for Others<'_> {
    fn drop(&mut self) {
        // They are asked to end first: a host that is killed leaves its socket behind.
        let all = std::mem::take(&mut *held(&self.running));
        let all: Vec<Killed> = all.into_iter().flatten().collect();
        all.iter().for_each(|it| _ = kill_process(Pid::from_child(&it.0), Signal::TERM));
        let begun = Instant::now();
        for mut it in all {
            while matches!(it.0.try_wait(), Ok(None)) && begun.elapsed() < ENDS_WITHIN {
                thread::sleep(LOOK);
            }
        }
        for line in self.network.others.iter().flat_map(|other| other.lines.iter().flatten()) {
            line.set(Condition::Open);
            let begun = Instant::now();
            while !line.is_quiet() && begun.elapsed() < ENDS_WITHIN {
                thread::sleep(LOOK);
            }
        }
    }
}

fn held(running: &Running) -> MutexGuard<'_, Vec<Option<Killed>>> {
    // Its content is complete at any time, so a poisoned lock does no harm.
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What happens to one of the others.
struct Strike {
    network: Network,
    running: Running,
    at: usize,
}

impl Strike {
    fn carry_out(self, fault: DrilledFault) -> SeenOutside {
        let mut seen = SeenOutside::default();
        let unseen = || "the status of the run does not show the other host".to_owned();
        let Some(before) = self.look() else {
            seen.not_shown.push(unseen());
            return seen;
        };
        let mut host = SeenHost::default();
        match fault {
            DrilledFault::HostKilled => self.kill(&mut seen, &mut host),
            DrilledFault::SentAgain => self.send_again(&mut seen),
            DrilledFault::Slow => self.spoil(Condition::Slow, Some(SLOW), &mut seen, &mut host),
            DrilledFault::Cut100 => self.spoil(Condition::Cut, Some(SHORT), &mut seen, &mut host),
            DrilledFault::Cut2000 => self.spoil(Condition::Cut, Some(LONG), &mut seen, &mut host),
            _ => self.spoil(Condition::Cut, None, &mut seen, &mut host),
        }
        thread::sleep(SETTLES);
        let Some(after) = self.look() else {
            seen.not_shown.push(unseen());
            return seen;
        };
        host.late = after.late.saturating_sub(before.late);
        host.lost = after.lost.saturating_sub(before.lost);
        host.refused = after.refused.saturating_sub(before.refused);
        seen.host = Some(host);
        seen
    }

    /// How the run sees the other host.
    fn look(&self) -> Option<HostStatus> {
        let Answer::Status(status) = ask_run(&Request::Status {}).ok()? else { return None };
        let mut hosts = status.domains.into_iter().flat_map(|domain| domain.hosts);
        hosts.find(|seen| seen.name == self.network.others[self.at].name)
    }

    /// Looks until the other host is seen in this state; returns after how many ms.
    fn await_state(&self, state: HostState, within: Duration) -> Option<u64> {
        let begun = Instant::now();
        while self.look().is_none_or(|seen| seen.state != state) {
            if begun.elapsed() > within {
                return None;
            }
            thread::sleep(LOOK);
        }
        u64::try_from(begun.elapsed().as_millis()).ok()
    }

    /// Puts the lines in a condition for this long, or until the run ends.
    fn spoil(
        &self,
        condition: Condition,
        time: Option<Duration>,
        seen: &mut SeenOutside,
        host: &mut SeenHost,
    ) {
        let lines = || self.network.others[self.at].lines.iter().flatten();
        let held = || lines().map(Line::held).sum::<u64>();
        let (before, begun) = (held(), Instant::now());
        lines().for_each(|line| line.set(condition));
        let time_or_ever = time.unwrap_or(FOR_EVER);
        host.silent_ms = self.await_state(HostState::Silent, time_or_ever);
        thread::sleep(time_or_ever.saturating_sub(begun.elapsed()));
        if time.is_some() {
            lines().for_each(|line| line.set(Condition::Open));
        }
        let bytes = held() - before;
        let shown = format!("{bytes} B were held back for {:.1} s", begun.elapsed().as_secs_f64());
        seen.proof = (bytes > 0).then_some(shown);
        let is_long = condition == Condition::Cut && time_or_ever >= LONG;
        if is_long && host.silent_ms.is_none() {
            seen.failures.push("the run did not report that the other host is silent".into());
        }
        let is_heard = self.look().is_some_and(|seen| seen.state == HostState::Heard);
        match time {
            // A host that was never silent does not come back.
            Some(_) if is_heard && host.silent_ms.is_none() => {}
            Some(_) => self.await_heard(seen, host),
            None if is_heard => {
                seen.failures.push("the other host is heard over a line that is cut".into());
            }
            None => {}
        }
    }

    fn await_heard(&self, seen: &mut SeenOutside, host: &mut SeenHost) {
        host.heard_ms = self.await_state(HostState::Heard, HEARD_WITHIN);
        if host.heard_ms.is_none() {
            let within_s = HEARD_WITHIN.as_secs();
            seen.failures.push(format!("the other host was not heard again within {within_s} s"));
        }
    }

    /// Kills the other host and all that it has started, and starts it again.
    fn kill(&self, seen: &mut SeenOutside, host: &mut SeenHost) {
        let killed = held(&self.running)[self.at].take();
        let Some(mut killed) = killed else { return };
        // If it has ended by itself, this fails and there is no proof.
        let _ = killed.0.kill();
        let status = killed.0.wait().ok().and_then(|status| status.signal());
        seen.proof = status.map(|signal| format!("its run was ended by signal {signal}"));
        host.silent_ms = self.await_state(HostState::Silent, FOR_EVER);
        if host.silent_ms.is_none() {
            seen.failures.push("the run did not report that the other host is silent".into());
        }
        match self.network.start_one(self.at) {
            Ok(started) => held(&self.running)[self.at] = Some(started),
            Err(error) => seen.not_shown.push(format!("it could not be started again: {error}")),
        }
        self.await_heard(seen, host);
    }

    /// Has messages of the other host sent again. On a busy machine its own messages may come late
    /// meanwhile. Then nobody knows which were dropped, and it is tried once more.
    fn send_again(&self, seen: &mut SeenOutside) {
        for _ in 0..TRIES {
            match self.sent_again() {
                Err(why) => return seen.not_shown.push(why),
                Ok(SENT_AGAIN) => {
                    seen.proof = Some(format!("{SENT_AGAIN} messages were sent again"));
                    return;
                }
                Ok(n @ 0..SENT_AGAIN) => {
                    let why = format!("of {SENT_AGAIN} messages sent again {n} were dropped");
                    return seen.failures.push(why);
                }
                Ok(_) => {}
            }
        }
        let why = "this machine is too busy: more was dropped than was sent again";
        seen.not_shown.push(why.into());
    }

    /// How many messages were dropped while that many were sent again.
    fn sent_again(&self) -> Result<u64, String> {
        let other = &self.network.others[self.at];
        let (Some(to), Some(from)) = (self.network.own.1, other.listens) else {
            return Err("both hosts must have an address".into());
        };
        let text = format!("{} {} {from} {to} {SENT_AGAIN}", self.network.graph, other.name);
        let dropped = || self.look().map(|it| it.refused + it.late);
        let unseen = || "the status of the run does not show the other host".to_owned();
        let before = dropped().ok_or_else(unseen)?;
        let cpus = privileges::cpus().map_err(|error| error.to_string())?;
        let process = Process::start(SEND_AGAIN, &text, &[], cpus[0]).map_err(|Gone(why)| why)?;
        process.await_end(SENT_WITHIN_S);
        process.join(Ok(())).map_err(|Gone(why)| why)?;
        let begun = Instant::now();
        while dropped().is_some_and(|now| now < before + SENT_AGAIN)
            && begun.elapsed() < COUNTED_WITHIN
        {
            thread::sleep(LOOK);
        }
        thread::sleep(SETTLES);
        dropped().map(|now| now.saturating_sub(before)).ok_or_else(unseen)
    }
}

//! The other hosts of a graph while one host is drilled. Each of them is this program again, on
//! this machine, behind a line that can be cut. So faults of the network and of other hosts can be
//! injected, and seen as the user of the drilled host sees them: in what its run says about the
//! others.

mod copy;
mod faults;
mod lines;
mod programs;
mod strangers;
mod strike;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_core::sys::end_with_parent;
use sinew_spec::plan::{Host, Plan, RemoteLink};

use self::strike::Strike;
use super::fault::DrilledFault;
use super::line::{Condition, Line};
use super::outside::Outside;
use crate::harness::process::Killed;

pub(super) use faults::{Pair, of as row_of, of_hosts};
pub use strangers::{MISPLACE, SEND_AGAIN, STRANGER};

/// Hosts, and connections over a line, have ended within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

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
    /// Its index in the plan's hosts.
    number: usize,
    /// Its address, if it listens.
    listens: Option<SocketAddr>,
    /// Lines from the drilled host to it, and back.
    lines: [Option<Line>; 2],
    /// The links with messages between it and the drilled host.
    links: Vec<RemoteLink>,
    /// What it sends to the drilled host: the links of the plan that carry it on from the service
    /// that stands for other hosts.
    carried_on: Vec<usize>,
    /// The settings with which a second program of this host can run beside the first.
    second: Vec<String>,
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
        let all = hosts.iter().zip(listens).enumerate();
        for (at, (host, listens)) in all.filter(|(_, (host, _))| host.name != own) {
            let lines = [line(listens).map_err(cannot)?, line(own_listens).map_err(cannot)?];
            let (links, carried_on) = (links_with(plan, at), carried_on(plan, at));
            let (name, second) = (host.name.clone(), vec![]);
            let number = at;
            others.push(Other { name, number, listens, lines, links, carried_on, second });
        }
        let own = (own.to_owned(), own_listens);
        let (graph, file, set) = (plan.name.clone(), file.to_owned(), set.to_vec());
        Ok(Network { graph, file, set, own, others })
    }

    /// The same network, with what a second program of a host needs to run beside the first:
    /// settings in the form of `--set`, by the name of the host.
    pub fn with_second(mut self, settings: impl Fn(&str) -> Vec<String>) -> Network {
        self.others.iter_mut().for_each(|other| other.second = settings(&other.name));
        self
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
    /// It listens at `listens`.
    fn settings_of(&self, at: usize, listens: Option<SocketAddr>) -> Vec<String> {
        let it = &self.others[at];
        let back = it.lines[1].as_ref().map(|line| reached(&self.own.0, line.address));
        let rest = self.others.iter().filter(|other| other.name != it.name);
        let rest = rest.filter_map(|other| Some(reached(&other.name, other.listens?)));
        own(&it.name, listens).into_iter().chain(back).chain(rest).collect()
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
        self.start_with(at, &self.file, &self.settings_of(at, self.others[at].listens))
    }

    /// Starts one more program with the name of a host. It listens at a port of its own.
    fn start_second(&self, at: usize) -> io::Result<Killed> {
        let other = &self.others[at];
        let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
        let listens = other.listens.map(|_| free()).transpose()?;
        let settings = [self.settings_of(at, listens), other.second.clone()].concat();
        self.start_with(at, &self.file, &settings)
    }

    fn start_with(&self, at: usize, file: &Path, settings: &[String]) -> io::Result<Killed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--json", "--host", &self.others[at].name]);
        for setting in self.set.iter().chain(settings) {
            command.args(["--set", setting]);
        }
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        end_with_parent(&mut command);
        command.spawn().map(Killed)
    }
}

/// The links with messages between a host and the one whose part the plan is.
fn links_with(plan: &Plan, host: usize) -> Vec<RemoteLink> {
    let is_its = |link: &&RemoteLink| [link.from.host, link.to.host].contains(&host);
    plan.hosts.links.iter().filter(is_its).cloned().collect()
}

/// The links of a plan that carry on what another host sends.
fn carried_on(plan: &Plan, host: usize) -> Vec<usize> {
    let sent = plan.hosts.links.iter().filter(|link| link.from.host == host);
    let ports: Vec<usize> = sent.map(|link| link.port).collect();
    let links = plan.links.iter().enumerate();
    let is_it = |link: &sinew_spec::plan::Link| {
        plan.is_of_hosts(link.from.node) && ports.contains(&link.from.port)
    };
    links.filter(|(_, link)| is_it(link)).map(|(at, _)| at).collect()
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
        let all = std::mem::take(&mut *held(&self.running));
        end(all.into_iter().flatten().collect());
        for line in self.network.others.iter().flat_map(|other| other.lines.iter().flatten()) {
            line.set(Condition::Open);
            let begun = Instant::now();
            while !line.is_quiet() && begun.elapsed() < ENDS_WITHIN {
                thread::sleep(LOOK);
            }
        }
    }
}

/// Ends programs. They are asked to end first: a host that is killed leaves its socket behind.
fn end(all: Vec<Killed>) {
    all.iter().for_each(|it| _ = kill_process(Pid::from_child(&it.0), Signal::TERM));
    let begun = Instant::now();
    for mut it in all {
        while matches!(it.0.try_wait(), Ok(None)) && begun.elapsed() < ENDS_WITHIN {
            thread::sleep(LOOK);
        }
    }
}

fn held(running: &Running) -> MutexGuard<'_, Vec<Option<Killed>>> {
    // Its content is complete at any time, so a poisoned lock does no harm.
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Kind `zenoh`: stands for the other hosts of a graph.
//!
//! The compiler puts one node of this kind into the part of each host, with a port for each end of
//! a link that is on another host. What comes in at its inputs goes to other hosts. What they send
//! goes out at its outputs if it is fresh: into the core with its stamp in front, where it is
//! judged again.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::{HostClock, HostState as Shown, HostStatus, ROUTER};
use sinew_control::{Request, Supervisor};
use sinew_core::catalogue::{Direction, Kind, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::fault::{Cause, Fault};
use sinew_core::{Parameters, Refusal, fault};
use sinew_plan::plan::{Delivery, Host, Plan, RemoteLink};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use crate::renewal::Renewal;
use crate::seal::Seal;
use crate::{
    CallCounts, HostSeen, HostState, IncomingPort, Mirror, NotTaken, NotTakenCounts, OutgoingPort,
    Peer, PeerClock, Setting, TlsFiles,
};
use crate::{certificate, relayed};

/// What the compiler knows of the kind; the plan gives it its ports.
pub const INFO: Kind = Kind {
    doc: "Stands for the other hosts of the graph, over Zenoh. No spec names it: it is in the part \
          of each host.",
    ..Kind::new("zenoh", RunsIn::Hosts, &[])
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

/// Longest time between two polls of the inputs: nothing wakes this node for them.
const LOOK_MAX: Duration = Duration::from_millis(1);
/// Shortest time between them.
const LOOK_MIN: Duration = Duration::from_micros(100);
/// Longest sleep of a node with nothing to send; it wakes when something comes.
const IDLE: Duration = Duration::from_millis(50);
/// Messages taken from one input in one poll; with more of them the heartbeat would have to wait.
const TAKEN_MAX: usize = 4096;
/// Time between two reports to the supervisor.
const TELL_NS: u64 = 200_000_000;

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let Some((plan, _)) = parameters.home else {
        return Err(fault!(
            "a node that stands for other hosts has its place in a graph with hosts"
        ));
    };
    let own = plan.own_host().ok_or_else(|| fault!("the graph is not the part of a host"))?;
    let setting = setting(plan, own, parameters.base);
    let ports = [Direction::In, Direction::Out].map(|direction| indices(plan, direction));
    let (domains, look) = (relayed::domains(plan, &setting.called), look(plan));
    Ok(Box::new(OtherHosts { setting, ports, domains, look, mirror: None }))
}

/// What the plan says of this host and the others.
fn setting(plan: &Plan, own: &Host, base: &Path) -> Setting {
    let others = plan.hosts.all.iter().filter(|host| host.name != own.name);
    let peer = |host: &Host| Peer {
        name: host.name.clone(),
        address: host.address.clone(),
        calls_router: host.router.is_some(),
    };
    let file = |file: &String| base.join(file);
    let tls = own.tls.as_ref().map(|tls| TlsFiles {
        authority: file(&tls.ca),
        certificate: file(&tls.certificate),
        key: file(&tls.key),
    });
    Setting {
        graph: plan.name.clone(),
        host: own.name.clone(),
        version: plan.hosts.version,
        listen: own.listen.clone(),
        router: own.router.clone(),
        peers: others.map(peer).collect(),
        tls,
        secret: own.key.as_ref().map(file),
        outgoing: ports(plan, Direction::In).map(|links| outgoing(&links)).collect(),
        incoming: ports(plan, Direction::Out).map(|links| incoming(plan, &links)).collect(),
        calls: relayed::calls(plan),
        called: relayed::called(plan),
        now_ns,
    }
}

/// The links between hosts at each port of a direction, in the order of the ports.
fn ports(plan: &Plan, direction: Direction) -> impl Iterator<Item = Vec<&RemoteLink>> {
    indices(plan, direction)
        .into_iter()
        .map(move |port| plan.hosts.links.iter().filter(|link| link.port == port).collect())
}

/// The indices of the node's ports of a direction that carry messages.
fn indices(plan: &Plan, direction: Direction) -> Vec<usize> {
    let node = (0..plan.nodes.len()).find(|&node| plan.is_of_hosts(node));
    let ports = node.map_or(&[][..], |node| plan.nodes[node].kind.ports);
    let ports = ports.iter().enumerate();
    let ports = ports.filter(|(_, port)| port.direction == direction && !port.is_flow());
    ports.map(|(at, _)| at).collect()
}

fn outgoing(links: &[&RemoteLink]) -> OutgoingPort {
    let RemoteLink { from, message, .. } = links[0];
    OutgoingPort {
        node: from.node.clone(),
        port: from.port.clone(),
        hash: message.hash,
        bytes: message.size as usize,
    }
}

/// The readers here share what comes. Its age limit and capacity are the largest that one of them
/// has.
fn incoming(plan: &Plan, links: &[&RemoteLink]) -> IncomingPort {
    let RemoteLink { from, message, .. } = links[0];
    let limits: Option<Vec<u64>> = links.iter().map(|link| link.after_ns).collect();
    IncomingPort {
        from: plan.hosts.all[from.host].name.clone(),
        node: from.node.clone(),
        port: from.port.clone(),
        hash: message.hash,
        bytes: message.size as usize,
        after_ns: limits.and_then(|limits| limits.into_iter().max()),
        newest_only: links.iter().all(|link| link.delivery == Delivery::Latest),
        capacity: links.iter().map(|link| link.capacity as usize).max().unwrap_or(1),
    }
}

/// Time between two polls of the inputs: a quarter of the core's period.
fn look(plan: &Plan) -> Duration {
    let periods = plan.domains.iter().filter_map(|domain| Some(domain.realtime()?.period_ns));
    let quarter = periods.min().map_or(LOOK_MAX, |it| Duration::from_nanos(it / 4));
    match indices(plan, Direction::In).is_empty() {
        true => IDLE,
        false => quarter.clamp(LOOK_MIN, LOOK_MAX),
    }
}

struct OtherHosts {
    setting: Setting,
    /// The input ports in the order of the setting's outgoing ports, and the output ports.
    ports: [Vec<usize>; 2],
    /// The domains of the nodes that others call.
    domains: Vec<String>,
    look: Duration,
    /// Present from start to stop.
    mirror: Option<Mirror>,
}

impl Service for OtherHosts {
    fn check(&self, _plan: &Plan, _node: usize) -> Result<(), Vec<Refusal>> {
        let Setting { tls, listen, .. } = &self.setting;
        let names = self.setting.own_names();
        let checked = tls.as_ref().map(|tls| certificate::check(tls, &names, listen.is_some()));
        let wrong = |why: String| vec![Fault::new(Cause::Error, format_args!("{why}")).into()];
        checked.transpose().map_err(wrong)?;
        Seal::read(self.setting.secret.as_deref()).map(drop).map_err(wrong)
    }

    fn start(&mut self) -> Result<(), Fault> {
        let opened = Mirror::open(&self.setting);
        self.mirror = Some(opened.map_err(|why| Fault::new(Cause::Error, format_args!("{why}")))?);
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mirror = self.mirror.as_mut().expect("a service is started before it runs");
        let mut ways = Ways::of(&self.setting, &self.ports);
        let mut renewal = Renewal::new(&self.setting);
        let mut word = Word::to(io.supervisor().clone())?;
        let relay = relayed::begin((&self.setting, &self.domains), io.doors(), mirror.exchange());
        let relay = relay.map_err(|error| fault!("cannot start a thread: {error}"))?;
        while !io.is_stopping() {
            io.beat();
            if relay.as_ref().is_some_and(|it| it.has_ended()) {
                return Err(fault!("the thread that carries packets has ended"));
            }
            ways.send(mirror, io)?;
            ways.receive(mirror, io)?;
            if word.is_due() {
                word.tell(mirror, &self.setting, io);
                match renewal.look(Instant::now()) {
                    Ok(false) => {}
                    Ok(true) => return Err(fault!("there is a new certificate; it begins anew")),
                    Err(why) => tell(format!("the new certificate is not used: {why}")),
                }
            }
            mirror.wait(self.look);
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(mirror) = self.mirror.take() {
            mirror.close();
        }
    }
}

/// The ports of the node, each with memory for a message.
struct Ways {
    outgoing: Vec<(usize, Vec<u8>)>,
    incoming: Vec<(usize, Vec<u8>)>,
}

impl Ways {
    fn of(setting: &Setting, [ins, outs]: &[Vec<usize>; 2]) -> Ways {
        let place = |(port, bytes): (&usize, usize)| (*port, vec![0; bytes]);
        let outgoing = ins.iter().zip(setting.outgoing.iter().map(|it| it.bytes));
        let incoming = outs.iter().zip(setting.incoming.iter().map(|it| it.bytes));
        Ways { outgoing: outgoing.map(place).collect(), incoming: incoming.map(place).collect() }
    }

    /// One turn: reads all messages that are there, and hands them to the mirror.
    fn send(&mut self, mirror: &mut Mirror, io: &mut ServiceIo) -> Result<(), Fault> {
        mirror.begin();
        let mut all_read = true;
        for (at, (port, message)) in self.outgoing.iter_mut().enumerate() {
            let mut left = TAKEN_MAX;
            while left > 0 && io.receive_bytes(*port, message)? {
                mirror.send(at, message);
                left -= 1;
            }
            all_read &= left > 0;
        }
        // What is left was there before this turn, so it must not get a stamp of this turn.
        if all_read {
            mirror.end();
        }
        Ok(())
    }

    fn receive(&mut self, mirror: &mut Mirror, io: &mut ServiceIo) -> Result<(), Fault> {
        for (at, (port, message)) in self.incoming.iter_mut().enumerate() {
            let mut left = TAKEN_MAX;
            while left > 0
                && let Some(stamp_ns) = mirror.receive(at, message)
            {
                io.send_stamped(*port, stamp_ns, message)?;
                left -= 1;
            }
        }
        Ok(())
    }
}

/// What the supervisor is told of the other hosts, by a thread that may wait for it.
struct Word {
    due_ns: u64,
    hosts: SyncSender<Vec<HostStatus>>,
    /// Messages that were lost, and that were not sent, at the last report.
    lost: u64,
    unsent: u64,
    trouble: Option<String>,
}

impl Word {
    fn to(supervisor: Supervisor) -> Result<Word, Fault> {
        // A newer report does not replace one that waits; the next one is due soon.
        let (hosts, told) = sync_channel::<Vec<HostStatus>>(1);
        let tell = move || {
            for hosts in told {
                // Without a supervisor this process ends soon.
                let _ = supervisor.ask(&Request::Hosts { hosts });
            }
        };
        let spawned = thread::Builder::new().name("hosts".into()).spawn(tell);
        spawned.map_err(|error| fault!("cannot start a thread: {error}"))?;
        Ok(Word { due_ns: 0, hosts, lost: 0, unsent: 0, trouble: None })
    }

    fn is_due(&mut self) -> bool {
        let is_due = now_ns() >= self.due_ns;
        if is_due {
            self.due_ns = now_ns() + TELL_NS;
        }
        is_due
    }

    fn tell(&mut self, mirror: &Mirror, setting: &Setting, io: &mut ServiceIo) {
        mirror.news().iter().for_each(tell);
        let (seen, calls, refused) =
            (mirror.hosts(), mirror.exchange().counted(), mirror.not_taken());
        let hosts = seen.iter().zip(calls.iter().zip(&refused));
        let hosts =
            hosts.map(|(seen, (calls, refused))| status(seen, (calls, refused), mirror, setting));
        let mut hosts: Vec<HostStatus> = hosts.collect();
        let router = mirror.router().map(|state| HostStatus {
            name: ROUTER.into(),
            state: shown(state),
            ..HostStatus::default()
        });
        hosts.extend(router);
        let counted = mirror.counted();
        let lost = |host: &HostStatus| host.late + host.lost + host.refused + host.misplaced;
        let lost = hosts.iter().map(lost).fold(0, u64::saturating_add);
        io.lose(lost.saturating_sub(std::mem::replace(&mut self.lost, lost)));
        io.drop_unsent(counted.unsent - std::mem::replace(&mut self.unsent, counted.unsent));
        if self.trouble != counted.trouble {
            tell(counted.trouble.as_deref().unwrap_or("the others can be reached again"));
            self.trouble = counted.trouble;
        }
        // If the report before still waits, this one is dropped; the next one says more.
        let _ = self.hosts.try_send(hosts);
    }
}

fn shown(state: HostState) -> Shown {
    match state {
        HostState::Unheard => Shown::Unheard,
        HostState::Heard => Shown::Heard,
        HostState::Silent => Shown::Silent,
        HostState::OtherVersion(_) => Shown::OtherGraph,
        HostState::Two => Shown::Two,
    }
}

fn clock(PeerClock { estimate, day_offset_ns }: PeerClock) -> HostClock {
    HostClock {
        at_ns: estimate.at_ns,
        monotonic_offset_ns: estimate.offset_ns,
        day_offset_ns,
        uncertainty_ns: estimate.uncertainty_ns,
    }
}

/// What is shown of a host.
fn status(
    seen: &HostSeen,
    (calls, refused): (&CallCounts, &NotTakenCounts),
    mirror: &Mirror,
    setting: &Setting,
) -> HostStatus {
    let met = NotTaken::all().filter(|it| refused.of(*it) > 0);
    let reasons = met.filter(|it| !matches!(it, NotTaken::Early | NotTaken::Misplaced));
    let mut status = HostStatus {
        name: seen.name.clone(),
        state: shown(seen.state),
        heard_ms: seen.silent_ns.map(|ns| ns / 1_000_000),
        round_trip_us: seen.round_trip_ns.map(|ns| ns / 1000),
        clock: seen.clock.filter(|_| seen.state.is_heard()).map(clock),
        late: calls.late,
        lost: calls.lost + calls.full,
        refused: refused.refused(),
        refused_as: reasons.map(|it| (it.name().into(), refused.of(it))).collect(),
        misplaced: refused.of(NotTaken::Misplaced),
        early: refused.of(NotTaken::Early),
    };
    let of_it = setting.incoming.iter().enumerate().filter(|(_, port)| port.from == seen.name);
    for (at, _) in of_it {
        let counts = mirror.counted_at(at);
        status.late += counts.late;
        // A late message leaves a gap, too.
        let gaps = counts.lost.saturating_sub(counts.late);
        status.lost = status.lost.saturating_add(gaps).saturating_add(counts.flooded);
    }
    status
}

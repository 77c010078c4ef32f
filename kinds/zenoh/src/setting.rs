//! What a mirror is told: who it is, who the others are, what crosses.

use std::collections::HashSet;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use sinew_hosts::{ECHOES_MAX, number};

/// Time between two stamps of a host that judges nothing.
const STAMPS_MAX: Duration = Duration::from_millis(100);
/// Shortest time between two stamps: more of them would be more work than the messages are.
const STAMPS_MIN: Duration = Duration::from_millis(2);
/// Most bytes of a message between hosts. A larger picture costs more than it is worth when it is
/// lost, and should be packed first.
pub(crate) const MESSAGE_MAX: usize = 16 << 20;
/// Places for connections of programs that are no hosts of the graph. They take some memory each.
const OBSERVERS_MAX: usize = 64;
/// Most messages that wait at one incoming port.
const CAPACITY_MAX: usize = 65_536;

/// What one host says to the others and hears from them.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The graph's name: hosts of other graphs are not heard.
    pub graph: String,
    /// This host.
    pub host: String,
    /// Version of the graph's links between hosts: hosts with another one do not join.
    pub version: u64,
    /// Where it listens, such as `[::]:7447` (all addresses); `None`: it only dials.
    pub listen: Option<String>,
    /// The router that it calls, such as `10.0.0.1:7447`, if it calls one.
    pub router: Option<String>,
    /// Every other host of the graph.
    pub peers: Vec<Peer>,
    /// Both sides show a certificate; `None`: anyone who reaches the port is believed.
    pub tls: Option<TlsFiles>,
    /// A file with the secret that all hosts of the graph share and seal their messages with;
    /// `None`: they are not sealed.
    pub secret: Option<PathBuf>,
    /// What this host sends.
    pub outgoing: Vec<OutgoingPort>,
    /// What it takes.
    pub incoming: Vec<IncomingPort>,
    /// The inputs of other hosts that its packets go to, each with that host.
    pub calls: Vec<CallPort>,
    /// The inputs of its own nodes that packets of others come to, each with one that calls it.
    pub called: Vec<CallPort>,
    /// The clock by which stamps are made and judged, ns. It is `CLOCK_MONOTONIC`, by which the
    /// reader in the core judges them once more.
    pub now_ns: fn() -> u64,
}

/// Another host.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name. With TLS its certificate bears it as the subject's CN.
    pub name: String,
    /// Where it is reached, such as `10.0.0.5:7447`. With TLS its certificate is valid for the part
    /// before the port, which is then no number of IPv6, for zenoh checks none. Given for exactly
    /// those hosts that listen: by it both sides decide which of them dials.
    pub address: Option<String>,
    /// Whether it calls a router. If this host does, too, both speak through it, whatever the
    /// address.
    pub calls_router: bool,
}

/// How a host speaks with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// One of them dials the other.
    Direct,
    /// Both have dialled a router.
    Router,
}

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The authority that has signed the certificates of all hosts. It signs nothing else: whoever
    /// has a certificate of it passes the handshake, but may do no more.
    pub authority: PathBuf,
    /// This host's certificate, and those between it and the authority, if any. The CN of its
    /// subject is the host's name or `GRAPH@HOST`; with a router the latter, because a router knows
    /// hosts of several graphs. It is for servers and clients.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A port whose messages go to other hosts.
#[derive(Clone, Debug)]
pub struct OutgoingPort {
    /// The node that sends.
    pub node: String,
    /// Its output.
    pub port: String,
    /// Hash of the type of its messages.
    pub hash: u32,
    /// Bytes of a message.
    pub bytes: usize,
}

/// A port whose messages come from another host.
#[derive(Clone, Debug)]
pub struct IncomingPort {
    /// The host that sends.
    pub from: String,
    /// The node there.
    pub node: String,
    /// Its output.
    pub port: String,
    /// Hash of the type of its messages.
    pub hash: u32,
    /// Bytes of a message.
    pub bytes: usize,
    /// Age of the oldest stamp that is obeyed, ns; `None`: any age. Messages of a life that is over
    /// and those that were seen before are not taken in either case.
    pub after_ns: Option<u64>,
    /// Only the newest message waits: delivery `latest`.
    pub newest_only: bool,
    /// Otherwise so many wait; one more pushes out the oldest.
    pub capacity: usize,
}

/// An input of a node that takes packets of another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPort {
    /// The other host, whichever of the two has the node.
    pub host: String,
    /// The node.
    pub node: String,
    /// Its input.
    pub input: String,
}

impl Setting {
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ports = self.outgoing.iter().map(|it| (&it.node, &it.port, it.bytes));
        let ports: Vec<_> =
            ports.chain(self.incoming.iter().map(|it| (&it.node, &it.port, it.bytes))).collect();
        let names =
            [&self.graph, &self.host].into_iter().chain(self.peers.iter().map(|it| &it.name));
        names.chain(ports.iter().map(|it| it.1)).try_for_each(|it| part(it))?;
        ports.iter().flat_map(|it| it.0.split('/')).try_for_each(part)?;
        for CallPort { host, node, input } in self.calls.iter().chain(&self.called) {
            node.split('/').chain([&**input]).try_for_each(part)?;
            if self.peer(host).is_none() {
                return Err(format!("packets for '{node}.{input}': '{host}' is not another host"));
            }
        }
        if let Some((node, port, bytes)) = ports.iter().find(|it| it.2 > MESSAGE_MAX) {
            return Err(format!("'{node}.{port}': {bytes} bytes, at most {MESSAGE_MAX}"));
        }
        if self.peers.len() > ECHOES_MAX {
            return Err(format!("{} other hosts, at most {ECHOES_MAX}", self.peers.len()));
        }
        let mut seen = HashSet::from([number(&self.host)]);
        if let Some(twice) = self.peers.iter().find(|it| !seen.insert(number(&it.name))) {
            return Err(format!("there are two hosts '{}'", twice.name));
        }
        for peer in &self.peers {
            let it = format!("host '{}'", peer.name);
            peer.address.iter().try_for_each(|to| reachable(&it, to, self.tls.is_some()))?;
        }
        self.router.iter().try_for_each(|to| reachable("the router", to, self.tls.is_some()))?;
        for port in &self.incoming {
            let IncomingPort { from, node, port, capacity, newest_only, .. } = port;
            if self.peer(from).is_none() {
                return Err(format!(
                    "'{node}.{port}' comes from '{from}', which is not another host"
                ));
            }
            if !newest_only && !(1..=CAPACITY_MAX).contains(capacity) {
                return Err(format!("'{node}.{port}': capacity {capacity}, 1 to {CAPACITY_MAX}"));
            }
        }
        Ok(())
    }

    /// The index of a peer.
    pub(crate) fn peer(&self, name: &str) -> Option<usize> {
        self.peers.iter().position(|it| it.name == name)
    }

    /// How it speaks with a peer.
    pub(crate) fn way(&self, peer: &Peer) -> Way {
        match self.router.is_some() && peer.calls_router {
            true => Way::Router,
            false => Way::Direct,
        }
    }

    /// All ways that it speaks by. A host that listens has the direct way: other programs may dial
    /// it.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let is_direct = |it: &Peer| self.way(it) == Way::Direct;
        let dials_or_listens = self.listen.is_some() || self.peers.iter().any(is_direct);
        let direct = (dials_or_listens || self.router.is_none()).then_some(Way::Direct);
        direct.into_iter().chain(self.router.as_ref().map(|_| Way::Router)).collect()
    }

    /// The CN that its certificate may bear; the first one is to be preferred.
    pub(crate) fn own_names(&self) -> Vec<String> {
        let mut names = cn(&self.graph, &self.host).to_vec();
        if self.router.is_some() {
            names.remove(0);
        }
        names
    }

    /// Time between two stamps of this host: a quarter of its strictest port's age limit.
    pub(crate) fn stamps(&self) -> Duration {
        let strictest = self.incoming.iter().filter_map(|it| it.after_ns).min();
        let quarter = strictest.map_or(STAMPS_MAX, |it| Duration::from_nanos(it / 4));
        quarter.clamp(STAMPS_MIN, STAMPS_MAX)
    }

    /// The peers that it dials, by their index and address.
    pub(crate) fn dialled(&self) -> impl Iterator<Item = (usize, &str)> {
        let dials = |peer: &Peer| {
            dials((&self.host, self.listen.is_some()), (&peer.name, peer.address.is_some()))
        };
        let all = self.peers.iter().enumerate();
        let dialled = all.filter(move |(_, it)| self.way(it) == Way::Direct && dials(it));
        dialled.filter_map(|(at, it)| Some((at, it.address.as_deref()?)))
    }

    /// The addresses at which it listens. `[::]` stands for all addresses of both families; on a
    /// machine without IPv6, or where sockets of IPv6 take no connections of IPv4, it is replaced.
    pub(crate) fn listened(&self) -> Vec<String> {
        let Some(listen) = &self.listen else { return vec![] };
        let Some(port) = listen.strip_prefix("[::]:") else { return vec![listen.clone()] };
        let of_v4 = format!("0.0.0.0:{port}");
        match (UdpSocket::bind("[::1]:0").is_ok(), takes_v6_only()) {
            (false, _) => vec![of_v4],
            (true, false) => vec![listen.clone()],
            (true, true) => vec![of_v4, listen.clone()],
        }
    }

    /// Most connections at once, in and out: two for each other host, of which one may be ending,
    /// and those of programs that look on.
    pub(crate) fn places(&self) -> usize {
        2 * self.peers.len() + OBSERVERS_MAX
    }
}

/// Whether sockets of IPv6 take no connections of IPv4 on this machine.
fn takes_v6_only() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|it| it.trim() == "1")
}

/// The CN that the certificate of a host may bear.
pub(crate) fn cn(graph: &str, host: &str) -> [String; 2] {
    [host.to_owned(), format!("{graph}@{host}")]
}

/// Whether the first of two hosts dials the second; each is given with whether it listens. Only one
/// of them dials: if both did, the end of one connection could leave one direction dead (zenoh's
/// issue 2806). If both listen, the one later in the alphabet dials.
fn dials(own: (&str, bool), other: (&str, bool)) -> bool {
    other.1 && (own.0 > other.0 || !own.1)
}

/// Checks that an address can be dialled; zenoh would try a wrong one for ever, without an error.
fn reachable(it: &str, address: &str, with_tls: bool) -> Result<(), String> {
    let parts = address.rsplit_once(':').filter(|it| !it.0.is_empty());
    match parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?))) {
        Some((host, _)) if with_tls && host.starts_with('[') => {
            Err(format!("{it}: zenoh cannot check a certificate for '{host}'; give a name instead"))
        }
        Some(_) => Ok(()),
        None => Err(format!("{it}: '{address}' is not an address with a port")),
    }
}

/// Whether a name can be a part of a key.
fn part(name: &str) -> Result<(), String> {
    let is_wild = |sign| matches!(sign, '*' | '$' | '#' | '?' | '/' | '"' | '\\');
    match name.is_empty() || name.starts_with('@') || name.contains(is_wild) {
        true => Err(format!("'{name}' cannot be a part of a key of zenoh; give it another name")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_of_two_hosts_dials_if_one_listens() {
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            let calls = [dials(("a", a), ("b", b)), dials(("b", b), ("a", a))];
            let count = calls.iter().filter(|it| **it).count();
            assert_eq!(count, usize::from(a || b), "a listens: {a}, b listens: {b}");
        }
        assert!(dials(("b", true), ("a", true)), "the later one dials");
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(reachable("b", "10.0.0.5:7447", true), Ok(()));
        assert_eq!(reachable("b", "[::1]:7447", false), Ok(()));
        assert!(reachable("b", "[::1]:7447", true).is_err_and(|it| it.contains("give a name")));
        for wrong in ["10.0.0.5", ":7447", "b.example:http", "b:99999"] {
            assert!(reachable("b", wrong, false).is_err_and(|it| it.contains("not an address")));
        }
    }

    #[test]
    fn stamps_come_four_times_in_what_the_strictest_port_takes() {
        let port = |after_ns| IncomingPort {
            from: "b".into(),
            node: "n".into(),
            port: "p".into(),
            hash: 1,
            bytes: 8,
            after_ns,
            newest_only: true,
            capacity: 0,
        };
        let setting = |afters: &[Option<u64>]| Setting {
            graph: "g".into(),
            host: "a".into(),
            version: 1,
            listen: None,
            router: None,
            peers: vec![Peer { name: "b".into(), address: None, calls_router: false }],
            tls: None,
            secret: None,
            outgoing: vec![],
            incoming: afters.iter().copied().map(port).collect(),
            calls: vec![],
            called: vec![],
            now_ns: || 0,
        };
        let ms = Duration::from_millis;
        assert_eq!(setting(&[None]).stamps(), ms(100));
        assert_eq!(setting(&[None, Some(80_000_000), Some(40_000_000)]).stamps(), ms(10));
        assert_eq!(setting(&[Some(1_000_000)]).stamps(), ms(2));
        assert_eq!(setting(&[None]).check(), Ok(()));
        let mut wrong = setting(&[None]);
        wrong.incoming[0].node = "a/*".into();
        assert!(wrong.check().is_err_and(|it| it.contains("'*' cannot be")));
        wrong = setting(&[None]);
        wrong.peers[0].name = "a".into();
        assert!(wrong.check().is_err_and(|it| it.contains("two hosts 'a'")));
        wrong = setting(&[None]);
        wrong.router = Some("router".into());
        assert!(
            wrong.check().is_err_and(|it| it.contains("the router: 'router' is not an address"))
        );
    }
}

//! Why a host that this one dials cannot be reached: told once for each cause.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::configuration::{End, end_number};
use crate::shared::Shared;

/// A host that is not heard for this long is looked for.
const MISSED: Duration = Duration::from_secs(3);
/// Time until it is looked for again.
const PAUSE: Duration = Duration::from_secs(10);
/// Longest wait for an answer at one of its addresses.
const ANSWER: Duration = Duration::from_secs(1);

/// The hosts that this one dials and misses.
pub(crate) struct Reach {
    missed: Vec<Missed>,
    /// A search that is under way, on a thread of its own: a name may take long to resolve. It
    /// gives the place of the host, and the cause.
    search: Option<JoinHandle<(usize, String)>>,
}

struct Missed {
    peer: usize,
    address: String,
    /// When it is looked for, if it is not heard before.
    due: Option<Instant>,
    /// The cause that was told.
    told: String,
}

impl Reach {
    /// For hosts by their index and address.
    pub(crate) fn new<'a>(peers: impl Iterator<Item = (usize, &'a str)>) -> Reach {
        let missed = |(peer, address): (usize, &str)| Missed {
            peer,
            address: address.into(),
            due: None,
            told: String::new(),
        };
        Reach { missed: peers.map(missed).collect(), search: None }
    }

    /// One look, with the ends of all connections. Never waits for the network.
    pub(crate) fn look(&mut self, shared: &Arc<Shared>, ends: &[End], now: Instant) {
        self.take_cause(shared);
        for (at, it) in self.missed.iter_mut().enumerate() {
            if shared.peer(it.peer).is_heard(shared.now_ns()) {
                (it.due, it.told) = (None, String::new());
            } else if *it.due.get_or_insert(now + MISSED) <= now && self.search.is_none() {
                it.due = Some(now + PAUSE);
                let number = end_number(&shared.setting, &shared.setting.peers[it.peer].name);
                let (address, ends) = (it.address.clone(), ends.to_vec());
                let is_secure = shared.setting.tls.is_some();
                let search = move || (at, cause(&address, is_secure, number, &ends));
                // Without a thread there is no cause, and no harm.
                self.search = thread::Builder::new().name("mirror-looks".into()).spawn(search).ok();
            }
        }
    }

    /// Tells what a search has found, if that is new.
    fn take_cause(&mut self, shared: &Shared) {
        let Some(search) = self.search.take_if(|it| it.is_finished()) else { return };
        let Ok((at, cause)) = search.join() else { return };
        let it = &mut self.missed[at];
        // It may be heard by now.
        if it.due.is_some() && it.told != cause {
            let (name, address) = (&shared.setting.peers[it.peer].name, &it.address);
            shared.news.tell(format!("host '{name}' is not heard at '{address}': {cause}"));
            it.told = cause;
        }
    }
}

/// Why the host whose end has this number is not heard at an address. Blocks, for seconds at most
/// once the name is resolved.
fn cause(address: &str, is_secure: bool, number: u64, ends: &[End]) -> String {
    let addresses: Vec<SocketAddr> = match address.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => return format!("its name cannot be resolved: {error}"),
    };
    let there = ends.iter().find(|end| end.address.is_some_and(|it| addresses.contains(&it)));
    match there {
        Some(end) if end.host != Some(number) => {
            return "a program answers there that is not this host of this graph: of another graph, \
                    or another program of Zenoh"
                .into();
        }
        Some(_) => return "it is connected and says nothing".into(),
        None if is_secure => {
            return "nothing answers by QUIC, which is UDP; is the host there, does a firewall let \
                    UDP through, and do both certificates fit?"
                .into();
        }
        None => {}
    }
    let mut failed = String::new();
    for it in &addresses {
        match TcpStream::connect_timeout(it, ANSWER) {
            Ok(_) => {
                return "something answers there, but not as a host: another program, or a host \
                        whose places for connections are all taken"
                    .into();
            }
            Err(error) => failed = error.to_string(),
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn each_cause_has_its_words() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = taken.local_addr().expect("its address");
        let end = |host| End { host, address: Some(here) };
        let at = here.to_string();
        for (address, is_secure, ends, words) in [
            ("no.such.name.invalid:7447", false, vec![], "cannot be resolved"),
            ("127.0.0.1:1", false, vec![], "refused"),
            (&at, false, vec![], "not as a host"),
            (&at, true, vec![], "nothing answers by QUIC"),
            (&at, false, vec![end(Some(2)), end(None)], "not this host of this graph"),
            (&at, false, vec![end(Some(1))], "says nothing"),
        ] {
            let said = cause(address, is_secure, 1, &ends);
            assert!(said.contains(words), "{address}: {said}");
        }
    }
}

//! Through a router: a session of zenoh in mode `router`, which is what `zenohd` is.

use std::fs;
use std::time::{Duration, Instant};

use sinew_hosts::message_key;
use sinew_zenoh::{HostSeen, HostState, Mirror, NotTaken, NotTakenCounts, Setting, TlsFiles};
use zenoh::{Config, Session, Wait};

use crate::stage::{
    HASH, dials, free_address, header, incoming, not_taken, numbers, outgoing, setting, stranger,
    turn, until, until_within,
};
use crate::tls::Authority;

/// A router without certificates, with a lease such as ours.
pub(crate) fn router(address: &str) -> Session {
    let text = format!(
        "{{ mode: 'router', listen: {{ endpoints: ['tcp/{address}'] }}, \
         scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }}, \
         transport: {{ link: {{ tx: {{ lease: 500 }} }} }} }}"
    );
    open(&text)
}

/// A router by `graphs/cell/router.json5`, for a graph of that name.
pub(crate) fn guarded(address: &str, graph: &str, authority: &Authority) -> Session {
    guarded_with(address, graph, authority, &[])
}

/// The same with texts of the file replaced by others.
pub(crate) fn guarded_with(
    address: &str,
    graph: &str,
    authority: &Authority,
    more: &[(&str, String)],
) -> Session {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../graphs/cell/router.json5");
    let text = fs::read_to_string(path).expect("the file that is shipped");
    let TlsFiles { authority, certificate, key } = authority.sign("router", "router", 2100);
    let edits = [
        ("0.0.0.0:7447", address.to_owned()),
        ("certs/ca.pem", authority.display().to_string()),
        ("certs/router.pem", certificate.display().to_string()),
        ("certs/router.key", key.display().to_string()),
        ("sinew/cell/", format!("sinew/{graph}/")),
        ("sinew$*/cell/", format!("sinew$*/{graph}/")),
        ("cell@", format!("{graph}@")),
    ];
    let text = edits.iter().chain(more).fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the file has no '{from}' any more");
        text.replace(from, to)
    });
    open(&text)
}

/// With QUIC, the port of a router that was closed in this process is not free at once. It is free
/// when the last connection attempt of the meantime is given up, after 30 s of silence.
fn open(text: &str) -> Session {
    let mut opened = None;
    until_within(Duration::from_secs(90), "a router", || {
        opened = zenoh::open(Config::from_json5(text).expect("settings")).wait().ok();
        opened.is_some()
    });
    opened.expect("it is open")
}

/// A host that calls a router, as do its peers.
fn calling(host: &str, router: &str, peers: &[&str]) -> Setting {
    let peers: Vec<_> = peers.iter().map(|it| (*it, None)).collect();
    let mut setting = setting(host, None, &peers);
    setting.router = Some(router.into());
    setting.peers.iter_mut().for_each(|it| it.calls_router = true);
    setting
}

/// Hosts `cell` and `office`; each sends a number at `x` and takes the other's.
fn pair(router: &str) -> [Setting; 2] {
    let mut pair = [calling("cell", router, &["office"]), calling("office", router, &["cell"])];
    for (it, from) in pair.iter_mut().zip(["office", "cell"]) {
        it.outgoing.push(outgoing("x", 8));
        it.incoming.push(incoming(from, "x", 8, Some(1000)));
    }
    pair
}

fn is_there(it: &HostSeen) -> bool {
    it.state == HostState::Heard && it.is_linked && it.is_alive && it.round_trip_ns.is_some()
}

/// Runs until ten more messages have come both ways, and each sees the other and the router.
#[track_caller]
fn talk(mirrors: &mut [Mirror; 2], what: &str) {
    let received = |it: &Mirror| it.counted().incoming.received;
    let before = [received(&mirrors[0]), received(&mirrors[1])];
    until(what, || {
        for it in mirrors.iter_mut() {
            turn(it, &[&1_u64.to_le_bytes()]);
            numbers(it, 0);
        }
        mirrors.iter().zip(before).all(|(it, before)| {
            let sees = it.router() == Some(HostState::Heard) && it.hosts().iter().all(is_there);
            sees && received(it) >= before + 10
        })
    });
}

#[test]
fn hosts_speak_through_a_router_that_goes_and_comes_back() {
    let address = free_address();
    let mut mirrors = pair(&address).map(|it| Mirror::open(&it).expect("a host"));
    until("a router that is not there is told", || {
        mirrors.iter().all(|it| {
            let told =
                it.counted().trouble.is_some_and(|it| it.contains("cannot reach the router"));
            told && it.router() == Some(HostState::Unheard)
        })
    });
    let session = router(&address);
    talk(&mut mirrors, "they speak once it is there");
    assert_eq!(mirrors[0].counted().trouble, None);
    session.close().wait().expect("it ends");
    until("the router and the other host are gone", || {
        mirrors.iter().all(|it| {
            let other = &it.hosts()[0];
            let is_gone = other.state == HostState::Silent && !other.is_linked && !other.is_alive;
            is_gone && it.router() == Some(HostState::Silent)
        })
    });
    let _session = router(&address);
    talk(&mut mirrors, "they speak again");
    assert_eq!(mirrors.each_ref().map(|it| it.counted().reopened), [0; 2]);
}

#[test]
fn a_host_speaks_with_one_directly_and_with_another_through_the_router() {
    let (at_router, at_cell) = (free_address(), free_address());
    let _router = router(&at_router);
    let mut cell = calling("cell", &at_router, &["office", "hall"]);
    (cell.listen, cell.peers[0].calls_router) = (Some(at_cell.clone()), false);
    cell.outgoing.push(outgoing("x", 8));
    let of_office = setting("office", None, &[("cell", Some(&at_cell)), ("hall", None)]);
    let mut of_hall = calling("hall", &at_router, &["cell", "office"]);
    of_hall.peers[1].calls_router = false;
    // The hall could dial the cell, too, and yet hears each message once.
    of_hall.peers[0].address = Some(at_cell);
    let mut others = [of_office, of_hall].map(|mut it| {
        it.incoming.push(incoming("cell", "x", 8, Some(1000)));
        Mirror::open(&it).expect("a host")
    });
    let mut cell = Mirror::open(&cell).expect("a host");
    until("both hear the cell, and it both", || {
        turn(&mut cell, &[&1_u64.to_le_bytes()]);
        others.iter_mut().for_each(|it| _ = numbers(it, 0));
        let all_hear = others.iter().all(|it| it.counted().incoming.received >= 10);
        all_hear && cell.hosts().iter().all(is_there)
    });
    for it in &others {
        assert_eq!(it.not_taken()[0].refused(), 0, "{:?}", it.not_taken());
    }
    until("only the hall sees the router", || {
        others.each_ref().map(Mirror::router) == [None, Some(HostState::Heard)]
    });
}

#[test]
fn a_router_knows_a_host_by_its_graph_and_name() {
    let (authority, address) = (Authority::new(), free_address());
    let [mut cell, _] = pair(&address);
    cell.tls = Some(authority.sign("cell", "cell", 2100));
    let error = Mirror::open(&cell).err().unwrap_or_default();
    assert!(error.contains("its subject's CN is 'cell', this host is 'g@cell'"), "{error}");
    cell.tls = None;
    cell.router = Some("router.local".into());
    let error = Mirror::open(&cell).err().unwrap_or_default();
    assert!(error.contains("the router: 'router.local' is not an address with a port"), "{error}");
}

/// Each sends all that office sends. Only the one with the certificate of office is heard.
#[test]
fn a_router_lets_each_host_write_below_its_own_name_only() {
    let (authority, address) = (Authority::new(), free_address());
    let _router = guarded(&address, "g", &authority);
    let [mut cell, _] = pair(&address);
    cell.tls = Some(authority.sign("g@cell", "cell", 2100));
    let cell = Mirror::open(&cell).expect("a host");
    until("the router is connected", || cell.router() == Some(HostState::Heard));
    let key = message_key("g", "office", "n", "x", HASH);
    let message = header("office", 5, &key).write(&[0; 8]);
    let says = |session: &Session| {
        session.put(&key, message.clone()).wait().expect("it is sent");
        session.put("sinew/g/office/@stamp", "no stamp").wait().expect("it is sent");
        session.put("sinew/g/**", message.clone()).wait().expect("it is sent");
    };
    let client = |name: &str| {
        let shown = authority.sign(name, name, 2100);
        let session = dials(&address, &shown.authority, Some(&shown), "client");
        let token = session.liveliness().declare_token("sinew/g/office/@alive");
        (token.wait().expect("a token"), session)
    };

    // Another host, an observer, the host of that name in another graph, a host's name without its
    // graph, and a name that the router does not know.
    let others = ["g@hall", "g@observer", "other@office", "office", "g@nobody"].map(client);
    let end = Instant::now() + Duration::from_secs(1);
    until("the others have had time", || {
        others.iter().for_each(|(_, it)| says(it));
        Instant::now() > end
    });
    assert_eq!(cell.not_taken()[0], NotTakenCounts::default());
    assert!(!cell.hosts()[0].is_alive);

    let (_token, real) = client("g@office");
    until("office is heard", || {
        says(&real);
        let met = |reason| not_taken(&cell, 0, reason) > 0;
        met(NotTaken::Early) && met(NotTaken::Malformed) && cell.hosts()[0].is_alive
    });
}

/// With the rules file that is shipped, and hosts as users have them.
#[test]
fn hosts_with_certificates_speak_through_a_guarded_router() {
    let (authority, address) = (Authority::new(), free_address());
    let mut settings = pair(&address);
    settings.iter_mut().for_each(|it| {
        it.tls = Some(authority.sign(&format!("g@{}", it.host), &it.host, 2100));
    });
    let mut mirrors = settings.map(|it| Mirror::open(&it).expect("a host"));
    let session = guarded(&address, "g", &authority);
    talk(&mut mirrors, "they speak");
    session.close().wait().expect("it ends");
    let _session = guarded(&address, "g", &authority);
    talk(&mut mirrors, "they speak again");
    // Not let in are a client without a certificate, and one of another authority.
    let other = Authority::new().sign("g@office", "other", 2100);
    let root = authority.sign("g@cell", "again", 2100).authority;
    let strangers = [
        dials(&address, &root, None, "peer"),
        dials(&address, &root, Some(&other), "peer"),
        stranger(&[&format!("tcp/{address}")], ""),
    ];
    let end = Instant::now() + Duration::from_secs(1);
    until("the strangers have had time", || Instant::now() > end);
    talk(&mut mirrors, "they speak all the same");
    for it in &strangers {
        assert_eq!(it.info().routers_zid().wait().count(), 0, "a stranger is connected");
    }
}

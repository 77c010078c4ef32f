//! How hosts reach each other: addresses of both families, places for connections, and what is told
//! of a host that cannot be reached.

use std::net::{TcpListener, UdpSocket};

use sinew_zenoh::{HostState, Mirror};
use zenoh::{Config, Session, Wait};

use crate::stage::{connected, free_address, setting, until};
use crate::tls::Authority;

fn hears(mirror: &Mirror) -> bool {
    mirror.hosts().iter().all(|it| it.state == HostState::Heard)
}

/// A port that is free at all addresses.
fn free_port() -> String {
    let address = free_address();
    address.rsplit_once(':').expect("a port").1.to_owned()
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
fn who_listens_at_all_addresses_is_reached_by_both_families() {
    let authority = Authority::new();
    for is_secure in [false, true] {
        let mut hosts = vec!["127.0.0.1"];
        match UdpSocket::bind("[::1]:0") {
            // A certificate names no address of IPv6: zenoh checks none.
            Ok(_) if !is_secure => hosts.push("[::1]"),
            Ok(_) => {}
            Err(error) => eprintln!("skipped: this machine has no IPv6: {error}"),
        }
        for host in hosts {
            let port = free_port();
            let mut a = setting("a", Some(&format!("[::]:{port}")), &[("b", None)]);
            let mut b = setting("b", None, &[("a", Some(&format!("{host}:{port}")))]);
            if is_secure {
                a.tls = Some(authority.sign("a", "a", 2100));
                b.tls = Some(authority.sign("b", "b", 2100));
            }
            let (a, b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
            until("both are heard", || hears(&a) && hears(&b));
        }
    }
}

#[test]
fn programs_that_look_on_take_no_place_of_a_host() {
    let address = free_address();
    let a = Mirror::open(&setting("a", Some(&address), &[("b", None)])).expect("a");
    // Those that fit, and more, which try again and again, as often as zenoh does by itself.
    let text = format!(
        "{{ mode: 'peer', listen: {{ endpoints: [] }}, connect: {{ endpoints: ['tcp/{address}'], \
         exit_on_failure: false, timeout_ms: -1 }}, \
         open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }}, \
         scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }} }}"
    );
    let observer = |_| zenoh::open(Config::from_json5(&text).expect("settings")).wait();
    let observers: Vec<Session> = (0..72).map(|at| observer(at).expect("a session")).collect();
    let count = || observers.iter().filter(|it| connected(it) == 1).count();
    until("all places are taken", || count() >= 66);
    let b = Mirror::open(&setting("b", None, &[("a", Some(&address))])).expect("b");
    until("b has found a place", || hears(&a) && hears(&b));
    let news = a.news();
    assert!(news.iter().any(|it| it.contains("places for connections are taken")), "{news:?}");
}

#[test]
fn a_host_that_cannot_be_reached_is_told_with_the_cause_once() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let other_program = taken.local_addr().expect("its address").to_string();
    let at_other_graph = free_address();
    let mut other_graph = setting("a", Some(&at_other_graph), &[]);
    other_graph.graph = "h".into();
    let _other_graph = Mirror::open(&other_graph).expect("a host of another graph");
    for (address, words) in [
        ("no.such.name.invalid:7447", "its name cannot be resolved"),
        (&free_address(), "refused"),
        (&other_program, "something answers there, but not as a host"),
        (&at_other_graph, "not this host of this graph"),
    ] {
        let b = Mirror::open(&setting("b", None, &[("a", Some(address))])).expect("b");
        let mut news = vec![];
        until("it is told", || {
            news.extend(b.news());
            !news.is_empty()
        });
        let said = format!("host 'a' is not heard at '{address}': ");
        assert!(news[0].starts_with(&said) && news[0].contains(words), "{news:?}");
        assert_eq!(news.len(), 1, "{news:?}");
    }
}

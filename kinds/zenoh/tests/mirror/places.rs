//! Messages of one port under the key of another: zenoh delivers them so after a short outage, and
//! a stranger may send them so.

use std::time::{Duration, Instant};

use sinew_hosts::{MessageHeader, message_key, stamp_key};
use sinew_zenoh::{HostState, Mirror, NotTaken};
use zenoh::Wait;

use crate::stage::{
    HASH, connected, free_address, header, incoming, not_taken, numbers, outgoing, setting,
    stranger, turn, until,
};

const PORTS: usize = 6;

/// Host `a` listens and sends its number at each of six ports; `b` dials it and takes them.
fn pair() -> (Mirror, Mirror, String) {
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(&address))]);
    for port in 0..PORTS {
        a.outgoing.push(outgoing(&format!("p{port}"), 8));
        b.incoming.push(incoming("a", &format!("p{port}"), 8, Some(1000)));
    }
    a.incoming.push(incoming("b", "back", 8, Some(1000)));
    (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"), address)
}

/// One turn. Returns whether each port has shown its own number, and no other.
fn pass(a: &mut Mirror, b: &mut Mirror) -> bool {
    a.begin();
    (0..PORTS).for_each(|port| _ = a.send(port, &(port as u64).to_le_bytes()));
    a.end();
    (0..PORTS).all(|port| {
        let seen = numbers(b, port);
        assert!(seen.iter().all(|it| *it == port as u64), "port {port} has seen {seen:?}");
        !seen.is_empty()
    })
}

#[test]
fn what_names_another_port_than_its_key_is_dropped_and_told() {
    let (mut a, mut b, address) = pair();
    until("all ports are heard", || pass(&mut a, &mut b));
    let life = a.life();
    // The stranger knows all that b knows, and sends it under the wrong keys.
    let session = stranger(&[&format!("tcp/{address}")], "");
    until("the stranger is connected", || connected(&session) == 1);
    let keys = [0, 1].map(|port| message_key("g", "b", "n", &format!("p{port}"), HASH));
    let back = message_key("g", "b", "n", "back", HASH);
    let of_other_port = header("b", b.life(), &keys[0]).write(&[9; 8]);
    let of_other_host = header("c", life, &back).write(&[9; 8]);
    let of_nobody = header("b", 0, &back).write(&[9; 8]);
    let mut of_other_version = header("b", b.life(), &back).write(&[9; 8]);
    of_other_version[3] = 1;
    let wild = header("b", b.life(), &keys[1]).write(&[9; 8]);
    let frame = MessageHeader { sequence: 1, ..header("c", 5, &stamp_key("g", "c")) };
    let puts = [
        (back.clone(), of_other_port, NotTaken::Misplaced),
        (back.clone(), of_other_host, NotTaken::Misplaced),
        ("sinew/g/b/**".into(), wild, NotTaken::Misplaced),
        (stamp_key("g", "b"), frame.write(&[0; 16]), NotTaken::Misplaced),
        (back.clone(), of_nobody, NotTaken::Lifeless),
        (back.clone(), of_other_version, NotTaken::OtherHeader),
        (back, vec![], NotTaken::Malformed),
    ];
    for (key, bytes, reason) in puts {
        let before = not_taken(&a, 0, reason);
        session.put(&key, bytes).wait().expect("it is sent");
        until("it is counted by its name", || not_taken(&a, 0, reason) > before);
        assert!(numbers(&mut a, 0).is_empty());
    }
    let news = a.news();
    for text in ["another host or port than its key", "another version of Sinew", "the life 0"] {
        let told = news.iter().filter(|it| it.contains(text)).count();
        assert_eq!(told, 1, "'{text}' is told once: {news:?}");
    }
    until("all ports are heard as before", || pass(&mut a, &mut b));
}

/// The stranger hears all and knows all, but not the secret.
#[test]
fn who_does_not_have_the_secret_of_the_hosts_is_not_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = |name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, [name; 10].concat()).expect("written");
        Some(file)
    };
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("b", None), ("c", None)]);
    a.incoming.push(incoming("b", "x", 8, Some(1000)));
    a.secret = secret("ours");
    let peers = [("a", Some(&*address)), ("c", None)];
    let mut b = setting("b", None, &peers);
    b.outgoing.push(outgoing("x", 8));
    b.secret = secret("ours");
    let mut c = setting("c", None, &[("a", Some(&address)), ("b", None)]);
    c.secret = secret("theirs");
    let [mut a, mut b, _c] = [&a, &b, &c].map(|it| Mirror::open(it).expect("a host"));
    let session = stranger(&[&format!("tcp/{address}")], "");
    let key = message_key("g", "b", "n", "x", HASH);
    until("b is obeyed, and the others are counted", || {
        turn(&mut b, &[&7_u64.to_le_bytes()]);
        let forged = header("b", b.life(), &key).write(&[9; 8]);
        session.put(&key, forged).wait().expect("it is sent");
        let seen = numbers(&mut a, 0);
        assert!(seen.iter().all(|it| *it == 7), "{seen:?}");
        let unsealed = [0, 1].map(|host| not_taken(&a, host, NotTaken::Unsealed));
        // The stranger's messages are shorter than sealed ones.
        let short = not_taken(&a, 0, NotTaken::Malformed);
        a.counted().incoming.received > 10 && unsealed[1] > 10 && unsealed[0] + short > 10
    });
    let states: Vec<HostState> = a.hosts().iter().map(|it| it.state).collect();
    assert_eq!(states, [HostState::Heard, HostState::Unheard]);
    let news = a.news();
    assert!(news.iter().any(|it| it.contains("'c' came a message that is not sealed")), "{news:?}");
}

/// One packet of a stranger that has heard everything: it is over after half a second.
#[test]
fn no_single_packet_locks_a_host_out() {
    let (mut a, mut b, address) = pair();
    until("all ports are heard", || pass(&mut a, &mut b));
    let session = stranger(&[&format!("tcp/{address}")], "");
    until("the stranger is connected", || connected(&session) == 1);
    let stamps = stamp_key("g", "b");
    let frame = |life, sequence: u64, stamp_ns: u64| {
        let header = MessageHeader { sequence, ..header("b", life, &stamps) };
        header.write(&[stamp_ns.to_le_bytes(), 1_u64.to_le_bytes()].concat())
    };
    let life = b.life();
    for bytes in [
        frame(life, u64::MAX, 1),
        frame(life, 5000, u64::MAX),
        frame(life + 1, 1, 1),
        frame(u64::MAX, u64::MAX, u64::MAX),
    ] {
        session.put(&stamps, bytes).wait().expect("it is sent");
        let end = Instant::now() + Duration::from_millis(500);
        until("half a second", || {
            pass(&mut a, &mut b);
            Instant::now() > end
        });
        let before = b.counted().incoming.received;
        until("b obeys a again", || {
            pass(&mut a, &mut b);
            b.counted().incoming.received > before && a.hosts()[0].state.is_heard()
        });
    }
}

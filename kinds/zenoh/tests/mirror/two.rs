//! Two hosts on a line that holds.

use std::sync::mpsc;

use sinew_hosts::{Echo, MessageHeader, message_key, number, stamp_key};
use sinew_zenoh::{HostState, Mirror, NotTaken, StampFrame};
use zenoh::Wait;

use crate::stage::{
    HASH, connected, free_address, incoming, not_taken, now_ns, numbers, outgoing, setting,
    stranger, turn, until,
};

/// Hosts `a`, which listens, and `b`; each sends a number at `x` and takes the other's.
fn pair(version: u64) -> (Mirror, Mirror, String) {
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(&address))]);
    a.outgoing.push(outgoing("x", 8));
    b.outgoing.push(outgoing("x", 8));
    a.incoming.push(incoming("b", "x", 8, Some(1000)));
    b.incoming.push(incoming("a", "x", 8, Some(1000)));
    b.version = version;
    (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"), address)
}

fn states(mirror: &Mirror) -> Vec<HostState> {
    mirror.hosts().into_iter().map(|it| it.state).collect()
}

#[test]
fn what_one_host_says_the_other_hears_and_both_know_the_round_trip() {
    let (mut a, mut b, _) = pair(1);
    let (mut at_a, mut at_b) = (vec![], vec![]);
    let mut number = 0_u64;
    until("ten messages each way", || {
        number += 1;
        turn(&mut a, &[&number.to_le_bytes()]);
        turn(&mut b, &[&(number + 1_000_000).to_le_bytes()]);
        at_a.extend(numbers(&mut a, 0));
        at_b.extend(numbers(&mut b, 0));
        at_a.len() >= 10 && at_b.len() >= 10
    });
    assert!(at_a.is_sorted() && at_a.iter().all(|it| *it > 1_000_000), "{at_a:?}");
    assert!(at_b.is_sorted() && at_b.iter().all(|it| *it < 1_000_000), "{at_b:?}");
    until("everything that is seen of the other", || {
        [&a, &b].into_iter().flat_map(Mirror::hosts).all(|it| {
            let is_there = it.state == HostState::Heard && it.is_linked && it.is_alive;
            is_there && it.round_trip_ns.is_some()
        })
    });
    let counted = a.counted();
    assert_eq!((counted.reopened, counted.trouble), (0, None));
    assert_eq!(a.not_taken()[0].refused(), 0, "{:?}", a.not_taken());
}

/// As another program finds them.
#[test]
fn the_bytes_on_the_wire_are_those_of_the_tables() {
    let (mut a, b, address) = pair(1);
    let session = stranger(&[&format!("tcp/{address}")], "");
    let (say, said) = mpsc::channel();
    for key in [message_key("g", "a", "n", "x", HASH), stamp_key("g", "a")] {
        let say = say.clone();
        let take = move |bytes: Vec<u8>| say.send(bytes).unwrap_or_default();
        let subscriber = session.declare_subscriber(key);
        subscriber
            .callback(move |it| take(it.payload().to_bytes().into()))
            .background()
            .wait()
            .ok();
    }
    let (mut message, mut stamp) = (None, None);
    until("a message and a frame with the stamp of b in them", || {
        turn(&mut a, &[&7_u64.to_le_bytes()]);
        for bytes in said.try_iter() {
            match bytes.len() {
                80 => message = Some(bytes),
                96 => stamp = Some(bytes),
                _ => {}
            }
        }
        message.is_some() && stamp.is_some()
    });
    let is_of_b = |echo: &Echo| {
        assert_eq!((echo.host, echo.life), (number("b"), b.life()));
        assert!(echo.stamp_ns <= now_ns(), "{echo:?}");
    };
    let message = message.unwrap_or_default();
    let (header, body) = MessageHeader::read(&message, 8).expect("a header");
    let key = number(&message_key("g", "a", "n", "x", HASH));
    assert_eq!((header.host, header.life, header.key), (number("a"), a.life(), key));
    assert_eq!(body, &7_u64.to_le_bytes()[..]);
    is_of_b(&header.echoes[0]);
    let frame = StampFrame::read(&stamp.unwrap_or_default()).expect("a frame");
    assert_eq!((frame.header.life, frame.version), (a.life(), 1));
    assert!(frame.stamp_ns <= now_ns() && frame.held_ns.len() == 1, "{frame:?}");
    is_of_b(&frame.header.echoes[0]);
    assert_eq!(connected(&session), 1);
}

#[test]
fn another_version_is_told_and_nothing_of_it_taken() {
    let (mut a, mut b, _) = pair(2);
    until("each sees that the other is of another version", || {
        turn(&mut a, &[&1_u64.to_le_bytes()]);
        turn(&mut b, &[&1_u64.to_le_bytes()]);
        states(&a) == [HostState::OtherVersion(2)] && states(&b) == [HostState::OtherVersion(1)]
    });
    until("messages that are not taken", || {
        turn(&mut b, &[&1_u64.to_le_bytes()]);
        assert!(numbers(&mut a, 0).is_empty());
        not_taken(&a, 0, NotTaken::OtherVersion) >= 10
    });
}

#[test]
fn a_message_of_another_shape_never_arrives() {
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(&address))]);
    b.outgoing.push(outgoing("x", 8));
    a.incoming.push(incoming("b", "x", 8, None));
    a.incoming.push(incoming("b", "x", 8, None));
    a.incoming[1].hash += 1;
    let (mut a, mut b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
    until("messages of the right shape", || {
        turn(&mut b, &[&1_u64.to_le_bytes()]);
        numbers(&mut a, 0);
        a.counted_at(0).received >= 10
    });
    assert_eq!(a.counted_at(1), sinew_zenoh::IncomingCounts::default());
}

#[test]
fn who_goes_is_silent_and_is_heard_when_it_comes_back() {
    let (mut a, mut b, address) = pair(1);
    let talk = |a: &mut Mirror, b: &mut Mirror, what: &str| {
        let before = a.counted().incoming.received;
        until(what, || {
            turn(b, &[&1_u64.to_le_bytes()]);
            numbers(a, 0);
            a.counted().incoming.received > before + 10 && states(a) == [HostState::Heard]
        });
    };
    talk(&mut a, &mut b, "b is heard");
    b.close();
    until("b is silent and gone", || {
        let it = &a.hosts()[0];
        it.state == HostState::Silent && !it.is_linked && !it.is_alive
    });
    let mut again = setting("b", None, &[("a", Some(&address))]);
    again.outgoing.push(outgoing("x", 8));
    let mut b = Mirror::open(&again).expect("b");
    talk(&mut a, &mut b, "b is heard in its next life");
}

#[test]
fn a_port_in_use_is_told() {
    let address = free_address();
    let _taken = std::net::TcpListener::bind(&address).expect("it is free");
    let error = Mirror::open(&setting("a", Some(&address), &[])).err().unwrap_or_default();
    assert!(error.contains(&format!("cannot listen at '{address}': Address")), "{error}");
}

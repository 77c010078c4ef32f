//! Hosts beside sessions of zenoh that are not hosts, or that pretend to be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use sinew_hosts::{MessageHeader, message_key, number};
use sinew_zenoh::{HostState, Mirror, NotTaken};
use zenoh::Wait;

use crate::stage::{
    HASH, connected, free_address, header, incoming, not_taken, numbers, outgoing, setting,
    stranger, turn, until,
};

#[test]
fn a_command_that_is_sent_again_is_not_obeyed() {
    let [at_a, at_b] = [free_address(), free_address()];
    let mut a = setting("a", Some(&at_a), &[("b", Some(&at_b))]);
    let mut b = setting("b", Some(&at_b), &[("a", Some(&at_a))]);
    b.outgoing.push(outgoing("x", 8));
    a.incoming.push(incoming("b", "x", 8, None));
    let (mut a, mut b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
    // The stranger hears b, and talks to a.
    let session = stranger(&[&format!("tcp/{at_a}"), &format!("tcp/{at_b}")], "");
    let key = message_key("g", "b", "n", "x", HASH);
    let (say, said) = mpsc::channel();
    let take = move |bytes: Vec<u8>| say.send(bytes).unwrap_or_default();
    let subscriber = session.declare_subscriber(&key);
    subscriber.callback(move |it| take(it.payload().to_bytes().into())).background().wait().ok();
    let (mut taken, mut captured) = (0, vec![]);
    until("commands that are obeyed and captured", || {
        turn(&mut b, &[&1_u64.to_le_bytes()]);
        taken += numbers(&mut a, 0).len();
        captured.extend(said.try_iter().filter(|it| it.len() > 40));
        taken >= 10 && captured.len() >= 10
    });
    let mut count = 0;
    until("all of them, again", || {
        // The last of them may still be on their way from b.
        if count == 0 {
            thread::sleep(std::time::Duration::from_millis(100));
            numbers(&mut a, 0);
        }
        count += 1;
        for bytes in &captured {
            session.put(&key, bytes.clone()).wait().expect("it is sent");
        }
        assert!(numbers(&mut a, 0).is_empty());
        not_taken(&a, 0, NotTaken::Again) >= 2 * captured.len() as u64
    });
}

/// A flood of what looks like messages must neither fill the memory nor stop what is real.
#[test]
fn a_flood_of_a_stranger_stops_nobody() {
    const BYTES: usize = 30_000;
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(&address))]);
    b.outgoing.push(outgoing("x", BYTES));
    a.incoming.push(incoming("b", "x", BYTES, Some(1000)));
    let (mut a, mut b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
    let life = b.life();
    let session = stranger(&[&format!("tcp/{address}")], "");
    let key = message_key("g", "b", "n", "x", HASH);
    until("the stranger is connected", || connected(&session) == 1);
    let header = MessageHeader { sequence: u64::MAX, ..header("b", life, &key) };
    let floods = [header.write(&[0; BYTES]), header.write(&[0; BYTES + 1]), vec![0; BYTES + 32]];
    let is_over = AtomicBool::new(false);
    let (before, mut message) = (resident(), vec![0; BYTES]);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A flag that ends a loop; it orders nothing.
            while !is_over.load(Ordering::Relaxed) {
                for bytes in &floods {
                    session.put(&key, bytes.clone()).wait().expect("it is sent");
                }
            }
        });
        let _ends = Ends(&is_over);
        // Since b was first heard: how often it is looked at, and how often it is silent.
        let (mut looks, mut silent) = (0, 0);
        until("a flood, and a thousand messages through it", || {
            turn(&mut b, &[&message.clone()]);
            while a.receive(0, &mut message).is_some() {}
            let state = a.hosts()[0].state;
            looks += u64::from(state != HostState::Unheard);
            silent += u64::from(state == HostState::Silent);
            let counts = a.counted().incoming;
            let not_taken = a.not_taken()[0];
            let flood = [NotTaken::Unstamped, NotTaken::Malformed].map(|it| not_taken.of(it));
            counts.received >= 1000 && flood[0] >= 2000 && flood[1] >= 4000
        });
        assert!(silent * 10 <= looks, "b is silent in {silent} of {looks} looks in the flood");
    });
    let grown = resident().saturating_sub(before);
    let flood = not_taken(&a, 0, NotTaken::Unstamped) * BYTES as u64 * 3;
    assert!(grown < flood / 2, "memory grew by {grown} bytes in a flood of {flood}");
    assert_eq!(a.counted().reopened, 0);
}

/// Ends the flood, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // A flag that ends a loop; it orders nothing.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes of memory of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("of this process");
    let pages = text.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
    pages.expect("a number") * 4096
}

#[test]
fn a_connection_of_a_host_that_says_nothing_is_opened_again() {
    let address = free_address();
    let a = Mirror::open(&setting("a", Some(&address), &[("b", None)])).expect("a");
    let id = u128::from(number("g/b")) << 64 | 1;
    let _silent = stranger(&[&format!("tcp/{address}")], &format!("id: \"{id:x}\","));
    until("the connection", || a.hosts()[0].is_linked);
    until("a session that was opened again", || a.counted().reopened == 1);
    until("the connection once more", || a.hosts()[0].is_linked);
    assert_eq!(a.counted().trouble, None);
}

//! What injections do to links and services, without a run around them.

use sinew_core::transport::{Received, Receiver, Sent};
use sinew_spec::plan::{Delivery, Sync, Transport, Wait};

use super::*;
use crate::inject::{Heartbeats, InjectedFault};

const SHAPE: LinkShape = LinkShape {
    message_size: 8,
    type_hash: 7,
    capacity: 16,
    sync: Sync::LockFree,
    delivery: Delivery::Queue,
    wait: Wait::Spin,
    tuning: None,
};

/// Both ends of a link, the writing one with `what` at cycle `at_cycle`.
fn link(at_cycle: u64, what: InjectedFault) -> (Box<dyn Sender>, Box<dyn Receiver>) {
    let shared = row(Transport::SharedMemory);
    let (writer, reader) = (shared.open)(&SHAPE).expect("memfd");
    let Carrier::Region(region) = &writer else { panic!("shared memory is a region") };
    let region = Some(region.clone());
    let sender = (shared.sender)(writer, &SHAPE).expect("a new region");
    let injections = vec![Injection { target: Target::Link(0), at_cycle, what }];
    let injected = Box::new(link::InjectedLink::new(sender, region, injections));
    (injected, (shared.receiver)(reader, &SHAPE).expect("a new region"))
}

fn send(sender: &mut dyn Sender, message: u8) {
    let sent = sender.send(&[message; 8]);
    assert!(matches!(sent, Ok(Sent::Done)), "{sent:?}: the writer is not to know");
}

/// What is there to be read, and whether the writer has closed the link.
fn read(receiver: &mut dyn Receiver) -> (Vec<u8>, bool) {
    let (mut messages, mut into) = (vec![], [0; 8]);
    loop {
        match receiver.receive(&mut into).expect("the writer keeps the rules") {
            Received::New { .. } => messages.push(into[0]),
            Received::None => return (messages, false),
            Received::Closed => return (messages, true),
        }
    }
}

#[test]
fn a_peer_that_is_gone_has_closed_the_link_and_the_writer_does_not_know() {
    let (mut sender, mut receiver) = link(2, InjectedFault::PeerGone);
    (0..5).for_each(|message| send(&mut *sender, message));
    assert_eq!(read(&mut *receiver), (vec![0, 1], true));
}

#[test]
fn a_link_that_stalls_loses_so_many_messages_and_goes_on() {
    let (mut sender, mut receiver) = link(1, InjectedFault::Stalled { messages: 3 });
    (0..5).for_each(|message| send(&mut *sender, message));
    assert_eq!(read(&mut *receiver), (vec![0, 4], false));
}

#[test]
fn a_cycle_without_a_message_counts_too() {
    let (mut sender, mut receiver) = link(1, InjectedFault::Stalled { messages: 1 });
    sender.flush().expect("nothing is left to move");
    (0..2).for_each(|message| send(&mut *sender, message));
    assert_eq!(read(&mut *receiver), (vec![1], false));
}

#[test]
fn a_hostile_writer_is_found_out_by_its_reader() {
    let (mut sender, mut receiver) = link(0, InjectedFault::Hostile);
    let mut into = [0; 8];
    let found = (0..100).any(|message| {
        send(&mut *sender, message);
        receiver.receive(&mut into).is_err()
    });
    assert!(found, "a queue's reader takes garbage for positions");
}

#[test]
fn a_service_that_fails_is_told_to_end_at_its_heartbeat_and_not_again() {
    let injection = Injection { target: Target::Node(0), at_cycle: 3, what: InjectedFault::Error };
    let mut heartbeats = Heartbeats::new(vec![injection]);
    (1..=4).for_each(|number| heartbeats.beat(number));
    assert!(heartbeats.failed);
    let mut next_life = Heartbeats::new(vec![]);
    (4..8).for_each(|number| next_life.beat(number));
    assert!(!next_life.failed);
}

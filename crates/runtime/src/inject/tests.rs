//! What injections do to nodes and links, without a run around them.

use std::sync::{Arc, Mutex};

use super::*;
use crate::transport::Sent;

/// What a link took, message by message; `None` for its end.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<Option<u8>>>>);

impl Taken {
    fn list(&self) -> Vec<Option<u8>> {
        self.0.lock().expect("nobody panics with it").clone()
    }

    fn push(&self, what: Option<u8>) {
        self.0.lock().expect("nobody panics with it").push(what);
    }
}

impl Sender for Taken {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        self.push(Some(message[0]));
        Ok(Sent::Done)
    }

    fn wait_room(&mut self, _until_ns: u64) -> bool {
        true
    }

    fn close(&mut self) {
        self.push(None);
    }
}

fn at(at_cycle: u64, what: What) -> Vec<Injection> {
    vec![Injection { target: Target::Link(3), at_cycle, what }]
}

fn send_five(injections: &[Injection]) -> Vec<Option<u8>> {
    let taken = Taken::default();
    let mut sender = sender(Box::new(taken.clone()), 3, injections);
    for message in 0..5 {
        assert!(matches!(sender.send(&[message]), Ok(Sent::Done)));
    }
    taken.list()
}

#[test]
fn a_peer_that_is_gone_has_closed_the_link_and_the_writer_does_not_know() {
    assert_eq!(send_five(&at(2, What::PeerGone)), [Some(0), Some(1), None]);
}

#[test]
fn a_link_that_stalls_loses_so_many_messages_and_goes_on() {
    let taken = send_five(&at(1, What::Stalled { messages: 3 }));
    assert_eq!(taken, [Some(0), Some(4)]);
}

#[test]
fn a_link_that_no_injection_names_is_left_alone() {
    let mut elsewhere = at(0, What::PeerGone);
    elsewhere[0].target = Target::Link(4);
    assert_eq!(send_five(&elsewhere), [0, 1, 2, 3, 4].map(Some));
}

#[test]
fn an_injection_comes_back_from_its_json() {
    for what in [What::Segv, What::Late { cycles: 7 }, What::Stalled { messages: 9 }] {
        let injection = Injection { target: Target::Node(1), at_cycle: 42, what };
        let text = serde_json::to_string(&injection).expect("plain data");
        assert_eq!(serde_json::from_str::<Injection>(&text).ok(), Some(injection), "{text}");
    }
}

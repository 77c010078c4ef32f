//! Both ends of a link within the process, as a plan makes them.

use std::hint::black_box;

use sinew_core::catalogue::MessageType;
use sinew_core::transport::{Received, Receiver, Sender, Sent};
use sinew_flow::testing::link;
use sinew_spec::plan::Delivery;

use super::{TIMES, Work};

/// Room for all messages of one count.
const CAPACITY: u32 = 1024;

struct Link {
    sender: Box<dyn Sender>,
    receiver: Box<dyn Receiver>,
    message: Vec<u8>,
}

impl Link {
    fn new(size: u32, delivery: Delivery) -> Link {
        let message = MessageType { name: "Bytes", size, align: 8, fields: &[], hash: 1 };
        let (sender, receiver) = link(&message, delivery, CAPACITY);
        Link { sender, receiver, message: vec![7; size as usize] }
    }

    #[inline(always)]
    fn send(&mut self) {
        let sent = self.sender.send(black_box(&self.message));
        assert!(matches!(sent, Ok(Sent::Done)), "a message was not taken");
    }

    #[inline(always)]
    fn receive(&mut self) {
        let received = self.receiver.receive(black_box(&mut self.message));
        assert!(matches!(received, Ok(Received::New { .. })), "no message came");
    }
}

/// Sends messages of `size` bytes into a queue.
pub(super) fn send(size: u32) -> Work {
    let mut link = Link::new(size, Delivery::Queue);
    Box::new(move || (0..TIMES).for_each(|_| link.send()))
}

/// A mistake: the same, with an extra copy of each message.
pub(super) fn send_copy(size: u32) -> Work {
    let mut link = Link::new(size, Delivery::Queue);
    let message = link.message.clone();
    Box::new(move || {
        for _ in 0..TIMES {
            link.message = black_box(message.clone());
            link.send();
        }
    })
}

/// Receives messages from a queue that contains them all.
pub(super) fn receive(size: u32) -> Work {
    let mut link = Link::new(size, Delivery::Queue);
    (0..TIMES).for_each(|_| link.send());
    Box::new(move || (0..TIMES).for_each(|_| link.receive()))
}

/// Sends messages, and receives each one as the newest.
pub(super) fn exchange(size: u32) -> Work {
    let mut link = Link::new(size, Delivery::Latest);
    Box::new(move || {
        for _ in 0..TIMES {
            link.send();
            link.receive();
        }
    })
}

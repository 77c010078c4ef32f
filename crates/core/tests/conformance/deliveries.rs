//! What each delivery promises, and that no message allocates.

use std::thread;

use sinew_core::Fault;
use sinew_core::clock::now_ns;
use sinew_core::transport::{Carrier, Received, Receiver, Sender, Sent};
use sinew_spec::plan::{Delivery, Wait};

use super::{
    Case, SIZES, all_cases, cases, expect, fill, limit, number, receive, region, send, serial,
    short,
};

/// Sends `count` messages through `case` from another thread; every one must come, in order.
fn transfer(case: &Case, count: u32) {
    let (mut sender, mut receiver) = case.open();
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..count {
                send(case, &mut *sender, number);
            }
        });
        let mut message = case.buffer();
        for number in 0..count {
            expect(case, &mut *receiver, number);
        }
        assert_eq!(receive(case, &mut *receiver, &mut message), Received::Closed, "{case}");
    });
}

#[test]
fn a_queue_delivers_every_message_once_and_in_order() {
    let _serial = serial();
    for size in SIZES {
        for &(wait, _) in Wait::ALL {
            // Spinning threads wait for each other's time slices where CPUs are few.
            let count = if wait == Wait::Spin { 40 } else { 200 };
            for case in cases(Delivery::Queue, wait, size) {
                transfer(&case, if size > 4096 { 24 } else { count });
            }
        }
    }
}

#[test]
fn a_queue_takes_messages_of_a_mebibyte() {
    let _serial = serial();
    for case in cases(Delivery::Queue, Wait::Park, 1 << 20) {
        transfer(&case, 5);
    }
}

#[test]
fn latest_gives_the_newest() {
    let _serial = serial();
    // Not the smallest, which holds no number.
    for &size in &SIZES[1..] {
        for case in cases(Delivery::Latest, Wait::Park, size) {
            let (mut sender, mut receiver) = case.open();
            let mut message = case.buffer();
            let last = 99;
            for number in 0..=last {
                send(&case, &mut *sender, number);
            }
            let mut newest = None;
            let until_ns = limit();
            while newest != Some(last) {
                assert!(now_ns() < until_ns, "{case}: {newest:?} is the newest");
                // A stream may have older messages in the kernel's buffer; a region has none.
                assert!(newest.is_none() || !case.is_region(), "{case}: not the newest");
                sender.flush().expect("the reader lives");
                if receiver.wait(short()) {
                    let found = receive(&case, &mut *receiver, &mut message);
                    assert_eq!(found, Received::New { lost: 0 }, "{case}");
                    let next = number(&message, 0).expect("whole");
                    assert!(newest.is_none_or(|newest| newest < next), "{case}: {next} is older");
                    newest = Some(next);
                }
            }
            assert_eq!(receiver.receive(&mut message).expect("no fault"), Received::None, "{case}");
            assert_eq!(number(&message, 0), Ok(last), "{case}: the buffer was touched");
        }
    }
}

/// A reader of a broadcast that keeps account.
struct Account {
    received: u32,
    lost: u32,
}

impl Account {
    /// Takes all that is there.
    fn drain(&mut self, case: &Case, receiver: &mut dyn Receiver, into: &mut [u8]) {
        while let Received::New { lost } = receiver.receive(into).expect("no fault") {
            self.lost += lost;
            // Every message before this one was received or is counted as lost.
            let expected = self.received + self.lost;
            assert_eq!(number(into, expected), Ok(expected), "{case}");
            self.received += 1;
        }
    }

    /// Sends until a message arrives after which nothing is missing.
    fn settle(
        mut self,
        case: &Case,
        sender: &mut dyn Sender,
        receiver: &mut dyn Receiver,
        mut sent: u32,
    ) -> Account {
        let mut message = case.buffer();
        let until_ns = limit();
        while self.received + self.lost != sent {
            assert!(now_ns() < until_ns, "{case}: messages unaccounted for");
            sender.flush().expect("no fault");
            if !receiver.wait(short()) {
                send(case, sender, sent);
                sent += 1;
            }
            self.drain(case, receiver, &mut message);
        }
        self
    }
}

#[test]
fn broadcast_counts_what_was_lost() {
    let _serial = serial();
    for size in SIZES {
        for case in cases(Delivery::Broadcast, Wait::Park, size) {
            let (mut sender, mut receiver) = case.open();
            let count = if size > 4096 { 100 } else { 1000 };
            for number in 0..count {
                send(&case, &mut *sender, number);
            }
            let account = Account { received: 0, lost: 0 };
            let account = account.settle(&case, &mut *sender, &mut *receiver, count);
            if case.is_region() {
                assert_eq!(account.received, case.shape.capacity, "{case}");
            }
        }
    }
}

#[test]
fn broadcast_counts_what_was_lost_to_a_faster_thread() {
    let _serial = serial();
    for size in [8, 256, 65536] {
        for case in cases(Delivery::Broadcast, Wait::Yield, size) {
            let (mut sender, mut receiver) = case.open();
            let count = if size > 4096 { 100 } else { 2000 };
            thread::scope(|scope| {
                let writer = scope.spawn(move || {
                    for number in 0..count {
                        send(&case, &mut *sender, number);
                    }
                    sender
                });
                let mut account = Account { received: 0, lost: 0 };
                let mut message = case.buffer();
                while !writer.is_finished() {
                    account.drain(&case, &mut *receiver, &mut message);
                    receiver.wait(short());
                }
                let mut sender = writer.join().expect("the writer has no complaint");
                account.settle(&case, &mut *sender, &mut *receiver, count);
            });
        }
    }
}

#[test]
fn readers_of_a_broadcast_do_not_disturb_each_other() {
    let _serial = serial();
    for case in cases(Delivery::Broadcast, Wait::Park, 64).filter(Case::is_region) {
        let (writer, reader) = case.carriers();
        let another = || case.receiver(Carrier::Region(region(&reader).clone()));
        let (mut slow, mut gone) = (another(), another());
        let mut quick = case.receiver(reader);
        let mut sender = case.sender(writer);
        let mut message = case.buffer();
        let count = 3 * case.shape.capacity;
        for number in 0..count {
            send(&case, &mut *sender, number);
            expect(&case, &mut *quick, number);
            if number == 0 {
                expect(&case, &mut *gone, number);
            }
        }
        drop(gone);
        let mut account = Account { received: 0, lost: 0 };
        account.drain(&case, &mut *slow, &mut message);
        assert_eq!(account.received + account.lost, count, "{case}");
        send(&case, &mut *sender, count);
        expect(&case, &mut *quick, count);
        expect(&case, &mut *slow, count);
    }
}

#[test]
fn an_open_link_does_not_allocate() {
    let _serial = serial();
    for case in all_cases(256).chain(cases(Delivery::Queue, Wait::Park, 65536)) {
        let (mut sender, mut receiver) = case.open();
        let (mut message, mut into) = (case.buffer(), case.buffer());
        let allocations = allocation_counter::measure(|| {
            for number in 0..20 {
                fill(&mut message, number);
                let sent = sender.send(&message);
                let room = sender.wait_room(short());
                let flushed = sender.flush();
                let waited = receiver.wait(short());
                let received = receiver.receive(&mut into);
                let fault = sent.is_err() || flushed.is_err() || received.is_err();
                assert!(!fault && (room || waited));
            }
        });
        assert_eq!(allocations.count_total, 0, "{case}");
    }
}

/// A link that harms every third message.
struct Faulty {
    sender: Box<dyn Sender>,
    harm: fn(&mut dyn Sender, &[u8]),
    sent: u32,
}

impl Sender for Faulty {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        self.sent += 1;
        if self.sent.is_multiple_of(3) {
            (self.harm)(&mut *self.sender, message);
            return Ok(Sent::Done);
        }
        self.sender.send(message)
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        self.sender.wait_room(until_ns)
    }

    fn close(&mut self) {
        self.sender.close();
    }
}

#[test]
fn the_suite_notices_a_link_that_loses_repeats_or_tears() {
    let _serial = serial();
    let lose = |_: &mut dyn Sender, _: &[u8]| {};
    let repeat = |sender: &mut dyn Sender, message: &[u8]| {
        sender.send(message).expect("no fault");
        sender.send(message).expect("no fault");
    };
    let tear = |sender: &mut dyn Sender, message: &[u8]| {
        let mut torn = message.to_vec();
        torn[60..].fill(0);
        sender.send(&torn).expect("no fault");
    };
    let harms: [fn(&mut dyn Sender, &[u8]); 3] = [lose, repeat, tear];
    for harm in harms {
        for case in cases(Delivery::Queue, Wait::Yield, 64) {
            let (sender, mut receiver) = case.open();
            let mut sender = Faulty { sender, harm, sent: 0 };
            let mut message = case.buffer();
            for number in 0..5 {
                send(&case, &mut sender, number);
            }
            let mut noticed = false;
            for expected in 0..4 {
                let found = receive(&case, &mut *receiver, &mut message);
                assert_eq!(found, Received::New { lost: 0 }, "{case}");
                noticed |= number(&message, expected) != Ok(expected);
            }
            assert!(noticed, "{case}");
        }
    }
}

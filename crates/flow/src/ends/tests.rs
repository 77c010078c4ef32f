//! The ends of links, with a link within this process.

use sinew_core::message::Message;
use sinew_spec::plan::Delivery;
use zerocopy::IntoBytes;

use super::*;
use crate::testing::link;

sinew_core::message! {
    /// A number.
    pub struct Number {
        /// It.
        pub n: u64,
    }
}

fn number(n: u64) -> Result<Vec<u8>, Error> {
    Ok(Number { n }.as_bytes().to_vec())
}

#[test]
fn the_newest_message_stays_for_all_who_look() {
    for delivery in [Delivery::Latest, Delivery::Queue, Delivery::Broadcast] {
        let (mut sender, receiver) = link(Number::TYPE, delivery, 8);
        let input = MessageInput::new(Number::TYPE, receiver);
        let other = input.clone();
        assert!(input.look().expect("no fault").is_none(), "nothing was sent");
        for n in 1..=3 {
            sender.send(&number(n).expect("bytes")).expect("no fault");
        }
        for input in [&input, &other, &input] {
            let seen = input.look().expect("no fault").expect("a message");
            assert_eq!(seen.value.field("n"), Ok(Value::Integer(3)), "{delivery:?}");
            assert!(seen.age_max.is_some() && !seen.is_closed, "there was a look before");
        }
        drop(sender);
        let seen = other.look().expect("no fault").expect("the last message stays");
        assert!(seen.is_closed);
        assert_eq!(seen.value.field("n"), Ok(Value::Integer(3)));
    }
}

#[test]
fn a_first_look_does_not_know_how_old_a_message_is() {
    let (mut sender, receiver) = link(Number::TYPE, Delivery::Latest, 1);
    sender.send(&number(1).expect("bytes")).expect("no fault");
    let input = MessageInput::new(Number::TYPE, receiver);
    assert_eq!(input.look().expect("no fault").expect("a message").age_max, None);
    assert_eq!(input.look().expect("no fault").expect("a message").age_max, None, "the same one");
    sender.send(&number(2).expect("bytes")).expect("no fault");
    assert!(input.look().expect("no fault").expect("a message").age_max.is_some());
}

#[test]
fn numbers_rise_and_a_message_that_is_not_made_takes_none() {
    let (sender, mut receiver) = link(Number::TYPE, Delivery::Queue, 2);
    let output = MessageOutput::new(Number::TYPE, sender);
    let mut taken = 0;
    let mut send = |output: &MessageOutput| {
        output.send(|n| {
            taken = n;
            number(n)
        })
    };
    assert_eq!(send(&output), Ok(Sent::Done));
    assert!(output.send(|_| Err(Error::new("no"))).is_err());
    assert_eq!(send(&output.clone()), Ok(Sent::Done));
    assert_eq!(send(&output), Ok(Sent::Full), "and nobody waited");
    let mut numbers = [0_u64; 2];
    for place in &mut numbers {
        receiver.receive(place.as_mut_bytes()).expect("no fault");
    }
    assert_eq!(numbers[1], numbers[0] + 1);
    drop(receiver);
    assert_eq!(send(&output), Ok(Sent::Closed));
}

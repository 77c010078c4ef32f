//! What an incoming port takes, and what it counts.

use sinew_hosts::Echo;

use super::*;

const OWN: (u64, u64) = (7, 70);
const LIFE: u64 = 1;

fn inbox(newest_only: bool, capacity: usize, after_ns: Option<u64>) -> Inbox {
    let (node, port) = ("n".into(), "p".into());
    let port = IncomingPort {
        from: "b".into(),
        node,
        port,
        hash: 1,
        bytes: 1,
        after_ns,
        newest_only,
        capacity,
    };
    Inbox::new(&port, 0, OWN)
}

fn message(sequence: u64, stamp_ns: u64) -> Vec<u8> {
    let echo = Echo { host: OWN.0, life: OWN.1, stamp_ns };
    let header = MessageHeader { life: LIFE, sequence, sent_unix_ns: 0, echoes: vec![echo] };
    header.write(&[sequence as u8])
}

#[track_caller]
fn taken(inbox: &Inbox, now_ns: u64) -> Vec<u8> {
    let mut byte = [0];
    std::iter::from_fn(|| inbox.take(now_ns, &mut byte).map(|_| byte[0])).collect()
}

#[test]
fn a_message_that_grows_old_where_it_waits_is_not_handed_out() {
    let inbox = inbox(false, 4, Some(10));
    assert!(inbox.arrive(&message(1, 100), Some(LIFE), 100));
    assert!(inbox.arrive(&message(2, 105), Some(LIFE), 105));
    assert_eq!(taken(&inbox, 111), [2]);
    assert!(!inbox.arrive(&message(3, 105), Some(LIFE), 116));
    let counts = inbox.counts();
    assert_eq!((counts.received, counts.late), (1, 2));
}

#[test]
fn a_full_place_loses_its_oldest_and_says_so() {
    let (queue, newest) = (inbox(false, 2, None), inbox(true, 0, None));
    for sequence in 1..=5 {
        assert!(queue.arrive(&message(sequence, 1), Some(LIFE), 1));
        assert!(newest.arrive(&message(sequence, 1), Some(LIFE), 1));
    }
    assert_eq!((taken(&queue, 9), queue.counts().flooded), (vec![4, 5], 3));
    assert_eq!((taken(&newest, 9), newest.counts().replaced), (vec![5], 4));
}

/// If it did, a stranger could make a host deaf.
#[test]
fn what_is_not_obeyed_pushes_nothing_out() {
    let inbox = inbox(true, 0, Some(10));
    assert!(inbox.arrive(&message(5, 100), Some(LIFE), 100));
    let unstamped =
        MessageHeader { life: LIFE, sequence: 9, ..MessageHeader::default() }.write(&[9]);
    for (bytes, joined) in [
        (message(5, 100), Some(LIFE)),
        (message(6, 100), Some(LIFE + 1)),
        (message(6, 100), None),
        (unstamped, Some(LIFE)),
        (b"no header, and long enough to be one".to_vec(), Some(LIFE)),
    ] {
        assert!(!inbox.arrive(&bytes, joined, 101), "{bytes:?}");
    }
    assert!(!inbox.fits(HEADER_LEN) && !inbox.fits(1 << 20));
    assert_eq!(taken(&inbox, 101), [5]);
    let counts = inbox.counts();
    let found = (counts.old, counts.unjoined, counts.unstamped, counts.malformed);
    assert_eq!(found, (1, 2, 1, 3), "{counts:?}");
}

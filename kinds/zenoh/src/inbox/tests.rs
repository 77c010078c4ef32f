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
    Inbox::new(&port, (0, 0), OWN)
}

/// A message comes, with a stamp that was sent.
fn arrive(inbox: &Inbox, sequence: u64, stamp_ns: u64, now_ns: u64) -> Result<bool, NotTaken> {
    let echoes = vec![Echo { host: OWN.0, life: OWN.1, stamp_ns }];
    let header = MessageHeader { life: LIFE, sequence, echoes, ..MessageHeader::default() };
    inbox.arrive((&header, &[sequence as u8]), |it| it == stamp_ns, now_ns)
}

#[track_caller]
fn taken(inbox: &Inbox, now_ns: u64) -> Vec<u8> {
    let mut byte = [0];
    std::iter::from_fn(|| inbox.take(now_ns, &mut byte).map(|_| byte[0])).collect()
}

#[test]
fn a_message_that_grows_old_where_it_waits_is_not_handed_out() {
    let inbox = inbox(false, 4, Some(10));
    assert_eq!(arrive(&inbox, 1, 100, 100), Ok(true));
    assert_eq!(arrive(&inbox, 2, 105, 105), Ok(true));
    assert_eq!(taken(&inbox, 111), [2]);
    assert_eq!(arrive(&inbox, 3, 105, 116), Ok(false));
    let counts = inbox.counts();
    assert_eq!((counts.received, counts.late), (1, 2));
}

#[test]
fn a_full_place_loses_its_oldest_and_says_so() {
    let (queue, newest) = (inbox(false, 2, None), inbox(true, 0, None));
    for sequence in 1..=5 {
        assert_eq!(arrive(&queue, sequence, 1, 1), Ok(true));
        assert_eq!(arrive(&newest, sequence, 1, 1), Ok(true));
    }
    assert_eq!((taken(&queue, 9), queue.counts().flooded), (vec![4, 5], 3));
    assert_eq!((taken(&newest, 9), newest.counts().replaced), (vec![5], 4));
}

/// If it did, a stranger could make a host deaf.
#[test]
fn what_is_not_obeyed_pushes_nothing_out() {
    let inbox = inbox(true, 0, Some(10));
    let early = MessageHeader { life: LIFE, sequence: 4, ..MessageHeader::default() };
    assert_eq!(inbox.arrive((&early, &[4]), |_| true, 99), Err(NotTaken::Early));
    assert_eq!(arrive(&inbox, 5, 100, 100), Ok(true));
    assert_eq!(arrive(&inbox, 5, 100, 101), Err(NotTaken::Again));
    assert_eq!(arrive(&inbox, u64::MAX, 100, 101), Err(NotTaken::Ahead));
    let unstamped = MessageHeader { life: LIFE, sequence: 9, ..MessageHeader::default() };
    assert_eq!(inbox.arrive((&unstamped, &[9]), |_| true, 101), Err(NotTaken::Unstamped));
    let echoes = vec![Echo { host: OWN.0, life: OWN.1, stamp_ns: 100 }];
    let forged = MessageHeader { echoes, ..unstamped };
    assert_eq!(inbox.arrive((&forged, &[9]), |_| false, 101), Err(NotTaken::Forged));
    assert!([0, HEADER_LEN, 1 << 20].iter().all(|it| !inbox.fits(*it, 0)));
    assert_eq!(taken(&inbox, 101), [5]);
}

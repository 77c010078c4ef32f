//! The rule by itself, and over a line that fails as TCP does: what was sent during the outage
//! arrives later, in order and all at once.

use std::collections::VecDeque;

use super::*;
use crate::{Echo, SentStamps};

const OWN: (u64, u64) = (7, 70);
const MS: u64 = 1_000_000;
const AFTER_NS: u64 = 30 * MS;

fn header(life: u64, sequence: u64, stamp_ns: u64) -> MessageHeader {
    let echo = Echo { host: OWN.0, life: OWN.1, stamp_ns };
    MessageHeader { life, sequence, echoes: vec![echo], ..MessageHeader::default() }
}

fn sent(stamps: &[u64]) -> SentStamps {
    let mut sent = SentStamps::default();
    stamps.iter().for_each(|it| sent.note(*it));
    sent
}

#[test]
fn old_again_forged_and_unstamped_messages_are_told_apart() {
    let mut judge = Judge::new(OWN, AFTER_NS);
    let now_ns = 1000 * MS;
    let sent = sent(&[now_ns - AFTER_NS - 1, now_ns, now_ns + 1]);
    let fresh = |stamp_ns, lost| Freshness::Fresh { stamp_ns, lost };
    let mut at = |header: &MessageHeader, now_ns| judge.judge(header, |it| sent.has(it), now_ns);
    assert_eq!(at(&MessageHeader::default(), now_ns), Freshness::Unstamped);
    for own in [(OWN.0 + 1, OWN.1), (OWN.0, OWN.1 + 1)] {
        let echoes = vec![Echo { host: own.0, life: own.1, stamp_ns: now_ns }];
        let other = MessageHeader { life: 1, sequence: 1, echoes, ..MessageHeader::default() };
        assert_eq!(at(&other, now_ns), Freshness::Unstamped);
    }
    assert_eq!(at(&header(1, 1, now_ns + 1), now_ns), Freshness::Forged, "to come");
    assert_eq!(at(&header(1, 1, now_ns - 5), now_ns), Freshness::Forged, "never sent");
    assert_eq!(at(&header(1, 1, now_ns), now_ns), fresh(now_ns, 0));
    assert_eq!(at(&header(1, 1, now_ns), now_ns), Freshness::Old, "a replay");
    assert_eq!(at(&header(1, 4, now_ns), now_ns), fresh(now_ns, 2));
    assert_eq!(at(&header(1, 3, now_ns), now_ns), Freshness::Old, "overtaken");
    assert_eq!(at(&header(1, u64::MAX, now_ns), now_ns), Freshness::Ahead);
    let limit_ns = now_ns + AFTER_NS;
    assert_eq!(at(&header(1, 5, now_ns), limit_ns), fresh(now_ns, 0));
    let late = Freshness::Late { age_ns: AFTER_NS + 1 };
    assert_eq!(at(&header(1, 6, now_ns), limit_ns + 1), late);
}

#[test]
fn who_starts_anew_is_heard_and_nothing_of_his_earlier_lives_is_taken_again() {
    let mut judge = Judge::new(OWN, AFTER_NS);
    for life in 1..=5 {
        let now_ns = 1000 * MS * life;
        let sent = sent(&[now_ns - 1000 * MS, now_ns - AFTER_NS - 1, now_ns, now_ns + 1]);
        let mut at = |header: &MessageHeader| judge.judge(header, |it| sent.has(it), now_ns + 1);
        // A late message must not end a life.
        let late = at(&header(life + 1, 1, now_ns - AFTER_NS - 1));
        assert_eq!(late, Freshness::Late { age_ns: AFTER_NS + 2 });
        assert!(matches!(at(&header(life, 9, now_ns)), Freshness::Fresh { .. }));
        assert!(matches!(at(&header(life, 10, now_ns)), Freshness::Fresh { .. }));
        for over in 1..life {
            assert_eq!(at(&header(over, 99, now_ns)), Freshness::Old);
        }
    }
}

/// A line from one host to another: what is sent while it is down arrives when it is up again.
#[derive(Default)]
struct Line {
    under_way: VecDeque<(u64, MessageHeader, u64)>,
}

impl Line {
    fn say(&mut self, now_ns: u64, delay_ns: u64, header: MessageHeader) {
        self.under_way.push_back((now_ns + delay_ns, header, now_ns));
    }

    /// The next message that has arrived, and when it was made.
    fn hear(&mut self, now_ns: u64, is_up: bool) -> Option<(MessageHeader, u64)> {
        let (due_ns, ..) = self.under_way.front().filter(|_| is_up)?;
        let (_, header, made_ns) = (*due_ns <= now_ns).then(|| self.under_way.pop_front())??;
        Some((header, made_ns))
    }
}

/// Commands at 1 kHz over a line with an outage. Returns the age of the oldest command that was
/// obeyed, how many were obeyed, and how many came late.
fn outage(random: &mut fastrand::Rng, obeys: impl Fn(&Freshness) -> bool) -> (u64, u64, u64) {
    let down_ns = 100 * MS + random.u64(..200 * MS);
    let up_ns = down_ns + random.u64(..2000 * MS);
    let (mut judge, mut sequence) = (Judge::new(OWN, AFTER_NS), 0);
    let mut sent = SentStamps::default();
    let (mut commands, mut stamps) = (Line::default(), Line::default());
    let mut heard_ns = None;
    let (mut oldest_ns, mut obeyed, mut late) = (0, 0, 0);
    for step in 0..up_ns / MS + 500 {
        // The clocks of the two hosts are unrelated: only the receiver's time is used.
        let now_ns = step * MS;
        let is_up = !(down_ns..up_ns).contains(&now_ns);
        if step % 10 == 0 {
            sent.note(now_ns);
            stamps.say(now_ns, random.u64(..3 * MS), header(0, 0, now_ns));
        }
        while let Some((stamp, _)) = stamps.hear(now_ns, is_up) {
            heard_ns = Some(stamp.echoes[0].stamp_ns);
        }
        if let Some(stamp_ns) = heard_ns {
            sequence += 1;
            commands.say(now_ns, random.u64(..3 * MS), header(1, sequence, stamp_ns));
        }
        while let Some((command, made_ns)) = commands.hear(now_ns, is_up) {
            let verdict = judge.judge(&command, |it| sent.has(it), now_ns);
            late += u64::from(matches!(verdict, Freshness::Late { .. }));
            if obeys(&verdict) {
                obeyed += 1;
                oldest_ns = oldest_ns.max(now_ns - made_ns);
            }
        }
    }
    (oldest_ns, obeyed, late)
}

#[test]
fn after_an_outage_no_command_is_obeyed_that_is_older_than_it_may_be() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut late_in_all = 0;
    for _ in 0..1000 {
        let fresh = |verdict: &Freshness| matches!(verdict, Freshness::Fresh { .. });
        let (oldest_ns, obeyed, late) = outage(&mut random, fresh);
        assert!(oldest_ns <= AFTER_NS, "{oldest_ns} ns old");
        assert!(obeyed > 300, "{obeyed} obeyed");
        late_in_all += late;
    }
    assert!(late_in_all > 100_000, "{late_in_all} late: the outages were none");
}

/// Proves that the test above can fail: a receiver that only checks sequences obeys old commands.
#[test]
fn rising_sequences_alone_obey_what_is_old() {
    let mut random = fastrand::Rng::with_seed(11);
    let rises = |verdict: &Freshness| !matches!(verdict, Freshness::Old | Freshness::Unstamped);
    let (oldest_ns, ..) = outage(&mut random, rises);
    assert!(oldest_ns > AFTER_NS, "{oldest_ns} ns");
}

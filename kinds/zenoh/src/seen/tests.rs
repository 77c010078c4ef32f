//! Whom a host believes, by frames that come at chosen times.

use sinew_hosts::MessageHeader;

use super::*;

const OWN: (u64, u64) = (1, 10);
const OTHER: u64 = 2;
const MS: u64 = 1_000_000;

fn frame(life: u64, sequence: u64, echo: Option<(u64, u64)>) -> StampFrame {
    let echoes = echo.map(|it| Echo { host: OWN.0, life: OWN.1, stamp_ns: it.0 });
    let held_ns = echo.map(|it| it.1).into_iter().collect();
    let echoes = Vec::from_iter(echoes);
    let header = MessageHeader { life, sequence, echoes, ..MessageHeader::default() };
    StampFrame { header, stamp_ns: sequence.wrapping_mul(100), version: 3, held_ns }
}

/// A host that sends a stamp at each of its moments, and hears another one.
struct Stage {
    seen: Seen,
    sent: SentStamps,
    now_ns: u64,
}

impl Stage {
    fn new() -> Stage {
        let mut stage = Stage { seen: Seen::default(), sent: SentStamps::default(), now_ns: 0 };
        stage.pass(MS);
        stage
    }

    /// Time passes, and a stamp is sent at its end.
    fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
        self.sent.note(self.now_ns);
    }

    fn hear(&mut self, frame: &StampFrame) -> Result<(), NotTaken> {
        let now = (self.now_ns, self.now_ns + 500);
        self.seen.hear(OTHER, frame, (OWN, &self.sent), now)
    }

    /// A frame of a life that echoes the last stamp.
    fn says(&mut self, life: u64, sequence: u64) -> Result<(), NotTaken> {
        let stamp_ns = self.now_ns;
        self.hear(&frame(life, sequence, Some((stamp_ns, 0))))
    }

    /// Two of its frames: the first shows it, the second answers.
    fn join(&mut self, life: u64) {
        assert_eq!(self.says(life, 1), Ok(()));
        self.pass(MS);
        assert_eq!(self.says(life, 2), Ok(()));
        assert_eq!((self.state(), self.life()), (HostState::Heard, Some(life)));
    }

    fn state(&self) -> HostState {
        self.seen.state(3, self.now_ns)
    }

    fn life(&self) -> Option<u64> {
        self.seen.echo(3).map(|it| it.0.life)
    }
}

#[test]
fn a_round_trip_is_without_what_the_other_side_kept() {
    let mut stage = Stage::new();
    stage.join(5);
    let stamp_ns = stage.now_ns;
    stage.pass(500);
    assert_eq!(stage.hear(&frame(5, 3, Some((stamp_ns, 300)))), Ok(()));
    let shown = stage.seen.show("b", 3, stage.now_ns + 500);
    assert_eq!((shown.round_trip_ns, shown.silent_ns), (Some(200), Some(500)));
    let clock = shown.clock.expect("an estimate");
    stage.pass(MS);
    assert_eq!(stage.hear(&frame(5, 4, Some((stamp_ns, 0)))), Ok(()));
    assert_eq!(stage.seen.clock, Some(clock), "a worse one changes nothing");
    assert_eq!(stage.seen.state(4, stage.now_ns), HostState::OtherVersion(3));
    let later_ns = stage.now_ns + SILENT_NS + 1;
    assert_eq!(stage.seen.state(3, later_ns), HostState::Silent);
    assert_eq!(stage.seen.state(4, later_ns), HostState::Silent, "whatever it was");
    assert_eq!(Seen::default().state(3, 9), HostState::Unheard);
}

#[test]
fn a_life_is_believed_once_it_answers() {
    let mut stage = Stage::new();
    let early_ns = stage.now_ns;
    for sequence in 1..50 {
        stage.pass(MS);
        let again = frame(5, sequence, Some((early_ns, 0)));
        assert_eq!(stage.hear(&again), Ok(()));
        assert_eq!(stage.life(), None, "it echoes a stamp from before it was seen");
        assert!(stage.seen.echoes().any(|(echo, _)| echo.life == 5), "it can answer");
        assert_eq!(stage.seen.allows(5, 3, stage.now_ns), Err(NotTaken::Early));
    }
    assert_eq!(stage.says(5, 50), Ok(()));
    assert_eq!(stage.life(), Some(5));
    assert_eq!(stage.seen.allows(5, 3, stage.now_ns), Ok(()));
    assert_eq!(stage.seen.allows(5, 4, stage.now_ns), Err(NotTaken::OtherVersion));
}

#[test]
fn what_was_overtaken_or_forged_changes_nothing() {
    let mut stage = Stage::new();
    stage.join(5);
    let echo = stage.seen.echo(3);
    for (life, sequence, refusal) in
        [(5, 2, NotTaken::Again), (5, 1, NotTaken::Again), (5, u64::MAX, NotTaken::Ahead)]
    {
        assert_eq!(stage.hear(&frame(life, sequence, None)), Err(refusal));
    }
    assert_eq!(stage.seen.echo(3), echo);
    let trip = stage.seen.round_trip_ns;
    for (sequence, stamp_ns) in [(3, stage.now_ns + MS), (4, stage.now_ns - 1)] {
        stage.pass(7);
        let forged = frame(5, sequence, Some((stamp_ns, 0)));
        assert_eq!(stage.hear(&forged), Err(NotTaken::Forged));
        assert_eq!(stage.seen.round_trip_ns, trip, "it shows no round trip");
    }
    let before = stage.life();
    assert_eq!(stage.hear(&frame(9, 1, Some((u64::MAX, 0)))), Ok(()));
    assert_eq!(stage.life(), before);
}

/// One frame of somebody who has heard the host, with a stamp far ahead of its clock.
#[test]
fn one_forged_frame_is_over_with_the_next_true_one() {
    let mut stage = Stage::new();
    stage.join(5);
    let forged = StampFrame { stamp_ns: u64::MAX, ..frame(5, 1000, None) };
    assert_eq!(stage.hear(&forged), Ok(()));
    assert_eq!(stage.seen.echo(3).map(|it| it.0.stamp_ns), Some(u64::MAX));
    stage.pass(MS);
    assert_eq!(stage.says(5, 3), Ok(()), "its echo is newer than the forged frame");
    assert_eq!(stage.seen.echo(3).map(|it| it.0.stamp_ns), Some(300));
}

#[test]
fn of_two_programs_the_first_is_obeyed_and_the_other_follows_it() {
    let mut stage = Stage::new();
    stage.join(5);
    for sequence in 3..100 {
        stage.pass(10 * MS);
        assert_eq!(stage.says(5, sequence), Ok(()));
        assert!(matches!(stage.says(6, sequence), Ok(()) | Err(NotTaken::OtherLife)));
        assert_eq!(stage.life(), Some(5));
    }
    assert_eq!((stage.state(), stage.says(6, 100)), (HostState::Two, Err(NotTaken::OtherLife)));
    assert_eq!(stage.seen.allows(6, 3, stage.now_ns), Err(NotTaken::OtherLife));
    // The first one goes; soon the second is obeyed.
    for sequence in 101..200 {
        stage.pass(10 * MS);
        let _ = stage.says(6, sequence);
    }
    assert_eq!((stage.state(), stage.life()), (HostState::Heard, Some(6)));
    // And the other way around, again and again: no life is over for ever.
    for sequence in 101..200 {
        stage.pass(10 * MS);
        let _ = stage.says(5, sequence);
    }
    assert_eq!((stage.state(), stage.life()), (HostState::Heard, Some(5)));
}

#[test]
fn a_host_that_starts_again_is_not_two() {
    let mut stage = Stage::new();
    stage.join(5);
    for sequence in 1..100 {
        stage.pass(10 * MS);
        let _ = stage.says(6, sequence);
        assert_ne!(stage.state(), HostState::Two);
    }
    assert_eq!((stage.state(), stage.life()), (HostState::Heard, Some(6)));
}

#[test]
fn a_host_is_told_of_a_second_one_with_its_name() {
    let mut stage = Stage::new();
    stage.join(5);
    let with_twin = |stage: &mut Stage, sequence, held_ns| {
        let stamp_ns = stage.now_ns;
        let mut frame = frame(5, sequence, Some((stamp_ns, 0)));
        frame.header.echoes.push(Echo { host: OWN.0, life: OWN.1 + 1, stamp_ns: 7 });
        frame.held_ns.push(held_ns);
        assert_eq!(stage.hear(&frame), Ok(()));
    };
    // Of a life of this host that is over, ever older.
    for sequence in 3..63 {
        stage.pass(10 * MS);
        with_twin(&mut stage, sequence, sequence * 10 * MS);
        assert_eq!(stage.state(), HostState::Heard);
    }
    for sequence in 63..163 {
        stage.pass(10 * MS);
        with_twin(&mut stage, sequence, 10 * MS);
    }
    assert_eq!(stage.state(), HostState::Two);
}

#[test]
fn random_lives_take_nobodys_place() {
    let mut stage = Stage::new();
    stage.join(5);
    for sequence in 3..1000 {
        stage.pass(MS);
        assert_eq!(stage.says(5, sequence), Ok(()));
        for stranger in 0..5 {
            let _ = stage.hear(&frame(sequence * 10 + stranger, sequence, None));
        }
        assert_eq!((stage.state(), stage.life()), (HostState::Heard, Some(5)));
        assert!(stage.seen.echoes().count() <= 1 + RIVALS_MAX);
    }
}

//! Films with clocks, without pictures and without waiting.

use sinew_media::PlayState;
use sinew_pictures::messages::PlayClock;
use zerocopy::FromZeros;

use super::*;

const FRAME_NS: u64 = 40_000_000;

/// A clock that was at the film's beginning at time 0.
fn clock(serial: u32, speed: f64) -> Clock {
    let state = PlayState::Playing as u32;
    Clock::of(&PlayClock { speed, serial, state, ..PlayClock::new_zeroed() })
}

fn picture(number: u64) -> Candidate {
    Candidate { position_ns: number * FRAME_NS, duration_ns: FRAME_NS, serial: 0 }
}

/// Judges, and shows what is to be shown; returns the pictures that still wait.
fn look(
    presenter: &mut Presenter,
    waiting: &[Candidate],
    clock: &Clock,
    now_ns: u64,
) -> (Option<Showing>, Vec<Candidate>) {
    let (mut shows, mut waits) = (None, vec![]);
    presenter.judge(waiting.iter().copied(), clock, now_ns, |at, fate| match fate {
        Fate::Shows => shows = Some(waiting[at]),
        Fate::Waits => waits.push(waiting[at]),
        Fate::Goes => {}
    });
    let showing = shows.map(|shows| presenter.show(shows, clock, now_ns));
    if showing.is_none() {
        presenter.stand(clock, now_ns);
    }
    (showing, waits)
}

#[test]
fn pictures_that_are_there_in_time_are_shown_each_once() {
    for speed in [0.5, 1.0, 2.0] {
        let (mut presenter, clock) = (Presenter::default(), clock(0, speed));
        let mut waiting: Vec<_> = (0..50).map(picture).collect();
        let mut now_ns = 0;
        while let Some(left_ns) = presenter.left_ns(waiting.iter().copied(), &clock, now_ns) {
            now_ns += left_ns + 1_000;
            let (showing, rest) = look(&mut presenter, &waiting, &clock, now_ns);
            let difference = showing.expect("it is due").difference_ns.expect("sound is heard");
            assert!((0..10_000).contains(&difference), "{difference}");
            waiting = rest;
        }
        assert_eq!(presenter.tally(), Tally { shown: 50, ..Tally::default() });
    }
}

#[test]
fn of_those_that_are_due_the_newest_is_shown_and_the_others_are_dropped() {
    let (mut presenter, clock) = (Presenter::default(), clock(0, 1.0));
    // In the order of an MPEG decoder: the fourth before the second and third.
    let waiting = [0, 3, 1, 2, 4].map(picture);
    let now_ns = 2 * FRAME_NS + FRAME_NS / 4;
    let (showing, rest) = look(&mut presenter, &waiting, &clock, now_ns);
    let showing = showing.expect("three are due");
    assert_eq!(showing.candidate, picture(2));
    assert_eq!((showing.difference_ns, showing.is_late), (Some(10_000_000), false));
    assert_eq!(rest, [picture(3), picture(4)]);
    assert_eq!(presenter.tally(), Tally { shown: 1, dropped: 2, ..Tally::default() });
}

#[test]
fn a_picture_that_comes_after_half_of_its_time_is_late() {
    let (mut presenter, clock) = (Presenter::default(), clock(0, 1.0));
    for (now_ns, is_late) in [(FRAME_NS / 2, false), (2 * FRAME_NS + FRAME_NS / 2 + 1, true)] {
        let waiting = [picture(now_ns / FRAME_NS)];
        let (showing, _) = look(&mut presenter, &waiting, &clock, now_ns);
        assert_eq!(showing.expect("due").is_late, is_late);
    }
    assert_eq!(presenter.tally().late, 1);
}

#[test]
fn a_picture_stays_until_the_next_one_comes_and_every_time_of_it_is_counted() {
    let (mut presenter, clock) = (Presenter::default(), clock(0, 1.0));
    look(&mut presenter, &[picture(0)], &clock, 0);
    let mut now_ns = 0;
    while now_ns < 20 * FRAME_NS {
        now_ns += 3_000_000;
        look(&mut presenter, &[], &clock, now_ns);
    }
    // It should have stayed for one duration and stayed for twenty.
    assert_eq!(presenter.tally().repeated, 19);
    assert!(presenter.frozen_ns(now_ns).is_some_and(|frozen_ns| frozen_ns > 15 * FRAME_NS));
    let (showing, _) = look(&mut presenter, &[picture(19), picture(20)], &clock, now_ns);
    assert_eq!(showing.expect("due").candidate, picture(20));
    assert_eq!((presenter.frozen_ns(now_ns), presenter.tally().dropped), (None, 1));
}

#[test]
fn a_picture_that_stands_because_the_sound_does_is_neither_repeated_nor_frozen() {
    let mut presenter = Presenter::default();
    let waiting = [picture(0), picture(1)];
    let paused = PlayClock { state: PlayState::Paused as u32, ..PlayClock::new_zeroed() };
    let paused = Clock::of(&paused);
    let (showing, rest) = look(&mut presenter, &waiting, &paused, 5);
    assert_eq!(showing.expect("the first is there").difference_ns, None, "no sound is heard");
    for second in 1..20 {
        let (showing, _) = look(&mut presenter, &rest, &paused, second * 1_000_000_000);
        assert!(showing.is_none());
    }
    assert_eq!(presenter.left_ns(rest.iter().copied(), &paused, 9), None);
    assert_eq!(presenter.tally(), Tally { shown: 1, ..Tally::default() });
    assert_eq!(presenter.frozen_ns(20_000_000_000), None);
}

#[test]
fn after_a_jump_only_pictures_that_follow_it_are_shown() {
    let (mut presenter, before) = (Presenter::default(), clock(0, 1.0));
    look(&mut presenter, &[picture(0)], &before, 0);
    presenter.go_to(1, 10 * FRAME_NS);
    let follows = |number| Candidate { serial: 1, ..picture(number) };
    // The sound has not followed the jump yet: the clock is the old one.
    let waiting = [picture(1), picture(400), follows(8), follows(9), follows(10), follows(11)];
    let (showing, rest) = look(&mut presenter, &waiting, &before, FRAME_NS);
    assert_eq!(showing.expect("it has come").candidate, follows(10));
    assert_eq!(rest, [follows(11)]);
    // Two are from before the jump; two were only decoded to reach its target.
    assert_eq!(presenter.tally(), Tally { shown: 2, stale: 4, ..Tally::default() });
    let after = clock(1, 1.0);
    assert_eq!(presenter.left_ns(rest.iter().copied(), &after, 11 * FRAME_NS - 7), Some(7));
    // A picture of an order that is not known yet waits.
    let ahead = [Candidate { serial: 2, ..picture(0) }];
    let (showing, rest) = look(&mut presenter, &ahead, &after, 0);
    assert_eq!((showing, &rest[..]), (None, &ahead[..]));
    presenter.adopt(2);
    presenter.adopt(1);
    assert_eq!(presenter.serial(), 2, "orders never go back");
}

#[test]
fn the_first_picture_is_shown_although_the_sound_begins_before_it() {
    let waits = Clock::of(&PlayClock::new_zeroed());
    let mut presenter = Presenter::default();
    // A film whose first picture is after its beginning.
    let (showing, rest) = look(&mut presenter, &[picture(1), picture(2)], &waits, 5);
    assert_eq!(showing.expect("it is the first").candidate, picture(1));
    assert_eq!(rest, [picture(2)], "the next one waits for the sound");
    // A jump to a place between two pictures, of which the first does not come.
    presenter.go_to(1, 10 * FRAME_NS + FRAME_NS / 2);
    let follows = |number| Candidate { serial: 1, ..picture(number) };
    let (showing, rest) = look(&mut presenter, &[follows(9)], &waits, 5);
    assert_eq!((showing, rest), (None, vec![]), "that one only leads there");
    let (showing, _) = look(&mut presenter, &[follows(11), follows(12)], &waits, 5);
    assert_eq!(showing.expect("the first after the jump").candidate, follows(11));
}

#[test]
fn a_picture_that_was_seen_is_not_shown_again_by_a_decoder_that_came_back() {
    let (mut presenter, clock) = (Presenter::default(), clock(0, 1.0));
    look(&mut presenter, &[picture(5)], &clock, 5 * FRAME_NS);
    let again = [picture(4), picture(5)];
    let (showing, rest) = look(&mut presenter, &again, &clock, 6 * FRAME_NS - 1);
    assert_eq!((showing, rest), (None, vec![]));
    assert_eq!(presenter.tally(), Tally { shown: 1, stale: 2, ..Tally::default() });
}

#[test]
fn lengths_that_cannot_be_do_no_harm() {
    let (mut presenter, clock) = (Presenter::default(), clock(0, 1.0));
    let ends = |duration_ns| Candidate { position_ns: 0, duration_ns, serial: 0 };
    for duration_ns in [0, 1, u64::MAX] {
        presenter.go_to(0, 0);
        look(&mut presenter, &[ends(duration_ns)], &clock, 0);
        look(&mut presenter, &[], &clock, FRAME_NS);
        let last = Candidate { position_ns: u64::MAX / 2, ..ends(duration_ns) };
        look(&mut presenter, &[last], &clock, u64::MAX / 2);
    }
}

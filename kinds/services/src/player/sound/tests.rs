//! Films without pictures, played by a metronome whose time the test sets.

use super::super::metronome::Metronome;
use super::*;

const MS: u64 = 1_000_000;
const BLOCK: usize = 1024;

/// A listener, the film that it gets, and its time.
struct Listener {
    sound: Sound<Metronome>,
    /// Number of samples of the film that were given so far.
    given: u64,
    serial: u32,
    now_ns: u64,
}

impl Listener {
    fn new(waits: bool) -> Listener {
        let sound = Sound::new(Metronome::new(), waits);
        Listener { sound, given: 0, serial: 0, now_ns: 1_000 * MS }
    }

    fn give(&mut self) {
        let samples = [1_000_i16; BLOCK * CHANNELS];
        self.sound.take(lasts_ns(self.given as usize), self.serial, &samples, 3, self.now_ns);
        self.given += BLOCK as u64;
    }

    /// Lets time pass, with as much sound as is wanted; returns the clock at the end.
    fn listen(&mut self, ms: u64) -> PlayClock {
        for _ in 0..ms {
            while self.sound.wants() {
                self.give();
            }
            self.starve(1);
        }
        self.sound.clock(self.now_ns)
    }

    /// Lets time pass without sound.
    fn starve(&mut self, ms: u64) -> PlayClock {
        for _ in 0..ms {
            self.now_ns += MS;
            self.sound.go_on(self.now_ns);
        }
        self.sound.clock(self.now_ns)
    }

    fn order(&mut self, order: Order, serial: u32, value: u64) {
        self.sound.obey(order, serial, value, self.now_ns);
    }
}

fn state(clock: &PlayClock) -> PlayState {
    PlayState::of(clock.state).0
}

#[test]
fn what_is_heard_moves_on_with_the_time() {
    let mut listener = Listener::new(false);
    let before = listener.listen(10);
    assert_eq!((state(&before), before.speed), (PlayState::Playing, 1.0));
    let after = listener.listen(5_000);
    let (moved, passed) = (after.position_ns - before.position_ns, after.at_ns - before.at_ns);
    assert!(moved.abs_diff(passed) < 1_000, "{before:?} {after:?}");
    assert_eq!((after.underruns, after.silent_ns, after.waiting), (0, 0, 3));
    assert!((after.level[0] - 1_000.0 / 32_768.0).abs() < 1e-9, "{after:?}");
    assert!((300 * MS..550 * MS).contains(&after.buffered_ns), "{after:?}");
}

#[test]
fn it_waits_for_the_picture_but_not_for_ever() {
    let mut listener = Listener::new(true);
    let waits = listener.listen(2_950);
    assert_eq!((state(&waits), waits.position_ns), (PlayState::Waiting, 0));
    assert_eq!(state(&listener.listen(100)), PlayState::Playing);
    listener.order(Order::Seek, 1, 0);
    (listener.serial, listener.given) = (1, 0);
    assert_eq!(state(&listener.listen(450)), PlayState::Waiting);
    assert_eq!(state(&listener.listen(100)), PlayState::Playing);
    let mut listener = Listener::new(true);
    listener.listen(20);
    listener.order(Order::Play, 0, 0);
    assert_eq!(state(&listener.listen(2)), PlayState::Playing);
}

#[test]
fn without_sound_it_starves_and_stands_and_goes_on_where_it_stood() {
    let mut listener = Listener::new(false);
    listener.listen(1_000);
    let starved = listener.starve(1_500);
    assert_eq!((state(&starved), starved.speed), (PlayState::Starved, 0.0));
    assert_eq!(starved.underruns, 1);
    assert!(starved.position_ns.abs_diff(lasts_ns(listener.given as usize)) <= 1, "{starved:?}");
    assert!((900 * MS..1_200 * MS).contains(&starved.silent_ns), "{starved:?}");
    let later = listener.starve(100);
    assert_eq!(later.position_ns, starved.position_ns);
    let again = listener.listen(200);
    assert_eq!((state(&again), again.underruns), (PlayState::Playing, 1));
    assert!(again.position_ns - starved.position_ns <= 200 * MS, "{again:?}");
}

#[test]
fn a_pause_stands_at_once_and_loses_nothing() {
    let mut listener = Listener::new(false);
    listener.listen(1_000);
    listener.order(Order::Pause, 0, 0);
    let paused = listener.listen(1);
    let later = listener.listen(3_000);
    assert_eq!((state(&later), later.speed), (PlayState::Paused, 0.0));
    assert_eq!(later.position_ns, paused.position_ns);
    listener.order(Order::Play, 0, 0);
    let on = listener.listen(100);
    let moved = on.position_ns - later.position_ns;
    assert!((98 * MS..=101 * MS).contains(&moved), "{moved}");
    assert_eq!((on.underruns, on.silent_ns), (0, 0));
}

#[test]
fn a_jump_forgets_what_was_and_begins_exactly_there() {
    let mut listener = Listener::new(false);
    listener.listen(1_000);
    listener.order(Order::Seek, 7, 30_000 * MS);
    // Sound that follows the old order is not heard.
    listener.give();
    let waits = listener.starve(1);
    assert_eq!(
        (state(&waits), waits.serial, waits.position_ns),
        (PlayState::Waiting, 7, 30_000 * MS)
    );
    // The film is read from a place before it.
    (listener.serial, listener.given) = (7, 29 * u64::from(RATE_HZ));
    listener.listen(20);
    listener.order(Order::Play, 7, 0);
    let on = listener.listen(50);
    assert_eq!(state(&on), PlayState::Playing);
    let heard_ns = on.position_ns - 30_000 * MS;
    assert!((45 * MS..=51 * MS).contains(&heard_ns), "{heard_ns}");
}

#[test]
fn at_another_speed_the_film_passes_in_another_time() {
    for (value, speed) in [(2_000, 2.0), (500, 0.5), (1, 0.25), (u64::MAX, 4.0)] {
        let mut listener = Listener::new(false);
        listener.listen(500);
        listener.order(Order::Speed, 0, value);
        // Sound that was handed on before is still heard at the old speed.
        let before = listener.listen(300);
        let after = listener.listen(1_000);
        assert_eq!(after.speed, speed);
        let moved = (after.position_ns - before.position_ns) as f64 / 1e9;
        assert!((moved / speed - 1.0).abs() < 0.02, "{speed}: {moved}");
        assert_eq!(after.underruns, 0);
    }
}

#[test]
fn a_place_is_not_heard_twice_when_the_film_comes_again() {
    let mut listener = Listener::new(false);
    listener.listen(1_000);
    let before = listener.sound.clock(listener.now_ns);
    // The reader of the film was started again, a little before the place that was heard.
    listener.given -= 30 * BLOCK as u64;
    let after = listener.listen(1_000);
    let moved = after.position_ns - before.position_ns;
    assert!((999 * MS..=1_001 * MS).contains(&moved), "{moved}");
    assert_eq!(after.underruns, 0);
}

#[test]
fn at_the_end_it_has_played_everything() {
    let mut listener = Listener::new(false);
    listener.listen(300);
    let end_ns = lasts_ns(listener.given as usize);
    listener.sound.end(end_ns, 0, listener.now_ns);
    let ended = listener.starve(2_000);
    assert_eq!((state(&ended), ended.underruns), (PlayState::Ended, 0));
    assert!(ended.position_ns.abs_diff(end_ns) <= 1, "{ended:?}");
    assert!(!listener.sound.wants());
    listener.order(Order::Seek, 1, 0);
    (listener.serial, listener.given) = (1, 0);
    assert_eq!(state(&listener.listen(700)), PlayState::Playing);
}

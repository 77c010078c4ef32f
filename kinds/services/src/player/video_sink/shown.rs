//! The state that the page gets, as JSON.

use serde::Serialize;
use sinew_figures::Distribution;
use sinew_media::{PictureHead, PlayState};
use sinew_pictures::messages::PlayClock;

use crate::player::clock::Clock;
use crate::player::presenter::{Showing, Tally};

/// Figures of all pictures that were shown.
#[derive(Default)]
pub(super) struct Figures {
    /// The absolute difference between sound and picture.
    difference: Distribution,
    decode: Distribution,
    last_ms: f64,
    copies: u64,
    head: PictureHead,
}

impl Figures {
    /// Adds a picture that was shown.
    pub(super) fn add(&mut self, head: &PictureHead, showing: &Showing) {
        if let Some(difference_ns) = showing.difference_ns {
            self.difference.add(difference_ns.unsigned_abs());
            self.last_ms = difference_ns as f64 / 1e6;
        }
        self.decode.add(head.decode_ns);
        self.copies += u64::from(head.copies);
        self.head = *head;
    }

    /// Copies of pictures so far.
    pub(super) fn copies(&self) -> u64 {
        self.copies
    }

    /// The greatest difference, ms, and the number of differences.
    pub(super) fn difference(&self) -> (f64, u64) {
        (ms(self.difference.max()).unwrap_or(0.0), self.difference.n())
    }
}

/// The state of the player.
#[derive(Serialize)]
pub(super) struct State {
    state: &'static str,
    position_s: f64,
    film_s: f64,
    speed: f64,
    frozen_s: Option<f64>,
    width: u32,
    height: u32,
    difference_ms: Range,
    decode_ms: Range,
    shown: u64,
    late: u64,
    dropped: u64,
    repeated: u64,
    stale: u64,
    copies: u64,
    skipped: u32,
    broken: u32,
    fills: Fills,
    sound: Sound,
}

/// A figure: its last value, its percentiles, its maximum, the number of values.
#[derive(Serialize)]
struct Range {
    last: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
    n: u64,
}

/// How much waits in each queue.
#[derive(Serialize)]
struct Fills {
    video_packets: u32,
    pictures: usize,
    sound_packets: u32,
    sound_ms: f64,
}

#[derive(Serialize)]
struct Sound {
    device: bool,
    level: [f64; 2],
    underruns: u64,
    silent_ms: f64,
}

/// What is seen and heard at a moment.
pub(super) struct Moment<'a> {
    pub(super) figures: &'a Figures,
    pub(super) tally: Tally,
    pub(super) clock: Option<&'a PlayClock>,
    pub(super) pictures: usize,
    pub(super) frozen_ns: Option<u64>,
    pub(super) now_ns: u64,
}

impl State {
    /// The state at a moment.
    pub(super) fn of(moment: &Moment<'_>) -> State {
        let Moment { figures, tally, clock, pictures, frozen_ns, now_ns } = moment;
        let none = PlayClock::default();
        let sound = clock.unwrap_or(&none);
        let Figures { difference, decode, last_ms, copies, head } = figures;
        let position_ns = match clock {
            Some(clock) => Clock::of(clock).position_ns(*now_ns),
            None => head.position_ns,
        };
        State {
            state: clock.map_or("live", |clock| PlayState::of(clock.state).1),
            position_s: position_ns as f64 / 1e9,
            film_s: head.film_ns as f64 / 1e9,
            speed: sound.speed,
            frozen_s: frozen_ns.map(|ns| ns as f64 / 1e9),
            width: head.width,
            height: head.height,
            difference_ms: range(*last_ms, difference),
            decode_ms: range(head.decode_ns as f64 / 1e6, decode),
            shown: tally.shown,
            late: tally.late,
            dropped: tally.dropped,
            repeated: tally.repeated,
            stale: tally.stale,
            copies: *copies,
            skipped: head.skipped,
            broken: head.broken,
            fills: Fills {
                video_packets: head.waiting,
                pictures: *pictures,
                sound_packets: sound.waiting,
                sound_ms: sound.buffered_ns as f64 / 1e6,
            },
            sound: Sound {
                device: sound.device != 0,
                level: sound.level,
                underruns: sound.underruns,
                silent_ms: sound.silent_ns as f64 / 1e6,
            },
        }
    }
}

fn range(last: f64, all: &Distribution) -> Range {
    let [p50, p95] = [0.5, 0.95].map(|share| ms(all.quantile(share)));
    Range { last, p50, p95, max: ms(all.max()), n: all.n() }
}

fn ms(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e6)
}

//! The output of a film's sound, and the position of the film that is heard: the clock that all
//! others follow. It starts when there is enough sound, stops when there is none, obeys orders, and
//! never plays a place twice.

use std::collections::VecDeque;

use sinew_media::{CHANNELS, Order, PlayState, RATE_HZ};
use sinew_pictures::messages::PlayClock;

/// Where samples are heard.
pub(crate) trait Output {
    /// Its name, for people.
    fn name(&self) -> &str;
    /// Whether it is a sound device.
    fn is_device(&self) -> bool;
    /// How many samples of a channel it takes now.
    fn room(&self) -> usize;
    /// Takes samples, left and right in turn.
    fn push(&mut self, samples: &[i16]);
    /// How many samples of each channel were heard, and when.
    fn heard(&mut self, now_ns: u64) -> Heard;
    /// Stops or continues.
    fn hold(&mut self, is_held: bool, now_ns: u64);
    /// Forgets samples that were pushed and not heard.
    fn clear(&mut self);
    /// Samples of silence so far, played because there were none although it was not held.
    fn silent(&self) -> u64;
}

impl<O: Output + ?Sized> Output for Box<O> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn is_device(&self) -> bool {
        (**self).is_device()
    }

    fn room(&self) -> usize {
        (**self).room()
    }

    fn push(&mut self, samples: &[i16]) {
        (**self).push(samples);
    }

    fn heard(&mut self, now_ns: u64) -> Heard {
        (**self).heard(now_ns)
    }

    fn hold(&mut self, is_held: bool, now_ns: u64) {
        (**self).hold(is_held, now_ns);
    }

    fn clear(&mut self) {
        (**self).clear();
    }

    fn silent(&self) -> u64 {
        (**self).silent()
    }
}

/// The number of samples of each channel that were heard at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) samples: u64,
    pub(crate) at_ns: u64,
}

const NS_PER_S: u64 = 1_000_000_000;
/// Sound that is kept ready, samples of a channel.
const KEPT: usize = RATE_HZ as usize * 4 / 10;
/// Sound that must be ready before it starts, samples of a channel.
const BEFORE_START: usize = RATE_HZ as usize / 10;
/// How long the sound waits for the first picture of a run, whose nodes start one after the other;
/// and for the first picture after a jump, ns.
const START_NS_MAX: u64 = 3 * NS_PER_S;
const JUMP_NS_MAX: u64 = NS_PER_S / 2;
/// Positions that differ by less are equal, ns: they are computed from counted samples.
const SAME_NS: u64 = 5_000_000;
/// Slowest and fastest speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// A block of sound that waits.
struct Block {
    position_ns: u64,
    samples: VecDeque<[i16; CHANNELS]>,
}

/// The position of the film that is heard from this sample of the output on, and the speed.
#[derive(Clone, Copy)]
struct Mark {
    sample: u64,
    position_ns: u64,
    speed: f64,
}

/// The output of the sound.
pub(crate) struct Sound<O> {
    output: O,
    blocks: VecDeque<Block>,
    kept: usize,
    pushed: u64,
    marks: VecDeque<Mark>,
    /// The position up to which the film was taken; `None`: nothing yet.
    taken_ns: Option<u64>,
    is_over: bool,
    speed: f64,
    /// For a sample of the output between two of the film: its distance from the first.
    phase: f64,
    state: PlayState,
    is_paused: bool,
    /// Whether the viewer is ready, and since when the sound waits for that.
    is_wanted: bool,
    waits_since_ns: Option<u64>,
    patience_ns: u64,
    serial: u32,
    counts: Counts,
}

/// Figures for display.
#[derive(Clone, Copy, Default)]
struct Counts {
    level: [f64; 2],
    underruns: u64,
    silent: u64,
    waiting: u32,
}

impl<O: Output> Sound<O> {
    /// Nothing yet. `waits`: it does not start before an order to play, or before three seconds.
    pub(crate) fn new(output: O, waits: bool) -> Sound<O> {
        Sound {
            output,
            blocks: VecDeque::new(),
            kept: 0,
            pushed: 0,
            marks: VecDeque::new(),
            taken_ns: None,
            is_over: false,
            speed: 1.0,
            phase: 0.0,
            state: PlayState::Waiting,
            is_paused: false,
            is_wanted: !waits,
            waits_since_ns: None,
            patience_ns: START_NS_MAX,
            serial: 0,
            counts: Counts::default(),
        }
    }

    /// Whether it takes another block.
    pub(crate) fn wants(&self) -> bool {
        self.kept < KEPT && !self.is_over
    }

    /// Whether any sound has come, in this life.
    pub(crate) fn has_begun(&self) -> bool {
        self.taken_ns.is_some()
    }

    /// Obeys an order.
    pub(crate) fn obey(&mut self, order: Order, serial: u32, value: u64, now_ns: u64) {
        match order {
            Order::Pause => self.is_paused = true,
            Order::Play => (self.is_paused, self.is_wanted) = (false, true),
            Order::Speed => {
                let speed = value as f64 / 1000.0;
                self.speed = speed.clamp(*SPEEDS.start(), *SPEEDS.end());
            }
            Order::Seek => {
                self.go_to(serial, Some(value), now_ns);
                // It must not start before the picture is there.
                self.is_wanted = false;
            }
        }
    }

    /// Forgets all sound; the next sound begins at a place.
    fn go_to(&mut self, serial: u32, position_ns: Option<u64>, now_ns: u64) {
        self.output.hold(true, now_ns);
        self.output.clear();
        self.blocks.clear();
        self.marks.clear();
        (self.kept, self.phase, self.is_over) = (0, 0.0, false);
        (self.serial, self.taken_ns, self.waits_since_ns) = (serial, position_ns, None);
        self.patience_ns = JUMP_NS_MAX;
        self.state = PlayState::Waiting;
        self.pushed = self.output.heard(now_ns).samples;
        if let Some(position_ns) = position_ns {
            self.marks.push_back(Mark { sample: self.pushed, position_ns, speed: 0.0 });
        }
    }

    /// Takes the samples of a block, with `waiting` packets after it. Samples of a place that was
    /// already taken are left out. A block with the serial of an unknown order makes that order
    /// known.
    pub(crate) fn take(
        &mut self,
        position_ns: u64,
        serial: u32,
        samples: &[i16],
        waiting: u32,
        now_ns: u64,
    ) {
        if !self.is_current(serial, now_ns) {
            return;
        }
        self.counts.waiting = waiting;
        let mut samples: VecDeque<_> = samples.as_chunks().0.iter().copied().collect();
        let behind_ns = self.taken_ns.unwrap_or(0).saturating_sub(position_ns);
        let behind =
            if behind_ns < SAME_NS { 0 } else { behind_ns * u64::from(RATE_HZ) / NS_PER_S };
        let behind = usize::try_from(behind).unwrap_or(usize::MAX).min(samples.len());
        samples.drain(..behind);
        if samples.is_empty() {
            return;
        }
        let position_ns = position_ns + lasts_ns(behind);
        self.taken_ns = Some(position_ns + lasts_ns(samples.len()));
        self.kept += samples.len();
        self.blocks.push_back(Block { position_ns, samples });
    }

    /// The film is over after what was taken.
    pub(crate) fn end(&mut self, position_ns: u64, serial: u32, now_ns: u64) {
        if self.is_current(serial, now_ns) {
            self.is_over = true;
            self.taken_ns.get_or_insert(position_ns);
        }
    }

    fn is_current(&mut self, serial: u32, now_ns: u64) -> bool {
        if serial.wrapping_sub(self.serial).cast_signed() > 0 {
            let is_wanted = self.is_wanted;
            self.go_to(serial, None, now_ns);
            self.is_wanted = is_wanted;
        }
        serial == self.serial
    }

    /// Hands sound on, and changes its state; must be called some hundred times a second.
    pub(crate) fn go_on(&mut self, now_ns: u64) {
        let heard = self.output.heard(now_ns).samples;
        let has_ended = self.is_over && self.kept == 0 && heard == self.pushed;
        let silent = self.output.silent();
        if silent > self.counts.silent && self.state == PlayState::Playing && !has_ended {
            self.counts.underruns += 1;
            self.state = PlayState::Starved;
        }
        self.counts.silent = silent;
        let is_ready = self.kept >= BEFORE_START || self.is_over;
        let was = self.state;
        self.state = match was {
            _ if has_ended => PlayState::Ended,
            _ if self.is_paused => PlayState::Paused,
            PlayState::Waiting if !(is_ready && self.may_start(now_ns)) => PlayState::Waiting,
            PlayState::Starved if !is_ready => PlayState::Starved,
            _ => PlayState::Playing,
        };
        if self.state == PlayState::Playing {
            self.hand_on();
        }
        if was != self.state {
            let plays = matches!(self.state, PlayState::Playing | PlayState::Starved);
            self.output.hold(!plays, now_ns);
        }
    }

    fn may_start(&mut self, now_ns: u64) -> bool {
        let since_ns = *self.waits_since_ns.get_or_insert(now_ns);
        self.is_wanted || now_ns.saturating_sub(since_ns) >= self.patience_ns
    }

    fn hand_on(&mut self) {
        let mut room = self.output.room();
        while room > 0 {
            let Some(block) = self.blocks.front_mut() else { return };
            let (speed, before) = (self.speed, block.samples.len());
            let samples = stretched(&mut block.samples, speed, &mut self.phase, room);
            let used = before - block.samples.len();
            let position_ns = block.position_ns;
            block.position_ns += lasts_ns(used);
            if block.samples.is_empty() {
                self.blocks.pop_front();
            }
            self.kept -= used;
            let count = samples.len() / CHANNELS;
            if count > 0 {
                self.counts.level = level(&samples);
                self.marks.push_back(Mark { sample: self.pushed, position_ns, speed });
                self.output.push(&samples);
                self.pushed += count as u64;
            }
            room -= count.min(room);
        }
    }

    /// The position that is heard now.
    pub(crate) fn clock(&mut self, now_ns: u64) -> PlayClock {
        let heard = self.output.heard(now_ns);
        while self.marks.get(1).is_some_and(|next| next.sample <= heard.samples) {
            self.marks.pop_front();
        }
        // Before anything was handed on: the place where the sound will begin.
        let begins_ns = self.blocks.front().map(|block| block.position_ns).or(self.taken_ns);
        let mark = self.marks.front().copied().unwrap_or(Mark {
            sample: heard.samples,
            position_ns: begins_ns.unwrap_or(0),
            speed: 0.0,
        });
        let since = heard.samples.saturating_sub(mark.sample) as f64 / f64::from(RATE_HZ);
        let moves = self.state == PlayState::Playing && heard.samples < self.pushed;
        let Counts { level, underruns, silent, waiting } = self.counts;
        PlayClock {
            position_ns: mark.position_ns + (since * mark.speed * 1e9) as u64,
            at_ns: heard.at_ns,
            speed: if moves { mark.speed } else { 0.0 },
            level: if moves { level } else { [0.0; 2] },
            buffered_ns: lasts_ns(self.kept)
                + (lasts_ns((self.pushed - heard.samples) as usize) as f64 * mark.speed) as u64,
            underruns,
            silent_ns: lasts_ns(silent as usize),
            serial: self.serial,
            state: self.state as u32,
            device: u32::from(self.output.is_device()),
            waiting,
        }
    }

    /// The output of the sound.
    pub(crate) fn output(&self) -> &O {
        &self.output
    }
}

/// The duration of this many samples of a channel.
fn lasts_ns(samples: usize) -> u64 {
    samples as u64 * NS_PER_S / u64::from(RATE_HZ)
}

/// Takes samples for at most `room` samples of the output. At another speed than 1 their number
/// changes, by linear interpolation; so the pitch changes with the speed.
fn stretched(
    samples: &mut VecDeque<[i16; CHANNELS]>,
    speed: f64,
    phase: &mut f64,
    room: usize,
) -> Vec<i16> {
    if speed == 1.0 && *phase == 0.0 {
        return samples.drain(..room.min(samples.len())).flatten().collect();
    }
    let (mut out, mut place) = (Vec::new(), *phase);
    while out.len() < room * CHANNELS && (place as usize) < samples.len() {
        let at = place as usize;
        let next = (at + 1).min(samples.len() - 1);
        for channel in 0..CHANNELS {
            let [from, to] = [samples[at], samples[next]].map(|sample| f64::from(sample[channel]));
            out.push((from + (to - from) * place.fract()) as i16);
        }
        place += speed;
    }
    let used = (place as usize).min(samples.len());
    samples.drain(..used);
    *phase = place - used as f64;
    if speed == 1.0 && samples.is_empty() {
        *phase = 0.0;
    }
    out
}

/// The root of the mean square of each channel; 1 is the maximum.
fn level(samples: &[i16]) -> [f64; 2] {
    let frames = samples.as_chunks::<CHANNELS>().0;
    let mean = |channel: usize| {
        let squares = frames.iter().map(|frame| (f64::from(frame[channel]) / 32_768.0).powi(2));
        (squares.sum::<f64>() / frames.len().max(1) as f64).sqrt()
    };
    [mean(0), mean(1)]
}

#[cfg(test)]
mod tests;

//! Replaces a sound device: sound is consumed at the rate of the monotonic clock, and discarded.

use sinew_media::{CHANNELS, RATE_HZ};

use super::sound::{Heard, Output};

/// Sound that is taken in advance, samples of a channel: the longest sleep of the node without a
/// gap.
const AHEAD: u64 = RATE_HZ as u64 / 10;
const NS_PER_S: u64 = 1_000_000_000;

/// Counts the samples that a device would have played.
pub(crate) struct Metronome {
    pushed: u64,
    heard: u64,
    /// How many had been heard when counting last began, and when that was: so rounding errors do
    /// not add up.
    since: Heard,
    is_held: bool,
    silent: u64,
}

impl Metronome {
    /// A metronome that is stopped.
    pub(crate) fn new() -> Metronome {
        Metronome {
            pushed: 0,
            heard: 0,
            since: Heard { samples: 0, at_ns: 0 },
            is_held: true,
            silent: 0,
        }
    }
}

impl Output for Metronome {
    fn name(&self) -> &str {
        "the clock alone"
    }

    fn is_device(&self) -> bool {
        false
    }

    fn room(&self) -> usize {
        AHEAD.saturating_sub(self.pushed - self.heard) as usize
    }

    fn push(&mut self, samples: &[i16]) {
        self.pushed += (samples.len() / CHANNELS) as u64;
    }

    fn heard(&mut self, now_ns: u64) -> Heard {
        let passed_ns = match self.is_held {
            true => 0,
            false => now_ns.saturating_sub(self.since.at_ns),
        };
        let due = u128::from(passed_ns) * u128::from(RATE_HZ) / u128::from(NS_PER_S);
        let due = self.since.samples + u64::try_from(due).unwrap_or(u64::MAX / 2);
        if self.is_held || due > self.pushed {
            self.silent += due.saturating_sub(self.pushed);
            self.heard = if self.is_held { self.heard } else { self.pushed };
            self.since = Heard { samples: self.heard, at_ns: now_ns };
            return self.since;
        }
        self.heard = due;
        let passed = u128::from(due - self.since.samples) * u128::from(NS_PER_S);
        let passed_ns = (passed / u128::from(RATE_HZ)) as u64;
        Heard { samples: due, at_ns: self.since.at_ns + passed_ns }
    }

    fn hold(&mut self, is_held: bool, now_ns: u64) {
        self.heard(now_ns);
        self.is_held = is_held;
    }

    fn clear(&mut self) {
        self.pushed = self.heard;
        self.since.samples = self.since.samples.min(self.heard);
    }

    fn silent(&self) -> u64 {
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_hears_as_many_samples_as_the_time_has_and_no_more() {
        let mut output = Metronome::new();
        output.push(&vec![0; output.room() * CHANNELS]);
        assert_eq!(output.room(), 0);
        assert_eq!(output.heard(500 * MS).samples, 0, "it is held");
        output.hold(false, 500 * MS);
        // In steps that are not whole samples, for a tenth of a second.
        for step in 1..=1_000 {
            output.heard(500 * MS + step * 99_999);
        }
        assert_eq!(output.heard(600 * MS), Heard { samples: 4_800, at_ns: 600 * MS });
        assert_eq!(output.silent(), 0);
        // There are no more samples: the rest is silence.
        assert_eq!(output.heard(610 * MS).samples, 4_800);
        assert_eq!((output.silent(), output.room()), (480, 4_800));
    }

    #[test]
    fn what_was_not_heard_can_be_taken_back() {
        let mut output = Metronome::new();
        output.push(&[0; 960]);
        output.hold(false, 0);
        output.heard(5 * MS);
        output.clear();
        assert_eq!(output.heard(5 * MS).samples, 240);
        output.hold(true, 5 * MS);
        assert_eq!((output.heard(900 * MS).samples, output.silent()), (240, 0));
    }
}

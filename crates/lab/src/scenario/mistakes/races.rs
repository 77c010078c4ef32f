//! Counts the errors between two threads that share words without a protocol. A program in safe
//! Rust has no data race. So a word that should not be atomic is one here that is loaded and stored
//! relaxed: a compiler makes the same instructions of both.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use sinew_core::clock::Clock;

use super::case::MistakeForm;
use crate::harness::{Cpus, Found, Gone, Life, batches, on_threads};

/// Words of the value that is read while it is written.
const WORDS: usize = 4;
/// Operations of the far side between two looks at whether the measurement is over.
const TURNS: u64 = 1000;

/// Two threads, each on a CPU of its own, for a given time.
#[derive(Clone, Copy)]
pub(super) struct Two {
    pub(super) cpus: Cpus,
    pub(super) clock: Clock,
    pub(super) share: Duration,
}

/// How long a thousand operations took on the near side, and how many went wrong.
pub(super) struct Raced {
    pub(super) found: Found,
    /// How many operations there were.
    pub(super) done: u64,
    /// How many went wrong.
    pub(super) wrong: u64,
    /// How often a reader saw that it could not read now.
    pub(super) refused: u64,
}

/// A word alone on its line, so that words share a line only where they should.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// What one side counts for itself, on a line of its own.
#[repr(align(128))]
struct Own(u64);

impl Two {
    /// Both sides add one to a word, again and again. The difference to the expected sum is lost.
    pub(super) fn count(self, form: MistakeForm) -> Result<Raced, Gone> {
        let word = Apart::default();
        // Relaxed, in all of this: no other data is handed over with the word.
        let add = |word: &AtomicU64| match form {
            MistakeForm::LoadStore => {
                let found = black_box(word).load(Ordering::Relaxed);
                black_box(word).store(found + 1, Ordering::Relaxed);
            }
            _ => _ = black_box(word).fetch_add(1, Ordering::Relaxed),
        };
        let (mut ours, mut theirs) = (Own(0), Own(0));
        let near = || {
            ours.0 += 1;
            add(&word.0);
        };
        let far = || {
            theirs.0 += 1;
            add(&word.0);
        };
        let found = self.race(near, far)?;
        let done = ours.0 + theirs.0;
        let wrong = done - word.0.into_inner();
        Ok(Raced { found, done, wrong, refused: 0 })
    }

    /// The far side writes a value whose words are all equal, and the near side reads it. Words
    /// that differ belong to two values.
    pub(super) fn value(self, form: MistakeForm) -> Result<Raced, Gone> {
        let value = &Value::default();
        let (mut done, mut wrong, mut refused) = (0, 0, 0);
        // Moves to the far side, so that it is on no line of the near side.
        let mut number = 0;
        let near = || {
            let read = match form {
                MistakeForm::WordByWord => Some(value.read()),
                _ => value.read_between_counts(),
            };
            match read {
                Some([first, rest @ ..]) => {
                    done += 1;
                    wrong += u64::from(rest.iter().any(|word| *word != first));
                }
                None => refused += 1,
            }
        };
        let far = move || {
            number += 1;
            match form {
                MistakeForm::WordByWord => value.write(number),
                _ => value.write_between_counts(number),
            }
        };
        let found = self.race(near, far)?;
        Ok(Raced { found, done, wrong, refused })
    }

    /// The far side writes a word and then a flag, both with the same number; the near side loads
    /// the flag and then the word. An older word is wrong: the flag announced a newer one.
    pub(super) fn order(self, form: MistakeForm) -> Result<Raced, Gone> {
        let (word, flag) = (&Apart::default(), &Apart::default());
        let (store, load) = match form {
            MistakeForm::ReleaseAcquire => (Ordering::Release, Ordering::Acquire),
            _ => (Ordering::Relaxed, Ordering::Relaxed),
        };
        let (mut done, mut wrong, mut number) = (0, 0, 0);
        let near = || {
            let told = black_box(&flag.0).load(load);
            let found = black_box(&word.0).load(Ordering::Relaxed);
            done += 1;
            wrong += u64::from(found < told);
        };
        let far = move || {
            number += 1;
            let of_word = || black_box(&word.0).store(number, Ordering::Relaxed);
            let of_flag = || black_box(&flag.0).store(number, store);
            if form == MistakeForm::FlagFirst {
                of_flag();
                of_word();
            } else {
                of_word();
                of_flag();
            }
        };
        let found = self.race(near, far)?;
        Ok(Raced { found, done, wrong, refused: 0 })
    }

    /// Runs both sides at the same time, until the near side is done.
    fn race(self, near: impl FnMut() + Send, mut far: impl FnMut() + Send) -> Result<Found, Gone> {
        let (is_up, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let near = |life: &Life| {
            // Relaxed, here and below: the flags carry no other data with them.
            life.until(|| is_up.load(Ordering::Relaxed).then_some(()))?;
            let found = batches(self.clock, self.share, near);
            is_over.store(true, Ordering::Relaxed);
            Ok(found)
        };
        let far = |life: &Life| {
            is_up.store(true, Ordering::Relaxed);
            while !is_over.load(Ordering::Relaxed) && !life.is_over() {
                (0..TURNS).for_each(|_| far());
            }
            Ok(())
        };
        on_threads(self.cpus, near, far)
    }
}

/// A value of several words on one line, and the counts around it.
#[derive(Default)]
#[repr(align(128))]
struct Value {
    count: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Value {
    fn write(&self, number: u64) {
        // Relaxed, here and in `read`: that is the mistake.
        self.words.iter().for_each(|word| word.store(number, Ordering::Relaxed));
    }

    fn read(&self) -> [u64; WORDS] {
        self.words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// A seqlock (H.-J. Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?",
    /// 2012): the count is odd while the words change.
    fn write_between_counts(&self, number: u64) {
        self.count.store(2 * number - 1, Ordering::Relaxed);
        // Release: a reader that sees a changed word also sees the odd count.
        fence(Ordering::Release);
        self.write(number);
        // Release: a reader that sees the even count also sees all words.
        self.count.store(2 * number, Ordering::Release);
    }

    /// `None` if the value was written meanwhile.
    fn read_between_counts(&self) -> Option<[u64; WORDS]> {
        // Acquire: pairs with the release of the even count.
        let before = self.count.load(Ordering::Acquire);
        let words = self.read();
        // Acquire: pairs with the fence of the writer.
        fence(Ordering::Acquire);
        let after = self.count.load(Ordering::Relaxed);
        (before == after && before.is_multiple_of(2)).then_some(words)
    }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
mod tests {
    use super::*;

    fn two() -> Option<Two> {
        let cpus = Cpus::of_this_process();
        if !cpus.are_two() {
            assert!(std::env::var_os("CI").is_none(), "CI has two CPUs");
            eprintln!("skipped: needs two CPUs");
            return None;
        }
        Some(Two { cpus, clock: Clock::calibrate(), share: Duration::from_millis(20) })
    }

    type Race = fn(Two, MistakeForm) -> Result<Raced, Gone>;

    fn wrong(race: Race, form: MistakeForm) -> Option<u64> {
        let raced = race(two()?, form).expect("both live");
        assert!(raced.found.median_ns > 0.0 && raced.done + raced.refused > 0);
        Some(raced.wrong)
    }

    #[test]
    fn what_is_right_loses_nothing() {
        let right: [(Race, MistakeForm); 3] = [
            (Two::count, MistakeForm::FetchAdd),
            (Two::value, MistakeForm::Seqlock),
            (Two::order, MistakeForm::ReleaseAcquire),
        ];
        for (race, form) in right {
            assert!(wrong(race, form).is_none_or(|wrong| wrong == 0), "{form:?}");
        }
    }

    /// On a busy machine the sides may not meet, so this is tried a few times.
    #[test]
    fn what_is_wrong_is_seen() {
        let mistakes: [(Race, MistakeForm); 3] = [
            (Two::count, MistakeForm::LoadStore),
            (Two::value, MistakeForm::WordByWord),
            (Two::order, MistakeForm::FlagFirst),
        ];
        for (race, form) in mistakes {
            let seen = |_| wrong(race, form).is_none_or(|wrong| wrong > 0);
            assert!((0..50).any(seen), "{form:?}");
        }
    }

    #[test]
    fn a_value_that_is_being_written_is_refused() {
        let value = Value::default();
        value.write_between_counts(1);
        assert_eq!(value.read_between_counts(), Some([1; WORDS]));
        value.count.store(3, Ordering::Relaxed);
        assert_eq!(value.read_between_counts(), None);
    }
}

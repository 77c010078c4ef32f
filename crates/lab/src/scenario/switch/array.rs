//! The array of a side, and the walk through it: all words, or all lines in random order.

use std::hint::black_box;

use super::case::{SwitchCase, Walk};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Bytes from one line to the next: the steps of a random walk.
const LINE: usize = 64;

/// The array that a side walks through at every turn.
pub(super) struct WalkedArray {
    memory: Vec<u64>,
    /// The first word that is at the start of a line.
    first: usize,
    words: usize,
    walk: Walk,
    /// Words from one step to the next.
    step: usize,
}

impl WalkedArray {
    /// An array whose pages all exist and were written; `seed` decides the order of a random walk.
    pub(super) fn new(case: &SwitchCase, seed: u64) -> WalkedArray {
        let words = case.array / WORD;
        let memory = vec![1; words + LINE / WORD];
        let first = memory.as_ptr().align_offset(LINE).min(LINE / WORD);
        let step = (case.stride / WORD).max(1);
        let mut array = WalkedArray { memory, first, words, walk: case.walk, step };
        // Pages that were allocated but not written are all the same page.
        array.words().fill(1);
        if case.walk == Walk::Random {
            array.chain(seed);
        }
        array
    }

    fn words(&mut self) -> &mut [u64] {
        &mut self.memory[self.first..self.first + self.words]
    }

    /// Each line holds the number of the next one, in one cycle through all lines.
    fn chain(&mut self, seed: u64) {
        const WORDS: usize = LINE / WORD;
        let mut order: Vec<usize> = (0..self.words / WORDS).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let words = self.words();
        for (at, &line) in order.iter().enumerate() {
            words[line * WORDS] = (order[(at + 1) % order.len()] * WORDS) as u64;
        }
    }

    /// Walks once through the array.
    #[inline(never)]
    pub(super) fn walk(&mut self) {
        let (walk, step) = (self.walk, self.step);
        let words = self.words();
        match walk {
            Walk::Read => {
                let mut sum = 0_u64;
                for start in 0..step.min(words.len()) {
                    let pass = words[start..].iter().step_by(step);
                    sum = pass.fold(sum, |sum, word| sum.wrapping_add(*word));
                }
                black_box(sum);
            }
            Walk::Modify => {
                for start in 0..step.min(words.len()) {
                    let pass = words[start..].iter_mut().step_by(step);
                    pass.for_each(|word| *word = word.wrapping_add(1));
                }
                black_box(words);
            }
            Walk::Random => {
                let mut at = 0;
                for _ in 0..words.len() / (LINE / WORD) {
                    at = words[at] as usize;
                }
                black_box(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::switch::case::SOURCE;

    #[test]
    fn a_random_walk_is_one_cycle_through_all_lines() {
        let case = SwitchCase { array: 32 << 10, walk: Walk::Random, ..SOURCE };
        let mut array = WalkedArray::new(&case, 7);
        let words = array.words();
        let (mut at, mut seen) = (0, vec![]);
        for _ in 0..512 {
            seen.push(at);
            at = words[at as usize];
        }
        assert_eq!(at, 0, "it ends where it began");
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(line, at)| *at == line as u64 * 8));
    }

    #[test]
    fn every_stride_comes_by_every_word_once() {
        for stride in [8, 64, 128, 512, 4096] {
            let case = SwitchCase { array: 32 << 10, walk: Walk::Modify, stride, ..SOURCE };
            let mut array = WalkedArray::new(&case, 7);
            array.walk();
            assert_eq!(array.words().len(), 4096);
            assert!(array.words().iter().all(|word| *word == 2), "{stride}");
        }
        WalkedArray::new(&SOURCE, 7).walk();
    }
}

//! The rows: each mistake next to the right way.

use crate::report::{Axis, Row};
use crate::words::words;

words! {
    /// What can be done wrong.
    pub(super) enum Mistake {
        /// Two threads count in one word.
        Count = "count",
        /// A value of several words that one thread writes and another one reads.
        Value = "value",
        /// A flag that says that a word is there.
        Order = "order",
        /// Where the two indexes of a ring are.
        Lines = "lines",
        /// How an index becomes a slot.
        Capacity = "capacity",
        /// Where messages are.
        Allocation = "allocation",
    }
}

words! {
    /// How it is done.
    pub(super) enum MistakeForm {
        /// Load, add, store: what `++` does to a word that is not atomic.
        LoadStore = "load_store",
        /// One atomic addition.
        FetchAdd = "fetch_add",
        /// One word after the other.
        WordByWord = "word_by_word",
        /// Between two counts by which a reader knows whether all words belong to one value.
        Seqlock = "seqlock",
        /// Flag and word stored and loaded relaxed.
        Relaxed = "relaxed",
        /// The flag stored with release and loaded with acquire.
        ReleaseAcquire = "release_acquire",
        /// The flag stored before the word: the order that a CPU may make of relaxed stores.
        FlagFirst = "flag_first",
        /// Both indexes on one line.
        OneLine = "one_line",
        /// The indexes 128 B apart.
        Apart = "apart",
        /// 1000 slots, the remainder of a division.
        Remainder = "remainder",
        /// 1000 slots; the next index is compared with that number.
        Compare = "compare",
        /// 1024 slots, a mask.
        Mask = "mask",
        /// A box for each message.
        Boxed = "boxed",
        /// In the slots of the queue.
        InSlot = "in_slot",
    }
}

words! {
    /// Where it is done.
    pub(super) enum MistakeCpus {
        /// By one thread.
        One = "one",
        /// By two threads with a CPU each.
        Two = "two",
    }
}

words! {
    /// When a side that finds the ring full or empty looks again.
    pub(super) enum Poll {
        /// No side looks again.
        None = "-",
        /// At once: the side stays close behind the other one, and takes cache lines from it while
        /// it writes.
        AtOnce = "at_once",
        /// 500 ns later, as on a stream of ours: by then there is more than one message.
        Later = "later",
    }
}

impl Poll {
    /// The time between two looks, ns.
    pub(super) fn gap_ns(self) -> u64 {
        if self == Poll::Later { 500 } else { 0 }
    }
}

/// What rows differ in.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "mistake", values: Mistake::WORDS },
    Axis { name: "form", values: MistakeForm::WORDS },
    Axis { name: "cpus", values: MistakeCpus::WORDS },
    Axis { name: "poll", values: Poll::WORDS },
];

/// The mistakes, their forms, and whether one thread alone shows the mistake, too.
const CASES: [(Mistake, &[MistakeForm], bool); 6] = [
    (Mistake::Count, &[MistakeForm::LoadStore, MistakeForm::FetchAdd], false),
    (Mistake::Value, &[MistakeForm::WordByWord, MistakeForm::Seqlock], false),
    (
        Mistake::Order,
        &[MistakeForm::Relaxed, MistakeForm::ReleaseAcquire, MistakeForm::FlagFirst],
        false,
    ),
    (Mistake::Lines, &[MistakeForm::OneLine, MistakeForm::Apart], false),
    (Mistake::Capacity, &[MistakeForm::Remainder, MistakeForm::Compare, MistakeForm::Mask], true),
    (Mistake::Allocation, &[MistakeForm::Boxed, MistakeForm::InSlot], true),
];

/// Why there is no row on x86 in which relaxed is wrong.
pub(super) const NOT_ON_X86: &str = "x86 keeps stores in order and loads in order, also for a \
                                     guest that is emulated on it: relaxed and release-acquire are \
                                     the same instructions";

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MistakeCase {
    pub(super) mistake: Mistake,
    pub(super) form: MistakeForm,
    pub(super) cpus: MistakeCpus,
    pub(super) poll: Poll,
}

impl MistakeCase {
    /// All cases.
    pub(super) fn all() -> Vec<MistakeCase> {
        let mut all = vec![];
        for (mistake, forms, alone) in CASES {
            let cpus = if alone { MistakeCpus::ALL } else { &[MistakeCpus::Two] };
            for &cpus in cpus {
                let is_ring = matches!(mistake, Mistake::Lines | Mistake::Capacity);
                let polls = match cpus {
                    MistakeCpus::Two if is_ring => &[Poll::AtOnce, Poll::Later][..],
                    _ => &[Poll::None],
                };
                for &poll in polls {
                    let case = |&form| MistakeCase { mistake, form, cpus, poll };
                    all.extend(forms.iter().map(case));
                }
            }
        }
        all
    }

    /// Its row; nothing is measured yet.
    pub(super) fn row(self) -> Row {
        Row::of(&[
            ("mistake", self.mistake.word()),
            ("form", self.form.word()),
            ("cpus", self.cpus.word()),
            ("poll", self.poll.word()),
        ])
    }

    /// Why it cannot be measured here.
    pub(super) fn obstacle(self, has_two: bool) -> Option<String> {
        let shows_order = matches!(self.form, MistakeForm::Relaxed | MistakeForm::ReleaseAcquire);
        if shows_order && cfg!(target_arch = "x86_64") {
            return Some(NOT_ON_X86.into());
        }
        let needs_two = self.cpus == MistakeCpus::Two && !has_two;
        needs_two.then(|| "both sides poll: that needs two CPUs, and there is one".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_in_a_row_and_every_row_is_there_once() {
        let all = MistakeCase::all();
        let ids: std::collections::BTreeSet<_> = all.iter().map(|case| case.row().id()).collect();
        assert_eq!((all.len(), ids.len()), (7 + 2 * 2 + 3 * 3 + 2 * 2, all.len()));
        assert!(MistakeForm::ALL.iter().all(|form| all.iter().any(|case| case.form == *form)));
    }

    #[test]
    fn one_cpu_has_only_what_one_thread_shows() {
        for case in MistakeCase::all() {
            let why = case.obstacle(false);
            assert_eq!(why.is_none(), case.cpus == MistakeCpus::One, "{case:?}: {why:?}");
        }
    }
}

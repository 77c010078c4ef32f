//! What is measured: how the turn is handed over, between which sides, and what each side walks
//! through.

use crate::harness::Placement;
use crate::report::{Axis, Row};
use crate::words::words;

words! {
    /// How the turn is handed over.
    pub(super) enum HandedBy {
        /// `sched_yield`, until the turn is back.
        Yield = "yield",
        /// A word in shared memory, and a futex on it.
        Futex = "futex",
        /// An eventfd for each way.
        Eventfd = "eventfd",
        /// A pipe for each way.
        Pipe = "pipe",
    }
}

words! {
    /// What a side does with its array.
    pub(super) enum Walk {
        /// Reads every word once.
        Read = "read",
        /// Adds one to every word.
        Modify = "modify",
        /// Reads one word of every line, which says where the next line is.
        Random = "random",
    }
}

/// Sizes of an array, as a word and in bytes.
pub(super) const ARRAYS: [(&str, usize); 8] = [
    ("0", 0),
    ("32K", 32 << 10),
    ("128K", 128 << 10),
    ("256K", 256 << 10),
    ("512K", 512 << 10),
    ("1M", 1 << 20),
    ("2M", 2 << 20),
    ("8M", 8 << 20),
];

/// Bytes from one step of the walk to the next. All words are read, in as many passes as that
/// needs.
pub(super) const STRIDES: [usize; 5] = [8, 64, 128, 512, 4096];

/// The axes of the rows. `perf` and `lat_ctx` are programs of others, which also use a pipe.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "by", values: &["yield", "futex", "eventfd", "pipe", "perf", "lat_ctx"] },
    Axis { name: "between", values: Placement::WORDS },
    Axis { name: "array", values: &["0", "32K", "128K", "256K", "512K", "1M", "2M", "8M"] },
    Axis { name: "access", values: Walk::WORDS },
    Axis { name: "stride", values: &["8", "64", "128", "512", "4096"] },
];

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchCase {
    pub(super) by: HandedBy,
    pub(super) between: Placement,
    /// Bytes of the array of each side.
    pub(super) array: usize,
    /// Has no meaning without an array.
    pub(super) walk: Walk,
    /// Has no meaning without an array, or for a random walk.
    pub(super) stride: usize,
}

/// As in the source: two processes and a pipe, and consecutive words.
pub(super) const SOURCE: SwitchCase = SwitchCase {
    by: HandedBy::Pipe,
    between: Placement::Processes,
    array: 0,
    walk: Walk::Read,
    stride: 8,
};

impl SwitchCase {
    /// Its row in the report.
    pub(super) fn row(&self) -> Row {
        let array = word_of(self.array);
        let mut axes = vec![("by", self.by.word()), ("between", self.between.word())];
        axes.push(("array", array));
        let stride = self.stride.to_string();
        if self.array > 0 {
            axes.push(("access", self.walk.word()));
        }
        if self.array > 0 && self.walk != Walk::Random {
            axes.push(("stride", &stride));
        }
        Row::of(&axes)
    }

    /// As text, for another process.
    pub(super) fn to_text(self) -> String {
        let SwitchCase { by, between, array, walk, stride } = self;
        format!("{} {} {array} {} {stride}", by.word(), between.word(), walk.word())
    }

    /// The case of such a text.
    pub(super) fn parse(words: &[&str]) -> Option<SwitchCase> {
        let [by, between, array, walk, stride] = words else { return None };
        Some(SwitchCase {
            by: by.parse().ok()?,
            between: between.parse().ok()?,
            array: array.parse().ok()?,
            walk: walk.parse().ok()?,
            stride: stride.parse().ok()?,
        })
    }
}

/// The word of a size of [`ARRAYS`].
pub(super) fn word_of(bytes: usize) -> &'static str {
    ARRAYS.iter().find(|(_, size)| *size == bytes).map_or("-", |(word, _)| word)
}

/// All cases.
pub(super) fn all() -> Vec<SwitchCase> {
    let mut cases = direct();
    for &by in HandedBy::ALL {
        for &between in Placement::ALL {
            let with = |walk, stride| {
                let sizes = ARRAYS.iter().filter(|(_, bytes)| *bytes > 0);
                sizes.map(move |&(_, array)| SwitchCase { by, between, array, walk, stride })
            };
            for walk in [Walk::Read, Walk::Modify] {
                cases.extend(STRIDES.iter().flat_map(|&stride| with(walk, stride)));
            }
            cases.extend(with(Walk::Random, STRIDES[0]));
        }
    }
    cases
}

/// The short form: what the verdicts need, by a pipe between processes, and every way without an
/// array.
pub(super) fn quick() -> Vec<SwitchCase> {
    const STEPS: [usize; 2] = [512 << 10, 2 << 20];
    let mut cases = direct();
    let sizes = ARRAYS.iter().map(|(_, bytes)| *bytes).filter(|bytes| *bytes > 0);
    for array in sizes {
        cases.push(SwitchCase { array, ..SOURCE });
        cases.push(SwitchCase { array, walk: Walk::Random, ..SOURCE });
    }
    for array in STEPS {
        cases.push(SwitchCase { array, walk: Walk::Modify, ..SOURCE });
        cases.extend(STRIDES[1..].iter().map(|&stride| SwitchCase { array, stride, ..SOURCE }));
    }
    let threads = SwitchCase { between: Placement::Threads, array: STEPS[0], ..SOURCE };
    cases.extend([threads, SwitchCase { walk: Walk::Random, ..threads }]);
    cases
}

/// Every way without an array.
fn direct() -> Vec<SwitchCase> {
    let ways = HandedBy::ALL.iter().flat_map(|&by| Placement::ALL.iter().map(move |&it| (by, it)));
    ways.map(|(by, between)| SwitchCase { by, between, ..SOURCE }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_on_the_axes_and_none_twice() {
        let cases = all();
        // Four ways, each between threads and between processes; seven sizes; two walks of five
        // strides each and the random one.
        assert_eq!(cases.len(), 8 * (1 + 7 * (2 * 5 + 1)));
        let rows: Vec<_> = cases.iter().map(SwitchCase::row).collect();
        for (name, value) in rows.iter().flat_map(|row| &row.axes) {
            let axis = AXES.iter().find(|axis| axis.name == name).expect("it is listed");
            assert!(axis.values.contains(&value.as_str()), "{name}={value}");
        }
        let ids: std::collections::BTreeSet<_> = rows.iter().map(Row::id).collect();
        assert_eq!(ids.len(), rows.len());
        assert!(quick().iter().all(|case| cases.contains(case)));
    }

    #[test]
    fn a_case_survives_the_way_to_another_process() {
        for case in all() {
            let text = case.to_text();
            let words: Vec<_> = text.split(' ').collect();
            assert_eq!(SwitchCase::parse(&words), Some(case));
        }
        assert_eq!(SwitchCase::parse(&["pipe", "processes", "1K", "read", "8"]), None);
    }
}

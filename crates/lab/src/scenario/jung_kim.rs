//! Table 3 of a paper as data: what shared memory costs by size. The scenarios that are compared
//! with it use the same sizes.

/// The source, for readers of a report.
pub(super) const PAPER: &str = "the paper: Jung and Kim 2010, 'Improvement Method and Performance \
    Analysis of Shared Memory in Dual Core Embedded Linux system', table 3: ARM926 at 350 MHz and \
    ARM946 at 300 MHz on one chip, without an emulator; before and after its improvement, us";

/// Bytes of a payload.
pub(super) const SIZES: [usize; 16] = [
    8, 16, 32, 64, 128, 256, 512, 1024, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288,
    1_048_576,
];

/// The same in words.
pub(super) const SIZE_WORDS: [&str; SIZES.len()] = [
    "8", "16", "32", "64", "128", "256", "512", "1024", "8192", "16384", "32768", "65536",
    "131072", "262144", "524288", "1048576",
];

/// Times in the order of [`SIZES`]: us before and after the paper's improvement.
const PUBLISHED: [(f64, f64); SIZES.len()] = [
    (15.4, 14.0),
    (15.4, 14.0),
    (15.4, 14.0),
    (15.4, 14.0),
    (15.4, 14.0),
    (16.6, 15.0),
    (17.6, 16.0),
    (19.8, 18.0),
    (51.2, 46.7),
    (106.3, 96.7),
    (348.4, 316.7),
    (751.5, 683.3),
    (1448.4, 1316.7),
    (2874.6, 2513.3),
    (5766.7, 5242.5),
    (11506.0, 10460.0),
];

/// The paper's times for a size, us, before and after; `None` if it has none.
pub(super) fn published(bytes: usize) -> Option<(f64, f64)> {
    let at = SIZES.iter().position(|size| *size == bytes)?;
    Some(PUBLISHED[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_word_and_its_times() {
        for (bytes, word) in SIZES.iter().zip(SIZE_WORDS) {
            assert_eq!(word.parse(), Ok(*bytes));
            assert!(published(*bytes).is_some_and(|(before, after)| before > after));
        }
        assert_eq!(published(1_048_576), Some((11506.0, 10460.0)));
        assert_eq!(published(9), None);
    }
}

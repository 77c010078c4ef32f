//! Sizes in words: exact, in the largest unit that allows it.

/// `256 MiB`, `4097 B`.
pub(crate) fn words(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_exact_in_the_largest_unit() {
        assert_eq!(words(256 << 20), "256 MiB");
        assert_eq!(words(3 << 30), "3 GiB");
        assert_eq!(words((1 << 20) + 1024), "1025 KiB");
        assert_eq!((words(4097), words(0)), ("4097 B".into(), "0 B".into()));
    }
}

//! Lists of CPUs as the kernel writes them: `0-3,8`.

/// The highest number that a CPU can have in any kernel. A list with a higher number is invalid.
const CPU_MAX: u32 = 8191;

/// Reads a list; an empty text is an empty list.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = vec![];
    let text = text.trim();
    if text.is_empty() {
        return Some(cpus);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Writes a list that is in order.
pub fn write(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u32::to_string).collect(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

/// The list with its noun: `CPU 1`, `CPUs 0-3`.
pub fn named(cpus: &[u32]) -> String {
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, write(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for list in ["", "0", "0-3", "0-3,8", "1,3,5-6"] {
            assert_eq!(write(&parse(list).expect(list)), list);
        }
        assert_eq!(parse(" 3,1-2,2\n"), Some(vec![1, 2, 3]));
        assert_eq!((named(&[1]), named(&[1, 2])), ("CPU 1".into(), "CPUs 1-2".into()));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in ["x", "1-", "-1", "3-1", "0-4294967295", "0,,1", ",", "1;2", "99999999999"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}

//! Compares fresh counts with the file: which verb rings, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use crate::book::{Book, Row, Tools};

/// How much a verb's figure may rise, in per cent. Two counts of one program differ because hash
/// tables place entries at random: by 0.4 per cent at most so far.
pub(crate) const RISE_MAX: f64 = 2.0;

/// Instructions of each verb.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A difference from the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// The verb takes more than it may.
    Rose { verb: String, was: u64, is: u64 },
    /// The verb takes less. This is good, but a later rise could hide below the old figure.
    Fell { verb: String, was: u64, is: u64 },
    /// The verb was counted, and is not in the file.
    NotInFile(String),
    /// The verb is in the file, and was not counted.
    NotCounted(String),
    /// The verb's figure has no reason.
    NoReason(String),
    /// The verb's figure rose in the file, but its reason is still the old one.
    OldReason(String),
    /// The file was made with other tools, so a comparison shows nothing.
    OtherTools { file: Tools, here: Tools },
}

impl Finding {
    /// Whether the gate fails.
    pub(crate) fn rings(&self) -> bool {
        !matches!(self, Finding::Fell { .. })
    }
}

/// The change in per cent.
pub(crate) fn change(was: u64, is: u64) -> f64 {
    if was == is { 0.0 } else { (is as f64 - was as f64) * 100.0 / was as f64 }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const BLESS: &str = "write it with its reason: --bless \"REASON\"";
        match self {
            Finding::Rose { verb, was, is } => write!(
                f,
                "'{verb}' takes {is} instructions, and took {was}: {:+.1} %, at most {RISE_MAX:+} \
                 %; find the cause and mend it, or, if it must be so, {BLESS}",
                change(*was, *is)
            ),
            Finding::Fell { verb, was, is } => write!(
                f,
                "'{verb}' takes {is} instructions, and took {was}: {:+.1} %; {BLESS}, else a later \
                 rise hides below the old figure",
                change(*was, *is)
            ),
            Finding::NotInFile(verb) => write!(f, "'{verb}' has no figure in the file; {BLESS}"),
            Finding::NotCounted(verb) => write!(
                f,
                "'{verb}' stands in the file and was not counted; bring the verb back, or take its \
                 row out of the file"
            ),
            Finding::NoReason(verb) => write!(
                f,
                "'{verb}' has an empty 'why' in the file; say why its figure is what it is"
            ),
            Finding::OldReason(verb) => write!(
                f,
                "'{verb}' rose in the file, and its 'why' is still that of the figure before; say \
                 why it rose"
            ),
            Finding::OtherTools { file, here } => write!(
                f,
                "the figures are not comparable, so nothing is shown, which counts as failed: the \
                 file was made with [{file}], here are [{here}]; count the state before the change \
                 here, and {BLESS}"
            ),
        }
    }
}

/// The differences from the file. Verbs that were not asked for are ignored.
pub(crate) fn compare(
    book: &Book,
    tools: &Tools,
    counts: &Counts,
    is_asked: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if book.tools != *tools {
        findings.push(Finding::OtherTools { file: book.tools.clone(), here: tools.clone() });
    }
    let names: BTreeSet<&String> = book.verbs.keys().chain(counts.keys()).collect();
    for name in names.into_iter().filter(|name| is_asked(name)) {
        let verb = name.clone();
        let (row, is) = match (book.verbs.get(name), counts.get(name)) {
            (Some(row), Some(&is)) => (row, is),
            (None, _) => {
                findings.push(Finding::NotInFile(verb));
                continue;
            }
            (Some(_), None) => {
                findings.push(Finding::NotCounted(verb));
                continue;
            }
        };
        if row.why.trim().is_empty() {
            findings.push(Finding::NoReason(verb.clone()));
        }
        let was = row.instructions;
        match change(was, is) {
            // A difference that does not come from the program is not reported.
            _ if book.tools != *tools => {}
            more if more > RISE_MAX => findings.push(Finding::Rose { verb, was, is }),
            less if less < -RISE_MAX => findings.push(Finding::Fell { verb, was, is }),
            _ => {}
        }
    }
    findings
}

/// Verbs whose figure rose from one version of the file to the next, with the same reason.
pub(crate) fn unexplained(before: &Book, now: &Book) -> Vec<Finding> {
    let rose = |(name, row): &(&String, &Row)| {
        before.verbs.get(*name).is_some_and(|old| {
            row.why == old.why && change(old.instructions, row.instructions) > RISE_MAX
        })
    };
    now.verbs.iter().filter(rose).map(|(name, _)| Finding::OldReason(name.clone())).collect()
}

/// Whether a reason is given.
///
/// # Errors
/// The reason is empty.
pub(crate) fn check(reason: &str) -> Result<(), String> {
    match reason.trim() {
        "" => Err("--bless needs a reason: it stands beside each new figure".into()),
        _ => Ok(()),
    }
}

/// The file after these counts were accepted for this reason. A figure that is close to the old one
/// stays: otherwise many small rises would never ring. Verbs that were not counted are removed.
pub(crate) fn blessed(book: Option<&Book>, tools: &Tools, counts: &Counts, reason: &str) -> Book {
    let old = book.filter(|book| book.tools == *tools);
    let row = |(name, &instructions): (&String, &u64)| {
        let old = old.and_then(|book| book.verbs.get(name));
        let kept = old.filter(|old| change(old.instructions, instructions).abs() <= RISE_MAX);
        let new = || Row { instructions, why: reason.trim().to_owned() };
        (name.clone(), kept.cloned().unwrap_or_else(new))
    };
    Book { tools: tools.clone(), verbs: counts.iter().map(row).collect() }
}

#[cfg(test)]
mod tests;

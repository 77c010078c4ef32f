//! Why messages, stamps and calls of another host are not taken, and how often that was so.

use std::sync::atomic::{AtomicU64, Ordering};

use sinew_hosts::Malformed;

/// Why something that came in the name of another host is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The two hosts have not heard each other long enough yet.
    Early,
    /// It names another host or another port than the key under which it came.
    Misplaced,
    /// Without the seal of the hosts that share a secret.
    Unsealed,
    /// Not the bytes of a message of this port.
    Malformed,
    /// Its header is of another version.
    OtherHeader,
    /// It names no life of its sender.
    Lifeless,
    /// Of a life of that host that is not believed: of a second program with its name, or of a
    /// stranger.
    OtherLife,
    /// The sender runs another version of the graph.
    OtherVersion,
    /// Without a stamp of this host.
    Unstamped,
    /// With a stamp that this host has never sent.
    Forged,
    /// Taken already, or overtaken.
    Again,
    /// Its sequence is further ahead than the sender can be.
    Ahead,
}

/// All of them, in the order of the enum: the name in reports, and what the log says at the first
/// one of a host; empty: nothing, for it is no fault or is told elsewhere.
const ROWS: [(NotTaken, &str, &str); 12] = [
    (NotTaken::Early, "early", ""),
    (
        NotTaken::Misplaced,
        "misplaced",
        "a message that names another host or port than its key; it is dropped",
    ),
    (
        NotTaken::Unsealed,
        "unsealed",
        "a message that is not sealed with the secret of this graph's hosts ('key')",
    ),
    (NotTaken::Malformed, "malformed", "bytes that are no message of that port"),
    (
        NotTaken::OtherHeader,
        "other_header",
        "a message of another version of Sinew; run the same version on both hosts",
    ),
    (NotTaken::Lifeless, "lifeless", "a message with the life 0, which no host has"),
    (NotTaken::OtherLife, "other_life", ""),
    (NotTaken::OtherVersion, "other_version", ""),
    (NotTaken::Unstamped, "unstamped", "a message without a stamp of this host, as of a stranger"),
    (NotTaken::Forged, "forged", "a stamp that this host has never sent"),
    (NotTaken::Again, "again", "a message that was taken already, or was overtaken"),
    (NotTaken::Ahead, "ahead", "a sequence that is further ahead than that host can be"),
];

impl NotTaken {
    /// All reasons.
    pub fn all() -> impl Iterator<Item = NotTaken> {
        ROWS.into_iter().map(|it| it.0)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        ROWS[self as usize].1
    }
}

impl From<Malformed> for NotTaken {
    fn from(error: Malformed) -> NotTaken {
        match error {
            Malformed::Version(_) => NotTaken::OtherHeader,
            Malformed::Length { .. } | Malformed::Magic | Malformed::Echoes(_) => {
                NotTaken::Malformed
            }
        }
    }
}

/// How often each reason was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotTakenCounts([u64; ROWS.len()]);

impl NotTakenCounts {
    /// For one reason.
    pub fn of(&self, refusal: NotTaken) -> u64 {
        self.0[refusal as usize]
    }

    /// All refusals in the narrow sense: without what came too early or at the wrong place.
    pub fn refused(&self) -> u64 {
        let all = NotTaken::all().skip(NotTaken::Unsealed as usize);
        all.map(|it| self.of(it)).fold(0, u64::saturating_add)
    }
}

/// The counts of one host, to be added to from any thread.
#[derive(Debug, Default)]
pub(crate) struct NotTakenTally([AtomicU64; ROWS.len()]);

impl NotTakenTally {
    /// Counts one. Returns what the log is to say of it: only of the first one of its reason.
    pub(crate) fn note(&self, refusal: NotTaken) -> Option<&'static str> {
        // Counts; they order nothing.
        let before = self.0[refusal as usize].fetch_add(1, Ordering::Relaxed);
        let text = ROWS[refusal as usize].2;
        (before == 0 && !text.is_empty()).then_some(text)
    }

    pub(crate) fn counts(&self) -> NotTakenCounts {
        NotTakenCounts(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_row_and_is_told_once() {
        let refused = NotTakenTally::default();
        for (at, refusal) in NotTaken::all().enumerate() {
            assert_eq!(refusal as usize, at, "{refusal:?} stands in its place");
            let first = refused.note(refusal);
            assert_eq!(first.is_some(), !ROWS[at].2.is_empty());
            assert_eq!(refused.note(refusal), None);
            assert_eq!(refused.counts().of(refusal), 2);
        }
        assert_eq!(refused.counts().refused(), 2 * (ROWS.len() as u64 - 2));
    }
}

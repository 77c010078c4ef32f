//! Which stamps a message gets, at the host that sends it.

use crate::header::{ECHOES_MAX, Echo};

/// The stamps of other hosts that were heard.
///
/// A sender that was stopped must not give an old message a new stamp. If it were stopped for ten
/// seconds between hearing a stamp and reading a message that waits, that message would seem young.
/// So the sender works in turns: it [takes](Stamps::begin) the current stamps, reads and sends all
/// messages with the stamps of the turn *before*, and only then replaces these by the taken ones. A
/// message that is read in a turn was written after the reading of the turn before had begun, and
/// so after the stamps in it were heard.
#[derive(Debug, Default)]
pub struct Stamps {
    /// The stamps for the messages of this turn.
    current: Vec<Echo>,
    /// The newest stamp of each host.
    heard: Vec<Echo>,
}

/// The stamps that were known when a turn began.
#[derive(Debug)]
#[must_use = "a turn that does not end sends old stamps for ever"]
pub struct Turn(Vec<Echo>);

impl Stamps {
    /// Takes the last stamp that another host has sent. It may be older than the one before: a
    /// forged one must not stand in the way of the true ones. With more than [`ECHOES_MAX`] hosts,
    /// the ones that come last are ignored.
    pub fn hear(&mut self, echo: Echo) {
        let has_room = self.heard.len() < ECHOES_MAX;
        match self.heard.iter_mut().find(|it| it.host == echo.host) {
            Some(it) => *it = echo,
            None if has_room => self.heard.push(echo),
            None => {}
        }
    }

    /// Begins a turn, before the first message is read.
    pub fn begin(&self) -> Turn {
        Turn(self.heard.clone())
    }

    /// The stamps for the messages that are read in this turn.
    pub fn echoes(&self) -> &[Echo] {
        &self.current
    }

    /// Ends the turn, after the last message was read.
    pub fn end(&mut self, turn: Turn) {
        self.current = turn.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(stamp_ns: u64) -> Echo {
        Echo { host: 1, life: 1, stamp_ns }
    }

    #[test]
    fn the_last_one_that_was_heard_counts() {
        let mut stamps = Stamps::default();
        let newest = |stamps: &mut Stamps| {
            let turn = stamps.begin();
            stamps.end(turn);
            stamps.echoes().to_vec()
        };
        assert_eq!(newest(&mut stamps), []);
        for stamp_ns in [5, 9, 7] {
            stamps.hear(echo(stamp_ns));
        }
        assert_eq!(newest(&mut stamps), [echo(7)]);
        let anew = Echo { life: 2, ..echo(3) };
        stamps.hear(anew);
        assert_eq!(newest(&mut stamps), [anew]);
        (0..1000).for_each(|host| stamps.hear(Echo { host, ..anew }));
        assert_eq!(newest(&mut stamps).len(), ECHOES_MAX);
    }

    /// A sender that is stopped at every place of its turn, one after another, while a message
    /// waits and stamps arrive. The stamp that the message gets must be older than the message.
    #[test]
    fn who_stands_still_makes_no_old_message_young() {
        for place in 0..4 {
            let mut stamps = Stamps::default();
            let (mut now_ns, mut written_ns) = (0, None);
            for turn in 0..6 {
                let stands = |at: usize, now_ns: &mut u64, stamps: &mut Stamps| {
                    *now_ns += if turn == 3 && at == place { 10_000_000_000 } else { 1_000_000 };
                    stamps.hear(echo(*now_ns));
                };
                stands(0, &mut now_ns, &mut stamps);
                let begun = stamps.begin();
                stands(1, &mut now_ns, &mut stamps);
                // The waiting message is read now, with the stamps of the turn before.
                if let (Some(written_ns), [echo]) = (written_ns.take(), stamps.echoes()) {
                    assert!(echo.stamp_ns <= written_ns, "in turn {turn}, place {place}");
                }
                // A node writes just after the last poll.
                written_ns = Some(now_ns);
                stands(2, &mut now_ns, &mut stamps);
                stamps.end(begun);
                stands(3, &mut now_ns, &mut stamps);
            }
        }
    }
}

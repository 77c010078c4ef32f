//! Which picture is shown now. The only place that decides what is late, dropped or repeated.
//!
//! A picture is *due* when the sound has reached its position. Of the pictures that are due the
//! newest is shown; the older ones are *dropped*. A picture that is shown more than half of its
//! duration after it was due is *late*. If the next picture is due and not there, the previous one
//! stays, and for each of its durations that passes like this it is *repeated*.

use sinew_media::PlayState;

use super::clock::Clock;

/// Duration of a picture if none is given, ns: 25 per second.
const DURATION_NS: u64 = 40_000_000;
/// Longest duration of a picture that is believed, ns.
const DURATION_NS_MAX: u64 = 10_000_000_000;
/// Time without a new picture, while the sound goes on, after which the picture is *frozen*, ns.
const FROZEN_NS: u64 = 500_000_000;

/// A picture that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Its position in the film.
    pub(crate) position_ns: u64,
    /// Its duration; 0: not known.
    pub(crate) duration_ns: u64,
    /// The number of the last order that it follows.
    pub(crate) serial: u32,
}

impl Candidate {
    fn lasts_ns(&self) -> u64 {
        match self.duration_ns {
            0 => DURATION_NS,
            known => known.min(DURATION_NS_MAX),
        }
    }

    fn ends_ns(&self) -> u64 {
        self.position_ns.saturating_add(self.lasts_ns())
    }
}

/// What happens to a picture that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays where it is.
    Waits,
    /// It is shown now.
    Shows,
    /// It will not be shown.
    Goes,
}

/// What happened to the pictures so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Shown.
    pub(crate) shown: u64,
    /// Of these, later than half of their duration.
    pub(crate) late: u64,
    /// Not shown, because a newer one was due.
    pub(crate) dropped: u64,
    /// Durations of a picture that passed without the next one.
    pub(crate) repeated: u64,
    /// Not shown, because of a jump, or because it had been shown already.
    pub(crate) stale: u64,
}

/// A picture that was shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Showing {
    /// Which picture.
    pub(crate) candidate: Candidate,
    /// Position of the sound minus position of the picture, ns; `None`: no sound was heard.
    pub(crate) difference_ns: Option<i64>,
    /// Whether it was late.
    pub(crate) is_late: bool,
}

/// Decides for each picture.
#[derive(Debug, Default)]
pub(crate) struct Presenter {
    /// The number of the last order.
    serial: u32,
    shown: Option<Candidate>,
    /// When it was shown, and how often it was repeated since.
    shown_at_ns: u64,
    repeats: u64,
    /// Pictures that end before this position are only decoded to reach the target of a jump.
    target_ns: u64,
    /// Since when pictures are due and do not come.
    waits_since_ns: Option<u64>,
    tally: Tally,
}

impl Presenter {
    /// What happened to the pictures so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// The number of the last order.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// The picture that is shown, if it follows the last order.
    pub(crate) fn shown(&self) -> Option<&Candidate> {
        self.shown.as_ref()
    }

    /// A jump: only pictures that follow this order are shown from now on.
    pub(crate) fn go_to(&mut self, serial: u32, target_ns: u64) {
        self.serial = serial;
        (self.target_ns, self.shown, self.repeats) = (target_ns, None, 0);
        self.waits_since_ns = None;
    }

    /// Continues with orders that another life of this node has given.
    pub(crate) fn adopt(&mut self, serial: u32) {
        if serial.wrapping_sub(self.serial).cast_signed() > 0 {
            self.go_to(serial, 0);
        }
    }

    /// The fate of each picture that waits, in the order of `waiting`.
    pub(crate) fn judge(
        &mut self,
        waiting: impl Iterator<Item = Candidate> + Clone,
        clock: &Clock,
        now_ns: u64,
        mut fate: impl FnMut(usize, Fate),
    ) {
        let heard_ns = self.heard_ns(clock, now_ns);
        let is_due = |it: &Candidate| self.is_current(it) && it.position_ns <= heard_ns;
        let due = waiting.clone().enumerate().filter(|(_, it)| is_due(it));
        let newest = due.max_by_key(|(_, it)| it.position_ns);
        let newest = newest.or_else(|| self.first(waiting.clone(), clock));
        let newest = newest.map(|(at, it)| (at, it.position_ns));
        let fates: Vec<_> = waiting.map(|it| self.fate_of(&it, newest, heard_ns)).collect();
        for (at, (fated, is_dropped)) in fates.into_iter().enumerate() {
            let fated =
                if newest.is_some_and(|(shows, _)| shows == at) { Fate::Shows } else { fated };
            match (fated, is_dropped) {
                (Fate::Goes, true) => self.tally.dropped += 1,
                (Fate::Goes, false) => self.tally.stale += 1,
                _ => {}
            }
            fate(at, fated);
        }
    }

    /// What happens to a picture, and whether it counts as dropped.
    fn fate_of(&self, it: &Candidate, newest: Option<(usize, u64)>, heard_ns: u64) -> (Fate, bool) {
        let is_old = self.shown.is_some_and(|shown| it.position_ns <= shown.position_ns);
        match () {
            () if it.serial.wrapping_sub(self.serial).cast_signed() > 0 => (Fate::Waits, false),
            () if it.serial != self.serial || is_old => (Fate::Goes, false),
            () if self.leads_there(it) => (Fate::Goes, false),
            () if newest.is_some() && it.position_ns <= heard_ns => (Fate::Goes, true),
            () => (Fate::Waits, false),
        }
    }

    /// The first picture of a film or after a jump, if the sound waits for it. It need not be due:
    /// there may be no picture exactly where the sound begins.
    fn first(
        &self,
        waiting: impl Iterator<Item = Candidate>,
        clock: &Clock,
    ) -> Option<(usize, Candidate)> {
        let is_heard = clock.serial == self.serial && clock.moves();
        let waiting = waiting.enumerate().filter(|(_, it)| self.is_current(it));
        let is_first = self.shown.is_none() && !is_heard;
        waiting.filter(|_| is_first).min_by_key(|(_, it)| it.position_ns)
    }

    /// Whether it may be shown at all: it follows the last order, and is after the shown picture.
    fn is_current(&self, it: &Candidate) -> bool {
        let is_newer = self.shown.is_none_or(|shown| it.position_ns > shown.position_ns);
        it.serial == self.serial && is_newer && !self.leads_there(it)
    }

    /// Whether it is only decoded because later pictures need it.
    fn leads_there(&self, it: &Candidate) -> bool {
        it.ends_ns() <= self.target_ns
    }

    /// The position that is heard; before the first sound after an order, the target of the order.
    fn heard_ns(&self, clock: &Clock, now_ns: u64) -> u64 {
        match clock.serial == self.serial {
            true => clock.position_ns(now_ns).max(self.target_ns),
            false => self.target_ns,
        }
    }

    /// When the next decision may come, ns from now on.
    pub(crate) fn left_ns(
        &self,
        waiting: impl Iterator<Item = Candidate>,
        clock: &Clock,
        now_ns: u64,
    ) -> Option<u64> {
        let next = waiting.filter(|it| self.is_current(it)).map(|it| it.position_ns).min()?;
        if next <= self.heard_ns(clock, now_ns) {
            return Some(0);
        }
        (clock.serial == self.serial).then(|| clock.left_ns(next, now_ns)).flatten()
    }

    /// The picture was shown at this time.
    pub(crate) fn show(&mut self, candidate: Candidate, clock: &Clock, now_ns: u64) -> Showing {
        let heard = clock.serial == self.serial && clock.moves();
        let difference_ns = heard
            .then(|| clock.position_ns(now_ns).cast_signed() - candidate.position_ns.cast_signed());
        let half_ns = (candidate.lasts_ns() / 2).cast_signed();
        let is_late = difference_ns.is_some_and(|difference| difference > half_ns);
        self.tally.shown += 1;
        self.tally.late += u64::from(is_late);
        (self.shown, self.shown_at_ns, self.repeats) = (Some(candidate), now_ns, 0);
        self.waits_since_ns = None;
        Showing { candidate, difference_ns, is_late }
    }

    /// To be called when nothing is shown: counts the durations for which the picture stays
    /// although the next one is due.
    pub(crate) fn stand(&mut self, clock: &Clock, now_ns: u64) {
        let is_heard = clock.serial == self.serial && clock.state == PlayState::Playing;
        if !is_heard {
            self.waits_since_ns = None;
            return;
        }
        let Some(shown) = self.shown else {
            self.waits_since_ns.get_or_insert(now_ns);
            return;
        };
        let past = clock.position_ns(now_ns).saturating_sub(shown.position_ns);
        // Half a duration more, because the clock and the film differ a little.
        let stood = past.saturating_sub(shown.lasts_ns() / 2) / shown.lasts_ns();
        if stood > self.repeats {
            self.tally.repeated += stood - self.repeats;
            self.repeats = stood;
            self.waits_since_ns.get_or_insert(now_ns);
        }
    }

    /// For how long the picture has been frozen: the sound goes on, and no picture comes.
    pub(crate) fn frozen_ns(&self, now_ns: u64) -> Option<u64> {
        let since_ns = self.waits_since_ns?;
        Some(now_ns.saturating_sub(since_ns)).filter(|&frozen_ns| frozen_ns >= FROZEN_NS)
    }
}

#[cfg(test)]
mod tests;

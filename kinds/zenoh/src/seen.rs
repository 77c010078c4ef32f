//! What is known of another host.
//!
//! A host is believed by the *life* in its stamp frames: the number that it drew when it started. A
//! new life is believed only when it answers: when it echoes a stamp that this host has sent since
//! that life was first seen. And only when the life before is silent. So neither a copy of what was
//! said before nor a second program with the same name takes a host's place while the host speaks.

use std::time::Duration;

use sinew_hosts::{ClockEstimate, Echo, InOrder, Misordered, SentStamps};

use crate::frame::StampFrame;
use crate::not_taken::NotTaken;

/// A host that was not heard for this long is silent: five times the longest time between stamps.
const SILENT_NS: u64 = Duration::from_millis(500).as_nanos() as u64;
/// Two lives that are heard side by side for this long are two programs. A host that was started
/// again is heard in both for a shorter time.
const SIDE_BY_SIDE_NS: u64 = Duration::from_millis(300).as_nanos() as u64;
/// A stamp that another host has held for no longer than this came just now.
const JUST_NOW_NS: u64 = Duration::from_millis(250).as_nanos() as u64;
/// Lives of a host that wait to be believed, at most; more are ignored until one of them is silent.
const RIVALS_MAX: usize = 2;

/// Another host, as this one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSeen {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub state: HostState,
    /// Time since its last stamp came, ns.
    pub silent_ns: Option<u64>,
    /// Time there and back, without the time that the other side kept the stamp, ns. It is from the
    /// last of its stamps that had one of ours in it.
    pub round_trip_ns: Option<u64>,
    /// How its clock differs from this host's; for logs and recordings.
    pub clock: Option<PeerClock>,
    /// Whether a connection to it is open.
    pub is_linked: bool,
    /// Whether its token is there. That is zenoh's own view: a host whose program stands still
    /// keeps its token.
    pub is_alive: bool,
}

/// How a clock differs from the one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClock {
    /// The difference of the monotonic clocks.
    pub estimate: ClockEstimate,
    /// The other's clock of day less the one here, ns; as certain as the estimate.
    pub day_offset_ns: i64,
}

/// Whether a host is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// It was never believed.
    Unheard,
    /// It says stamps.
    Heard,
    /// It has said some, and none for half a second.
    Silent,
    /// Its links between hosts are of another version: nothing of it is taken, and it takes
    /// nothing of us.
    OtherVersion(u64),
    /// Two programs have its name, or this host's. The one that was there first is obeyed.
    Two,
}

impl HostState {
    /// Whether it is there and speaks the same version.
    pub fn is_heard(self) -> bool {
        matches!(self, HostState::Heard | HostState::Two)
    }
}

/// Another host, as its frames come.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The life that is believed.
    life: Option<Life>,
    /// Other lives, which wait until that one is silent.
    rivals: Vec<Life>,
    /// Two lives of it are heard.
    two_of_it: SideBySide,
    /// It hears two lives of this host.
    two_of_us: SideBySide,
    round_trip_ns: Option<u64>,
    /// Its clock in its present life.
    clock: Option<PeerClock>,
    pub(crate) is_linked: bool,
    pub(crate) is_alive: bool,
}

/// One life of it.
#[derive(Debug)]
struct Life {
    order: InOrder,
    /// When it was seen first.
    first_ns: u64,
    /// Whether it has echoed a stamp that was sent since then.
    has_answered: bool,
    /// Its last stamp, when that came, and the version.
    echo: Echo,
    at_ns: u64,
    version: u64,
}

impl Life {
    fn is_silent(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.at_ns) > SILENT_NS
    }

    /// Takes one more frame, with the stamp of this host in it.
    fn take(&mut self, frame: &StampFrame, own: Option<u64>, now_ns: u64) -> Result<(), NotTaken> {
        let place = (self.echo.life, frame.header.sequence);
        self.order.take(place, own.unwrap_or(0), now_ns).map_err(|error| match error {
            Misordered::Old => NotTaken::Again,
            Misordered::Ahead => NotTaken::Ahead,
        })?;
        if own.is_some_and(|stamp_ns| stamp_ns >= self.first_ns) {
            self.has_answered = true;
        }
        self.echo.stamp_ns = frame.stamp_ns;
        (self.at_ns, self.version) = (now_ns, frame.version);
        Ok(())
    }
}

impl Seen {
    /// A frame of the host with number `host` came. `own` is the number and the life of this host;
    /// `now` is the time by the clock of stamps, and by the clock of day.
    ///
    /// # Errors
    /// Why the frame does not count. One of a life that is not believed yet is no error. One with a
    /// stamp that was never sent counts as one without a stamp: the other host may have believed a
    /// forged one, and must hear ours all the same.
    pub(crate) fn hear(
        &mut self,
        host: u64,
        frame: &StampFrame,
        (own, sent): ((u64, u64), &SentStamps),
        now: (u64, u64),
    ) -> Result<(), NotTaken> {
        let (now_ns, life) = (now.0, frame.header.life);
        let echoed = frame.header.stamp_of(own);
        let stamp = echoed.filter(|it| sent.has(*it));
        if !self.is_believed(life) {
            self.meet(host, frame, stamp, now_ns)?;
        }
        let Some(believed) = self.life.as_mut().filter(|it| it.echo.life == life) else {
            return Ok(());
        };
        believed.take(frame, stamp, now_ns)?;
        let is_rival = |it: &Life| it.has_answered && !it.is_silent(now_ns);
        if self.rivals.iter().any(is_rival) {
            self.two_of_it.note(now_ns);
        }
        if stamp.is_none() && echoed.is_some() {
            return Err(NotTaken::Forged);
        }
        self.look_at_echoes(frame, own, now);
        Ok(())
    }

    fn is_believed(&self, life: u64) -> bool {
        self.life.as_ref().is_some_and(|it| it.echo.life == life)
    }

    /// A frame of a life that is not believed. If the life has answered and the one before is
    /// silent, it is believed from now on.
    fn meet(
        &mut self,
        host: u64,
        frame: &StampFrame,
        stamp: Option<u64>,
        now_ns: u64,
    ) -> Result<(), NotTaken> {
        let life = frame.header.life;
        self.rivals.retain(|it| it.echo.life == life || !it.is_silent(now_ns));
        let known = self.rivals.iter().position(|it| it.echo.life == life);
        let at = match known {
            Some(at) => at,
            None if self.rivals.len() < RIVALS_MAX => {
                self.rivals.push(Life {
                    order: InOrder::default(),
                    first_ns: now_ns,
                    has_answered: false,
                    echo: Echo { host, life, stamp_ns: 0 },
                    at_ns: now_ns,
                    version: frame.version,
                });
                self.rivals.len() - 1
            }
            None => return Err(NotTaken::OtherLife),
        };
        let has_place = self.life.as_ref().is_none_or(|it| it.is_silent(now_ns));
        let own = stamp.filter(|stamp_ns| *stamp_ns >= self.rivals[at].first_ns);
        if has_place && own.is_some() {
            // The frame is taken as one of the believed life.
            self.life = Some(self.rivals.remove(at));
            self.clock = None;
            return Ok(());
        }
        self.rivals[at].take(frame, stamp, now_ns)?;
        match has_place || !self.rivals[at].has_answered {
            true => Ok(()),
            false => Err(NotTaken::OtherLife),
        }
    }

    /// What its echoes show: the round trip, its clock, a second program with this host's name.
    fn look_at_echoes(&mut self, frame: &StampFrame, own: (u64, u64), now: (u64, u64)) {
        let now_ns = now.0;
        for (echo, held_ns) in frame.header.echoes.iter().zip(&frame.held_ns) {
            if (echo.host, echo.life) == own {
                let there_and_back = now_ns.checked_sub(echo.stamp_ns);
                self.round_trip_ns = there_and_back.map(|it| it.saturating_sub(*held_ns));
                let estimate = ClockEstimate::of(echo.stamp_ns, *held_ns, frame.stamp_ns, now_ns);
                self.clock = estimate.map(|it| self.renewed(it, frame, now)).or(self.clock);
            } else if echo.host == own.0 && *held_ns <= JUST_NOW_NS {
                self.two_of_us.note(now_ns);
            }
        }
    }

    /// What is known of its clock, with one more estimate.
    fn renewed(&self, later: ClockEstimate, frame: &StampFrame, now: (u64, u64)) -> PeerClock {
        let of_day = |unix_ns: u64, monotonic_ns: u64| unix_ns.wrapping_sub(monotonic_ns) as i64;
        let there_ns = of_day(frame.header.sent_unix_ns, frame.stamp_ns);
        let day_offset_ns =
            later.offset_ns.wrapping_add(there_ns.wrapping_sub(of_day(now.1, now.0)));
        let later = PeerClock { estimate: later, day_offset_ns };
        let is_kept = |it: &PeerClock| it.estimate.or_later(later.estimate) == it.estimate;
        self.clock.filter(is_kept).unwrap_or(later)
    }

    /// Whether what comes from a life of it may be taken.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn allows(&self, life: u64, version: u64, now_ns: u64) -> Result<(), NotTaken> {
        match &self.life {
            Some(it) if it.echo.life == life && it.version == version => Ok(()),
            Some(it) if it.echo.life == life => Err(NotTaken::OtherVersion),
            Some(it) if it.is_silent(now_ns) => Err(NotTaken::Early),
            None => Err(NotTaken::Early),
            // It may be starting again.
            Some(_) if self.is_waiting(life) && !self.two_of_it.is_so(now_ns) => {
                Err(NotTaken::Early)
            }
            Some(_) => Err(NotTaken::OtherLife),
        }
    }

    fn is_waiting(&self, life: u64) -> bool {
        self.rivals.iter().any(|it| it.echo.life == life)
    }

    /// The last stamp of the believed life and when that came, if it has said this version.
    pub(crate) fn echo(&self, version: u64) -> Option<(Echo, u64)> {
        let life = self.life.as_ref().filter(|it| it.version == version);
        life.map(|it| (it.echo, it.at_ns))
    }

    /// The stamps that are to be echoed in frames of stamps, with when they came: also those of
    /// lives that wait, so that they can answer.
    pub(crate) fn echoes(&self) -> impl Iterator<Item = (Echo, u64)> {
        self.life.iter().chain(&self.rivals).map(|it| (it.echo, it.at_ns))
    }

    /// Whether it was heard just now.
    pub(crate) fn is_heard(&self, now_ns: u64) -> bool {
        self.life.as_ref().is_some_and(|it| !it.is_silent(now_ns))
    }

    /// Time since it was heard, ns.
    pub(crate) fn silent_ns(&self, now_ns: u64) -> Option<u64> {
        self.life.as_ref().map(|it| now_ns.saturating_sub(it.at_ns))
    }

    /// Whether it is there.
    pub(crate) fn state(&self, version: u64, now_ns: u64) -> HostState {
        match &self.life {
            None => HostState::Unheard,
            Some(it) if it.is_silent(now_ns) => HostState::Silent,
            Some(it) if it.version != version => HostState::OtherVersion(it.version),
            _ if self.two_of_it.is_so(now_ns) || self.two_of_us.is_so(now_ns) => HostState::Two,
            _ => HostState::Heard,
        }
    }

    pub(crate) fn show(&self, name: &str, version: u64, now_ns: u64) -> HostSeen {
        HostSeen {
            name: name.into(),
            state: self.state(version, now_ns),
            silent_ns: self.silent_ns(now_ns),
            round_trip_ns: self.round_trip_ns,
            clock: self.clock,
            is_linked: self.is_linked,
            is_alive: self.is_alive,
        }
    }
}

/// Whether two lives are heard side by side.
#[derive(Debug, Default)]
struct SideBySide {
    /// Since when, and when the last time.
    noted_ns: Option<(u64, u64)>,
}

impl SideBySide {
    /// Both were heard just now.
    fn note(&mut self, now_ns: u64) {
        let since = self.noted_ns.filter(|it| now_ns.saturating_sub(it.1) <= SILENT_NS);
        self.noted_ns = Some((since.map_or(now_ns, |it| it.0), now_ns));
    }

    fn is_so(&self, now_ns: u64) -> bool {
        self.noted_ns.is_some_and(|(since_ns, last_ns)| {
            last_ns - since_ns >= SIDE_BY_SIDE_NS && now_ns.saturating_sub(last_ns) <= SILENT_NS
        })
    }
}

#[cfg(test)]
mod tests;

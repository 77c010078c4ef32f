//! What is known of the other hosts.

use std::collections::VecDeque;
use std::time::Duration;

use sinew_hosts::{ClockEstimate, Echo};

use crate::frame::StampFrame;

/// A host that was not heard for this long is silent: five times the longest time between stamps.
const SILENT: Duration = Duration::from_millis(500);
/// Lives of a host that are over and still remembered.
const OVER_MAX: usize = 16;

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
    /// It has said no stamp yet.
    Unheard,
    /// It says stamps.
    Heard,
    /// It has said some, and none for half a second.
    Silent,
    /// Its links between hosts are of another version: nothing of it is taken, and it takes
    /// nothing of us.
    OtherVersion(u64),
}

/// Another host, as its frames come.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Its life, and the sequence of its last frame.
    last: Option<(u64, u64)>,
    /// Its earlier lives.
    over: VecDeque<u64>,
    /// Its last stamp, when that came, and the version.
    heard: Option<(Echo, u64, u64)>,
    round_trip_ns: Option<u64>,
    /// Its clock in its present life.
    clock: Option<PeerClock>,
    pub(crate) is_linked: bool,
    pub(crate) is_alive: bool,
}

impl Seen {
    /// A frame of the host with number `host` came. `own` is the number and the life of this host;
    /// `now` is the time by the clock of stamps, and by the clock of day. Returns whether the frame
    /// counts: one that was overtaken, or of a life that is over, does not.
    pub(crate) fn hear(
        &mut self,
        host: u64,
        frame: &StampFrame,
        own: (u64, u64),
        now: (u64, u64),
    ) -> bool {
        let (now_ns, _) = now;
        let (life, sequence) = (frame.header.life, frame.header.sequence);
        match self.last {
            _ if self.over.contains(&life) => return false,
            Some((last, before)) if last == life && sequence <= before => return false,
            Some((last, _)) if last != life => {
                if self.over.len() == OVER_MAX {
                    self.over.pop_front();
                }
                self.over.push_back(last);
                self.clock = None;
            }
            _ => {}
        }
        self.last = Some((life, sequence));
        let echo = Echo { host, life, stamp_ns: frame.stamp_ns };
        self.heard = Some((echo, now_ns, frame.version));
        let echoes = frame.header.echoes.iter().zip(&frame.held_ns);
        for (echo, held_ns) in echoes.filter(|(echo, _)| (echo.host, echo.life) == own) {
            let there_and_back = now_ns.checked_sub(echo.stamp_ns);
            self.round_trip_ns = there_and_back.map(|it| it.saturating_sub(*held_ns));
            let estimate = ClockEstimate::of(echo.stamp_ns, *held_ns, frame.stamp_ns, now_ns);
            self.clock = estimate.map(|it| self.renewed(it, frame, now)).or(self.clock);
        }
        true
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

    /// Its life, if it has said this version.
    pub(crate) fn joined(&self, version: u64) -> Option<u64> {
        self.echo(version).map(|(echo, _)| echo.life)
    }

    /// Its last stamp and when that came, if it has said this version.
    pub(crate) fn echo(&self, version: u64) -> Option<(Echo, u64)> {
        self.heard.filter(|it| it.2 == version).map(|(echo, at_ns, _)| (echo, at_ns))
    }

    /// Time since it was heard, ns.
    pub(crate) fn silent_ns(&self, now_ns: u64) -> Option<u64> {
        self.heard.map(|it| now_ns.saturating_sub(it.1))
    }

    pub(crate) fn show(&self, name: &str, version: u64, now_ns: u64) -> HostSeen {
        let silent_ns = self.silent_ns(now_ns);
        let state = match (self.heard, silent_ns) {
            (Some((.., other)), _) if other != version => HostState::OtherVersion(other),
            (_, Some(silent_ns)) if u128::from(silent_ns) > SILENT.as_nanos() => HostState::Silent,
            (_, Some(_)) => HostState::Heard,
            (_, None) => HostState::Unheard,
        };
        HostSeen {
            name: name.into(),
            state,
            silent_ns,
            round_trip_ns: self.round_trip_ns,
            clock: self.clock,
            is_linked: self.is_linked,
            is_alive: self.is_alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_hosts::MessageHeader;

    use super::*;

    const OWN: (u64, u64) = (1, 10);

    fn frame(life: u64, sequence: u64, echo: Option<(u64, u64)>) -> StampFrame {
        let echoes = echo.map(|it| Echo { host: OWN.0, life: OWN.1, stamp_ns: it.0 });
        let held_ns = echo.map(|it| it.1).into_iter().collect();
        let header =
            MessageHeader { life, sequence, sent_unix_ns: 0, echoes: Vec::from_iter(echoes) };
        StampFrame { header, stamp_ns: sequence * 100, version: 3, held_ns }
    }

    #[test]
    fn a_round_trip_is_without_what_the_other_side_kept() {
        let mut seen = Seen::default();
        assert!(seen.hear(2, &frame(5, 1, Some((1_000, 300))), OWN, (1_500, 2_000)));
        let shown = seen.show("b", 3, 2_000);
        assert_eq!((shown.round_trip_ns, shown.silent_ns), (Some(200), Some(500)));
        assert_eq!(shown.state, HostState::Heard);
        // It said 100 in the middle of the way back, 1400 here; and 0 by its clock of day: 1900.
        let estimate = ClockEstimate { at_ns: 1_500, offset_ns: -1_300, uncertainty_ns: 100 };
        assert_eq!(shown.clock, Some(PeerClock { estimate, day_offset_ns: -1_900 }));
        assert!(seen.hear(2, &frame(5, 2, Some((1_600, 0))), OWN, (1_900, 2_400)));
        assert_eq!(seen.show("b", 3, 2_000).clock, shown.clock, "a worse one changes nothing");
        assert_eq!(seen.show("b", 4, 2_000).state, HostState::OtherVersion(3));
        assert_eq!(seen.show("b", 3, 1_000_000_000).state, HostState::Silent);
        assert_eq!(Seen::default().show("b", 3, 9).state, HostState::Unheard);
    }

    #[test]
    fn what_was_overtaken_or_is_of_an_earlier_life_changes_nothing() {
        let mut seen = Seen::default();
        assert!(seen.hear(2, &frame(5, 2, None), OWN, (1, 0)));
        assert!(!seen.hear(2, &frame(5, 2, None), OWN, (2, 0)));
        assert!(!seen.hear(2, &frame(5, 1, None), OWN, (2, 0)));
        assert!(seen.hear(2, &frame(6, 1, None), OWN, (3, 0)));
        assert!(!seen.hear(2, &frame(5, 9, None), OWN, (4, 0)), "a replay of the life before");
        assert_eq!((seen.joined(3), seen.joined(4)), (Some(6), None));
        assert_eq!(seen.echo(3), Some((Echo { host: 2, life: 6, stamp_ns: 100 }, 3)));
    }
}

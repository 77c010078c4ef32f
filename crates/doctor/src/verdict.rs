//! The verdict: what the latest wake-up allows.

use sinew_spec::duration_text;

use crate::latency::Latency;

/// A wake-up that is late by less than this part of the period is lost among the graph's own
/// variations.
const WITH_ROOM: u64 = 10;
/// If wake-ups are late by less than this part, the nodes still have half of every period.
const TIGHT: u64 = 2;

/// Whether this machine can run the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Can {
    /// Late by a tenth of the period at most.
    WithRoom,
    /// Late by half of the period at most.
    Tight,
    /// Later than that.
    No,
    /// The threads were not realtime threads; what they measured then says nothing.
    Refused,
}

/// The verdict and what it rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) can: Can,
    /// The latest of all wake-ups, ours and cyclictest's.
    pub(crate) max_ns: u64,
    /// How many wake-ups there were.
    pub(crate) n: u64,
    pub(crate) period_ns: u64,
}

impl Verdict {
    /// Judged by the maximum, and by nothing else.
    pub(crate) fn of(latency: &Latency, period_ns: u64) -> Verdict {
        let beside = latency.beside.as_ref().ok().map(|beside| &beside.seen.all);
        let all = || [Some(&latency.seen.all), beside].into_iter().flatten();
        let max_ns = all().filter_map(|seen| seen.max()).max().unwrap_or(u64::MAX);
        let n = all().map(|seen| seen.n()).sum();
        let can = if latency.is_realtime { judge(max_ns, period_ns) } else { Can::Refused };
        Verdict { can, max_ns, n, period_ns }
    }

    /// Whether the machine can run the graph at all.
    pub(crate) fn is_yes(self) -> bool {
        matches!(self.can, Can::WithRoom | Can::Tight)
    }

    /// The shortest periods that such a maximum allows: with room, and tight.
    pub(crate) fn periods_ns(self) -> (u64, u64) {
        let allows = |part| round_up(self.max_ns.saturating_mul(part));
        (allows(WITH_ROOM), allows(TIGHT))
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self.can {
            Can::WithRoom => "yes, with room",
            Can::Tight => "yes, but tight",
            Can::No | Can::Refused => "no",
        }
    }

    /// Why.
    pub(crate) fn text(self) -> String {
        if self.can == Can::Refused {
            return "SCHED_FIFO or a CPU was refused, so these are wake-ups that any program gets, \
                    and no promise follows from them; mend 'rtprio' first, or, if that is good, \
                    look at 'cgroup RT share' and 'seccomp'"
                .into();
        }
        let period = duration_text(self.period_ns);
        let max = duration_text(self.max_ns.next_multiple_of(1000));
        let (under, part) = match self.can {
            Can::WithRoom => ("under", "a tenth"),
            Can::Tight => ("over a tenth but under", "half"),
            Can::No | Can::Refused => ("over", "half"),
        };
        let (room, tight) = self.periods_ns();
        format!(
            "the latest of {} wake-ups came after {max}, {under} {part} of the period of {period}; \
             with such a maximum a period of {} is comfortable, and {} is the minimum",
            self.n,
            duration_text(room),
            duration_text(tight)
        )
    }
}

fn judge(max_ns: u64, period_ns: u64) -> Can {
    match max_ns {
        max if max <= period_ns / WITH_ROOM => Can::WithRoom,
        max if max <= period_ns / TIGHT => Can::Tight,
        _ => Can::No,
    }
}

/// Rounds up to two digits and whole microseconds: more would claim to know the next maximum.
fn round_up(ns: u64) -> u64 {
    let digits = ns.max(1).ilog10();
    let unit = 10_u64.pow(digits.saturating_sub(1)).max(1000);
    ns.checked_next_multiple_of(unit).unwrap_or(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_judged_by_the_period() {
        let judged = [100_000, 100_001, 500_000, 500_001].map(|max| judge(max, 1_000_000));
        assert_eq!(judged, [Can::WithRoom, Can::Tight, Can::Tight, Can::No]);
        assert_eq!(judge(u64::MAX, 1_000_000), Can::No);
    }

    #[test]
    fn a_verdict_names_the_maximum_the_rule_and_the_periods_that_it_allows() {
        let verdict = Verdict { can: Can::Tight, max_ns: 123_456, n: 12_000, period_ns: 1_000_000 };
        assert_eq!(verdict.periods_ns(), (1_300_000, 250_000));
        let expected = "the latest of 12000 wake-ups came after 124us, over a tenth but under half \
                        of the period of 1ms; with such a maximum a period of 1300us is \
                        comfortable, and 250us is the minimum";
        assert_eq!(verdict.text(), expected);
    }

    #[test]
    fn a_period_is_rounded_up_to_two_digits() {
        let rounded = [0, 1, 999, 12_345, 123_456, 9_999_999].map(round_up);
        assert_eq!(rounded, [0, 1000, 1000, 13_000, 130_000, 10_000_000]);
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}

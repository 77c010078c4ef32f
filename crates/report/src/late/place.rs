//! Where a late cycle lost most of its time.

use crate::stats::Observed;

/// The part of a cycle in which most of its time was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// From the planned release to the start.
    BeforeFirstNode,
    /// The cycle with this number had not ended when this one was due.
    CycleBefore(u64),
    /// A node of the thread.
    Node(usize),
    /// Waiting for feedback that did not come by the deadline.
    Feedback,
    /// Outside the nodes, although all feedback came in the end: waiting for it, links, preemption.
    Outside,
}

impl Place {
    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Place::BeforeFirstNode => "before_first_node",
            Place::CycleBefore(_) => "cycle_before",
            Place::Node(_) => "node",
            Place::Feedback => "feedback",
            Place::Outside => "outside_nodes",
        }
    }
}

/// The planned times of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) period_ns: u64,
    pub(crate) deadline_ns: u64,
}

/// A cycle that ended past its deadline, or before which whole periods were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LateCycle {
    pub(crate) cycle: u64,
    /// How far past the deadline the cycle ended. If periods were lost: past the first of their
    /// deadlines.
    pub(crate) late_ns: u64,
    /// The release that this deadline belongs to, monotonic.
    pub(crate) since_ns: u64,
    pub(crate) place: Place,
    /// Time lost at this place.
    pub(crate) part_ns: u64,
    /// Whether feedback did not come by the deadline, wherever the time was lost.
    pub(crate) is_feedback_missing: bool,
    /// Index in the thread and execution time of the node that took the longest.
    pub(crate) slowest: (usize, u64),
}

impl LateCycle {
    /// `None` if the cycle was in time, or does not belong to the control loop. `before_ns` is the
    /// end of the cycle before it.
    pub(crate) fn of(observed: &Observed, times: Times, before_ns: u64) -> Option<LateCycle> {
        if observed.is_stopping || !observed.is_overrun && observed.skipped == 0 {
            return None;
        }
        let lost_ns = observed.skipped.saturating_mul(times.period_ns);
        let since_ns = observed.release_ns.saturating_sub(lost_ns);
        let late_ns = observed.end_ns().saturating_sub(since_ns.saturating_add(times.deadline_ns));
        let nodes = observed.execution_ns.iter().copied().enumerate();
        let slowest = nodes.max_by_key(|node| node.1).unwrap_or_default();
        let nodes_ns = observed.nodes_ns();
        let outside_ns = observed.latency_ns.saturating_sub(nodes_ns);
        let outside = if observed.is_feedback_missing { Place::Feedback } else { Place::Outside };
        let before = Place::CycleBefore(observed.cycle.saturating_sub(1));
        let before_part_ns = before_ns.saturating_sub(since_ns);
        let late_start_ns = observed.start_ns.saturating_sub(since_ns.max(before_ns));
        // Of equal shares the last one is taken: the first may have caused the others.
        let (_, part_ns, place) = [
            (nodes_ns, slowest.1, Place::Node(slowest.0)),
            (outside_ns, outside_ns, outside),
            (before_part_ns, before_part_ns, before),
            (late_start_ns, late_start_ns, Place::BeforeFirstNode),
        ]
        .into_iter()
        .max_by_key(|share| share.0)?;
        let Observed { cycle, is_feedback_missing, .. } = *observed;
        Some(LateCycle { cycle, late_ns, since_ns, place, part_ns, is_feedback_missing, slowest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { period_ns: 1_000, deadline_ns: 1_000 };

    /// Released at 10 000, started `late_ns` after that, with two nodes. The second takes
    /// `node_ns`, and `outside_ns` are spent outside of the nodes.
    fn observed(late_ns: u64, node_ns: u64, outside_ns: u64) -> Observed {
        Observed {
            cycle: 10,
            release_ns: 10_000,
            start_ns: 10_000 + late_ns,
            latency_ns: 20 + node_ns + outside_ns,
            execution_ns: vec![20, node_ns],
            is_overrun: true,
            ..Observed::default()
        }
    }

    fn place(observed: &Observed, before_ns: u64) -> (Place, u64, u64) {
        let late = LateCycle::of(observed, TIMES, before_ns).expect("it is late");
        (late.place, late.part_ns, late.late_ns)
    }

    #[test]
    fn the_place_is_where_most_of_the_time_went() {
        assert_eq!(place(&observed(900, 300, 10), 9_100), (Place::BeforeFirstNode, 900, 230));
        assert_eq!(place(&observed(9, 1_100, 10), 9_100), (Place::Node(1), 1_100, 139));
        assert_eq!(place(&observed(9, 30, 1_100), 9_100), (Place::Outside, 1_100, 159));
        let mut silent = observed(9, 30, 1_100);
        silent.is_feedback_missing = true;
        assert_eq!(place(&silent, 9_100).0, Place::Feedback);
        silent.start_ns += 2_000;
        assert_eq!(place(&silent, 9_100).0, Place::BeforeFirstNode);
    }

    #[test]
    fn a_lost_period_was_lost_before_the_first_node() {
        let mut observed = observed(7, 30, 5);
        (observed.is_overrun, observed.skipped) = (false, 3);
        assert_eq!(place(&observed, 6_100), (Place::BeforeFirstNode, 3_007, 2_062));
    }

    #[test]
    fn a_cycle_that_begins_late_because_the_one_before_ended_late_says_so() {
        let mut observed = observed(7, 30, 5);
        (observed.is_overrun, observed.skipped) = (false, 3);
        assert_eq!(place(&observed, 9_900), (Place::CycleBefore(9), 2_900, 2_062));
    }

    #[test]
    fn what_is_in_time_or_stopping_is_not_late() {
        let mut observed = observed(900, 300, 10);
        observed.is_stopping = true;
        assert_eq!(LateCycle::of(&observed, TIMES, 0), None);
        (observed.is_stopping, observed.is_overrun) = (false, false);
        assert_eq!(LateCycle::of(&observed, TIMES, 0), None);
    }

    #[test]
    fn a_record_of_nonsense_is_no_panic() {
        for ns in [0, 1, u64::MAX] {
            let mut observed = observed(0, 0, 0);
            (observed.release_ns, observed.start_ns, observed.latency_ns) = (ns, ns, ns);
            (observed.skipped, observed.is_overrun) = (ns, true);
            for execution_ns in [vec![], vec![ns, ns]] {
                observed.execution_ns = execution_ns;
                assert!(LateCycle::of(&observed, TIMES, ns).is_some());
            }
        }
    }
}

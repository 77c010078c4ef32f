//! The sum of all differences: the first differing cycle in full, for the others how many and how
//! much.

use std::collections::BTreeMap;

use sinew_core::Fault;
use sinew_core::catalogue::Direction;
use sinew_core::replay::{Difference, Number, Site};
use sinew_core::trace::{Failed, Record, Tap};
use sinew_spec::plan::{End, Plan};

/// The result of comparing a thread.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Cycles that were replayed, over all lives of the core.
    pub(super) cycles: u64,
    /// Replayed cycles that differ.
    pub(super) differing: u64,
    /// Differing cycles, by the place of the node.
    pub(super) by_place: BTreeMap<usize, u64>,
    /// By field or signal. The key has the first of its numbers.
    pub(super) largest: BTreeMap<(usize, Site), Largest>,
    pub(super) first: Option<First>,
}

/// How much a field or signal differs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Largest {
    /// Cycles in which it differs.
    pub(super) cycles: u64,
    last_cycle: u64,
    /// The greatest absolute difference. Infinite if one of both is no number.
    pub(super) difference: f64,
    /// Which of its numbers had this difference, and in which cycle.
    pub(super) at: usize,
    pub(super) cycle: u64,
}

/// The first cycle that differs.
#[derive(Debug)]
pub(super) struct First {
    pub(super) cycle: u64,
    pub(super) differences: Vec<Difference>,
    /// Why the cycle fails now, if it does.
    pub(super) fault: Option<Fault>,
    /// How the cycle failed when it was recorded, if it did.
    pub(super) failed: Option<Failed>,
    pub(super) inputs: Inputs,
}

/// The inputs of a cycle.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) skipped: u64,
    pub(super) is_stopping: bool,
    /// Port and bytes of each message.
    pub(super) messages: Vec<(End, Vec<u8>)>,
    /// Ports that had no new message.
    pub(super) silent: Vec<End>,
}

impl Inputs {
    pub(super) fn of(past: &Record, taps: &[Tap]) -> Inputs {
        let (mut messages, mut silent) = (Vec::new(), Vec::new());
        let read = taps.iter().enumerate().filter(|(_, tap)| tap.direction == Direction::In);
        for (at, tap) in read {
            match past.message(at) {
                Some(message) => messages.push((tap.end, message.to_vec())),
                None => silent.push(tap.end),
            }
        }
        let (skipped, is_stopping) = (past.skipped(), past.is_told_to_stop());
        Inputs { skipped, is_stopping, messages, silent }
    }
}

impl Tally {
    /// Adds a cycle that differs.
    pub(super) fn add(
        &mut self,
        cycle: u64,
        differences: Vec<Difference>,
        fault: Option<&Fault>,
        failed: Option<Failed>,
        inputs: impl FnOnce() -> Inputs,
    ) {
        self.differing += 1;
        let mut places: Vec<_> = differences.iter().map(|difference| difference.place).collect();
        places.dedup();
        places.iter().for_each(|&place| *self.by_place.entry(place).or_default() += 1);
        for difference in &differences {
            let (key, at) = whole(difference.site);
            let size = match (difference.old, difference.new) {
                (Some(old), Some(new)) => distance(old, new),
                _ => f64::INFINITY,
            };
            let fresh = Largest { cycles: 0, last_cycle: cycle, difference: size, at, cycle };
            let largest = self.largest.entry((difference.place, key)).or_insert(fresh);
            if largest.cycles == 0 || largest.last_cycle != cycle {
                largest.cycles += 1;
                largest.last_cycle = cycle;
            }
            if size > largest.difference {
                (largest.difference, largest.at, largest.cycle) = (size, at, cycle);
            }
        }
        if self.first.is_none() {
            let fault = fault.cloned();
            self.first = Some(First { cycle, differences, fault, failed, inputs: inputs() });
        }
    }
}

/// The distance of two numbers. It is 0 for zeros of different sign, although their bits differ.
fn distance(old: Number, new: Number) -> f64 {
    let difference = match (old, new) {
        (Number::Unsigned(old), Number::Unsigned(new)) => old.abs_diff(new) as f64,
        (Number::Signed(old), Number::Signed(new)) => old.abs_diff(new) as f64,
        _ => (new.to_f64() - old.to_f64()).abs(),
    };
    if difference.is_nan() { f64::INFINITY } else { difference }
}

/// The site of the whole field or signal, and the place of the number in it.
fn whole(site: Site) -> (Site, usize) {
    match site {
        Site::Field { node, port, field, at } => (Site::Field { node, port, field, at: 0 }, at),
        Site::Signal { node, signal, at } => (Site::Signal { node, signal, at: 0 }, at),
        site => (site, 0),
    }
}

/// A site in words: `ik.out.position_rad[2]`, `ik.error_m`.
pub(super) fn site_name(plan: &Plan, site: Site, at: usize) -> String {
    let numbered = |name: String, count: usize| match count {
        1 => name,
        _ => format!("{name}[{at}]"),
    };
    match site {
        Site::Failure => "failure".into(),
        Site::Message { node, port } => port_name(plan, End { node, port }),
        Site::Field { node, port, field, .. } => {
            let end = End { node, port };
            let field = &plan.port(end).message.fields[field];
            numbered(format!("{}.{}", port_name(plan, end), field.name), field.count as usize)
        }
        Site::Signal { node, signal, .. } => {
            let node = &plan.nodes[node];
            let signal = &node.kind.signals[signal];
            numbered(format!("{}.{}", node.name, signal.name), signal.count)
        }
    }
}

/// A port in words: `ik.out`.
pub(super) fn port_name(plan: &Plan, end: End) -> String {
    format!("{}.{}", plan.nodes[end.node].name, plan.port(end).name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_counted_once_a_cycle_with_its_largest_difference() {
        let mut tally = Tally::default();
        let difference = |at, new| {
            let site = Site::Signal { node: 3, signal: 1, at };
            let (old, new) = (Some(Number::Double(1.0)), Some(Number::Double(new)));
            Difference { place: 2, site, old, new }
        };
        let none = || Inputs { skipped: 0, is_stopping: false, messages: vec![], silent: vec![] };
        tally.add(5, vec![difference(0, 1.5), difference(1, 3.0)], None, None, none);
        tally.add(9, vec![difference(0, -0.5)], None, None, none);
        let (key, largest) = tally.largest.first_key_value().expect("it differs");
        assert_eq!(*key, (2, Site::Signal { node: 3, signal: 1, at: 0 }));
        assert_eq!((largest.cycles, largest.difference, largest.at, largest.cycle), (2, 2.0, 1, 5));
        assert_eq!((tally.differing, tally.by_place[&2]), (2, 2));
        assert_eq!(tally.first.map(|first| first.cycle), Some(5));
    }

    #[test]
    fn what_is_no_number_is_infinitely_far_away() {
        let nan = Number::Double(f64::NAN);
        assert_eq!(distance(nan, Number::Double(0.0)), f64::INFINITY);
        assert_eq!(distance(Number::Unsigned(u64::MAX), Number::Unsigned(u64::MAX - 1)), 1.0);
        assert_eq!(distance(Number::Double(0.0), Number::Double(-0.0)), 0.0);
    }
}

//! The shapes of links between CPUs, as far as a machine profile says which suit them.

use std::collections::BTreeMap;

use sinew_plan::plan::{LinkProfile, Plan, SHORT_MAX, TargetMachine, TunedPair};

use crate::picture::count;

/// Which lengths of links there are between two CPUs.
#[derive(Clone, Copy, Default)]
struct Lengths {
    short: bool,
    long: bool,
}

/// Shapes the links of a plan after the machine's profile, and notes what was done and what was
/// not. A plan whose links are all of another sort has nothing to do with it.
pub(crate) fn shape(plan: &mut Plan, machine: &TargetMachine) {
    let between: Vec<_> = plan.links.iter().map(|link| plan.shaped_between(link)).collect();
    let mut found: BTreeMap<[u32; 2], Lengths> = BTreeMap::new();
    for (link, cpus) in plan.links.iter().zip(&between) {
        let Some(cpus) = cpus else { continue };
        let lengths = found.entry(*cpus).or_default();
        *(if link.capacity <= SHORT_MAX { &mut lengths.short } else { &mut lengths.long }) = true;
    }
    let (file, time, pairs) = match &machine.profile {
        LinkProfile::Refused(why) if !found.is_empty() => return plan.notes.push(why.clone()),
        LinkProfile::Measured { file, time, pairs } => (file, time, pairs),
        LinkProfile::None | LinkProfile::Refused(_) => return,
    };
    let tuned = |cpus: [u32; 2]| pairs.iter().find(|pair| pair.cpus == cpus);
    for (link, cpus) in plan.links.iter_mut().zip(between) {
        let is_short = link.capacity <= SHORT_MAX;
        let suits = |pair: &TunedPair| if is_short { pair.short } else { pair.long };
        link.tuning = cpus.and_then(tuned).map(suits);
    }
    let mut left = Vec::new();
    for (cpus, lengths) in found {
        let [one, other] = cpus;
        let Some(pair) = tuned(cpus) else {
            left.push(format!("{one} and {other}"));
            continue;
        };
        let short = lengths.short.then(|| format!("short ones: {}", pair.short));
        let long = lengths.long.then(|| format!("long ones: {}", pair.long));
        let shapes: Vec<_> = short.into_iter().chain(long).collect();
        plan.notes.push(format!(
            "links between CPUs {one} and {other} are shaped by the machine profile {file} of \
             {time}: {}",
            shapes.join("; ")
        ));
    }
    if !left.is_empty() {
        plan.notes.push(format!(
            "{} of CPUs not in the machine profile {file}, whose links have the default shape: \
             {}; 'sinew tune' with this graph's file measures them",
            count(left.len(), "pair"),
            left.join(", ")
        ));
    }
}

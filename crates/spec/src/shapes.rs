//! The shapes of links between CPUs, where a machine profile says which ones are best.

use std::collections::BTreeMap;

use sinew_plan::plan::{
    Delivery, LinkClass, LinkProfile, LinkTuning, Plan, TargetMachine, TunedPair,
};

use crate::picture::count;

/// The links of one class between two CPUs, as a note distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Links {
    None,
    /// These have one layout only.
    OtherThanQueues,
    Queues,
}

/// Which links of each class there are between two CPUs.
type Classes = [Links; LinkClass::ALL.len()];

impl Links {
    /// Their shape, in words; `None` if there are no such links.
    fn told(self, of: &str, tuning: Option<LinkTuning>) -> Option<String> {
        let shape = match (self, tuning) {
            (Links::None, _) => return None,
            (_, None) => "the default, as measured".into(),
            (Links::OtherThanQueues, Some(tuning)) => tuning.manner(),
            (Links::Queues, Some(tuning)) => tuning.to_string(),
        };
        Some(format!("{of}: {shape}"))
    }
}

/// Shapes the links of a plan by the machine's profile, and notes what was done and what was not. A
/// plan without links that can be shaped gets no notes.
pub(crate) fn shape(plan: &mut Plan, machine: &TargetMachine) {
    let between: Vec<_> = plan.links.iter().map(|link| plan.shaped_between(link)).collect();
    let mut found: BTreeMap<[u32; 2], Classes> = BTreeMap::new();
    for (link, cpus) in plan.links.iter().zip(&between) {
        let Some(cpus) = cpus else { continue };
        let classes = found.entry(*cpus).or_insert([Links::None; LinkClass::ALL.len()]);
        let is_queue = link.delivery == Delivery::Queue;
        let links = if is_queue { Links::Queues } else { Links::OtherThanQueues };
        let seen = &mut classes[plan.class(link) as usize];
        *seen = links.max(*seen);
    }
    let (file, time, pairs) = match &machine.profile {
        LinkProfile::Refused(why) if !found.is_empty() => return plan.notes.push(why.clone()),
        LinkProfile::Measured { file, time, pairs } => (file, time, pairs),
        LinkProfile::None | LinkProfile::Refused(_) => return,
    };
    let tuned = |cpus: [u32; 2]| pairs.iter().find(|pair| pair.cpus == cpus);
    for (at, cpus) in between.into_iter().enumerate() {
        let class = plan.class(&plan.links[at]);
        let suits = |pair: &TunedPair| pair.suits(class);
        plan.links[at].tuning = cpus.and_then(tuned).and_then(suits);
    }
    let mut left = Vec::new();
    for (cpus, classes) in found {
        let [one, other] = cpus;
        let Some(pair) = tuned(cpus) else {
            left.push(format!("{one} and {other}"));
            continue;
        };
        let told = LinkClass::ALL.iter().filter_map(|&(class, word)| {
            classes[class as usize].told(&format!("{word} ones"), pair.suits(class))
        });
        let moved = pair.distance_changed.then(|| {
            "their distance changed while they were measured: 'sinew tune' measures again".into()
        });
        let shapes: Vec<String> = told.chain(moved).collect();
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

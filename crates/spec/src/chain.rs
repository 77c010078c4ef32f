//! The longest chain of nodes that wait for each other within one cycle: the period must hold it.

use sinew_plan::plan::{Link, Plan};

use crate::order::sort;

/// A chain of nodes of the core; each except the first reads, without delay, from the one before
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Indices into [`Plan::nodes`].
    pub nodes: Vec<usize>,
    /// Indices into [`Plan::links`], one between each two neighbours.
    pub links: Vec<usize>,
}

/// The best chain up to a node: its sum, its number of nodes, and its last link.
#[derive(Clone, Copy, Default)]
struct Best {
    sum_ns: u64,
    count: usize,
    link: Option<usize>,
}

impl Chain {
    /// The chain whose nodes take longest together, with the time of each given by `time_ns`; among
    /// equal ones the chain with the most nodes. Services are in no chain: no node of the core
    /// waits for them. Empty if there is no core.
    pub fn longest(plan: &Plan, time_ns: impl Fn(usize) -> u64) -> Chain {
        let counts = |link: &Link| {
            !link.delay && !plan.is_service(link.from.node) && !plan.is_service(link.to.node)
        };
        let direct = || plan.links.iter().enumerate().filter(|(_, link)| counts(link));
        let pairs: Vec<_> = direct().map(|(_, link)| (link.from.node, link.to.node)).collect();
        let mut inputs = vec![Vec::new(); plan.nodes.len()];
        for (at, link) in direct() {
            inputs[link.to.node].push(at);
        }
        let mut best = vec![Best::default(); plan.nodes.len()];
        let mut last: Option<usize> = None;
        let key = |best: &Best| (best.sum_ns, best.count);
        for node in sort(plan.nodes.len(), &pairs).0 {
            if plan.is_service(node) {
                continue;
            }
            let mut before = Best::default();
            for &link in &inputs[node] {
                let writer = best[plan.links[link].from.node];
                if key(&writer) > key(&before) {
                    before = Best { link: Some(link), ..writer };
                }
            }
            let sum_ns = before.sum_ns.saturating_add(time_ns(node));
            best[node] = Best { sum_ns, count: before.count + 1, link: before.link };
            if last.is_none_or(|last| key(&best[node]) > key(&best[last])) {
                last = Some(node);
            }
        }
        Chain::walk_back(plan, last, &best)
    }

    fn walk_back(plan: &Plan, last: Option<usize>, best: &[Best]) -> Chain {
        let mut chain = Chain::default();
        let mut next = last;
        while let Some(node) = next {
            chain.nodes.push(node);
            chain.links.extend(best[node].link);
            next = best[node].link.map(|link| plan.links[link].from.node);
        }
        chain.nodes.reverse();
        chain.links.reverse();
        chain
    }
}

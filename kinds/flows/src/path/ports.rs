//! Numbered ports: which of `out[0]`, `out[1]` and so on are linked in a graph.

use sinew_flow::NodeContext;

/// The outputs of a node, from index `first` on, that lead somewhere; in order.
pub(crate) fn linked_outputs(site: &NodeContext, first: usize) -> Vec<usize> {
    let links = site.plan.flow_links_of(site.node).iter();
    in_order(links.map(|link| link.from.port), first)
}

/// The inputs of a node, from index `first` on, to which a link leads; in order.
pub(super) fn linked_inputs(site: &NodeContext, first: usize) -> Vec<usize> {
    let links = site.plan.flow_links.iter();
    let to = links.filter(|link| link.to.node == site.node).map(|link| link.to.port);
    in_order(to, first)
}

fn in_order(ports: impl Iterator<Item = usize>, first: usize) -> Vec<usize> {
    let mut ports: Vec<usize> = ports.filter(|&port| port >= first).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

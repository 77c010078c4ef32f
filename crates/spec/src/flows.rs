//! Links that carry packets: calls, which must form no loops.

use sinew_plan::Entry;
use sinew_plan::plan::FlowLink;

use crate::draft::{Draft, Link};
use crate::join::{Joined, tell_loop};
use crate::keys::LINK;
use crate::order::sort;

/// Separates links that carry packets from those that carry messages.
pub(crate) fn split<'a, 'd>(
    draft: &Draft<'_>,
    joined: Vec<Joined<'a, 'd>>,
) -> (Vec<Joined<'a, 'd>>, Vec<Joined<'a, 'd>>) {
    let is_flow = |joined: &Joined<'_, '_>| {
        let kind = draft.nodes[joined.from.node].kind;
        kind.is_some_and(|kind| kind.port(joined.from.port).is_flow())
    };
    joined.into_iter().partition(is_flow)
}

/// Reports flow links that close a loop; returns the good ones in the order of the plan.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>]) -> Vec<FlowLink> {
    joined.iter().for_each(|joined| options(joined.link));
    let pairs: Vec<_> = joined.iter().map(|joined| (joined.from.node, joined.to.node)).collect();
    for members in sort(draft.nodes.len(), &pairs).1 {
        let help = "remove the link that closes the loop; 'for' and 'retry' repeat a limited \
                    number of times";
        tell_loop(draft, &members, joined.iter(), "a flow would never end", help);
    }
    let mut links: Vec<_> =
        joined.iter().map(|joined| FlowLink { from: joined.from, to: joined.to }).collect();
    // The sort is stable: at one port the order is that of the spec.
    links.sort_by_key(|link| link.from);
    links
}

/// Reports options of a link that carries packets: it has none.
fn options(link: &Link<'_>) {
    let option =
        |entry: &&Entry| LINK.keys.iter().any(|key| !key.required && key.name == entry.key);
    for entry in link.fields.entries().iter().filter(option) {
        let message = format!("'{}' has no meaning on a link that carries packets", entry.key);
        let help = "remove it: such a link is a call, and its reply comes back";
        link.fields.report.error(entry.span, message, help);
    }
}

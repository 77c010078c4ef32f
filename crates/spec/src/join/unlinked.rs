//! Ports that must be linked and are not.

use std::collections::{HashMap, HashSet};

use sinew_plan::catalogue::{Direction, Port};
use sinew_plan::plan::End;

use super::{Joined, show};
use crate::blocks::Behind;
use crate::draft::Draft;
use crate::fields::Named;
use crate::ports::crossing;

/// Reports ports that must be linked and are not. If some links could not be joined, `blurred` says
/// which nodes wrote such a link, and only the outputs of the other nodes are reported.
pub(crate) fn check(
    draft: &Draft<'_>,
    behind: &Behind,
    joined: &[Joined<'_, '_>],
    blurred: Option<&Vec<bool>>,
) {
    let gates = gates(behind);
    // Ports of blocks that are reported already.
    let mut told = HashSet::new();
    // One linked element of `out[]` is enough.
    let element = |end: End| {
        let last = draft.nodes[end.node].kind.map_or(0, |kind| kind.ports.len() - 1);
        End { port: end.port.min(last), ..end }
    };
    let ends = joined.iter().flat_map(|joined| [joined.from, joined.to]);
    let linked: HashSet<End> = ends.map(element).collect();
    for (node, row) in draft.nodes.iter().enumerate() {
        let Some(kind) = row.kind else { continue };
        for (port, row) in kind.ports.iter().enumerate() {
            let is_known =
                blurred.is_none_or(|blurred| row.direction == Direction::Out && !blurred[node]);
            if row.optional || !is_known || linked.contains(&End { node, port }) {
                continue;
            }
            let end = End { node, port };
            match gates.get(&end) {
                None => {
                    let element = row.name.replace("[]", "[0]");
                    unlinked(draft, draft.nodes[node].name, &element, &show(draft, end), row);
                }
                Some(&gate) if told.insert((row.direction, gate)) => {
                    of_block(draft, gate, row);
                }
                Some(_) => {}
            }
        }
    }
}

/// A port of a block: the block, and its place among the block's ports of one side.
type Gate = (usize, usize);

/// The outermost block port that each end is behind.
fn gates(behind: &Behind) -> HashMap<End, Gate> {
    let mut gates = HashMap::new();
    for sides in [&behind.inputs, &behind.outputs] {
        for (block, ports) in sides.iter().enumerate() {
            for (gate, ends) in ports.iter().enumerate() {
                for end in ends {
                    gates.entry(*end).or_insert((block, gate));
                }
            }
        }
    }
    gates
}

/// Reports a port of a block to which nothing is linked; `port` is behind it.
fn of_block(draft: &Draft<'_>, (block, gate): Gate, port: &Port) {
    let block = &draft.blocks[block];
    let gates = if port.direction == Direction::In { &block.inputs } else { &block.outputs };
    let name = gates[gate].name;
    let full = draft.full_name(block.scope, block.name.text);
    let node = Named { span: name.span, ..block.name };
    unlinked(draft, node, name.text, &format!("'{full}.{}'", name.text), port);
}

/// Reports that the port `name` of a node or block is not linked.
fn unlinked(draft: &Draft<'_>, node: Named<'_>, name: &str, shown: &str, port: &Port) {
    let crosses = crossing(port.message);
    let (sort, help) = match port.direction {
        Direction::In => {
            let help = format!(
                "add '{{name: {}, port: {name}}}' to the port of a node that sends {crosses}",
                node.text
            );
            ("input", help)
        }
        Direction::Out => {
            let help = format!(
                "add 'ports: {{{name}: [{{name: NODE, port: PORT}}]}}' to the node that takes \
                 {crosses}"
            );
            ("output", help)
        }
    };
    draft.report.error(node.span, format!("{sort} {shown} is not linked"), help);
}

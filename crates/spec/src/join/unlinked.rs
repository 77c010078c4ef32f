//! Ports that must be linked and are not.

use std::collections::{HashMap, HashSet};

use sinew_plan::catalogue::{Direction, Port};
use sinew_plan::plan::End;

use super::{Joined, show};
use crate::blocks::Behind;
use crate::diagnostic::Report;
use crate::draft::{Draft, Node};
use crate::fields::Named;
use crate::ports::crossing;

/// Reports them. Where links were left out, `blurred` says which nodes wrote one: then only the
/// outputs of the others are complained of.
pub(crate) fn check(
    draft: &Draft<'_>,
    behind: &Behind,
    joined: &[Joined<'_, '_>],
    blurred: Option<&Vec<bool>>,
    report: &mut Report,
) {
    let mut missing = Missing { draft, gates: gates(behind), told: HashSet::new() };
    for (node, linked) in linked(draft, joined).iter().enumerate() {
        let Some(kind) = draft.nodes[node].kind else { continue };
        for (port, row) in kind.ports.iter().enumerate().filter(|&(port, _)| !linked[port]) {
            let is_known =
                blurred.is_none_or(|blurred| row.direction == Direction::Out && !blurred[node]);
            if !row.optional && is_known {
                missing.complain(End { node, port }, row, report);
            }
        }
    }
}

/// For each node which of its ports are linked.
fn linked(draft: &Draft<'_>, joined: &[Joined<'_, '_>]) -> Vec<Vec<bool>> {
    let ports = |node: &Node<'_>| node.kind.map_or(0, |kind| kind.ports.len());
    let mut linked: Vec<Vec<bool>> =
        draft.nodes.iter().map(|node| vec![false; ports(node)]).collect();
    for end in joined.iter().flat_map(|joined| [joined.from, joined.to]) {
        // An element of `out[]` counts for all of them.
        let last = linked[end.node].len() - 1;
        linked[end.node][end.port.min(last)] = true;
    }
    linked
}

/// A port of a block: the block, and its place among the block's ports of one side.
type Gate = (usize, usize);

/// The outermost port of a block that each end stands behind.
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

struct Missing<'a, 'd> {
    draft: &'d Draft<'a>,
    gates: HashMap<End, Gate>,
    /// Ports of blocks that are reported already.
    told: HashSet<(Direction, Gate)>,
}

impl Missing<'_, '_> {
    /// Reports a port that is not linked: at the block, if it stands behind one of its ports.
    fn complain(&mut self, end: End, port: &Port, report: &mut Report) {
        let Some(&(block, gate)) = self.gates.get(&end) else {
            let Named { text, span } = self.draft.nodes[end.node].name;
            let element = port.name.replace("[]", "[0]");
            return unlinked(Named { text, span }, &element, &show(self.draft, end), port, report);
        };
        if !self.told.insert((port.direction, (block, gate))) {
            return;
        }
        let block = &self.draft.blocks[block];
        let gates = if port.direction == Direction::In { &block.inputs } else { &block.outputs };
        let name = gates[gate].name;
        let full = self.draft.full_name(block.scope, block.name.text);
        let shown = format!("'{full}.{}'", name.text);
        unlinked(Named { span: name.span, ..block.name }, name.text, &shown, port, report);
    }
}

/// Reports that the port `name` of a node or block is not linked.
fn unlinked(node: Named<'_>, name: &str, shown: &str, port: &Port, report: &mut Report) {
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
                "add 'ports: {{{name}: [{{name: NODE, port: PORT}}]}}' to who takes {crosses}"
            );
            ("output", help)
        }
    };
    report.error(node.span, format!("{sort} {shown} is not linked"), help);
}

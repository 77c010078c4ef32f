//! Finds the ports of nodes behind the ports of blocks, once, from the innermost block outwards.
//! With them every link becomes a link between nodes, and no block remains.

use std::slice;

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::End;

use crate::draft::{Draft, Gates, Inner, Member};
use crate::fields::Named;
use crate::nearest::suggest;
use crate::ports;

/// For each block of the draft, for each of its ports, the ends behind it.
pub(crate) struct Behind {
    pub(crate) inputs: Vec<Vec<Vec<End>>>,
    pub(crate) outputs: Vec<Vec<Vec<End>>>,
    /// For each block whether all was found.
    pub(crate) complete: Vec<bool>,
}

/// What a name in a scope means: a port of a node, or of a block.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    End(End),
    Gate(usize, usize),
}

/// Most ports behind the ports of all blocks together, and most links that these make from one
/// link: otherwise nested blocks could multiply them without bound.
pub(crate) const MOST: usize = 100_000;

/// Counts up to [`MOST`].
#[derive(Default)]
pub(crate) struct Count(usize);

impl Count {
    /// Whether `more` of them are still within the limit; `tell` reports the first excess.
    pub(crate) fn add(&mut self, more: usize, tell: impl FnOnce()) -> bool {
        let before = self.0;
        self.0 = before.saturating_add(more);
        if before <= MOST && self.0 > MOST {
            tell();
        }
        self.0 <= MOST
    }
}

/// Finds the ports behind the ports of all blocks; reports names that do not exist.
pub(crate) fn behind(draft: &Draft<'_>) -> Behind {
    let none = vec![Vec::new(); draft.blocks.len()];
    let complete = draft.blocks.iter().map(|block| block.complete).collect();
    let mut behind = Behind { inputs: none.clone(), outputs: none, complete };
    let mut count = Count::default();
    // A block inside another one comes after it.
    for (at, block) in draft.blocks.iter().enumerate().rev() {
        behind.inputs[at] = behind.ends(draft, at, &block.inputs, Direction::In, &mut count);
        behind.outputs[at] = behind.ends(draft, at, &block.outputs, Direction::Out, &mut count);
    }
    behind
}

impl Behind {
    /// The ends behind the ports on one side of a block.
    fn ends<'a>(
        &mut self,
        draft: &Draft<'a>,
        block: usize,
        gates: &Gates<'a>,
        side: Direction,
        count: &mut Count,
    ) -> Vec<Vec<End>> {
        let mut all = Vec::with_capacity(gates.len());
        for gate in gates.values() {
            let mut ends = Vec::with_capacity(gate.inner.len());
            for inner in &gate.inner {
                let found = find(draft, block + 1, *inner, side, true).ok();
                let more = found.as_ref().map_or(&[][..], |found| self.slice(found, side));
                let many = || {
                    let message =
                        format!("more than {MOST} ports stand behind the ports of blocks");
                    let help = "nest the blocks less, or name fewer ports in each";
                    draft.report.error(inner.node.span, message, help);
                };
                match count.add(more.len(), many) && found.is_some() {
                    true => ends.extend_from_slice(more),
                    false => self.complete[block] = false,
                }
            }
            all.push(ends);
        }
        all
    }

    /// The ends that something on one side stands for.
    pub(crate) fn slice<'s>(&'s self, found: &'s Found, side: Direction) -> &'s [End] {
        match (found, side) {
            (Found::End(end), _) => slice::from_ref(end),
            (Found::Gate(block, gate), Direction::In) => &self.inputs[*block][*gate],
            (Found::Gate(block, gate), Direction::Out) => &self.outputs[*block][*gate],
        }
    }
}

/// What the spec means by a node and a port of it in a scope. A name that does not exist is
/// reported; the error is then the node that has no such port, if the node exists. `of_gate` says
/// that the name is behind a port of a block, and not at the end of a link.
pub(crate) fn find<'a>(
    draft: &Draft<'a>,
    scope: usize,
    Inner { node: Named { text, span }, port }: Inner<'a>,
    side: Direction,
    of_gate: bool,
) -> Result<Found, Option<usize>> {
    match draft.member(scope, text) {
        None => {
            draft.report.error_with(span, || {
                let block = scope.checked_sub(1).filter(|_| of_gate);
                let block = block.map(|block| draft.blocks[block].name.text);
                let place = block.map_or(String::new(), |block| format!(" in block '{block}'"));
                (format!("there is no node '{text}'{place}"), draft.instead(scope, text))
            });
            Err(None)
        }
        Some(Member::Node(node)) => {
            let elsewhere = "name it under 'inputs:'";
            let found = draft.nodes[node]
                .kind
                .and_then(|kind| ports::find(kind, text, port, side, elsewhere, draft.report));
            found.map(|port| Found::End(End { node, port })).ok_or(Some(node))
        }
        Some(Member::Block(block)) => {
            gate(draft, block, side, port).map(|gate| Found::Gate(block, gate)).ok_or(None)
        }
    }
}

/// The port of a block with this name.
fn gate(draft: &Draft<'_>, block: usize, side: Direction, port: Named<'_>) -> Option<usize> {
    let block = &draft.blocks[block];
    let (gates, other, word, key) = match side {
        Direction::In => (&block.inputs, &block.outputs, "input", "inputs"),
        Direction::Out => (&block.outputs, &block.inputs, "output", "outputs"),
    };
    let found = gates.get_index_of(port.text);
    if found.is_none() {
        draft.report.error_with(port.span, || {
            let (block, port) = (block.name.text, port.text);
            let message = format!("'{block}' (block) has no {word} port '{port}'");
            let help = match gates.len() {
                0 => format!("name it under '{key}:' of the block, with the ports inside"),
                _ if other.contains_key(port) => {
                    format!("{key} are: {}", gates.keys().copied().collect::<Vec<_>>().join(", "))
                }
                _ => suggest(port, gates.keys().copied()),
            };
            (message, help)
        });
    }
    found
}

//! What stands behind the ports of blocks: ports of nodes, found once, from the innermost block
//! outwards. With them links become links between nodes, and blocks are gone.

use std::slice;

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::End;

use crate::diagnostic::Report;
use crate::draft::{Draft, Gate, Inner};
use crate::fields::Named;
use crate::names::{Member, Names, instead};
use crate::nearest::suggest;
use crate::ports;

/// Most ports of nodes that stand behind the ports of all blocks together: nested blocks could else
/// multiply them without bound.
const ENDS_MAX: usize = 100_000;

/// For each block of the draft, for each of its ports, the ends behind it.
pub(crate) struct Behind {
    pub(crate) inputs: Vec<Vec<Vec<End>>>,
    pub(crate) outputs: Vec<Vec<Vec<End>>>,
    /// For each block whether all was found.
    pub(crate) complete: Vec<bool>,
}

/// Finds what stands behind the ports of all blocks; reports what is not there.
pub(crate) fn behind<'a>(draft: &Draft<'a>, names: &Names<'a>, report: &mut Report) -> Behind {
    let none = vec![Vec::new(); draft.blocks.len()];
    let complete = draft.blocks.iter().map(|block| block.complete).collect();
    let behind = Behind { inputs: none.clone(), outputs: none, complete };
    let mut finder = Finder { draft, names, behind, count: 0 };
    // Who stands inside another one comes after it.
    for (at, block) in draft.blocks.iter().enumerate().rev() {
        finder.behind.inputs[at] = finder.ends(at, &block.inputs, Direction::In, report);
        finder.behind.outputs[at] = finder.ends(at, &block.outputs, Direction::Out, report);
    }
    finder.behind
}

/// Looks for what the ports of blocks stand for.
struct Finder<'a, 'd> {
    draft: &'d Draft<'a>,
    names: &'d Names<'a>,
    behind: Behind,
    /// How many ends were found.
    count: usize,
}

impl<'a> Finder<'a, '_> {
    /// The ends behind the ports of one side of a block.
    fn ends(
        &mut self,
        block: usize,
        gates: &[Gate<'a>],
        side: Direction,
        report: &mut Report,
    ) -> Vec<Vec<End>> {
        let mut all = Vec::with_capacity(gates.len());
        for gate in gates {
            let mut ends = Vec::with_capacity(gate.inner.len());
            for inner in &gate.inner {
                let found = self.found(block, inner, side, report);
                let good = found.filter(|found| {
                    let more = self.slice(found, side).len();
                    self.bounded(more, inner, report)
                });
                match good {
                    Some(found) => ends.extend_from_slice(self.slice(&found, side)),
                    None => self.behind.complete[block] = false,
                }
            }
            all.push(ends);
        }
        all
    }

    fn slice<'s>(&'s self, found: &'s Found, side: Direction) -> &'s [End] {
        match (found, side) {
            (Found::End(end), _) => slice::from_ref(end),
            (Found::Gate(block, gate), Direction::In) => &self.behind.inputs[*block][*gate],
            (Found::Gate(block, gate), Direction::Out) => &self.behind.outputs[*block][*gate],
        }
    }

    /// Whether so many ends more are not too many.
    fn bounded(&mut self, more: usize, inner: &Inner<'_>, report: &mut Report) -> bool {
        let before = self.count;
        self.count += more;
        if before <= ENDS_MAX && self.count > ENDS_MAX {
            let message = format!("more than {ENDS_MAX} ports stand behind the ports of blocks");
            let help = "nest the blocks less, or name fewer ports in each";
            report.error(inner.node.span, message, help);
        }
        self.count <= ENDS_MAX
    }

    /// What `inner` names inside a block; `None` if it is not there.
    fn found(
        &self,
        block: usize,
        inner: &Inner<'a>,
        side: Direction,
        report: &mut Report,
    ) -> Option<Found> {
        let Inner { node: Named { text, span }, port } = *inner;
        let Some(member) = self.names.get(block + 1, text) else {
            report.error_with(span, || {
                let block_name = self.draft.blocks[block].name.text;
                let message = format!("there is no node '{text}' in block '{block_name}'");
                (message, instead(self.draft, self.names, block + 1, text))
            });
            return None;
        };
        match member {
            Member::Node(node) => {
                let kind = self.draft.nodes[node].kind?;
                let port = match side {
                    Direction::In => ports::input(kind, text, port, report),
                    Direction::Out => {
                        ports::output(kind, text, port, "name it under 'inputs:'", report)
                    }
                };
                Some(Found::End(End { node, port: port? }))
            }
            Member::Block(inside) => {
                gate(self.draft, inside, side, port, report).map(|gate| Found::Gate(inside, gate))
            }
        }
    }
}

/// What a name inside a block stands for: a port of a node, or of another block.
#[derive(Clone, Copy)]
enum Found {
    End(End),
    Gate(usize, usize),
}

/// The port of a block with this name.
pub(crate) fn gate(
    draft: &Draft<'_>,
    block: usize,
    side: Direction,
    port: Named<'_>,
    report: &mut Report,
) -> Option<usize> {
    let block = &draft.blocks[block];
    let (gates, other, word, key) = match side {
        Direction::In => (&block.inputs, &block.outputs, "input", "inputs"),
        Direction::Out => (&block.outputs, &block.inputs, "output", "outputs"),
    };
    let found = gates.place(port.text);
    if found.is_none() {
        report.error_with(port.span, || {
            let (block, port) = (block.name.text, port.text);
            let message = format!("'{block}' (block) has no {word} port '{port}'");
            let help = match &**gates {
                [] => format!("name it under '{key}:' of the block, with the ports inside"),
                _ if other.place(port).is_some() => {
                    let names: Vec<&str> = gates.iter().map(|gate| gate.name.text).collect();
                    format!("{key} are: {}", names.join(", "))
                }
                _ => suggest(port, gates.iter().map(|gate| gate.name.text)),
            };
            (message, help)
        });
    }
    found
}

//! Joins the ends of links: names become indices, and what may not be joined is reported.

mod unlinked;

use std::collections::HashMap;
use std::slice;

use sinew_plan::Span;
use sinew_plan::catalogue::{ANY_MESSAGE, Direction, MessageType, PACKET, Port};
use sinew_plan::plan::{Delivery, End};

use crate::blocks::{Behind, behind, gate};
use crate::diagnostic::{Lines, Report};
use crate::draft::{Draft, Link};
use crate::names::{Member, Names, instead};
use crate::order::sort;
use crate::ports;

/// A link between two ports that are there.
pub(crate) struct Joined<'a, 'd> {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) link: &'d Link<'a>,
}

/// Most links that ports of blocks may make of one, all together.
const COPIES_MAX: usize = 100_000;

/// What is known while links are joined.
struct Joiner<'a, 'd, 'k> {
    draft: &'d Draft<'a>,
    names: &'k Names<'a>,
    behind: &'k Behind,
    lines: &'k Lines,
    joined: Vec<Joined<'a, 'd>>,
    /// Who writes to each input port.
    writers: HashMap<(usize, usize), (usize, Span)>,
    /// Nodes with a link that could not be joined: their other ports are not complained of.
    blurred: Vec<bool>,
    /// Links that ports of blocks made.
    copies: usize,
}

/// Joins all links. The flag says whether none was left out.
pub(crate) fn join<'a, 'd>(
    draft: &'d Draft<'a>,
    names: &Names<'a>,
    lines: &Lines,
    report: &mut Report,
) -> (Vec<Joined<'a, 'd>>, bool) {
    let behind = behind(draft, names, report);
    let inside = |scope: usize| scope.checked_sub(1).is_none_or(|block| behind.complete[block]);
    let mut joiner = Joiner {
        draft,
        names,
        behind: &behind,
        lines,
        joined: Vec::new(),
        writers: HashMap::new(),
        blurred: draft.nodes.iter().map(|node| !inside(node.scope)).collect(),
        copies: 0,
    };
    let mut complete = behind.complete.iter().all(|complete| *complete);
    for (at, node) in draft.nodes.iter().enumerate() {
        complete &= node.links_complete && node.kind.is_some();
        joiner.blurred[at] |= !node.links_complete;
        for link in &node.links {
            let from = link.from.map(|port| End { node: at, port });
            complete &= joiner.link(node.scope, from.as_slice(), link, report);
        }
    }
    // From the inside out, as the links of a port lead on.
    for (block, outputs) in draft.blocks.iter().zip(&behind.outputs).rev() {
        for link in &block.links {
            let from = link.from.map_or(&[][..], |gate| &outputs[gate]);
            complete &= joiner.link(block.scope, from, link, report);
        }
    }
    let Joiner { joined, blurred, .. } = joiner;
    // A link that lost its way may have been meant for any port: only then all is known.
    unlinked::check(draft, &behind, &joined, (!complete).then_some(&blurred), report);
    broadcasts(draft, &joined, report);
    (joined, complete)
}

impl<'a, 'd> Joiner<'a, 'd, '_> {
    /// Joins a link that stands in a scope and begins at all of `from`: one port, or those behind
    /// an output of a block. Whether nothing was left out.
    fn link(
        &mut self,
        scope: usize,
        from: &[End],
        link: &'d Link<'a>,
        report: &mut Report,
    ) -> bool {
        let end;
        let to = match self.target(scope, link, report) {
            Some(Target::Port(found)) => {
                end = found;
                slice::from_ref(&end)
            }
            Some(Target::Gate(block, gate)) => &self.behind.inputs[block][gate],
            None => &[],
        };
        let mut good = !from.is_empty() && !to.is_empty() && self.bounded(from, to, link, report);
        if good {
            let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
            for (from, to) in pairs {
                good &= self.pair(from, to, link, report);
            }
        }
        for end in from.iter().filter(|_| !good) {
            self.blurred[end.node] = true;
        }
        good
    }

    /// Where a link leads; reports a name that is not there.
    fn target(&mut self, scope: usize, link: &Link<'a>, report: &mut Report) -> Option<Target> {
        let Some(member) = self.names.get(scope, link.node.text) else {
            report.error_with(link.node.span, || {
                let message = format!("there is no node '{}'", link.node.text);
                (message, instead(self.draft, self.names, scope, link.node.text))
            });
            return None;
        };
        match member {
            Member::Node(node) => {
                let kind = self.draft.nodes[node].kind?;
                let port = ports::input(kind, link.node.text, link.port, report);
                self.blurred[node] |= port.is_none();
                Some(Target::Port(End { node, port: port? }))
            }
            Member::Block(block) => {
                let gate = gate(self.draft, block, Direction::In, link.port, report)?;
                Some(Target::Gate(block, gate))
            }
        }
    }

    /// Whether the links that blocks make of one stay few enough.
    fn bounded(&mut self, from: &[End], to: &[End], link: &Link<'_>, report: &mut Report) -> bool {
        let before = self.copies;
        self.copies = before.saturating_add(from.len().saturating_mul(to.len()) - 1);
        if before <= COPIES_MAX && self.copies > COPIES_MAX {
            let message =
                format!("ports of blocks make more than {COPIES_MAX} links of those here");
            report.error(link.node.span, message, "name fewer ports behind one port of a block");
        }
        self.copies <= COPIES_MAX
    }

    /// Joins two ports, if what one sends is what the other takes.
    fn pair(&mut self, from: End, to: End, link: &'d Link<'a>, report: &mut Report) -> bool {
        let ends = self.draft.nodes[from.node].kind.zip(self.draft.nodes[to.node].kind);
        let Some((writer, reader)) = ends else { return false };
        let (sent, taken) = (writer.port(from.port).message, reader.port(to.port).message);
        if !fits(sent, taken) {
            let (sends, takes) = (what(sent, taken), what(taken, sent));
            let message =
                format!("{} sends {sends}, but {} takes {takes}", self.show(from), self.show(to));
            let good = |port: &&Port| port.direction == Direction::In && fits(sent, port.message);
            let help = match reader.ports.iter().find(good) {
                Some(port) => format!("port '{}' takes {}", port.name, ports::crossing(sent)),
                None => {
                    let name = self.draft.name(to.node);
                    format!("no input port of '{name}' takes {}", ports::crossing(sent))
                }
            };
            report.error(link.port.span, message, help);
            return false;
        }
        if !reader.port(to.port).is_flow() {
            self.written_once(from, to, link, report);
        }
        self.joined.push(Joined { from, to, link });
        true
    }

    fn written_once(&mut self, from: End, to: End, link: &Link<'_>, report: &mut Report) {
        let Some((first, span)) =
            self.writers.insert((to.node, to.port), (from.node, link.node.span))
        else {
            return;
        };
        let message = format!("{} has two writers", self.show(to));
        let help = format!(
            "keep one of the two links; the other begins at '{}' on line {}",
            self.draft.name(first),
            self.lines.line(span.start as usize)
        );
        report.error(link.node.span, message, help);
    }

    fn show(&self, end: End) -> String {
        show(self.draft, end)
    }
}

/// Where a link leads: to a port of a node, or of a block.
enum Target {
    Port(End),
    Gate(usize, usize),
}

/// What crosses a port, where something else was meant to.
fn what(message: &MessageType, other: &MessageType) -> String {
    let is_flow = |message: &MessageType| message.hash == PACKET.hash;
    match (is_flow(message), message.hash == ANY_MESSAGE.hash) {
        (true, _) => "packets".to_owned(),
        (_, true) => "messages of any type".to_owned(),
        _ if is_flow(other) => format!("messages of type {}", message.name),
        _ => format!("{} ({} bytes)", message.name, message.size),
    }
}

/// `'node.port'`.
pub(crate) fn show(draft: &Draft<'_>, end: End) -> String {
    let kind = draft.nodes[end.node].kind;
    let port = kind.map_or("?".to_owned(), |kind| kind.port_name(end.port));
    format!("'{}.{port}'", draft.name(end.node))
}

/// Whether what one port sends is what another takes.
fn fits(sent: &MessageType, taken: &MessageType) -> bool {
    let any = |one: &MessageType, other: &MessageType| {
        one.hash == ANY_MESSAGE.hash && ![ANY_MESSAGE.hash, PACKET.hash].contains(&other.hash)
    };
    sent.hash == taken.hash && sent.hash != ANY_MESSAGE.hash || any(sent, taken) || any(taken, sent)
}

/// Links of one broadcast share one ring, so they must agree on it.
fn broadcasts(draft: &Draft<'_>, joined: &[Joined<'_, '_>], report: &mut Report) {
    let mut first: HashMap<(usize, usize), &Link<'_>> = HashMap::new();
    for Joined { from, link, .. } in joined {
        if link.delivery != Some(Delivery::Broadcast) {
            continue;
        }
        let one = *first.entry((from.node, from.port)).or_insert(link);
        let differ = [
            ("transport", one.transport == link.transport),
            ("sync", one.sync == link.sync),
            ("capacity", one.capacity == link.capacity),
        ];
        for (option, _) in differ.iter().filter(|(_, same)| !same) {
            let message = format!("broadcast links of {} differ in '{option}'", show(draft, *from));
            let help = format!("give all of them the same {option}; they share one ring");
            report.error(link.fields.at(option), message, help);
        }
    }
}

/// Reports loops of links without delay, and gives an order in which writers come first. Services
/// have no part in it: `in_cycle` says of a node whether it is updated in cycles.
pub(crate) fn order(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    in_cycle: impl Fn(usize) -> bool,
    report: &mut Report,
) -> Vec<usize> {
    let counts = |joined: &&Joined<'_, '_>| {
        !joined.link.delay && in_cycle(joined.from.node) && in_cycle(joined.to.node)
    };
    let direct = joined.iter().filter(counts);
    let pairs: Vec<(usize, usize)> =
        direct.map(|joined| (joined.from.node, joined.to.node)).collect();
    let (order, loops) = sort(draft.nodes.len(), &pairs);
    for members in loops {
        let (first, last) = (members[0], members[members.len() - 1]);
        let closes = |joined: &&Joined<'_, '_>| {
            joined.from.node == last && joined.to.node == first && !joined.link.delay
        };
        let Some(closing) = joined.iter().find(closes) else { continue };
        let names = members.iter().chain([&first]).map(|&at| draft.name(at));
        let message =
            format!("a loop of links without delay: {}", names.collect::<Vec<_>>().join(" -> "));
        let help = "add 'delay: 1' to the link that closes the loop, for example here";
        report.error(closing.link.node.span, message, help);
    }
    order
}

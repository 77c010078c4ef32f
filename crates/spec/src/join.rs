//! Joins the ends of links: names become indices, and ends that must not be joined are reported.

mod unlinked;

use std::collections::HashMap;

use sinew_plan::Span;
use sinew_plan::catalogue::{ANY_MESSAGE, Direction, MessageType, PACKET, Port, Scalar};
use sinew_plan::plan::{Delivery, End, MessagePart};

use crate::blocks::{Behind, Count, Found, MOST, behind, find};
use crate::draft::{Draft, Inner, Link};
use crate::form::{find_number, numbers};
use crate::nearest::suggest;
use crate::order::sort;
use crate::ports::crossing;

/// A link between two existing ports.
pub(crate) struct Joined<'a, 'd> {
    pub(crate) from: End,
    pub(crate) to: End,
    /// What crosses; if one end takes any message, the other end's type.
    pub(crate) message: &'static MessageType,
    /// The part of the writer's message that crosses, if not all of it.
    pub(crate) part: Option<MessagePart>,
    pub(crate) link: &'d Link<'a>,
}

/// State while links are joined.
struct Joiner<'a, 'd> {
    draft: &'d Draft<'a>,
    behind: Behind,
    joined: Vec<Joined<'a, 'd>>,
    /// The writer of each input port.
    writers: HashMap<End, (usize, Span)>,
    /// Nodes with a link that could not be joined: their other ports are not reported.
    blurred: Vec<bool>,
    /// Number of links added by ports of blocks.
    copies: Count,
}

/// Joins all links. The flag says whether all of them could be joined.
pub(crate) fn join<'a, 'd>(draft: &'d Draft<'a>) -> (Vec<Joined<'a, 'd>>, bool) {
    let behind = behind(draft);
    let inside = |scope: usize| scope.checked_sub(1).is_none_or(|block| behind.complete[block]);
    let mut complete = behind.complete.iter().all(|complete| *complete);
    let mut joiner = Joiner {
        draft,
        blurred: draft.nodes.iter().map(|node| !inside(node.scope)).collect(),
        behind,
        joined: Vec::new(),
        writers: HashMap::new(),
        copies: Count::default(),
    };
    for (at, node) in draft.nodes.iter().enumerate() {
        complete &= node.links_complete && node.kind.is_some();
        joiner.blurred[at] |= !node.links_complete;
        for link in &node.links {
            let from = link.from.map(|port| Found::End(End { node: at, port }));
            complete &= joiner.link(node.scope, from, link);
        }
    }
    // From the inner blocks outwards, in the direction in which the links of a port lead.
    for (at, block) in draft.blocks.iter().enumerate().rev() {
        for link in &block.links {
            let from = link.from.map(|gate| Found::Gate(at, gate));
            complete &= joiner.link(block.scope, from, link);
        }
    }
    let Joiner { joined, blurred, behind, .. } = joiner;
    // A link that could not be joined may have been meant for any port.
    unlinked::check(draft, &behind, &joined, (!complete).then_some(&blurred));
    broadcasts(draft, &joined);
    (joined, complete)
}

impl<'a, 'd> Joiner<'a, 'd> {
    /// Joins a link that is written in a scope and begins at one port, or at the ports behind an
    /// output of a block. Returns whether all of it could be joined.
    fn link(&mut self, scope: usize, from: Option<Found>, link: &'d Link<'a>) -> bool {
        let to = Inner { node: link.node, port: link.port };
        let to = find(self.draft, scope, to, Direction::In, false);
        if let Err(Some(node)) = to {
            self.blurred[node] = true;
        }
        let ends = |found: &Option<Found>, side| match found {
            Some(found) => self.behind.slice(found, side).to_vec(),
            None => Vec::new(),
        };
        let (from, to) = (ends(&from, Direction::Out), ends(&to.ok(), Direction::In));
        let many = || {
            let message = format!("ports of blocks make more than {MOST} links of those here");
            let help = "name fewer ports behind one port of a block";
            self.draft.report.error(link.node.span, message, help);
        };
        let copies = from.len().saturating_mul(to.len());
        let mut good = copies > 0 && self.copies.add(copies - 1, many);
        if good {
            for (&from, &to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))) {
                good &= self.pair(from, to, link);
            }
        }
        for end in from.iter().filter(|_| !good) {
            self.blurred[end.node] = true;
        }
        good
    }

    /// Joins two ports, if the one takes what the other sends.
    fn pair(&mut self, from: End, to: End, link: &'d Link<'a>) -> bool {
        let draft = self.draft;
        let ends = draft.nodes[from.node].kind.zip(draft.nodes[to.node].kind);
        let Some((writer, reader)) = ends else { return false };
        let (sent, taken) = (writer.port(from.port).message, reader.port(to.port).message);
        let Ok(part) = self.part(from, sent, taken, link) else { return false };
        if part.is_none() && !fits(sent, taken) {
            let (sends, takes) = (what(sent, taken), what(taken, sent));
            let message = format!(
                "{} sends {sends}, but {} takes {takes}",
                show(draft, from),
                show(draft, to)
            );
            let good = |port: &&Port| port.direction == Direction::In && fits(sent, port.message);
            let help = match reader.ports.iter().find(good) {
                Some(port) => format!("port '{}' takes {}", port.name, crossing(sent)),
                None => {
                    let name = draft.name(to.node);
                    format!("no input port of '{name}' takes {}", crossing(sent))
                }
            };
            draft.report.error(link.port.span, message, help);
            return false;
        }
        let place = (from.node, link.node.span);
        if !reader.port(to.port).is_flow()
            && let Some((first, span)) = self.writers.insert(to, place)
        {
            let help = format!(
                "keep one of the two links; the other begins at '{}' on line {}",
                draft.name(first),
                draft.lines.line(span.start as usize)
            );
            let message = format!("{} has two writers", show(draft, to));
            draft.report.error(link.node.span, message, help);
        }
        let message = match part {
            None if sent.hash != ANY_MESSAGE.hash => sent,
            _ => taken,
        };
        self.joined.push(Joined { from, to, message, part, link });
        true
    }
}

impl Joiner<'_, '_> {
    /// The one number that a link takes from a message: the field that it names, or the only number
    /// of the message if the reader has another type. `None`: the whole message. If it fails, the
    /// error is reported already.
    fn part(
        &self,
        from: End,
        sent: &MessageType,
        taken: &MessageType,
        link: &Link<'_>,
    ) -> Result<Option<MessagePart>, ()> {
        let Some(named) = link.field else {
            let whole = lone(sent).zip(lone(taken)).filter(|(sent, taken)| sent != taken);
            let part =
                |(scalar, _)| MessagePart { field: sent.fields[0].name.into(), offset: 0, scalar };
            return Ok(whole.filter(|&(_, taken)| taken == Scalar::F64).map(part));
        };
        let report = self.draft.report;
        let from = || show(self.draft, from);
        let Some((field, at)) = find_number(sent, named.text) else {
            let known: Vec<String> =
                numbers(sent).map(|(name, _)| name).take(FIELDS_SHOWN).collect();
            let text =
                format!("{} sends {} without a number '{}'", from(), crossing(sent), named.text);
            report.error(named.span, text, suggest(named.text, known.iter().map(|name| &**name)));
            return Err(());
        };
        let scalar = field.scalar;
        match lone(taken) {
            Some(other) if other == scalar || other == Scalar::F64 => Ok(Some(MessagePart {
                field: named.text.to_owned(),
                offset: field.offset + at * scalar.bytes(),
                scalar,
            })),
            lone => {
                let what = match lone {
                    Some(_) => "a number of another type".to_owned(),
                    None => crossing(taken).to_owned(),
                };
                let text = format!(
                    "'{}' is one number, and port '{}' takes {what}",
                    named.text, link.port.text
                );
                report.error(
                    named.span,
                    text,
                    "link it to a port that takes Real, or leave 'field' out",
                );
                Err(())
            }
        }
    }
}

/// Most numbers of a message that an error lists.
const FIELDS_SHOWN: usize = 64;

/// The type of a message that is one scalar.
pub(crate) fn lone(message: &MessageType) -> Option<Scalar> {
    match message.fields {
        [only] if only.count == 1 => Some(only.scalar),
        _ => None,
    }
}

/// What crosses a port, in an error about a port where something else was expected.
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

/// Whether a port takes what another sends.
fn fits(sent: &MessageType, taken: &MessageType) -> bool {
    let any = |one: &MessageType, other: &MessageType| {
        one.hash == ANY_MESSAGE.hash && ![ANY_MESSAGE.hash, PACKET.hash].contains(&other.hash)
    };
    sent.hash == taken.hash && sent.hash != ANY_MESSAGE.hash || any(sent, taken) || any(taken, sent)
}

/// Links of one broadcast share one ring, so their options must agree.
fn broadcasts(draft: &Draft<'_>, joined: &[Joined<'_, '_>]) {
    let mut first: HashMap<End, &Link<'_>> = HashMap::new();
    for Joined { from, link, .. } in joined {
        if link.delivery != Some(Delivery::Broadcast) {
            continue;
        }
        let one = *first.entry(*from).or_insert(link);
        let differ = [
            ("transport", one.transport == link.transport),
            ("sync", one.sync == link.sync),
            ("capacity", one.capacity == link.capacity),
        ];
        for (option, _) in differ.iter().filter(|(_, same)| !same) {
            let message = format!("broadcast links of {} differ in '{option}'", show(draft, *from));
            let help = format!("give all of them the same {option}; they share one ring");
            draft.report.error(link.fields.at(option), message, help);
        }
    }
}

/// Reports loops of links without delay, and gives an order in which writers come first. Services
/// are left out: `in_cycle` says of a node whether it is updated in cycles.
pub(crate) fn order(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    in_cycle: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let counts = |joined: &&Joined<'_, '_>| {
        !joined.link.delay && in_cycle(joined.from.node) && in_cycle(joined.to.node)
    };
    let direct = joined.iter().filter(counts);
    let pairs: Vec<(usize, usize)> =
        direct.map(|joined| (joined.from.node, joined.to.node)).collect();
    let (order, loops) = sort(draft.nodes.len(), &pairs);
    let help = "add 'delay: 1' to the link that closes the loop, for example here";
    for members in loops {
        let without_delay = joined.iter().filter(|joined| !joined.link.delay);
        tell_loop(draft, &members, without_delay, "a loop of links without delay", help);
    }
    order
}

/// Reports a loop at the first link that closes it.
pub(crate) fn tell_loop<'j>(
    draft: &Draft<'_>,
    members: &[usize],
    mut links: impl Iterator<Item = &'j Joined<'j, 'j>>,
    what: &str,
    help: &str,
) {
    let ends = (members[members.len() - 1], members[0]);
    let Some(closing) = links.find(|joined| (joined.from.node, joined.to.node) == ends) else {
        return;
    };
    let names = members.iter().chain(&members[..1]).map(|&at| draft.name(at));
    let message = format!("{what}: {}", names.collect::<Vec<_>>().join(" -> "));
    draft.report.error(closing.link.node.span, message, help);
}

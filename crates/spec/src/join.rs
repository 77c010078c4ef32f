//! Joins the ends of links: names become indices, and what may not be joined is reported.

use std::collections::HashMap;

use crate::catalogue::{ANY_MESSAGE, Direction, Kind, MessageType, PACKET};
use crate::diagnostic::{Lines, Report, Span};
use crate::draft::{Draft, Link, Node};
use crate::nearest::suggest;
use crate::order::sort;
use crate::plan::{Delivery, End};

/// A link between two ports that are there.
pub(crate) struct Joined<'a, 'd> {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) link: &'d Link<'a>,
}

/// All nodes by name; reports names that stand twice.
pub(crate) fn names<'a>(
    draft: &Draft<'a>,
    lines: &Lines,
    report: &mut Report,
) -> HashMap<&'a str, usize> {
    let mut names = HashMap::with_capacity(draft.nodes.len());
    for (at, node) in draft.nodes.iter().enumerate() {
        let first = *names.entry(node.name.text).or_insert(at);
        if first != at {
            let first = &draft.nodes[first];
            let message = format!("two nodes are named '{}'", node.name.text);
            let line = lines.line(first.span.start as usize);
            let help = format!("give this one a 'name:' of its own; the other is on line {line}");
            report.error(node.name.span, message, help);
        }
    }
    names
}

/// What stays the same while links are joined.
struct Joiner<'a, 'd> {
    draft: &'d Draft<'a>,
    names: &'d HashMap<&'a str, usize>,
    lines: &'d Lines,
    /// Who writes to each input port.
    writers: HashMap<(usize, usize), (usize, Span)>,
    /// Nodes with a link that could not be joined: their other ports are not complained of.
    blurred: Vec<bool>,
}

/// Joins all links. The flag says whether none was left out.
pub(crate) fn join<'a, 'd>(
    draft: &'d Draft<'a>,
    names: &'d HashMap<&'a str, usize>,
    lines: &'d Lines,
    report: &mut Report,
) -> (Vec<Joined<'a, 'd>>, bool) {
    let blurred = vec![false; draft.nodes.len()];
    let mut joiner = Joiner { draft, names, lines, writers: HashMap::new(), blurred };
    let mut joined = Vec::new();
    let mut complete = true;
    for (at, node) in draft.nodes.iter().enumerate() {
        let Some(kind) = node.kind else {
            complete = false;
            continue;
        };
        complete &= node.links_complete;
        joiner.blurred[at] = !node.links_complete;
        for link in &node.links {
            let good = joiner.link(at, kind, link, report);
            complete &= good.is_some();
            joiner.blurred[at] |= good.is_none();
            joined.extend(good);
        }
    }
    // A link that lost its way may have been meant for any port: only then all is known.
    if complete {
        unlinked(draft, &joined, report);
    } else {
        unlinked_outputs(&joiner, &joined, report);
    }
    broadcasts(draft, &joined, report);
    (joined, complete)
}

impl<'a, 'd> Joiner<'a, 'd> {
    fn link(
        &mut self,
        at: usize,
        kind: &'static Kind,
        link: &'d Link<'a>,
        report: &mut Report,
    ) -> Option<Joined<'a, 'd>> {
        let Some(&target) = self.names.get(link.node.text) else {
            report.error_with(link.node.span, || {
                let names = self.draft.nodes.iter().map(|node| node.name.text);
                let message = format!("there is no node '{}'", link.node.text);
                (message, suggest(link.node.text, names))
            });
            return None;
        };
        let reader = self.draft.nodes[target].kind?;
        let port = self.input(target, reader, link, report)?;
        let from = End { node: at, port: link.from? };
        let to = End { node: target, port };
        let (sent, taken) = (kind.port(from.port).message, reader.port(port).message);
        if !fits(sent, taken) {
            let message = format!(
                "{} sends {} ({} bytes), but {} takes {} ({} bytes)",
                self.show(from),
                sent.name,
                sent.size,
                self.show(to),
                taken.name,
                taken.size
            );
            let fits = |port: &&crate::catalogue::Port| {
                port.direction == Direction::In && fits(sent, port.message)
            };
            let help = match reader.ports.iter().find(fits) {
                Some(port) => format!("port '{}' takes {}", port.name, sent.name),
                None => format!("no input port of '{}' takes {}", link.node.text, sent.name),
            };
            report.error(link.port.span, message, help);
            return None;
        }
        if !reader.port(port).is_flow() {
            self.written_once(from, to, link, report);
        }
        Some(Joined { from, to, link })
    }

    fn input(
        &mut self,
        target: usize,
        reader: &'static Kind,
        link: &Link<'_>,
        report: &mut Report,
    ) -> Option<usize> {
        let found = reader.port_index(link.port.text);
        let (node, port) = (link.node.text, link.port.text);
        match found {
            Some(at) if reader.port(at).direction == Direction::In => return Some(at),
            Some(_) => {
                let inputs = reader.ports.iter().filter(|port| port.direction == Direction::In);
                let help = format!("inputs are: {}", list(inputs.map(|port| port.name)));
                report.error(link.port.span, format!("'{node}.{port}' is an output port"), help);
            }
            None => {
                let inputs = reader.ports.iter().filter(|port| port.direction == Direction::In);
                let message = format!("'{node}' ({}) has no input port '{port}'", reader.name);
                let help = suggest(port, inputs.map(|port| port.name));
                report.error(link.port.span, message, help);
            }
        }
        self.blurred[target] = true;
        None
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
            self.draft.nodes[first].name.text,
            self.lines.line(span.start as usize)
        );
        report.error(link.node.span, message, help);
    }

    fn show(&self, end: End) -> String {
        show(self.draft, end)
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// `'node.port'`.
pub(crate) fn show(draft: &Draft<'_>, end: End) -> String {
    let node = &draft.nodes[end.node];
    let port = node.kind.map_or("?".to_owned(), |kind| kind.port_name(end.port));
    format!("'{}.{port}'", node.name.text)
}

/// Whether what one port sends is what another takes.
fn fits(sent: &MessageType, taken: &MessageType) -> bool {
    let any = |one: &MessageType, other: &MessageType| {
        one.hash == ANY_MESSAGE.hash && ![ANY_MESSAGE.hash, PACKET.hash].contains(&other.hash)
    };
    sent.hash == taken.hash && sent.hash != ANY_MESSAGE.hash || any(sent, taken) || any(taken, sent)
}

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

/// Reports ports that must be linked and are not.
fn unlinked(draft: &Draft<'_>, joined: &[Joined<'_, '_>], report: &mut Report) {
    for (node, linked) in linked(draft, joined).iter().enumerate() {
        for (port, _) in linked.iter().enumerate().filter(|(_, linked)| !**linked) {
            complain(draft, End { node, port }, report);
        }
    }
}

/// The same for outputs only, of nodes whose own links all arrived.
fn unlinked_outputs(joiner: &Joiner<'_, '_>, joined: &[Joined<'_, '_>], report: &mut Report) {
    let draft = joiner.draft;
    for (node, linked) in linked(draft, joined).iter().enumerate() {
        for (port, _) in linked.iter().enumerate().filter(|(_, linked)| !**linked) {
            let output = |kind: &Kind| kind.ports[port].direction == Direction::Out;
            if !joiner.blurred[node] && draft.nodes[node].kind.is_some_and(output) {
                complain(draft, End { node, port }, report);
            }
        }
    }
}

fn complain(draft: &Draft<'_>, end: End, report: &mut Report) {
    let node = &draft.nodes[end.node];
    let Some(port) = node.kind.map(|kind| &kind.ports[end.port]).filter(|port| !port.optional)
    else {
        return;
    };
    let (sort, help) = match port.direction {
        Direction::In => {
            let help = format!(
                "add '{{name: {}, port: {}}}' to the port of a node that sends {}",
                node.name.text, port.name, port.message.name
            );
            ("input", help)
        }
        Direction::Out => {
            let help = format!(
                "add 'ports: {{{}: [{{name: NODE, port: PORT}}]}}' to who takes {}",
                port.name, port.message.name
            );
            ("output", help)
        }
    };
    report.error(node.name.span, format!("{sort} {} is not linked", show(draft, end)), help);
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
        let names = members.iter().chain([&first]).map(|&at| draft.nodes[at].name.text);
        let message =
            format!("a loop of links without delay: {}", names.collect::<Vec<_>>().join(" -> "));
        let help = "add 'delay: 1' to the link that closes the loop, for example here";
        report.error(closing.link.node.span, message, help);
    }
    order
}

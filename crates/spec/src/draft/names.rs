//! The names of nodes and blocks, each in its scope.

use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::path::Path;

use sinew_plan::Span;

use super::Draft;
use crate::fields::{Named, is_name_sign};
use crate::keys::{GRAPH_NAME, NAME_LEN_MAX};
use crate::nearest::suggest;

/// The owner of a name: an index of the draft.
#[derive(Clone, Copy)]
pub(crate) enum Member {
    Node(usize),
    Block(usize),
}

/// The name of a graph that does not name itself: the name of its file, without folders and
/// extension. Characters that names cannot have become `-`.
pub(crate) fn of_file(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let sign = |sign: char| if is_name_sign(sign) { sign } else { '-' };
    let name: String = stem.chars().map(sign).take(NAME_LEN_MAX).collect();
    if name.is_empty() { GRAPH_NAME.to_owned() } else { name }
}

impl<'a> Draft<'a> {
    /// Collects the names. Reports those that occur twice in one scope, and those that are too long
    /// together with the names of their blocks.
    pub(super) fn name_members(&mut self) {
        let nodes = (0..self.nodes.len()).map(Member::Node);
        for member in nodes.chain((0..self.blocks.len()).map(Member::Block)) {
            let (scope, name, _) = self.place(member);
            match self.members.entry((scope, name.text)) {
                Entry::Vacant(entry) => drop(entry.insert(member)),
                Entry::Occupied(entry) => {
                    let first = *entry.get();
                    self.twice(first, member);
                }
            }
            if scope > 0 {
                self.check_length(scope, name);
            }
        }
    }

    /// The node or block of this name in a scope.
    pub(crate) fn member(&self, scope: usize, name: &'a str) -> Option<Member> {
        self.members.get(&(scope, name)).copied()
    }

    /// The node of this name outside of blocks.
    pub(crate) fn node(&self, name: &'a str) -> Option<usize> {
        match self.member(0, name)? {
            Member::Node(node) => Some(node),
            Member::Block(_) => None,
        }
    }

    /// Help for a name that does not exist in a scope: links in a block stay inside it.
    pub(crate) fn instead(&self, scope: usize, name: &'a str) -> String {
        let outer = name.split_once('/').map_or(name, |(outer, _)| outer);
        if outer != name && matches!(self.member(scope, outer), Some(Member::Block(_))) {
            return format!(
                "a node in block '{outer}' is reached through a port of the block: 'name: {outer}'"
            );
        }
        for block in self.around(scope) {
            if self.member(block.scope, name).is_some() {
                let block = block.name.text;
                return format!(
                    "links stay inside a block, and '{name}' is outside of '{block}'; name the \
                     port under 'outputs:' of '{block}', and link that"
                );
            }
        }
        let nodes = self.nodes.iter().filter(|node| node.scope == scope);
        let blocks = self.blocks.iter().filter(|block| block.scope == scope);
        let nodes = nodes.map(|node| node.name.text);
        suggest(name, nodes.chain(blocks.map(|block| block.name.text)))
    }

    /// The scope of a node or block, its name, and the place where it begins.
    fn place(&self, member: Member) -> (usize, Named<'a>, Span) {
        match member {
            Member::Node(at) => (self.nodes[at].scope, self.nodes[at].name, self.nodes[at].span),
            Member::Block(at) => {
                (self.blocks[at].scope, self.blocks[at].name, self.blocks[at].span)
            }
        }
    }

    /// Reports two members with the same name, at the later one.
    fn twice(&self, one: Member, other: Member) {
        let mut places = [self.place(one), self.place(other)];
        places.sort_by_key(|(_, _, span)| span.start);
        let [(_, _, first), (scope, name, _)] = places;
        let full = self.full_name(scope, name.text);
        let line = self.lines.line(first.start as usize);
        let help = format!("give this one another 'name:'; the other is on line {line}");
        self.report.error(name.span, format!("two nodes are named '{full}'"), help);
    }

    fn check_length(&self, scope: usize, name: Named<'_>) {
        let around = self.around(scope).map(|block| block.name.text.len());
        let longest = around.clone().fold(name.text.len(), usize::max);
        let len = around.fold(name.text.len(), |len, block| len + block + 1);
        // A name that is too long by itself is reported already.
        if len > NAME_LEN_MAX && longest <= NAME_LEN_MAX {
            let full = self.full_name(scope, name.text);
            let message =
                format!("the name '{full}' has {len} characters with those of its blocks");
            let help = format!("at most {NAME_LEN_MAX}; shorten one of them");
            self.report.error(name.span, message, help);
        }
    }
}

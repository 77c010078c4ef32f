//! Who is called what: nodes and blocks by their names, each in its scope.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::path::Path;

use sinew_plan::Span;

use crate::diagnostic::{Lines, Report};
use crate::draft::Draft;
use crate::fields::{Named, is_name_sign};
use crate::keys::{GRAPH_NAME, NAME_LEN_MAX};
use crate::nearest::suggest;

/// Who bears a name: indices of the draft.
#[derive(Clone, Copy)]
pub(crate) enum Member {
    Node(usize),
    Block(usize),
}

/// All nodes and blocks by scope and name.
pub(crate) struct Names<'a> {
    members: HashMap<(usize, &'a str), Member>,
}

impl<'a> Names<'a> {
    /// Collects them; reports names that stand twice in one scope, and those that are too long with
    /// the names of their blocks.
    pub(crate) fn new(draft: &Draft<'a>, lines: &Lines, report: &mut Report) -> Names<'a> {
        let mut members = HashMap::with_capacity(draft.nodes.len() + draft.blocks.len());
        let nodes = (0..draft.nodes.len()).map(Member::Node);
        for member in nodes.chain((0..draft.blocks.len()).map(Member::Block)) {
            let Place { scope, name, .. } = place(draft, member);
            match members.entry((scope, name.text)) {
                Entry::Vacant(entry) => drop(entry.insert(member)),
                Entry::Occupied(entry) => twice(draft, *entry.get(), member, lines, report),
            }
            if scope > 0 {
                check_length(draft, scope, name, report);
            }
        }
        Names { members }
    }

    /// Who is called so in a scope.
    pub(crate) fn get(&self, scope: usize, name: &'a str) -> Option<Member> {
        self.members.get(&(scope, name)).copied()
    }

    /// The node outside of blocks that is called so.
    pub(crate) fn node(&self, name: &'a str) -> Option<usize> {
        match self.get(0, name)? {
            Member::Node(node) => Some(node),
            Member::Block(_) => None,
        }
    }
}

/// The name of a graph that does not say its own: that of its file, without folders and extension.
/// Signs that no name has become `-`.
pub(crate) fn of_file(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let sign = |sign: char| if is_name_sign(sign) { sign } else { '-' };
    let name: String = stem.chars().map(sign).take(NAME_LEN_MAX).collect();
    if name.is_empty() { GRAPH_NAME.to_owned() } else { name }
}

/// What to say about a name that nobody has in a scope: links in a block stay there.
pub(crate) fn instead<'a>(
    draft: &Draft<'a>,
    names: &Names<'a>,
    scope: usize,
    name: &'a str,
) -> String {
    let outer = name.split_once('/').map_or(name, |(outer, _)| outer);
    if outer != name && matches!(names.get(scope, outer), Some(Member::Block(_))) {
        return format!(
            "who stands in block '{outer}' is reached by a port of it: 'name: {outer}'"
        );
    }
    let mut around = scope;
    while let Some(block) = around.checked_sub(1).map(|block| &draft.blocks[block]) {
        around = block.scope;
        if names.get(around, name).is_some() {
            let block = block.name.text;
            return format!(
                "links stay inside a block: '{name}' stands outside of '{block}'; name the port \
                 under 'outputs:' of '{block}', and link that"
            );
        }
    }
    suggest(name, known(draft, scope))
}

/// The names of a scope.
fn known<'a>(draft: &Draft<'a>, scope: usize) -> impl Iterator<Item = &'a str> + Clone {
    let nodes = draft.nodes.iter().filter(move |node| node.scope == scope);
    let blocks = draft.blocks.iter().filter(move |block| block.scope == scope);
    nodes.map(|node| node.name.text).chain(blocks.map(|block| block.name.text))
}

/// Where somebody stands.
struct Place<'a> {
    scope: usize,
    name: Named<'a>,
    span: Span,
}

fn place<'a>(draft: &Draft<'a>, member: Member) -> Place<'a> {
    match member {
        Member::Node(at) => {
            let node = &draft.nodes[at];
            Place { scope: node.scope, name: node.name, span: node.span }
        }
        Member::Block(at) => {
            let block = &draft.blocks[at];
            Place { scope: block.scope, name: block.name, span: block.span }
        }
    }
}

/// Reports two of one name, at the one that stands further down.
fn twice(draft: &Draft<'_>, one: Member, other: Member, lines: &Lines, report: &mut Report) {
    let (one, other) = (place(draft, one), place(draft, other));
    let (first, second) =
        if one.span.start <= other.span.start { (one, other) } else { (other, one) };
    let message =
        format!("two nodes are named '{}'", draft.full_name(second.scope, second.name.text));
    let line = lines.line(first.span.start as usize);
    let help = format!("give this one a 'name:' of its own; the other is on line {line}");
    report.error(second.name.span, message, help);
}

fn check_length(draft: &Draft<'_>, scope: usize, name: Named<'_>, report: &mut Report) {
    let (mut at, mut len, mut longest) = (scope, name.text.len(), name.text.len());
    while let Some(block) = at.checked_sub(1).map(|block| &draft.blocks[block]) {
        len += block.name.text.len() + 1;
        longest = longest.max(block.name.text.len());
        at = block.scope;
    }
    // One that is too long by itself is reported already.
    if len > NAME_LEN_MAX && longest <= NAME_LEN_MAX {
        let full = draft.full_name(scope, name.text);
        let message = format!("the name '{full}' has {len} characters with those of its blocks");
        report.error(name.span, message, format!("at most {NAME_LEN_MAX}; shorten one of them"));
    }
}

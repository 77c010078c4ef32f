//! Graphs as trees, and their specs.

use std::fmt::Write;

/// A node with all nodes that it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Its name in the graph is this with an 'n' before it; 0 until it is numbered.
    pub(crate) number: usize,
    pub(crate) sort: Sort,
    /// Where its outputs lead, in their order.
    pub(crate) outs: Vec<Fan>,
    /// Where its errors lead.
    pub(crate) error: Fan,
}

/// What one port leads to.
pub(crate) type Fan = Vec<Tree>;

/// A kind.
#[derive(Clone, Debug)]
pub(crate) enum Sort {
    Nop,
    Step(Does),
    Throw(u16),
    Pipe,
    Split,
    /// With its concurrency.
    For(usize),
    /// Steps in a child.
    Fork(Vec<Does>),
    Try,
    /// With its threshold.
    Retry(usize),
    /// Several ways of steps from here to a merge.
    Merge(Vec<Vec<Does>>),
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Does {
    Pass,
    Nothing,
    Fail,
}

impl Tree {
    /// Its ports by name.
    fn ports(&self) -> Vec<(String, &Fan)> {
        let name = |at: usize| match self.sort {
            Sort::Pipe | Sort::Split => format!("'out[{at}]'"),
            _ => ["out", "done"][at].to_owned(),
        };
        let outs = self.outs.iter().enumerate().map(|(at, out)| (name(at), out));
        let error = Some(("error".to_owned(), &self.error));
        outs.chain(error.filter(|_| !matches!(self.sort, Sort::Nop))).collect()
    }

    /// How many steps belong to it; their numbers follow its own.
    fn steps(&self) -> usize {
        match &self.sort {
            Sort::Fork(steps) => steps.len(),
            Sort::Merge(ways) => ways.iter().map(Vec::len).sum(),
            _ => 0,
        }
    }

    /// Whether a packet may have to wait in this node, or in one behind it.
    fn waits(&self) -> bool {
        let waits = matches!(self.sort, Sort::Merge(_) | Sort::Retry(_));
        waits || self.ports().iter().any(|(_, fan)| fan.iter().any(Tree::waits))
    }

    /// The node that takes its packets.
    fn entry(&self) -> String {
        let letter = if matches!(self.sort, Sort::Merge(_)) { 'b' } else { 'n' };
        format!("{letter}{}", self.number)
    }

    /// The beginning of its line in the spec, with the kind.
    fn kind(&self) -> String {
        match &self.sort {
            Sort::Nop => "nop".to_owned(),
            Sort::Step(does) => step(*does, self.number),
            Sort::Throw(status) => format!("throw, status: {status}"),
            Sort::Pipe => "pipe".to_owned(),
            Sort::Split => "split".to_owned(),
            Sort::For(concurrency) => format!("for, concurrency: {concurrency}"),
            Sort::Fork(_) => "fork".to_owned(),
            Sort::Try => "try".to_owned(),
            Sort::Retry(threshold) => format!("retry, threshold: {threshold}, backoff: 0s"),
            Sort::Merge(_) => "merge".to_owned(),
        }
    }
}

/// Gives every node its number.
pub(crate) fn number(fan: &mut Fan, next: &mut usize) {
    for tree in fan {
        // Only if no node waits is it known which elements are under way together.
        if let Sort::For(concurrency) = &mut tree.sort
            && tree.outs[0].iter().any(Tree::waits)
        {
            *concurrency = 1;
        }
        tree.number = *next;
        *next += 1 + tree.steps();
        tree.outs.iter_mut().chain([&mut tree.error]).for_each(|fan| number(fan, next));
    }
}

/// The graph that sends a packet into `fan`.
pub(crate) fn spec(fan: &Fan) -> String {
    let mut text = format!("- {{kind: begin, name: begin, ports: {{out: {}}}}}\n", links(fan));
    fan.iter().for_each(|tree| write_tree(tree, &mut text));
    text
}

fn links(fan: &Fan) -> String {
    let link = |tree: &Tree| format!("{{name: {}, port: in}}", tree.entry());
    format!("[{}]", fan.iter().map(link).collect::<Vec<_>>().join(", "))
}

fn write_tree(tree: &Tree, text: &mut String) {
    let number = tree.number;
    let mut ports: Vec<String> =
        tree.ports().iter().map(|(name, fan)| format!("{name}: {}", links(fan))).collect();
    match &tree.sort {
        Sort::Fork(steps) => {
            let first = chain(steps, number + 1, None, text);
            ports.extend(first.map(|first| format!("out: [{first}]")));
        }
        Sort::Merge(ways) => {
            let (mut firsts, mut next) = (Vec::new(), number + 1);
            for (at, way) in ways.iter().enumerate() {
                let end = format!("{{name: n{number}, port: 'in[{at}]'}}");
                firsts.extend(chain(way, next, Some(end), text));
                next += way.len();
            }
            let out = firsts.join(", ");
            line(text, &format!("nop, name: b{number}, ports: {{out: [{out}]}}"));
        }
        _ => {}
    }
    line(text, &format!("{}, name: n{number}, ports: {{{}}}", tree.kind(), ports.join(", ")));
    tree.ports().iter().for_each(|(_, fan)| fan.iter().for_each(|tree| write_tree(tree, text)));
}

/// Writes steps one after the other; the last one leads to `end`. Returns the link to the first
/// step, or `end` if there are no steps.
fn chain(steps: &[Does], first: usize, end: Option<String>, text: &mut String) -> Option<String> {
    steps.iter().enumerate().rev().fold(end, |next, (at, does)| {
        let (number, out) = (first + at, next.unwrap_or_default());
        let kind = step(*does, number);
        line(text, &format!("{kind}, name: n{number}, ports: {{out: [{out}]}}"));
        Some(format!("{{name: n{number}, port: in}}"))
    })
}

fn step(does: Does, number: usize) -> String {
    let does = match does {
        Does::Pass => "pass",
        Does::Nothing => "nothing",
        Does::Fail => "fail",
    };
    format!("step, does: {does}, says: n{number}")
}

fn line(text: &mut String, node: &str) {
    writeln!(text, "- {{kind: {node}}}").expect("memory");
}

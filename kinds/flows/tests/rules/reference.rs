//! The rules once more, as one plain recursive function over a graph. It shares nothing with the
//! code that it is compared to.

use serde_json::{Value as Json, json};

use crate::graph::{Does, Fan, Sort, Tree};

/// An error, without its text.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: u16,
    node: Option<String>,
    parts: Vec<Failure>,
    /// Whether it is left out beside another error.
    follows: bool,
}

pub(crate) type Answer = Result<Option<Json>, Failure>;

impl Failure {
    fn new(node: &str, status: u16) -> Failure {
        Failure { status, node: Some(node.to_owned()), parts: vec![], follows: false }
    }

    /// The packet that it must become, without its text.
    pub(crate) fn to_json(&self) -> Json {
        let mut entries = json!({"status": self.status, "node": self.node});
        if !self.parts.is_empty() {
            entries["parts"] = self.parts.iter().map(Failure::to_json).collect();
        }
        entries
    }
}

/// The reply of a node of this name to a packet.
fn reply(tree: &Tree, packet: &Json) -> Answer {
    let name = &format!("n{}", tree.number);
    let own = match &tree.sort {
        Sort::Nop => return fan(&tree.outs[0], packet),
        Sort::Step(does) => match step(*does, name, packet) {
            Ok(Some(packet)) => return fan(&tree.outs[0], &packet),
            other => other,
        },
        Sort::Throw(status) => Err(Failure::new(name, *status)),
        Sort::Pipe => pipe(&tree.outs, packet),
        Sort::Split => {
            let outs = &tree.outs;
            let linked = outs.iter().rposition(|out| !out.is_empty()).map_or(0, |last| last + 1);
            match packet.as_array().filter(|items| items.len() <= linked) {
                Some(items) => joined(items.iter().zip(outs).map(|(item, out)| fan(out, item))),
                None => Err(Failure::new(name, 500)),
            }
        }
        Sort::For(concurrency) => match packet.as_array() {
            Some(items) => match each(items, *concurrency, &tree.outs[0]) {
                Ok(replies) => return fan(&tree.outs[1], &replies),
                Err(failure) => Err(failure),
            },
            None => Err(Failure::new(name, 500)),
        },
        Sort::Fork(_) => Ok(None),
        Sort::Try | Sort::Retry(_) => fan(&tree.outs[0], packet),
        Sort::Merge(ways) => return merge(ways, tree, packet),
    };
    or_instead(tree, name, own)
}

/// An error of a node's own goes to its 'error' port, if that leads anywhere.
fn or_instead(tree: &Tree, name: &str, own: Answer) -> Answer {
    let Err(mut failure) = own else { return own };
    failure.node.get_or_insert(name.to_owned());
    if tree.error.is_empty() { Err(failure) } else { fan(&tree.error, &failure.to_json()) }
}

fn step(does: Does, name: &str, packet: &Json) -> Answer {
    match does {
        Does::Pass => Ok(Some(json!([name, packet]))),
        Does::Nothing => Ok(None),
        Does::Fail => Err(Failure::new(name, 418)),
    }
}

/// The reply to a packet at a port that leads to all of these.
pub(crate) fn fan(fan: &Fan, packet: &Json) -> Answer {
    match &fan[..] {
        [] => Ok(Some(packet.clone())),
        [one] => reply(one, packet),
        several => joined(several.iter().map(|tree| reply(tree, packet))),
    }
}

fn joined(replies: impl Iterator<Item = Answer>) -> Answer {
    let (mut values, mut failures) = (vec![], vec![]);
    for reply in replies {
        match reply {
            Ok(value) => values.extend(value),
            Err(failure) => failures.push(failure),
        }
    }
    match (failures.is_empty(), values.len()) {
        (false, _) => Err(joined_failures(failures)),
        (true, 0) => Ok(None),
        (true, 1) => Ok(values.pop()),
        (true, _) => Ok(Some(Json::Array(values))),
    }
}

fn joined_failures(mut all: Vec<Failure>) -> Failure {
    if all.iter().any(|failure| !failure.follows) {
        all.retain(|failure| !failure.follows);
    }
    if all.len() == 1 {
        return all.swap_remove(0);
    }
    let one_status = all.iter().all(|failure| failure.status == all[0].status);
    let status = if one_status { all[0].status } else { 500 };
    let follows = all[0].follows;
    Failure { status, node: None, parts: all, follows }
}

fn pipe(steps: &[Fan], packet: &Json) -> Answer {
    let mut last = packet.clone();
    for step in steps.iter().filter(|step| !step.is_empty()) {
        match fan(step, &last)? {
            Some(reply) => last = reply,
            None => return Ok(None),
        }
    }
    Ok(Some(last))
}

/// If no node waits, the elements of a window end in their order. After an error, the elements in
/// the window with it still end.
fn each(items: &[Json], concurrency: usize, out: &Fan) -> Result<Json, Failure> {
    let replies: Vec<Answer> = items.iter().map(|item| fan(out, item)).collect();
    let first = replies.iter().position(Result::is_err).unwrap_or(items.len());
    let mut failures = vec![];
    let mut values = vec![];
    for reply in replies.into_iter().take(first + concurrency) {
        match reply {
            Ok(value) => values.push(value.unwrap_or_default()),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(Json::Array(values)) } else { Err(joined_failures(failures)) }
}

/// The numbers of the steps on the ways to a merge follow the merge's own. The first packet that
/// has come gets the reply to the list, or the error about what is missing; the others get nothing.
fn merge(ways: &[Vec<Does>], tree: &Tree, packet: &Json) -> Answer {
    let mut number = tree.number;
    let ends: Vec<Answer> = ways.iter().map(|way| walk(way, &mut number, packet)).collect();
    let arrived: Vec<Json> = ends.iter().filter_map(|end| end.clone().ok()?).collect();
    let name = format!("n{}", tree.number);
    let mut answer = if arrived.len() == ways.len() {
        Some(fan(&tree.outs[0], &Json::Array(arrived)))
    } else {
        // A failure on a way is more useful than the error that its packet is missing.
        let missing = Failure { follows: true, ..Failure::new(&name, 500) };
        Some(or_instead(tree, &name, Err(missing)))
    };
    joined(ends.into_iter().map(|end| match end? {
        Some(_) => answer.take().unwrap_or(Ok(None)),
        None => Ok(None),
    }))
}

/// The result at the end of some steps.
fn walk(way: &[Does], number: &mut usize, packet: &Json) -> Answer {
    let mut at = Ok(Some(packet.clone()));
    for does in way {
        *number += 1;
        if let Ok(Some(packet)) = at {
            at = step(*does, &format!("n{number}"), &packet);
        }
    }
    at
}

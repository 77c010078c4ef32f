//! Tests: in uniflow a second port hands the reply to nodes `assert`. In a graph the test itself
//! says what it expects.

use std::collections::BTreeSet;

use super::cel::{About, rewrite};
use super::parts::{expression, remove, tell};
use super::sheet::{Away, Sheet, shown};
use super::workflow::{DONE, Workflow};

/// Most nodes that judge the reply of a test. A longer chain is left to do by hand, and so is a
/// circle.
const JUDGES_MAX: usize = 32;

/// Rewrites a test, and moves the nodes that judge its reply into it.
pub(super) fn test<'t>(
    flow: &mut Workflow<'t>,
    at: usize,
    judges: &mut BTreeSet<usize>,
    sheet: &mut Sheet<'t>,
) {
    flow.nodes[at].rename_port("out[0]", "out");
    let mut expected = Vec::new();
    let mut open = flow.nodes[at].take_links("out[1]");
    while let Some(link) = open.pop() {
        let node = &flow.nodes[link.to];
        let judge = node.entry("expect").filter(|_| node.item.get("target").is_none());
        let Some(judge) = judge.filter(|_| expected.len() < JUDGES_MAX) else {
            let help = "write what the reply must be as 'expect' of the test, or put an 'assert' \
                        behind the node whose packets it checks";
            sheet.left(node.item.span, "this does not check the reply of the test", help);
            continue;
        };
        let made = rewrite(&sheet.value(&judge.value).unwrap_or_default(), About::Reply);
        tell(&judge.value, &made, sheet);
        expected.push(made.code);
        judges.insert(link.to);
        open.extend(node.links("out").iter().cloned());
    }
    if !expected.is_empty() {
        let all = match expected.as_slice() {
            [only] => only.clone(),
            all => all.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" && "),
        };
        sheet.change(&flow.nodes[at].at, "expect", Some(shown(&all)));
    }
}

/// Removes nodes that tests have taken in, unless other nodes send packets to them.
pub(super) fn without_judges<'t>(
    flow: &mut Workflow<'t>,
    judges: &BTreeSet<usize>,
    sheet: &mut Sheet<'t>,
) {
    let asked: BTreeSet<usize> = flow
        .ways()
        .into_iter()
        .filter(|way| !judges.contains(&way.from))
        .map(|way| way.to)
        .collect();
    for &judge in judges {
        let Some(number) = flow.nodes[judge].number().filter(|_| !asked.contains(&judge)) else {
            continue;
        };
        flow.nodes[judge].ports.iter_mut().for_each(|port| port.links.clear());
        flow.nodes[judge].kind = DONE;
        sheet.leave_out(number, Away::Gone);
    }
}

/// Rewrites an `assert` that follows a node.
pub(super) fn assert<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    remove(node, "timeout", "", sheet);
    if let Some(target) = node.entry("target") {
        sheet.change(&node.at, "target", None);
        let help = "put this node behind the node whose packets it checks";
        sheet.left(target.span, "an 'assert' looks at the packet that it gets", help);
    }
    if let Some(expect) = node.entry("expect") {
        expression(&expect.value, About::Packet, sheet);
        let help = "uniflow gives it [payload, index]";
        sheet.note(expect.span, "an 'assert' gets the packet itself", help);
    }
}

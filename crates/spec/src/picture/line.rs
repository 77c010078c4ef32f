//! What is drawn from one port to another: a link that carries messages, or one that carries
//! packets.

use sinew_plan::plan::{End, Link, Plan};

/// A link of either sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) delay: bool,
    /// Index into [`Plan::links`]; `None` if it carries packets.
    pub(super) link: Option<usize>,
}

/// All links: those that carry messages in the order of the plan, then those of flows.
pub(super) fn lines(plan: &Plan) -> Vec<Line> {
    let messages = plan.links.iter().enumerate().map(|(at, link)| {
        let &Link { from, to, delay, .. } = link;
        Line { from, to, delay, link: Some(at) }
    });
    let packets = plan.flow_links.iter().map(|link| {
        let (from, to) = (link.from, link.to);
        Line { from, to, delay: false, link: None }
    });
    messages.chain(packets).collect()
}

impl Line {
    /// The link, if it carries messages.
    pub(super) fn link<'a>(&self, plan: &'a Plan) -> Option<&'a Link> {
        self.link.map(|at| &plan.links[at])
    }

    /// How far the link reaches: inside a thread, between threads or between domains; or that it is
    /// a call of a flow.
    pub(super) fn reach(&self, plan: &Plan) -> &'static str {
        let domain = |end: End| plan.nodes[end.node].domain;
        match self.link(plan) {
            None => "flow",
            Some(link) if link.fused => "fused",
            Some(_) if domain(self.from) == domain(self.to) => "threads",
            Some(_) => "domains",
        }
    }
}

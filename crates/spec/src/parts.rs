//! The usable parts of a faulty graph: the nodes that can be examined alone. So errors in
//! expressions, scripts and files are reported together with those of the compiler.

use sinew_plan::plan::{
    Domain, End, HostPlan, LeftOut, Link, NOWHERE, Plan, Realtime, Role, SpecText,
};

use crate::assemble::{link, node};
use crate::draft::{self, Draft, Node};
use crate::join::Joined;
use crate::place::Home;

/// The parts of a graph whose errors are reported already. `homes` may have gaps; `joined` are
/// links that carry messages, each of them correct.
pub(crate) fn parts(draft: &Draft<'_>, homes: &[Option<Home>], joined: &[Joined<'_, '_>]) -> Plan {
    let (mut nodes, mut left_out) = (Vec::new(), Vec::new());
    let mut places = Vec::with_capacity(draft.nodes.len());
    for (at, of_draft) in draft.nodes.iter().enumerate() {
        let home = homes[at].map_or(NOWHERE, |home| home.domain);
        let made = node(draft, at, home, 0).filter(|_| stands_alone(draft, of_draft, home));
        places.push(made.is_some().then_some(nodes.len()));
        match made {
            Some(node) => nodes.push(node),
            None => left_out.push(LeftOut {
                name: draft.name(at).into_owned(),
                kind: of_draft.kind,
                domain: home,
            }),
        }
    }
    let place = |end: End| Some(End { node: places[end.node]?, ..end });
    let placed = |joined: &Joined<'_, '_>| {
        let homes = (homes[joined.from.node]?, homes[joined.to.node]?);
        let (from, to) = (place(joined.from)?, place(joined.to)?);
        Some(Link { from, to, ..link(draft, joined, homes) })
    };
    Plan {
        name: draft.name.to_owned(),
        hold: draft.hold,
        observe: false,
        domains: draft.domains.iter().map(domain).collect(),
        links: joined.iter().filter_map(placed).collect(),
        // Flow links may form loops here.
        flow_links: Vec::new(),
        hosts: HostPlan::default(),
        nodes,
        requirements: Vec::new(),
        notes: Vec::new(),
        left_out: Some(left_out),
        text: SpecText { file: draft.file.to_owned(), lines: draft.lines.clone() },
    }
}

/// Whether a node can be examined, whatever is wrong with others: all its values are good and, if
/// it runs in cycles, their period is known.
fn stands_alone(draft: &Draft<'_>, node: &Node<'_>, home: usize) -> bool {
    let Some(kind) = node.kind else { return false };
    let period = || draft.domains.get(home).and_then(|it| it.realtime()?.period_ns);
    node.is_whole
        && node.values.len() == kind.parameters.len()
        && (kind.runs_in.is_service() || period().is_some())
}

fn domain(of_draft: &draft::Domain<'_>) -> Domain {
    let role = match &of_draft.role {
        draft::Role::Service(service) => Role::Service(service.plan.clone()),
        draft::Role::Realtime(realtime) => {
            let period_ns = realtime.period_ns.unwrap_or_default();
            Role::Realtime(Realtime {
                period_ns,
                deadline_ns: realtime.deadline_ns.unwrap_or(period_ns),
                priority: realtime.priority,
                overrun: realtime.overrun,
                threads: Vec::new(),
            })
        }
    };
    of_draft.planned(role, None)
}

//! The first message to the page: the graph, its threads and signals, the arm.

use serde_json::json;
use sinew_core::catalogue::{Direction, Kind};
use sinew_core::clock::now_ns;
use sinew_core::trace::ThreadId;
use sinew_spec::catalogue::ParameterValue;
use sinew_spec::plan::{Domain, End, Link, Node, Plan, Release};

use super::figures::BUCKETS;
use super::ports;
use super::protocol::{Arm, Hello, SignalInfo, ThreadInfo, VERSION};
use super::{COMMAND, IMAGE};

/// The signal that moves an arm's joints: angles of the drives.
const JOINTS: &str = "position_rad";
/// The signal whose path is traced: place of the flange, x, y, z.
const PATH: (&str, usize) = ("actual_m", 3);
/// The planner's parameters that name paths, in the order of their numbers.
const PATHS: [&str; 2] = ["path", "other_paths"];

/// The description of a plan's run, made from `file`, for its node `name`. Without such a node
/// there are no commands and no images.
pub(super) fn hello(plan: &Plan, file: &str, arm: Option<Arm>, name: &str) -> Hello {
    let node = plan.nodes.iter().position(|node| node.name == name);
    let command = node.map(|node| End { node, port: COMMAND });
    let planner = plan.links.iter().find(|link| Some(link.from) == command);
    let planner = planner.map(|link| link.to.node);
    let image = node.map(|node| End { node, port: IMAGE });
    let ids: Vec<_> = ThreadId::all(plan).collect();
    let signals = signals(plan, &ids);
    let (ports, ports_left_out) = ports::infos(plan);
    let moving = arm.as_ref().map(|arm| arm.joints.iter().filter(|joint| joint.moves).count());
    let find = |name: &str, count: Option<usize>| {
        signals.iter().position(|row| row.name == name && Some(row.count) == count)
    };
    Hello {
        protocol: VERSION,
        sinew: env!("CARGO_PKG_VERSION"),
        graph: plan.name.clone(),
        file: file.to_owned(),
        life: format!("{:x}", now_ns()),
        now_ms: now_ns() as f64 / 1e6,
        threads: ids.iter().map(|&id| thread(plan, id)).collect(),
        joints_signal: find(JOINTS, moving),
        path_signal: find(PATH.0, Some(PATH.1)),
        signals,
        ports,
        ports_left_out,
        picture: picture(plan),
        arm,
        paths: planner.map_or_else(Vec::new, |planner| paths(plan, planner)),
        histogram: BUCKETS,
        commands: planner.is_some(),
        holds: plan.hold,
        camera: plan.links.iter().any(|link| Some(link.to) == image),
    }
}

/// The graph as the page draws it.
fn picture(plan: &Plan) -> serde_json::Value {
    let domain = |row: &Domain| json!({"name": row.name, "service": row.service().is_some()});
    let node = |at: usize| {
        let Node { name, kind, domain, .. } = &plan.nodes[at];
        let flow = plan.is_flow(at).then(|| if is_source(kind) { "source" } else { "node" });
        // Tests, and nodes that only tests reach, do nothing in a run.
        let runs = plan.domains[*domain].service().is_none_or(|row| row.nodes.contains(&at));
        json!({"name": name, "kind": kind.name, "domain": domain, "flow": flow, "runs": runs})
    };
    let ends = |from: End, to: End| {
        json!({
            "from": plan.end_name(from),
            "to": plan.end_name(to),
            "from_node": from.node,
            "to_node": to.node,
        })
    };
    let link = |row: &Link| {
        let mut json = ends(row.from, row.to);
        json["fused"] = json!(row.fused);
        json
    };
    json!({
        "domains": plan.domains.iter().map(domain).collect::<Vec<_>>(),
        "nodes": (0..plan.nodes.len()).map(node).collect::<Vec<_>>(),
        "links": plan.links.iter().map(link).collect::<Vec<_>>(),
        "flow_links": plan.flow_links.iter().map(|it| ends(it.from, it.to)).collect::<Vec<_>>(),
    })
}

/// Whether flows begin in nodes of this kind: packets leave them, and none come in.
fn is_source(kind: &Kind) -> bool {
    let has = |way: Direction| kind.ports.iter().any(|it| it.is_flow() && it.direction == way);
    has(Direction::Out) && !has(Direction::In)
}

fn thread(plan: &Plan, id: ThreadId) -> ThreadInfo {
    let domain = &plan.domains[id.domain];
    let realtime = domain.realtime().expect("only realtime domains have threads that cycle");
    let thread = &realtime.threads[id.thread];
    ThreadInfo {
        domain: domain.name.clone(),
        thread: id.thread,
        period_us: realtime.period_ns as f64 / 1000.0,
        deadline_us: realtime.deadline_ns as f64 / 1000.0,
        timed: thread.release == Release::Timer,
        nodes: thread.nodes.iter().map(|&node| plan.nodes[node].name.clone()).collect(),
    }
}

fn signals(plan: &Plan, ids: &[ThreadId]) -> Vec<SignalInfo> {
    let (mut rows, mut offset) = (Vec::new(), 0);
    for (thread, id) in ids.iter().enumerate() {
        for &node in &plan.domains[id.domain].threads()[id.thread].nodes {
            for signal in plan.nodes[node].kind.signals {
                rows.push(SignalInfo {
                    thread,
                    node: plan.nodes[node].name.clone(),
                    name: signal.name,
                    doc: signal.doc,
                    unit: signal.unit,
                    count: signal.count,
                    labels: signal.labels,
                    offset,
                });
                offset += signal.count;
            }
        }
    }
    rows
}

/// The paths of a planner, as its spec writes them.
fn paths(plan: &Plan, planner: usize) -> Vec<String> {
    let node = &plan.nodes[planner];
    let value = |name: &str| {
        let at = node.kind.parameters.iter().position(|parameter| parameter.name == name);
        at.map(|at| &node.values[at])
    };
    let texts = PATHS.iter().flat_map(|name| match value(name) {
        Some(ParameterValue::Text(text)) => vec![text.clone()],
        Some(ParameterValue::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    });
    texts.collect()
}

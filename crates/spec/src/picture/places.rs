//! Where everything of the picture stands, for a program that draws it itself and lets it live.

use serde_json::{Value as Json, json};

use crate::catalogue::{Direction, Port};
use crate::picture::layout::{Layout, Rect, layout, port_y};
use crate::picture::{
    SEPARATOR, domain_facts, end_text, message_text, option_texts, reach, thread_head,
};
use crate::plan::{Link, Plan};

/// The picture's rectangles, ways and words, in pixels from the upper left. Domains, nodes and
/// links are in the order of the plan.
pub fn places(plan: &Plan) -> Json {
    let places = layout(plan);
    let all = |count: usize, row: &dyn Fn(usize) -> Json| (0..count).map(row).collect::<Json>();
    json!({
        "width": places.width,
        "height": places.height,
        "firewall_x": places.firewall_x,
        "domains": all(plan.domains.len(), &|at| domain(plan, &places, at)),
        "threads": threads(plan, &places),
        "nodes": all(plan.nodes.len(), &|at| node(plan, &places, at)),
        "links": all(plan.links.len(), &|at| link(plan, &places, at)),
    })
}

fn placed(frame: Rect, mut json: Json) -> Json {
    let Rect { x, y, width, height } = frame;
    for (key, value) in [("x", x), ("y", y), ("width", width), ("height", height)] {
        json[key] = json!(value);
    }
    json
}

fn domain(plan: &Plan, places: &Layout, at: usize) -> Json {
    let domain = &plan.domains[at];
    let json = json!({
        "name": domain.name,
        "service": domain.service().is_some(),
        "facts": domain_facts(domain).join(SEPARATOR),
    });
    placed(places.domains[at], json)
}

/// Those of realtime domains; a service has none.
fn threads(plan: &Plan, places: &Layout) -> Json {
    let rows = plan.domains.iter().enumerate().flat_map(|(at, domain)| {
        domain.threads().iter().enumerate().map(move |(thread, row)| {
            let json = json!({"domain": at, "head": thread_head(plan, thread, row)});
            placed(places.threads[at][thread], json)
        })
    });
    rows.collect()
}

fn node(plan: &Plan, places: &Layout, at: usize) -> Json {
    let node = &plan.nodes[at];
    let ports = node.kind.ports.iter().enumerate();
    let ports = ports.map(|(port, row)| port_json(plan, places, (at, port), row));
    let json = json!({
        "name": node.name,
        "kind": node.kind.name,
        "domain": node.domain,
        "ports": ports.collect::<Json>(),
    });
    placed(places.nodes[at], json)
}

fn port_json(plan: &Plan, places: &Layout, (node, port): (usize, usize), row: &Port) -> Json {
    let frame = places.nodes[node];
    let is_out = row.direction == Direction::Out;
    let mut ends = plan.links.iter().flat_map(|link| [link.from, link.to]);
    let safe = plan.nodes[node].actuators.iter().find(|actuator| actuator.port == port);
    json!({
        "name": row.name,
        "out": is_out,
        "x": if is_out { frame.right() } else { frame.x },
        "y": port_y(places, plan, node, port),
        "linked": ends.any(|end| (end.node, end.port) == (node, port)),
        "safe": safe.map(|it| format!("{} after {}", row.safe[it.safe].name, it.after)),
    })
}

fn link(plan: &Plan, places: &Layout, at: usize) -> Json {
    let (link, way): (&Link, _) = (&plan.links[at], &places.ways[at]);
    json!({
        "from": end_text(plan, link.from),
        "to": end_text(plan, link.to),
        "from_node": link.from.node,
        "to_node": link.to.node,
        "message": message_text(link),
        "options": option_texts(plan, link),
        "capacity": link.capacity,
        "reach": reach(plan, link),
        "delayed": link.delay,
        "points": way.points,
        "label": placed(way.label, json!({})),
    })
}

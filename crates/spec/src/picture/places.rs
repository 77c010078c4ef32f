//! Where everything of the picture stands, for a program that draws it itself and lets it live.

use serde_json::{Value as Json, json};
use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{End, Plan};

use crate::picture::layout::{Layout, Rect, layout, port_y};
use crate::picture::{SEPARATOR, domain_facts, end_text, message_text, option_texts, thread_head};

/// The picture's rectangles, ways and words, in pixels from the upper left. Domains, nodes and
/// links are in the order of the plan; links that carry packets are left out.
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
        "facts": domain_facts(plan, domain).join(SEPARATOR),
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
    let ports = places.ports[at].iter();
    let ports = ports.map(|&port| port_json(plan, places, End { node: at, port }));
    let json = json!({
        "name": node.name,
        "kind": node.kind.name,
        "domain": node.domain,
        "ports": ports.collect::<Json>(),
    });
    placed(places.nodes[at], json)
}

fn port_json(plan: &Plan, places: &Layout, end: End) -> Json {
    let (frame, node, port) = (places.nodes[end.node], &plan.nodes[end.node], plan.port(end));
    let is_out = port.direction == Direction::Out;
    let safe = node.actuators.iter().find(|actuator| actuator.port == end.port);
    json!({
        "name": node.kind.port_name(end.port),
        "out": is_out,
        "x": if is_out { frame.right() } else { frame.x },
        "y": port_y(places, plan, end),
        "linked": places.linked.contains(&end),
        "safe": safe.map(|it| format!("{} after {}", port.safe[it.safe].name, it.after)),
    })
}

fn link(plan: &Plan, places: &Layout, at: usize) -> Json {
    // The lines begin with those of links.
    let (link, line, way) = (&plan.links[at], &places.lines[at], &places.ways[at]);
    json!({
        "from": end_text(plan, link.from),
        "to": end_text(plan, link.to),
        "from_node": link.from.node,
        "to_node": link.to.node,
        "message": message_text(link),
        "options": option_texts(plan, link),
        "capacity": link.capacity,
        "reach": line.reach(plan),
        "delayed": link.delay,
        "points": way.points,
        "label": placed(way.label, json!({})),
    })
}

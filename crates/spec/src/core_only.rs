//! The core of a graph without its services, as a spec that can be measured alone.

use std::collections::HashSet;

use serde_json::{Value as Json, json};
use sinew_plan::plan::Plan;

use crate::diagnostic::Report;
use crate::yaml;

/// The spec of the core of `plan`, which was made from `text`: without services and the links to
/// them, as JSON, which is YAML too. Late cycles are counted and a full queue drops messages, so
/// that slowness is measured and is not a fault. `None` if the text is not YAML, or a bare list of
/// nodes.
pub fn core_of(text: &str, plan: &Plan) -> Option<String> {
    let mut root = yaml::item_json(&yaml::parse(text, 0, &Report::default())?);
    let domains = plan.domains.iter().filter(|domain| domain.realtime().is_some());
    let domains: HashSet<&str> = domains.map(|domain| domain.name.as_str()).collect();
    let nodes = (0..plan.nodes.len()).filter(|&node| !plan.is_service(node));
    let nodes: HashSet<&str> = nodes.map(|node| plan.nodes[node].name.as_str()).collect();
    let graph = root.as_object_mut()?;
    for key in ["hold", "hosts", "host"] {
        graph.remove(key);
    }
    let all = graph.get_mut("domains")?.as_object_mut()?;
    all.retain(|name, _| domains.contains(name.as_str()));
    for domain in all.values_mut() {
        domain["realtime"]["overrun"] = json!({"policy": "count"});
        domain.as_object_mut()?.remove("host");
    }
    let all = graph.get_mut("nodes")?.as_array_mut()?;
    all.retain(|node| name_of(node).is_some_and(|name| nodes.contains(name)));
    for node in all {
        keep_links(node, &nodes);
    }
    Some(root.to_string())
}

fn name_of(node: &Json) -> Option<&str> {
    node.get("name").or(node.get("kind"))?.as_str()
}

/// Keeps only links to these nodes, and ports that still have a link.
fn keep_links(node: &mut Json, nodes: &HashSet<&str>) {
    let Some(ports) = node.get_mut("ports").and_then(Json::as_object_mut) else { return };
    for links in ports.values_mut().filter_map(Json::as_array_mut) {
        links.retain(|link| name_of(link).is_some_and(|name| nodes.contains(name)));
        for link in links {
            if link.get("delivery").is_none_or(|delivery| delivery == "queue") {
                link["full"] = json!("drop");
            }
        }
    }
    ports.retain(|_, links| links.as_array().is_none_or(|links| !links.is_empty()));
}

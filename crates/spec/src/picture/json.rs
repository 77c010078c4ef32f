//! The plan as JSON.

use serde_json::{Value as Json, json};

use crate::catalogue::Value;
use crate::picture::end_text;
use crate::plan::{Link, Node, Overrun, Plan, Release, Thread};

/// The whole plan; nodes, links and threads refer to each other by name.
pub fn json(plan: &Plan) -> Json {
    let domains = plan.domains.iter().map(|domain| {
        let overrun = match domain.overrun {
            Overrun::Stop { consecutive_max } => {
                json!({"policy": "stop", "consecutive_max": consecutive_max})
            }
            Overrun::Count => json!({"policy": "count"}),
        };
        json!({
            "name": domain.name,
            "period_ns": domain.period_ns,
            "deadline_ns": domain.deadline_ns,
            "priority": domain.priority,
            "overrun": overrun,
            "threads": domain.threads.iter().map(|row| thread(plan, row)).collect::<Json>(),
        })
    });
    json!({
        "name": plan.name,
        "domains": domains.collect::<Json>(),
        "nodes": plan.nodes.iter().map(|row| node(plan, row)).collect::<Json>(),
        "links": plan.links.iter().map(|row| link(plan, row)).collect::<Json>(),
        "notes": plan.notes,
    })
}

fn thread(plan: &Plan, thread: &Thread) -> Json {
    let release = match thread.release {
        Release::Timer => json!("timer"),
        Release::Input(link) => json!({"input": end_text(plan, plan.links[link].to)}),
    };
    let names = thread.nodes.iter().map(|&node| plan.nodes[node].name.as_str());
    json!({"cpu": thread.cpu, "release": release, "nodes": names.collect::<Json>()})
}

fn node(plan: &Plan, node: &Node) -> Json {
    let values = node.kind.parameters.iter().zip(&node.values);
    let values = values.map(|(row, value)| (row.name.to_owned(), parameter(value)));
    let safe = node.actuators.iter().map(|actuator| {
        let port = &node.kind.ports[actuator.port];
        let value = json!({"value": port.safe[actuator.safe].name, "after": actuator.after});
        (port.name.to_owned(), value)
    });
    json!({
        "name": node.name,
        "kind": node.kind.name,
        "domain": plan.domains[node.domain].name,
        "thread": node.thread,
        "parameters": Json::Object(values.collect()),
        "safe": Json::Object(safe.collect()),
        "line": node.line,
    })
}

fn parameter(value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Number(value) => json!(value),
        Value::Numbers(values) => json!(values),
        Value::Text(text) => json!(text),
    }
}

fn link(plan: &Plan, link: &Link) -> Json {
    json!({
        "from": end_text(plan, link.from),
        "to": end_text(plan, link.to),
        "message": {"name": link.message.name, "bytes": link.message.size},
        "fused": link.fused,
        "transport": link.transport.word(),
        "sync": link.sync.word(),
        "delivery": link.delivery.word(),
        "wait": link.wait.word(),
        "capacity": link.capacity,
        "full": link.full.word(),
        "delay": u8::from(link.delay),
    })
}

//! The plan as JSON.

use serde_json::{Value as Json, json};
use sinew_plan::catalogue::ParameterValue;
use sinew_plan::duration_text;
use sinew_plan::plan::{
    Delivery, Domain, FlowLink, Host, Link, LinkTuning, Node, Overrun, Plan, PoolSize, Realtime,
    Release, RemoteCall, RemoteEnd, RemoteLink, Requirement, Restart, Role, ServiceDomain,
    ServiceLimits, Thread,
};

use crate::value::size_text;
use crate::yaml::item_json;

/// The whole plan; nodes, links and threads refer to each other by name.
pub fn json(plan: &Plan) -> Json {
    let domains = plan.domains.iter().map(|domain| domain_json(plan, domain));
    json!({
        "name": plan.name,
        "domains": domains.collect::<Json>(),
        "nodes": plan.nodes.iter().map(|row| node(plan, row)).collect::<Json>(),
        "links": plan.links.iter().map(|row| link(plan, row)).collect::<Json>(),
        "flow_links": plan.flow_links.iter().map(|row| flow_link(plan, row)).collect::<Json>(),
        "hosts": plan.hosts.all.iter().map(host).collect::<Json>(),
        // As text, because it has more digits than a JSON number can hold.
        "hosts_version": format!("{:#018x}", plan.hosts.version),
        "host": plan.own_host().map(|host| &host.name),
        "remote_links": plan.hosts.links.iter().map(|row| remote_link(plan, row)).collect::<Json>(),
        "remote_calls": plan.hosts.calls.iter().map(|row| remote_call(plan, row)).collect::<Json>(),
        "requirements": requirements(plan),
        "notes": plan.notes,
    })
}

fn requirements(plan: &Plan) -> Json {
    let row =
        |row: &Requirement| json!({"of": row.subject(plan), "requires": row.bound.to_string()});
    plan.requirements.iter().map(row).collect()
}

fn domain_json(plan: &Plan, domain: &Domain) -> Json {
    let mut json = match &domain.role {
        Role::Realtime(realtime) => realtime_json(plan, realtime),
        Role::Service(service) => service_json(plan, service),
    };
    json["name"] = json!(domain.name);
    json["user"] = json!(domain.user);
    json["host"] = json!(domain.host.map(|host| &plan.hosts.all[host].name));
    json
}

fn realtime_json(plan: &Plan, realtime: &Realtime) -> Json {
    let overrun = match realtime.overrun {
        Overrun::Stop { consecutive_max } => {
            json!({"policy": "stop", "consecutive_max": consecutive_max})
        }
        Overrun::Count => json!({"policy": "count"}),
    };
    json!({
        "name": "",
        "role": "realtime",
        "period_ns": realtime.period_ns,
        "deadline_ns": realtime.deadline_ns,
        "priority": realtime.priority,
        "overrun": overrun,
        "threads": realtime.threads.iter().map(|row| thread(plan, row)).collect::<Json>(),
    })
}

fn service_json(plan: &Plan, service: &ServiceDomain) -> Json {
    let Restart { policy, backoff_ns, backoff_max_ns, restarts_max, window_ns } = service.restart;
    let ServiceLimits { memory_bytes, cpu_percent, descriptors, processes } = service.limits;
    let blocking = match service.flows.blocking {
        PoolSize { min, max, .. } if min == max => json!(min),
        PoolSize { start, min, max } => json!({"start": start, "min": min, "max": max}),
    };
    let names = service.nodes.iter().map(|&node| plan.nodes[node].name.as_str());
    json!({
        "name": "",
        "role": "service",
        "guest": service.guest.as_ref().map(|guest| {
            json!({
                "image": guest.image,
                "board": guest.board.word(),
                "memory_bytes": guest.memory_bytes,
                "period_ns": guest.period_ns,
            })
        }),
        "nodes": names.collect::<Json>(),
        "cpus": service.cpus,
        "flows": {"workers": service.flows.workers, "blocking": blocking},
        "restart": {
            "policy": policy.word(),
            "backoff_ns": backoff_ns,
            "backoff_max_ns": backoff_max_ns,
            "restarts_max": restarts_max,
            "window_ns": window_ns,
        },
        "start_deadline_ns": service.start_deadline_ns,
        "heartbeat_ns": service.heartbeat_ns,
        "stop_deadline_ns": service.stop_deadline_ns,
        "limits": {
            "memory_bytes": memory_bytes,
            "cpu_percent": cpu_percent,
            "descriptors": descriptors,
            "processes": processes,
        },
    })
}

fn thread(plan: &Plan, thread: &Thread) -> Json {
    let release = match thread.release {
        Release::Timer => json!("timer"),
        Release::Input(link) => json!({"input": plan.end_name(plan.links[link].to)}),
    };
    let names = thread.nodes.iter().map(|&node| plan.nodes[node].name.as_str());
    json!({"cpu": thread.cpu, "release": release, "nodes": names.collect::<Json>()})
}

fn node(plan: &Plan, node: &Node) -> Json {
    let values = node.kind.parameters.iter().zip(&node.values).zip(&node.written);
    // A value that came from outside of the spec is shown as the spec writes it.
    let shown = |value, written: &Option<String>| {
        written.as_ref().map_or_else(|| parameter(value), |written| json!(written))
    };
    let values = values.map(|((row, value), written)| (row.name.to_owned(), shown(value, written)));
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

fn parameter(value: &ParameterValue) -> Json {
    match value {
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Number(value) => json!(value),
        ParameterValue::Numbers(values) => json!(values),
        ParameterValue::Text(text) => json!(text),
        ParameterValue::Texts(texts) => json!(texts),
        ParameterValue::Duration(ns) => json!(duration_text(*ns)),
        ParameterValue::Size(bytes) => json!(size_text(*bytes)),
        ParameterValue::Yaml(item) => item_json(item),
    }
}

fn link(plan: &Plan, link: &Link) -> Json {
    json!({
        "from": plan.end_name(link.from),
        "to": plan.end_name(link.to),
        "message": {"name": link.message.name, "bytes": link.message.size},
        "field": link.part.as_ref().map(|part| &part.field),
        "fused": link.fused,
        "transport": link.transport.word(),
        "sync": link.sync.word(),
        "delivery": link.delivery.word(),
        "wait": link.wait.word(),
        "capacity": link.capacity,
        "full": link.full.word(),
        "delay": u8::from(link.delay),
        "after_ns": link.after_ns,
        "tuning": link.tuning.as_ref().map(|it| tuning(it, link.delivery)),
    })
}

fn host(host: &Host) -> Json {
    json!({
        "name": host.name,
        "address": host.address,
        "listen": host.listen,
        "router": host.router,
        "tls": host.tls.is_some(),
        "key": host.key.is_some(),
    })
}

fn remote_link(plan: &Plan, link: &RemoteLink) -> Json {
    json!({
        "from": remote_end(plan, &link.from),
        "to": remote_end(plan, &link.to),
        "message": {"name": link.message.name, "bytes": link.message.size},
        "delivery": link.delivery.word(),
        "capacity": link.capacity,
        "after_ns": link.after_ns,
    })
}

fn remote_call(plan: &Plan, call: &RemoteCall) -> Json {
    json!({"from": remote_end(plan, &call.from), "to": remote_end(plan, &call.to)})
}

fn remote_end(plan: &Plan, end: &RemoteEnd) -> Json {
    let host = &plan.hosts.all[end.host].name;
    json!({"host": host, "node": end.node, "port": end.port})
}

/// Only a queue has a layout to choose.
fn tuning(tuning: &LinkTuning, delivery: Delivery) -> Json {
    let LinkTuning { layout, eager_polls, gap_ns, fetches_ahead, hands_over } = *tuning;
    json!({
        "layout": (delivery == Delivery::Queue).then(|| layout.word()),
        "eager_polls": eager_polls,
        "gap_ns": gap_ns,
        "fetches_ahead": fetches_ahead,
        "hands_over": hands_over,
    })
}

fn flow_link(plan: &Plan, link: &FlowLink) -> Json {
    json!({"from": plan.end_name(link.from), "to": plan.end_name(link.to)})
}

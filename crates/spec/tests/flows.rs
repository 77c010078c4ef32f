//! Good graphs of flow nodes: their links, and blocks, of which only the nodes remain.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::{ARM, compile_on, plan, set};
use proptest::prelude::*;
use sinew_spec::catalogue::ParameterValue;
use sinew_spec::item_json;
use sinew_spec::plan::{Delivery, Flows, Link, Plan, PoolSize};

/// All links that carry packets, in the order of the plan.
fn links(plan: &Plan) -> Vec<String> {
    let end = |end| plan.end_name(end);
    plan.flow_links.iter().map(|link| format!("{} {}", end(link.from), end(link.to))).collect()
}

#[test]
fn links_stand_in_the_order_of_ports_and_then_of_the_text() {
    let plan = plan(
        "
- {kind: begin, ports: {out: [{name: b, port: in}, {name: a, port: in}, {name: b, port: in}]}}
- {kind: step, name: a, ports: {error: [{name: b, port: in}], out: [{name: fan, port: in}]}}
- {kind: step, name: b}
- kind: fan
  ports: {\"out[7]\": [{name: b, port: in}], \"out[1023]\": [], \"out[0]\": [{name: b, port: in}]}
",
    );
    let expected = [
        "begin.out b.in",
        "begin.out a.in",
        "begin.out b.in",
        "a.out fan.in",
        "a.error b.in",
        "fan.out[0] b.in",
        "fan.out[7] b.in",
    ];
    assert_eq!(links(&plan), expected);
    assert!(plan.links.is_empty() && plan.notes.is_empty());
}

#[test]
fn a_bare_list_of_flow_nodes_is_one_service() {
    let plan = plan(
        "
- kind: begin
  ports:
    out:
      - name: step
        port: in
- kind: step
  pause: 1.5m
  body_max: 8KiB
  body: {a: [1, two]}
  code: |
    local x = 1

    return x
",
    );
    assert_eq!(plan.domains.len(), 1);
    let service = plan.domains[0].service().expect("a service");
    let blocking = PoolSize { start: 8, min: 2, max: 512 };
    assert_eq!(service.flows, Flows { workers: None, blocking });
    let values = &plan.nodes[1].values;
    assert_eq!(values[0], ParameterValue::Text("local x = 1\n\nreturn x\n".to_owned()));
    assert_eq!(
        (&values[1], &values[2]),
        (&ParameterValue::Duration(90_000_000_000), &ParameterValue::Size(8192))
    );
    let ParameterValue::Yaml(item) = &values[3] else { panic!("a piece of YAML") };
    assert_eq!(item_json(item), serde_json::json!({"a": [1, "two"]}));
}

const AUTH: &str = "
- {kind: begin, ports: {out: [{name: auth, port: in}]}}
- kind: block
  name: auth
  nodes:
    - {kind: fan, name: check, ports: {\"out[1]\": [{name: log, port: in}]}}
    - {kind: step, name: log}
  inputs: {in: [{name: check, port: in}, {name: log, port: in}]}
  outputs: {out: [{name: check, port: \"out[0]\"}], denied: [{name: check, port: \"out[1]\"}]}
  ports: {out: [{name: next, port: in}], denied: [{name: next, port: in}]}
- {kind: step, name: next}
";

#[test]
fn a_run_leaves_out_tests_and_what_only_they_reach() {
    let mut plan = plan(
        "
- {kind: trial, name: t, ports: {out: [{name: a, port: in}]}}
- {kind: trial, name: u, ports: {out: [{name: c, port: in}]}}
- {kind: begin, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: a, ports: {out: [{name: b, port: in}, {name: d, port: in}]}}
- {kind: step, name: b, ports: {error: [{name: c, port: in}]}}
- {kind: step, name: c}
- {kind: step, name: d}
",
    );
    let nodes = |plan: &Plan| -> Vec<String> {
        let nodes = &plan.domains[0].service().expect("a service").nodes;
        nodes.iter().map(|&node| plan.nodes[node].name.clone()).collect()
    };
    assert_eq!(nodes(&plan), ["t", "u", "begin", "a", "b", "c", "d"]);
    plan.leave_out_tests();
    assert_eq!(nodes(&plan), ["begin", "b", "c"]);
}

#[test]
fn a_run_keeps_what_is_linked_to_the_core() {
    let test = "- {kind: trial, name: t, domain: web, ports: {out: [{name: look, port: in}]}}";
    let look = "- {kind: look, domain: web}";
    let text = ARM.replacen("domains:", "domains:\n  web: {}", 1).replacen(
        "out: [{name: ik, port: in}]",
        "out: [{name: ik, port: in}, {name: look, port: message}]",
        1,
    );
    let mut plan = plan(&format!("{text}\n  {test}\n  {look}\n"));
    plan.leave_out_tests();
    let mut services = plan.domains.iter().filter_map(|domain| domain.service());
    let nodes = &services.next().expect("a service").nodes;
    let names: Vec<&str> = nodes.iter().map(|&node| &*plan.nodes[node].name).collect();
    assert_eq!(names, ["look"]);
}

/// With quadratic time in the number of ports it would take minutes.
#[test]
fn a_block_may_have_as_many_ports_as_a_graph_has_nodes() {
    let ports = 0..90_000;
    let links: Vec<String> = ports.clone().map(|at| format!("{{name: k, port: p{at}}}")).collect();
    let inputs: Vec<String> = ports.map(|at| format!("p{at}: [{{name: a, port: in}}]")).collect();
    let (links, inputs) = (links.join(", "), inputs.join(", "));
    let plan = plan(&format!(
        "
- {{kind: begin, ports: {{out: [{links}]}}}}
- {{kind: block, name: k, inputs: {{{inputs}}}, nodes: [{{kind: step, name: a}}]}}
"
    ));
    assert_eq!(plan.flow_links.len(), 90_000);
}

#[test]
fn of_a_block_only_its_nodes_are_left() {
    let plan = plan(AUTH);
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["begin", "auth/check", "auth/log", "next"]);
    assert_eq!(plan.nodes.iter().map(|node| node.line).collect::<Vec<_>>(), [2, 6, 7, 11]);
    let expected = [
        "begin.out auth/check.in",
        "begin.out auth/log.in",
        "auth/check.out[0] next.in",
        "auth/check.out[1] auth/log.in",
        "auth/check.out[1] next.in",
    ];
    assert_eq!(links(&plan), expected);
}

#[test]
fn an_output_of_a_block_may_lead_nowhere() {
    let plan = plan(&AUTH.replace("  ports: {out: [{name: next, port: in}], ", "  ports: {"));
    assert!(!links(&plan).contains(&"auth/check.out[0] next.in".to_owned()));
}

#[test]
fn blocks_nest_and_their_names_stay_inside() {
    let plan = plan(
        "
name: nested
domains: {web: {flows: {workers: 2}}, other: {}}
nodes:
  - {kind: gauge, domain: other}
  - {kind: begin, domain: web, ports: {out: [{name: a, port: in}]}}
  - kind: block
    name: a
    domain: web
    nodes:
      - kind: block
        name: a
        nodes: [{kind: step, name: a, ports: {error: [{name: b, port: in}]}}, {kind: step, name: b}]
        inputs: {first: [{name: a, port: in}]}
        outputs: {last: [{name: a, port: out}, {name: b, port: out}]}
        ports: {last: [{name: b, port: in}]}
      - {kind: step, name: b}
    inputs: {in: [{name: a, port: first}]}
    outputs: {out: [{name: b, port: out}], raw: [{name: a, port: last}]}
    ports: {raw: [{name: b, port: in}]}
  - {kind: step, name: b, domain: web}
",
    );
    let expected = [
        "begin.out a/a/a.in",
        "a/a/a.out a/b.in",
        "a/a/a.out b.in",
        "a/a/a.error a/a/b.in",
        "a/a/b.out a/b.in",
        "a/a/b.out b.in",
    ];
    assert_eq!(links(&plan), expected);
    let web = plan.domains.iter().position(|domain| domain.name == "web");
    assert!(
        plan.nodes.iter().filter(|node| node.kind.name == "step").all(|n| Some(n.domain) == web)
    );
}

#[test]
fn messages_reach_the_nodes_of_a_block_by_its_ports() {
    let links_of_ik = "{name: ethercat, port: in}, {name: view, port: state, delivery: broadcast}";
    let text = ARM
        .replace("domains:\n", "domains:\n  web: {}\n")
        .replace("{name: ethercat, port: in}", links_of_ik)
        + "  - {kind: filter, name: wish, domain: control}
  - {kind: begin, domain: web, ports: {out: [{name: view, port: in}]}}
  - kind: block
    name: view
    domain: web
    nodes: [{kind: look}]
    inputs: {in: [{name: look, port: in}], state: [{name: look, port: message}]}
    outputs: {wish: [{name: look, port: wish}]}
    ports: {wish: [{name: wish, port: in, capacity: 4}]}
";
    let plan = plan(&text);
    assert_eq!(links(&plan), ["begin.out view/look.in"]);
    let look = plan.nodes.iter().position(|node| node.name == "view/look").expect("a node");
    let of_look = |link: &&Link| [link.from.node, link.to.node].contains(&look);
    let of_look = plan.links.iter().filter(of_look);
    let found: Vec<_> =
        of_look.map(|link| (link.message.name, link.delivery, link.capacity)).collect();
    let expected = [("Joints", Delivery::Broadcast, 8), ("Joints", Delivery::Queue, 4)];
    assert_eq!(found, expected);
}

#[test]
fn the_command_line_reaches_into_blocks() {
    let set = |path: &str, value: &str| set(AUTH, path, value);
    let plan = set("auth/log.code", "x").expect("a good graph");
    assert_eq!(plan.nodes[2].values[0], ParameterValue::Text("x".to_owned()));
    let plan =
        set("auth.outputs", "{denied: [{name: log, port: out}], out: [{name: log, port: out}]}");
    assert!(links(&plan.expect("a good graph")).contains(&"auth/log.out next.in".to_owned()));
    let help = |path: &str| set(path, "x").unwrap_err()[0].help.clone();
    assert_eq!(help("auth/lgo.code"), "did you mean 'auth/log'?");
    assert_eq!(help("log.code"), "known: begin, auth, auth/check, auth/log, next");
    let error = set("auth/log.pause", "5").unwrap_err().remove(0);
    assert_eq!(error.file, "--set auth/log.pause=5");
}

#[test]
fn a_service_with_flows_needs_threads_for_them() {
    let text = "
domains: {web: {flows: {workers: 3}, limits: {processes: 5}}}
nodes: [{kind: begin}]
";
    let errors = compile_on(2, text).unwrap_err();
    assert_eq!(errors[0].message, "service 'web' cannot run with processes: 5; it needs 8");
    assert!(compile_on(2, &text.replace("processes: 5", "processes: 8")).is_ok());
}

/// A chain of blocks, each inside the next: ports of the inner ones are named `count` times.
fn multiplied(depth: usize, count: usize, output: bool) -> String {
    let ports = |port: &str, count| format!("{{name: b, port: {port}}}, ").repeat(count);
    let (ins, outs) = match output {
        true => (ports("in", 1), ports("out", count)),
        false => (ports("in", count), String::new()),
    };
    let open = format!(
        "{{kind: block, name: b, inputs: {{in: [{ins}]}}, outputs: {{out: [{outs}]}}, nodes: ["
    );
    let (open, close) = (open.repeat(depth), "]}".repeat(depth));
    let begin = "- {kind: begin, ports: {out: [{name: b, port: in}]}}";
    format!("{begin}\n- {open}{{kind: step, name: b}}{close}\n")
}

#[test]
fn blocks_that_multiply_their_ports_are_refused() {
    for output in [true, false] {
        let text = multiplied(8, 20, output);
        let errors = compile_on(2, &text).unwrap_err();
        let many = "more than 100000 ports stand behind the ports of blocks";
        assert_eq!(errors.iter().filter(|error| error.message == many).count(), 1, "{errors:?}");
    }
    let fan = |count| {
        let ends = "{name: s, port: in}, ".repeat(count);
        let outs = "{name: s, port: out}, ".repeat(count);
        format!(
            "- {{kind: begin, ports: {{out: [{{name: one, port: in}}]}}}}
- {{kind: block, name: one, inputs: {{in: [{ends}]}}, outputs: {{out: [{outs}]}},
   ports: {{out: [{{name: two, port: in}}]}}, nodes: [{{kind: step, name: s}}]}}
- {{kind: block, name: two, inputs: {{in: [{ends}]}}, nodes: [{{kind: step, name: s}}]}}
"
        )
    };
    assert_eq!(plan(&fan(30)).flow_links.len(), 30 + 900);
    let errors = compile_on(2, &fan(400)).unwrap_err();
    assert!(
        errors[0].message.starts_with("ports of blocks make more than 100000"),
        "{}",
        errors[0]
    );
}

/// The blocks around a node of a drawn graph, and the nodes that its links lead to, as indices.
#[derive(Clone, Debug)]
struct Drawn {
    blocks: Vec<usize>,
    leads: Vec<usize>,
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let blocks = prop::collection::vec(0..3usize, 0..4);
    let node = (blocks, prop::collection::vec(0..12usize, 0..4));
    let node = node.prop_map(|(blocks, leads)| Drawn { blocks, leads });
    prop::collection::vec(node, 1..12)
}

/// A node or block as it is written; a member of a block has a longer path.
#[derive(Default)]
struct Member {
    ports: BTreeMap<String, Vec<String>>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// The members of a graph by their paths: names of blocks, and at the end their own.
type Members = BTreeMap<Vec<String>, Member>;

/// Adds a link, with one port for each border of a block that it crosses.
fn put(members: &mut Members, link: usize, from: &[String], to: &[String]) {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let port = |path: &[String], level: usize, own: &str| {
        if level + 1 == path.len() { own.to_owned() } else { format!("p{link}") }
    };
    let end = |path: &[String], level: usize, own: &str| {
        format!("{{name: {}, port: {}}}", path[level], port(path, level, own))
    };
    for level in shared + 1..from.len() {
        let block = members.entry(from[..level].to_vec()).or_default();
        block.outputs.push(format!("p{link}: [{}]", end(from, level, "out")));
    }
    for level in shared + 1..to.len() {
        let block = members.entry(to[..level].to_vec()).or_default();
        block.inputs.push(format!("p{link}: [{}]", end(to, level, "in")));
    }
    let writer = members.entry(from[..=shared].to_vec()).or_default();
    let port = port(from, shared, "out");
    writer.ports.entry(port).or_default().push(end(to, shared, "in"));
}

/// The list of all members directly below a path.
fn write(members: &Members, prefix: &[String]) -> String {
    let here = |path: &&Vec<String>| path.len() == prefix.len() + 1 && path.starts_with(prefix);
    let member = |path: &Vec<String>| {
        let (Member { ports, inputs, outputs }, name) = (&members[path], &path[prefix.len()]);
        let ports = ports.iter().map(|(port, links)| format!("{port}: [{}]", links.join(", ")));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let kind = match &name[..1] {
            "b" if name != "begin" => format!(
                "block, inputs: {{{}}}, outputs: {{{}}}, nodes: [{}]",
                inputs.join(", "),
                outputs.join(", "),
                write(members, path)
            ),
            "b" => "begin".to_owned(),
            _ => "step".to_owned(),
        };
        format!("{{name: {name}, ports: {{{ports}}}, kind: {kind}}}")
    };
    members.keys().filter(here).map(member).collect::<Vec<_>>().join(",\n")
}

/// The graph with all nodes in their blocks, and the links of the same graph without blocks.
fn in_blocks(nodes: &[Drawn]) -> (String, Vec<String>) {
    let path = |at: usize| -> Vec<String> {
        let blocks = nodes[at].blocks.iter().map(|block| format!("b{block}"));
        blocks.chain([format!("n{at}")]).collect()
    };
    // Links only lead to nodes further down, so that no flow is a loop; a node without an incoming
    // link begins at the source.
    let ahead = |at: usize| {
        let leads = nodes[at].leads.iter().copied();
        leads.filter(move |&to| at < to && to < nodes.len()).map(move |to| (path(at), to))
    };
    let mut pairs: Vec<_> = (0..nodes.len()).flat_map(ahead).collect();
    let reached: BTreeSet<usize> = pairs.iter().map(|&(_, to)| to).collect();
    let begins = (0..nodes.len()).filter(|node| !reached.contains(node));
    pairs.extend(begins.map(|node| (vec!["begin".to_owned()], node)));
    let mut members = Members::default();
    for at in 0..nodes.len() {
        let path = path(at);
        for len in 1..=path.len() {
            members.entry(path[..len].to_vec()).or_default();
        }
    }
    let mut flat = Vec::new();
    for (link, (from, to)) in pairs.iter().enumerate() {
        let to = path(*to);
        put(&mut members, link, from, &to);
        flat.push(format!("{}.out {}.in", from.join("/"), to.join("/")));
    }
    flat.sort();
    (format!("[{}]", write(&members, &[])), flat)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However a graph is cut into blocks, the plan has its links and no others.
    #[test]
    fn a_graph_in_blocks_has_the_links_of_the_same_graph_without_them(nodes in drawn()) {
        let (nested, flat) = in_blocks(&nodes);
        let mut found = links(&plan(&nested));
        found.sort();
        prop_assert_eq!(found, flat, "{}", nested);
    }
}

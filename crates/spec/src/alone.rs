//! For tests of kinds: a node with nothing around it, as a graph would make it.

use sinew_plan::catalogue::{Kind, Port};
use sinew_plan::plan::{Node, TargetMachine};

use crate::{SpecSource, compile, render};

/// A node of this kind in a realtime domain of 1 ms, with defaults but for `given`: lines of YAML
/// for the node. `graph` are lines for the graph, such as `messages: {axis: {position_rad: f64}}`.
/// None of its ports need a link or a safe value.
///
/// # Errors
/// What the compiler says of such a graph, as it is shown to people.
///
/// # Panics
/// As [`compile`].
pub fn alone(kind: &'static Kind, given: &[(&str, &str)], graph: &str) -> Result<Node, String> {
    let port = |port: &Port| Port { optional: true, safe: &[], ..*port };
    let ports = kind.ports.iter().map(port).collect::<Vec<_>>().leak();
    let alone: &'static Kind = Box::leak(Box::new(Kind { ports, ..*kind }));
    let given: String = given.iter().map(|(name, value)| format!(", {name}: {value}")).collect();
    let text = format!(
        "name: test\n{graph}\ndomains: {{control: {{realtime: {{period: 1ms}}}}}}\n\
         nodes: [{{kind: {}, name: alone, domain: control{given}}}]\n",
        kind.name
    );
    let source = SpecSource::of("test.yaml", &text);
    let plan = compile(&source, &[alone], &TargetMachine::of(vec![0]));
    plan.map(|mut plan| plan.nodes.remove(0)).map_err(|bad| render(&bad, &text, false))
}

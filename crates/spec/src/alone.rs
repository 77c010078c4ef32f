//! For tests of kinds: a single node, as a graph would make it.

use sinew_plan::catalogue::{Kind, Port};
use sinew_plan::plan::{Node, TargetMachine};

use crate::{SpecSource, compile, render};

/// A node of this kind in a realtime domain of 1 ms. Its values are defaults except for `given`,
/// which are lines of YAML for the node. `graph` has lines for the graph, such as
/// `messages: {axis: {position_rad: f64}}`. None of its ports need a link or a safe value.
///
/// # Errors
/// The compiler's errors for such a graph, as they are shown to people.
///
/// # Panics
/// Like [`compile`].
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

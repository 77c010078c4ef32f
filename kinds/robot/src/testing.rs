//! For the tests: a node alone, with the parameters that a spec would give it.

use std::path::{Path, PathBuf};

use sinew_core::catalogue::{Kind, ParameterValue};
use sinew_core::{Fault, NodeEntry, NodeFixture, Parameters};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

/// The folder of the example.
pub(crate) fn graph() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

/// A node with default parameters but for `given` (name and value as in a spec), 1 ms.
pub(crate) fn fixture(
    entry: &NodeEntry,
    base: &Path,
    given: &[(&str, &str)],
) -> Result<NodeFixture, Fault> {
    let values = values(entry.kind, given);
    let parameters = Parameters {
        kind: entry.kind,
        values: &values,
        base,
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![],
        home: None,
    };
    NodeFixture::new(entry, &parameters)
}

/// One value for each parameter of a kind, as a spec with such a node would give them.
fn values(kind: &'static Kind, given: &[(&str, &str)]) -> Vec<ParameterValue> {
    let alone: &'static Kind = Box::leak(Box::new(Kind { ports: &[], ..*kind }));
    let given: String = given.iter().map(|(name, value)| format!(", {name}: {value}")).collect();
    let node = format!("{{kind: {}, name: alone, domain: control{given}}}", kind.name);
    let text = format!(
        "name: test\ndomains: {{control: {{realtime: {{period: 1ms}}}}}}\nnodes: [{node}]\n"
    );
    let source = SpecSource::of("test.yaml", &text);
    let plan = compile(&source, &[alone], &TargetMachine::of(vec![0]));
    plan.unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false))).nodes.remove(0).values
}

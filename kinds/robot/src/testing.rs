//! For the tests: a node alone, with the parameters that a spec would give it.

use std::path::{Path, PathBuf};

use sinew_core::{Fault, NodeEntry, NodeFixture, Parameters};
use sinew_spec::alone;

/// The folder of the example graph.
pub(crate) fn graph() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

/// A node with default parameters except those in `given` (name and value as in a spec), and a
/// period of 1 ms.
pub(crate) fn fixture(
    entry: &NodeEntry,
    base: &Path,
    given: &[(&str, &str)],
) -> Result<NodeFixture, Fault> {
    with(entry, base, given, |parameters| NodeFixture::new(entry, parameters))
}

/// Calls `what` with the parameters of such a node.
pub(crate) fn with<T>(
    entry: &NodeEntry,
    base: &Path,
    given: &[(&str, &str)],
    what: impl FnOnce(&Parameters<'_>) -> T,
) -> T {
    let node = alone(entry.kind, given, "").unwrap_or_else(|bad| panic!("{bad}"));
    what(&Parameters {
        kind: entry.kind,
        values: &node.values,
        base,
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![],
        home: None,
    })
}

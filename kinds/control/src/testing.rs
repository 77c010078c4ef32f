//! For the tests: a node alone, and the answers of a reference program to the same question.

#[path = "../../../tests/python/scipy.rs"]
mod scipy;

use std::time::Duration;

use sinew_core::{Fault, NodeEntry, NodeFixture, Parameters};
use sinew_spec::alone;

pub(crate) use self::scipy::reference;

/// The period of all nodes in the tests.
const PERIOD: Duration = Duration::from_millis(1);

/// A node with default parameters except those in `given` (name and value as in a spec), and a
/// period of 1 ms.
pub(crate) fn fixture(entry: &NodeEntry, given: &[(&str, &str)]) -> Result<NodeFixture, Fault> {
    fixture_in(entry, given, "")
}

/// Like `fixture`, in a graph with these lines, such as `messages: {axis: {position_rad: f64}}`.
///
/// # Panics
/// With the compiler's error, if it refuses the node.
pub(crate) fn fixture_in(
    entry: &NodeEntry,
    given: &[(&str, &str)],
    graph: &str,
) -> Result<NodeFixture, Fault> {
    let node = alone(entry.kind, given, graph).unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters::alone(node.kind, &node.values, PERIOD);
    NodeFixture::new(&NodeEntry { kind: node.kind, ..*entry }, &parameters)
}

/// Tunes a node of [`fixture`] to the values that it would be made with now. Returns how often that
/// allocates.
pub(crate) fn tune(
    node: &mut NodeFixture,
    entry: &NodeEntry,
    given: &[(&str, &str)],
) -> Result<u64, Fault> {
    let tuned = alone(entry.kind, given, "").unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters::alone(tuned.kind, &tuned.values, PERIOD);
    let mut taken = Ok(());
    let counted = allocation_counter::measure(|| taken = node.tune(&parameters));
    taken.map(|()| counted.count_total)
}

/// Checks numbers against a reference: within 1e-9 of the greatest of them.
pub(crate) fn hold(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}: as many numbers");
    let scale = theirs.iter().fold(1.0, |most: f64, number| most.max(number.abs()));
    for (at, (our, their)) in ours.iter().zip(theirs).enumerate() {
        let off = (our - their).abs() / scale;
        assert!(off <= 1e-9, "{what}: number {at} is {our}, the reference says {their}");
    }
}

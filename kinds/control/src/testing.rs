//! For the tests: a node alone, and the answers of somebody else to the same question.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use sinew_core::{Fault, NodeEntry, NodeFixture, Parameters};
use sinew_spec::alone;

/// A node with default parameters but for `given` (name and value as in a spec), 1 ms.
pub(crate) fn fixture(entry: &NodeEntry, given: &[(&str, &str)]) -> Result<NodeFixture, Fault> {
    fixture_in(entry, given, "")
}

/// The same in a graph with these lines, such as `messages: {axis: {position_rad: f64}}`.
///
/// # Panics
/// With what the compiler says, if it refuses the node.
pub(crate) fn fixture_in(
    entry: &NodeEntry,
    given: &[(&str, &str)],
    graph: &str,
) -> Result<NodeFixture, Fault> {
    let node = alone(entry.kind, given, graph).unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters {
        kind: node.kind,
        values: &node.values,
        base: Path::new("."),
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![],
        home: None,
    };
    NodeFixture::new(&NodeEntry { kind: node.kind, ..*entry }, &parameters)
}

/// Gives a node of [`fixture`] the values that it would be made with now; how often that allocates.
pub(crate) fn tune(
    node: &mut NodeFixture,
    entry: &NodeEntry,
    given: &[(&str, &str)],
) -> Result<u64, Fault> {
    let tuned = alone(entry.kind, given, "").unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters {
        kind: tuned.kind,
        values: &tuned.values,
        base: Path::new(""),
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![],
        home: None,
    };
    let mut taken = Ok(());
    let counted = allocation_counter::measure(|| taken = node.tune(&parameters));
    taken.map(|()| counted.count_total)
}

/// What scipy answers: function `question` of a file in `tests/reference`,
/// such as `filters.butterworth`, given `with`. `None`, and said,
/// if there is no scipy here; in CI that is a failure.
pub(crate) fn reference(question: &str, with: &Json) -> Option<Vec<f64>> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import scipy"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        let lacks = format!(
            "'{python}' cannot import scipy; install tests/python/requirements.txt, or name \
             another in SINEW_TEST_PYTHON"
        );
        assert!(std::env::var_os("CI").is_none(), "{lacks}");
        let _ = writeln!(std::io::stderr(), "skipped: {lacks}");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/ask.py");
    let mut child = Command::new(&python)
        .arg(script)
        .arg(question)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    write!(child.stdin.take().expect("piped"), "{with}").expect("python reads");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{question} failed");
    Some(serde_json::from_slice(&output.stdout).expect("a list of numbers"))
}

/// Holds numbers against those of a reference: within 1e-9 of the greatest of them.
pub(crate) fn hold(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}: as many numbers");
    let scale = theirs.iter().fold(1.0, |most: f64, number| most.max(number.abs()));
    for (at, (our, their)) in ours.iter().zip(theirs).enumerate() {
        let off = (our - their).abs() / scale;
        assert!(off <= 1e-9, "{what}: number {at} is {our}, the reference says {their}");
    }
}
